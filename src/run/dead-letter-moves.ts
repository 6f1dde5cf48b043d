// Puts dead letters back for their sink or deletes them, as the operator requests. Within the caller's transaction, so
// that each event is always in exactly one of the two.

import type { Config } from '../config/index.ts';
import type { HeldDeadLetter, OperatorRequest, Store } from '../hold/index.ts';
import { selectionFor } from '../send/index.ts';

/** The dead letters of a request, and the action. */
export type DeadLetterWish = Extract<OperatorRequest, { what: 'letters' }>;

/** The number moved, by sink, and the number kept, by reason. */
export interface Moved {
  readonly moved: Readonly<Record<string, number>>;
  readonly stuck: Readonly<Record<string, number>>;
}

/** The existing dead letters that a request names. */
export function deadLettersOf(
  store: Store,
  { letters: named }: DeadLetterWish,
): readonly HeldDeadLetter[] {
  const requested = new Set(named.map(([id, uid]) => `${id} ${uid}`));
  return store.deadLetters.list(null).filter(({ id, uid }) => requested.has(`${id} ${uid}`));
}

/** Moves them. A dead letter is kept if its sink has left the config or no route leads there. */
export function moveDeadLetters(
  store: Store,
  deadLetters: readonly HeldDeadLetter[],
  does: DeadLetterWish['does'],
  config: Config,
): Moved {
  const now = Date.now();
  if (does === 'drop') {
    store.dropDeadLetters(deadLetters, now);
    return { moved: countedBy(deadLetters, ({ sink }) => sink), stuck: {} };
  }
  const stuck = deadLetters.flatMap((deadLetter) => whyNot(deadLetter, config) ?? []);
  const put = deadLetters.filter(
    (deadLetter) => whyNot(deadLetter, config) === null && store.putBack(deadLetter, now),
  );
  return { moved: countedBy(put, ({ sink }) => sink), stuck: countedBy(stuck, (why) => why) };
}

function countedBy<T>(all: readonly T[], of: (one: T) => string): Readonly<Record<string, number>> {
  const groups = [...Map.groupBy(all, of)].map(([key, { length }]) => [key, length] as const);
  return Object.fromEntries(groups);
}

function whyNot({ sink, context }: HeldDeadLetter, { sinks, routes }: Config): string | null {
  if (!Object.hasOwn(sinks, sink)) return `the sink ${sink} is not in the config`;
  const selection = selectionFor(routes, { source: context.source, sink }, () => undefined);
  return selection === null ? `no route leads from ${context.source} to ${sink}` : null;
}

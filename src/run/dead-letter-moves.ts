// What operators decide about dead letters: to put them back for their sink, or to delete them for
// good. Within the caller's transaction, so that each is in one of the two places at every moment.

import type { Config } from '../config/index.ts';
import type { HeldDeadLetter, Store, Wish } from '../hold/index.ts';
import { selectionFor } from '../send/index.ts';

/** Which letters, and what is to become of them. */
export type DeadLetterWish = Extract<Wish, { what: 'letters' }>;

/** How many were moved, by sink, and how many stay, by the reason. */
export interface Moved {
  readonly moved: Readonly<Record<string, number>>;
  readonly stuck: Readonly<Record<string, number>>;
}

/** The letters that a wish names and that are still there. */
export function deadLettersOf(
  store: Store,
  { letters }: DeadLetterWish,
): readonly HeldDeadLetter[] {
  const requested = new Set(letters.map(([id, uid]) => `${id} ${uid}`));
  return store.deadLetters.list(null).filter(({ id, uid }) => requested.has(`${id} ${uid}`));
}

/** Moves them. What would go nowhere stays: its sink has left the config, or no route leads there. */
export function moveDeadLetters(
  store: Store,
  letters: readonly HeldDeadLetter[],
  does: DeadLetterWish['does'],
  config: Config,
): Moved {
  const now = Date.now();
  if (does === 'drop') {
    store.dropDeadLetters(letters, now);
    return { moved: countedBy(letters, ({ sink }) => sink), stuck: {} };
  }
  const stuck = letters.flatMap((deadLetter) => whyNot(deadLetter, config) ?? []);
  const put = letters.filter(
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

// Requests of operators that change the stored state and nothing else: checkpoints, dead letters,
// removed sinks and the list of backfills. A running process and a command without one make the
// change with the same code. Invariant: a change and its answer are one transaction of the caller.

import type { Config } from '../config/index.ts';
import { backlog, ExportError, type JsonObject } from '../contracts/index.ts';
import type { HeldDeadLetter, OperatorRequest, Store } from '../hold/index.ts';
import { carryOutAbout } from '../hold/open.ts';
import { selectionFor } from '../send/index.ts';
import { resetStream, rewindStream } from './checkpoint-moves.ts';

/** A request that needs no pipeline. */
export type Move = Exclude<
  OperatorRequest,
  { what: 'retry' } | { what: 'give_up' } | { what: 'cut_over' } | { what: 'backfill' }
>;

/** What a change depends on. */
export interface MoveDeps {
  readonly config: Config;
  /** Epoch milliseconds. */
  readonly now: number;
  /** Whether the backfill of a row is being read, so that its reader forgets it. */
  readonly isRead: (row: number) => boolean;
}

/** Makes the change within the caller's transaction; returns the answer. Throws an ExportError, and then nothing may be committed. */
export function makeMove(
  store: Store,
  { name, wish }: { readonly name: string; readonly wish: Move },
  { config, now, isRead }: MoveDeps,
): JsonObject {
  switch (wish.what) {
    case 'rewind':
      return { ...rewindStream(store, { config, stream: name, rewind: wish }) };
    case 'reset':
      return { forgotten: resetStream(store, name, wish.forget) };
    case 'letters':
      return { ...moveDeadLetters(store, deadLettersOf(store, wish), wish.does, config) };
    case 'remove_sink':
      return { ...removeSink(store, name, Object.keys(config.sinks)) };
    case 'begin_backfill':
    case 'about_backfill': {
      const request = carryOutAbout(store, { name, wish }, { now, isRead });
      return { request: request && { ...request } } as unknown as JsonObject;
    }
  }
}

// Puts dead letters back for their sink or deletes them, as the operator requests. Within the caller's transaction, so
// that each event is always in exactly one of the two.

/** The dead letters of a request, and the action. */
type DeadLetterWish = Extract<OperatorRequest, { what: 'letters' }>;

/** The number moved, by sink, and the number kept, by reason. */
interface Moved {
  readonly moved: Readonly<Record<string, number>>;
  readonly stuck: Readonly<Record<string, number>>;
}

/** The existing dead letters that a request names. */
function deadLettersOf(
  store: Store,
  { letters: named }: DeadLetterWish,
): readonly HeldDeadLetter[] {
  const requested = new Set(named.map(([id, uid]) => `${id} ${uid}`));
  return store.deadLetters.list(null).filter(({ id, uid }) => requested.has(`${id} ${uid}`));
}

/** Moves them. A dead letter is kept if its sink has left the config or no route leads there. */
function moveDeadLetters(
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

// Deletes the events that are retained for a removed sink, at an operator's request. Invariant: a sink that a running
// process has is never removed, and its dead letters are kept.

/** The deleted events. */
interface GivenUp {
  /** Events that were kept for it, those set aside included. */
  readonly events: number;
}

/**
 * Deletes a sink from the state, within the caller's transaction. `running`: the sinks of the running config. Throws
 * `config_invalid` if a running process has the sink, or the state does not.
 */
export function removeSink(store: Store, name: string, running: readonly string[]): GivenUp {
  const { knownSinks } = store;
  const known = knownSinks.all().get(name);
  const isKnown = known !== undefined || store.positions().has(name);
  if (running.includes(name)) throw refused(name);
  if (!isKnown) {
    throw new ExportError('config_invalid', `the state knows no sink ${name}`, {
      next: 'sluice sinks lists the sinks that it knows. Nothing was changed.',
    });
  }
  const pending = known?.keeps === true ? backlog(store.gauge(), knownSinks.neededFrom(known)) : 0;
  knownSinks.forget(name);
  return { events: pending + store.aside.forget(name) };
}

function refused(name: string): ExportError {
  return new ExportError('config_invalid', `a running process has the sink ${name}`, {
    next: 'Remove it from the config first: restart without it, or reload with --allow-removal. Nothing was changed.',
  });
}

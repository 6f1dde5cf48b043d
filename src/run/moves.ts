// Requests of operators that change the stored state and nothing else: checkpoints, dead letters,
// removed sinks and the list of backfills. A running process and a command without one make the
// change with the same code. Invariant: a change and its answer are one transaction of the caller.

import type { Config } from '../config/index.ts';
import type { JsonObject } from '../contracts/index.ts';
import type { OperatorRequest, Store } from '../hold/index.ts';
import { carryOutAbout } from '../hold/open.ts';
import { resetStream, rewindStream } from './checkpoint-moves.ts';
import { deadLettersOf, moveDeadLetters } from './dead-letter-moves.ts';
import { removeSink } from './give-up-sink.ts';

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

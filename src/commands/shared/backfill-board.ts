// Where a backfill is asked for and looked at: in the state of this machine, or, with a state in
// Kafka and nothing running here, by commands to whoever works there.

import { z } from 'zod';
import type { Config } from '../../config/config.ts';
import {
  askForBackfill,
  type BackfillProgress,
  type BackfillRequest,
  backfillsIn,
  type Past,
  readProgress,
  stopBackfill,
} from '../../hold/backfills.ts';
import { holderOf } from '../../hold/lock.ts';
import { parsedObject, type Wish } from '../../hold/requests.ts';
import { changeState } from '../../hold/store.ts';
import { cleanText } from '../../tools/clean-text.ts';
import { askAtWork } from './process-requests.ts';

/** Where it is asked for. */
export interface BackfillBoardOptions {
  /** Who reads it; null: nobody does for now. */
  readonly holder: () => string | null;
  /** Goes on with one that was asked for alike, unless it is to begin anew. */
  ask(past: Past, isAnew: boolean): Promise<BackfillRequest>;
  /** The request as it stands; undefined where it was cancelled. */
  now(request: BackfillRequest): Promise<BackfillRequest | undefined>;
  /** Has whoever reads it stop, to go on another time. */
  stop(request: BackfillRequest, last: BackfillProgress | null): Promise<void>;
  readonly lookEveryMs: number;
  /** Who has not taken it up by then never will. */
  readonly takenWithinMs: number;
}

/** Of this machine. It is looked at several times a second. */
export function boardHere({ state }: Config): BackfillBoardOptions {
  return {
    holder: () => holderOf(state.dir),
    ask: async (past, isAnew) =>
      changeState(state, (store) =>
        store.transaction(() => askForBackfill(store, past, { now: Date.now(), isAnew })),
      ),
    now: async ({ row }) => backfillsIn(state.dir).find((request) => request.row === row),
    stop: async (request, last) =>
      changeState(state, (store) => stopBackfill(store, request, last)),
    lookEveryMs: 250,
    takenWithinMs: 15_000,
  };
}

/** Of whoever works with a state in Kafka; each look is a command. */
export function remoteBoard(config: Config): BackfillBoardOptions {
  const ask = (name: string, wish: Wish) => askAbout(config, name, wish);
  return {
    holder: () => 'the process that has the state in Kafka',
    async ask({ source, from, to }, isAnew) {
      const asked = await ask(source, { what: 'begin_backfill', from, to, isAnew });
      if (asked === undefined) throw new Error('the backfill command names it');
      return asked;
    },
    now: async ({ source, id }) =>
      await ask(source, { what: 'about_backfill', key: id, does: 'look' }),
    stop: async ({ source, id }) => {
      await ask(source, { what: 'about_backfill', key: id, does: 'stop' });
    },
    lookEveryMs: 1_000,
    takenWithinMs: 60_000,
  };
}

/** Has whoever works with a state in Kafka forget one. */
export async function cancelRemote(config: Config, { source, id }: BackfillRequest): Promise<void> {
  await askAbout(config, source, { what: 'about_backfill', key: id, does: 'cancel' });
}

async function askAbout(config: Config, name: string, wish: Wish) {
  return (await askAtWork(config, { name, wish, shape: answerShape })).request ?? undefined;
}

const textLengthMax = 1_000;

const requestShape = z
  .object({
    ...{ row: z.number(), id: z.string(), source: z.string(), from: z.number(), to: z.number() },
    ...{ isBounded: z.boolean(), askedAt: z.number(), isRequested: z.boolean() },
    progress: z.unknown(),
  })
  .transform(({ progress, ...request }): BackfillRequest => {
    const come = readProgress(parsedObject(JSON.stringify(progress)));
    return { ...request, progress: come && { ...come, error: reported(come.error) } };
  });
const answerShape = z.object({ request: requestShape.nullable() });

function reported(error: BackfillProgress['error']): BackfillProgress['error'] {
  if (!error) return null;
  const [message, next] = [error.message, error.next].map((text) =>
    cleanText(String(text), textLengthMax),
  );
  return { message: message ?? '', next: next ?? '' };
}

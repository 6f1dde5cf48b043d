// Carries out what operators ask of the process that holds the state directory, looked for several
// times a second: streams and sinks that wait are asked now, a stream is rewound while nothing of
// it is under way, dead letters are moved, and backfills are read one after the other. What must stay true: whatever goes
// wrong with a request, it gets an answer, and the journey goes on.

import { asExportError } from '../contracts/errors.ts';
import type { Json } from '../contracts/json.ts';
import { type BackfillProgress, backfillsAmong, carryOutAbout } from '../hold/backfills.ts';
import type { Request } from '../hold/requests.ts';
import { changeState } from '../hold/store.ts';
import type { Pipeline } from '../pipeline.ts';
import { type BackfillDeps, BackfillReading } from './backfill.ts';
import { resetStream, rewindStream } from './checkpoint-moves.ts';
import { deadLettersOf, moveDeadLetters } from './dead-letter-moves.ts';
import { removeSink } from './give-up-sink.ts';
import { turnPair } from './succession.ts';

/** What requests are carried out with. */
export interface RequestDeps extends Omit<BackfillDeps, 'live'> {
  readonly pipeline: Pipeline;
  /** Which backfills are read here. */
  readonly reads: (row: number) => boolean;
}

interface Doing extends RequestDeps {
  /** The backfill that is read now. */
  readonly read: number | null;
}

const lookEveryMs = 250;

/**
 * Carries requests out until stopped; then a backfill that is read stops where it is, which is what
 * this resolves with. Never rejects.
 */
export async function serveRequests(
  deps: RequestDeps,
  stop: AbortSignal,
): Promise<BackfillProgress | null> {
  const { tools } = deps;
  let reading: BackfillReading | null = null;
  while (!stop.aborted) {
    try {
      reading = await look(reading, deps, stop);
    } catch (error) {
      // A full disk, say: it is looked for again.
      if (!stop.aborted)
        tools.log.debug('requests_not_read', 'reading requests failed', { error: String(error) });
    }
    await tools.clock.sleep(lookEveryMs, stop).catch(() => undefined);
  }
  return (await reading?.ended) ?? null;
}

/** Looks once; returns the backfill that is read from then on. */
async function look(
  last: BackfillReading | null,
  deps: RequestDeps,
  stop: AbortSignal,
): Promise<BackfillReading | null> {
  const { spool, pipeline, reads } = deps;
  const pending = (await spool.requests()).filter(({ answer }) => answer === null);
  const read = last === null || last.isOver ? null : last.row;
  for (const request of pending) await carryOut(request, { ...deps, read }, stop);
  if (last !== null && !last.isOver) {
    if (pending.every(({ id }) => id !== last.row)) last.drop();
    return last;
  }
  const next = backfillsAmong(pending).find(({ row }) => reads(row));
  if (next === undefined) return last;
  return new BackfillReading(next, { ...deps, live: () => pipeline.state }, stop);
}

async function carryOut(request: Request, deps: Doing, stop: AbortSignal): Promise<void> {
  const { name, wish } = request;
  const { spool, tools } = deps;
  try {
    const answer = await answerTo(request, deps);
    if (answer !== null) await spool.settle(request.id, answer);
  } catch (error) {
    // Where the process ends first, it is left to the next one.
    if (stop.aborted) return;
    const { code, message, next } = asExportError(error, `carrying out ${wish.what} of ${name}`);
    tools.log.debug('request_failed', 'request failed', { error: message });
    await spool.settle(request.id, { error: { code, message, next } });
  }
}

/** What came of it; null for one that takes long, or is answered with what it has changed. */
async function answerTo({ id, name, wish }: Request, deps: Doing): Promise<Json> {
  const { made, pipeline, spool, tools } = deps;
  switch (wish.what) {
    case 'retry':
      tools.log.info('retry_requested', 'retry requested by an operator', { name });
      return { asked: pipeline.askNow(name).map((asked) => ({ ...asked })) };
    case 'give_up': {
      const suspects = await pipeline.giveUp(name, wish.uids);
      tools.log.info(
        'suspects_dead_lettered',
        'suspects moved to the dead letters by an operator',
        {
          sink: name,
          suspects,
        },
      );
      return { added: suspects };
    }
    case 'rewind': {
      await pipeline.whileStill(name, async () => {
        rewindStream(made().config, name, wish, id);
        await spool.moved(name);
      });
      tools.log.info('stream_rewound', 'stream rewound by an operator', { stream: name });
      return null;
    }
    case 'reset':
      await pipeline.whileStill(name, async () => {
        resetStream(made().config, name, wish.forget, id);
        await spool.moved(name);
      });
      tools.log.info('stream_reset', 'stream reset by an operator', { stream: name });
      return null;
    case 'letters': {
      const { config } = made();
      changeState(config.state, (store) =>
        store.transaction(() => {
          const moved = moveDeadLetters(store, deadLettersOf(store, wish), wish.does, config);
          store.requests.answer(id, { ...moved });
        }),
      );
      tools.log.info('dead_letters_moved', 'dead letters moved by an operator', {
        does: wish.does,
      });
      return null;
    }
    case 'cut_over':
      return await turnPair(name, wish, deps);
    case 'remove_sink':
      changeState(made().config.state, (store) =>
        store.transaction(() => {
          const removed = removeSink(store, name, Object.keys(made().config.sinks));
          store.requests.answer(id, { ...removed });
        }),
      );
      tools.log.info('removed_sink_given_up', 'removed sink given up by an operator', {
        sink: name,
      });
      return null;
    case 'begin_backfill':
    case 'about_backfill': {
      const isRead = (row: number) => row === deps.read;
      changeState(made().config.state, (store) =>
        store.transaction(() => {
          const how = { now: tools.clock.now(), isRead };
          const request = carryOutAbout(store, { name, wish }, how);
          store.requests.answer(id, { request: request && { ...request } } as unknown as Json);
        }),
      );
      return null;
    }
    case 'backfill':
      return null;
  }
}

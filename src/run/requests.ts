// Executes the requests of operators in the process that holds the state directory, checked several times a second:
// waiting streams and sinks are retried, a stream is rewound while none of its work is under way, dead letters are
// moved, and backfills are read one after the other. Invariant: every request gets a reply, whatever fails, and a
// failed request never stops the journey.

import { asExportError, type Json, type Log } from '../contracts/index.ts';
import { changeState, type Request } from '../hold/index.ts';
import { type BackfillProgress, backfillsAmong } from '../hold/open.ts';
import type { Pipeline } from '../pipeline.ts';
import { BackfillReading, type BackfillReadingDeps } from './backfill.ts';
import { type Move, makeMove } from './moves.ts';
import { turnPair } from './succession.ts';

/** The dependencies of the requests. */
export interface RequestDeps extends Omit<BackfillReadingDeps, 'live'> {
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
 * Executes requests until stopped; then a running backfill stops at its current position, which is the result. Never
 * rejects.
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
      // For example a full disk: the next check retries.
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

/** The reply; null for a request that takes long, or whose reply is stored with its change. */
async function answerTo(request: Request, deps: Doing): Promise<Json> {
  const { name, wish } = request;
  const { pipeline, tools } = deps;
  switch (wish.what) {
    case 'retry':
      tools.log.info('retry_requested', 'retry requested by an operator', { name });
      return { asked: pipeline.retryNow(name).map((asked) => ({ ...asked })) };
    case 'give_up': {
      const suspects = await pipeline.giveUp(name, wish.uids);
      tools.log.info(
        'suspects_dead_lettered',
        'suspects moved to the dead letters by an operator',
        { sink: name, suspects },
      );
      return { added: suspects };
    }
    case 'cut_over':
      return await turnPair(name, wish, deps);
    case 'backfill':
      return null;
    default:
      await move(request, wish, deps);
      reportMove(name, wish, tools.log);
      return null;
  }
}

async function move({ id, name }: Request, wish: Move, deps: Doing): Promise<void> {
  const { made, pipeline, spool, tools, read } = deps;
  const change = () => {
    const { config } = made();
    changeState(config.state, (store) =>
      store.transaction(() => {
        const how = { config, now: tools.clock.now(), isRead: (row: number) => row === read };
        store.requests.answer(id, makeMove(store, { name, wish }, how));
      }),
    );
  };
  if (wish.what !== 'rewind' && wish.what !== 'reset') return change();
  await pipeline.whileStill(name, async () => {
    change();
    await spool.moved(name);
  });
}

function reportMove(name: string, wish: Move, log: Log): void {
  if (wish.what === 'rewind') {
    log.info('stream_rewound', 'stream rewound by an operator', { stream: name });
  } else if (wish.what === 'reset') {
    log.info('stream_reset', 'stream reset by an operator', { stream: name });
  } else if (wish.what === 'letters') {
    log.info('dead_letters_moved', 'dead letters moved by an operator', { does: wish.does });
  } else if (wish.what === 'remove_sink') {
    log.info('removed_sink_given_up', 'removed sink given up by an operator', { sink: name });
  }
}

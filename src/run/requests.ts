// Executes the requests of operators in the process that holds the state directory, checked several times a second:
// waiting streams and sinks are retried, a stream is rewound while none of its work is under way, dead letters are
// moved, and backfills are read one after the other. Invariants: every request gets a reply, whatever fails, and a
// failed request never stops the journey; a request that its command has withdrawn is not executed.

import { asExportError, type Json, type Log } from '../contracts/index.ts';
import { changeState, endedFirst, type Request } from '../hold/index.ts';
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
  /** By row, since when it has an answer that no command reads, on the monotonic clock. */
  readonly unread: Map<number, number>;
}

const lookEveryMs = 250;
/** A command reads its answer at once, and waits for 20 s at most: after this time it was killed. */
const unreadMsMax = 60_000;

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
  let isFirst = true;
  const unread = new Map<number, number>();
  while (!stop.aborted) {
    try {
      if (isFirst) await settleBegun(deps);
      isFirst = false;
      reading = await look(reading, { ...deps, unread }, stop);
    } catch (error) {
      // For example a full disk: the next check retries.
      if (!stop.aborted)
        tools.log.debug('requests_not_read', 'reading requests failed', { error: String(error) });
    }
    await tools.clock.sleep(lookEveryMs, stop).catch(() => undefined);
  }
  return (await reading?.ended) ?? null;
}

/** Answers the requests of other machines that an earlier process may have carried out in part: their change has no answer with it. */
async function settleBegun({ spool }: RequestDeps): Promise<void> {
  for (const { id, name, wish, command, answer } of await spool.requests()) {
    if (wish.what !== 'give_up' || command === null || answer !== null) continue;
    const { code, message, next } = endedFirst(name);
    await spool.settle(id, { error: { code, message, next } });
  }
}

/** Looks once; returns the backfill that is read from then on. */
async function look(
  last: BackfillReading | null,
  deps: Omit<Doing, 'read'>,
  stop: AbortSignal,
): Promise<BackfillReading | null> {
  const { spool, pipeline, reads } = deps;
  const all = await spool.requests();
  await dropUnread(all, deps);
  const pending = all.filter(({ answer }) => answer === null);
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

/** Deletes answers whose command was killed. The answer to a remote command is not this process's. */
async function dropUnread(
  all: readonly Request[],
  { unread, spool, tools }: Omit<Doing, 'read'>,
): Promise<void> {
  const isLeft = ({ answer, command, wish }: Request) =>
    answer !== null && command === null && wish.what !== 'backfill';
  const left = new Set(all.filter(isLeft).map(({ id }) => id));
  for (const id of unread.keys()) if (!left.has(id)) unread.delete(id);
  const now = tools.clock.monotonic();
  for (const id of left) {
    const since = unread.getOrInsert(id, now);
    if (now - since > unreadMsMax) await spool.withdraw(id);
  }
}

async function carryOut(request: Request, deps: Doing, stop: AbortSignal): Promise<void> {
  const { name, wish } = request;
  const { spool, tools } = deps;
  try {
    // Earlier requests may have taken longer than its command waits.
    if (!(await spool.requests()).some(({ id }) => id === request.id)) return;
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
      await turnPair(name, wish, deps, request.id);
      return null;
    case 'backfill':
      return null;
    default:
      if (await move(request, wish, deps)) reportMove(name, wish, tools.log);
      return null;
  }
}

/** False: its command has withdrawn the request, and said that nothing was changed. */
async function move({ id, name }: Request, wish: Move, deps: Doing): Promise<boolean> {
  const { made, pipeline, spool, tools, read } = deps;
  const change = () => {
    const { config } = made();
    return changeState(config.state, (store) =>
      store.transaction(() => {
        if (!store.requests.isOpen(id)) return false;
        const how = { config, now: tools.clock.now(), isRead: (row: number) => row === read };
        store.requests.answer(id, makeMove(store, { name, wish }, how));
        return true;
      }),
    );
  };
  if (wish.what !== 'rewind' && wish.what !== 'reset') return change();
  return await pipeline.whileStill(name, async () => {
    const isMade = change();
    if (isMade) await spool.moved(name);
    return isMade;
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

// Reads past events for the sinks, again or for the first time. Upstream documents no time filter, so the list is
// walked from its start by cursor or offset, and records outside the requested time are dropped on the way to the spool
// (backfill-spool.ts). Invariants: an event has the uid and context that the live stream gives it; an interrupted walk
// resumes at its last committed page, with the same command.

import type { ListReading } from '../contracts/config.ts';
import {
  type Clock,
  ExportError,
  type Failure,
  type FetchSpool,
  type ListStream,
  type Log,
  type Order,
  type Upstream,
} from '../contracts/index.ts';
import { mismatch, type PollResult } from '../poll/index.ts';
import {
  type BackfillCounts,
  type BackfillSpool,
  backfillSpool,
  type Span,
} from './backfill-spool.ts';
import { parseListCheckpoint } from './checkpoint.ts';
import { follow } from './follow.ts';
import { firstPosition, isFirst } from './page.ts';
import { type ListDeps, ListReader } from './reader.ts';
import { recordTime } from './record-time.ts';
import type { Taken } from './stage.ts';
import type { Walk } from './walk.ts';
import { EmptyRuns } from './walk-end.ts';

/** A past time of a source's lists, to be read to its end. */
export interface PastTime {
  readonly span: Span;
  /** Suffix of the names of the streams' memory; no stream name ends so. */
  readonly memory: string;
  /** Waits before each request so that the live streams keep their rate. */
  readonly paceOf: (stream: ListStream) => (signal: AbortSignal) => Promise<void>;
}

/** Dependencies of one stream's backfill. */
export interface BackfillDeps extends Pick<ListDeps, 'inFlight' | 'found'> {
  readonly stream: ListStream;
  readonly list: Pick<ListReading, 'order' | 'lookbackMs'>;
  readonly span: Span;
  /** The name of its checkpoint. */
  readonly key: string;
  readonly spool: FetchSpool;
  readonly clock: Clock;
  readonly log: Log;
  readonly pace: (signal: AbortSignal) => Promise<void>;
}

/** The progress of a stream's backfill. */
export interface BackfillState extends Omit<BackfillCounts, 'firstAt'> {
  /** Progress from 0 to 1, estimated from event times; null: unknown. */
  readonly share: number | null;
}

/** Reads the past of one list stream. */
export class Backfill {
  readonly #deps: BackfillDeps;
  readonly #spool: BackfillSpool;
  readonly #reader: ListReader;
  readonly #empties = new EmptyRuns();
  #order: Order | 'unknown' = 'unknown';

  constructor(deps: BackfillDeps) {
    this.#deps = deps;
    const { stream, span, key, spool, clock, log, pace, inFlight, found } = deps;
    this.#spool = backfillSpool({ spool, key, span, time: stream.time });
    const get: Upstream['get'] = async (request, signal) => {
      await pace(signal);
      return await stream.upstream.get(request, signal);
    };
    this.#reader = new ListReader({
      stream: { ...stream, upstream: { get } },
      spool: this.#spool.view,
      clock,
      log,
      order: 'auto',
      start: 'beginning',
      // It never reads anything twice.
      patienceMs: 0,
      lookbackMs: deps.list.lookbackMs,
      inFlight,
      found,
    });
  }

  get state(): BackfillState {
    const { firstAt: _, ...counts } = this.#spool.counts;
    return { ...counts, share: this.#share() };
  }

  /** Continues to the end of the list or of the requested time. Upstream failures are results, never exceptions. */
  async poll(signal: AbortSignal): Promise<PollResult> {
    try {
      const { whole } = await this.#reader.load();
      if (whole.swept) return { outcome: 'done', fresh: 0, more: false };
      this.#order = await this.#orderOfLive();
      const walk = this.#walk();
      const empties = this.#empties.before(walk.from.resume);
      const walked = await follow(this.#reader, { ...walk, empties }, signal);
      if (walked.outcome !== 'ok') return await this.#failed(walked);
      const { fresh, paused, next } = walked;
      this.#empties.keep(next, empties);
      if (paused !== null) return { outcome: 'done', fresh, more: true };
      await this.#reader.commit({ whole: { swept: true } });
      return { outcome: 'done', fresh, more: false };
    } catch (error) {
      this.#reader.discard();
      if (signal.aborted) throw error;
      if (!(error instanceof ExportError)) throw error;
      if (error.code !== 'checkpoint_mismatch') return { outcome: 'retry', cause: error };
      return mismatch(this.#mismatch(error));
    }
  }

  #walk(): Walk {
    const { resume, overlap, countAnew } = this.#reader.checkpoint.end;
    const { stream, span, list } = this.#deps;
    const first = firstPosition(stream.pagination, span.fromMs - list.lookbackMs);
    // Records without ids are distinguished by counting them from the start of the list.
    const isRestart = resume === null || countAnew;
    let { firstAt } = this.#spool.counts;
    return {
      from: isRestart ? { resume: first, overlap: null } : { resume, overlap },
      reading: 'known',
      anchored: true,
      trail: false,
      stopAt: (taken) => {
        // The counts of this page become durable later.
        firstAt ??= recordTime(taken.page.records.at(0) ?? null, this.#deps.stream.time);
        return this.#isPast(taken, firstAt);
      },
      step: ({ position, next, pager, taken }) => {
        const { fresh, identified } = taken.judged;
        const isCounted = fresh.some((index) => identified.named[index] === 0);
        return {
          end: {
            ...(next === null ? {} : pager.resume(position, next)),
            ...(isCounted ? { countAnew: true } : {}),
          },
        };
      },
    };
  }

  /**
   * A list with a known order is past the requested time once it is past by more than the lateness of records. The
   * known order may be wrong or outdated, so the walk itself must have moved in that direction.
   */
  #isPast({ span: reached }: Taken, begunAt: number | null): boolean {
    const { span, list } = this.#deps;
    if (reached === null || begunAt === null) return false;
    if (this.#order === 'newest_first') {
      return reached.latest < span.fromMs - list.lookbackMs && reached.latest < begunAt;
    }
    return (
      this.#order === 'oldest_first' &&
      reached.earliest > span.toMs + list.lookbackMs &&
      reached.earliest > begunAt
    );
  }

  /** The order as the config pins it or the live stream has learned it. */
  async #orderOfLive(): Promise<Order | 'unknown'> {
    const { list, spool, stream } = this.#deps;
    if (list.order !== 'auto') return list.order;
    const { checkpoint } = await spool.recall(stream.name);
    return parseListCheckpoint(checkpoint)?.growth.order ?? 'unknown';
  }

  /** A rejected position costs a walk from the start of the list, without repeats. */
  async #failed(failure: Failure): Promise<PollResult> {
    this.#reader.discard();
    const { resume } = (await this.#reader.load()).end;
    const restart = { end: { resume: null, overlap: null } };
    if (failure.about === 'sort') {
      // The list now has another order, so it is walked from its start.
      await this.#reader.commit({ server: { unsorted: true }, ...restart });
      return { outcome: 'retry', cause: failure.cause };
    }
    if (failure.outcome !== 'refused' || resume === null || isFirst(resume)) {
      return failure;
    }
    await this.#reader.commit(restart);
    return { outcome: 'retry', cause: failure.cause };
  }

  #mismatch(cause: ExportError): ExportError {
    const { name } = this.#deps.stream;
    const what = 'its list is requested in another way than at the start of the backfill';
    return new ExportError('checkpoint_mismatch', `backfilling ${name}: ${what}`, {
      next: 'Restart it: the same command line with --restart.',
      cause,
    });
  }

  /** Estimated from the time reached, between the start and the goal of the walk. */
  #share(): number | null {
    const { firstAt, reachedAt } = this.#spool.counts;
    if (this.#reader.loaded?.whole.swept === true) return 1;
    if (firstAt === null || reachedAt === null || firstAt === reachedAt) return null;
    const goal = this.#goal(reachedAt > firstAt);
    if (goal === null || goal === firstAt) return null;
    return Math.min(1, Math.max(0, (reachedAt - firstAt) / (goal - firstAt)));
  }

  /** The time at which the walk ends; null: the length of the list's history is unknown. */
  #goal(isForward: boolean): number | null {
    const { span, list, clock } = this.#deps;
    const isKnown = this.#order !== 'unknown';
    if (!isForward) return isKnown ? span.fromMs - list.lookbackMs : null;
    return isKnown ? Math.min(clock.now(), span.toMs + list.lookbackMs) : clock.now();
  }
}

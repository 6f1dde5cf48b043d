// How a list is read so that nothing is lost under any server that the upstream documents allow.
// They show no order, no time filter and no lifetime of cursors, so where new records turn up is
// learned, and never quite believed:
//
//   end     asks the last cursor that worked again, and follows on: what is new in a list that grows at its end
//   start   walks from the first page down to what is known: what is new in a list that grows at its start
//   back    from a cursor of some minutes ago to the end: records that came late
//   round   the whole list, a few pages at each poll: what nothing else has shown
//
// While the order is unknown each poll reads both ends, and where new records come in teaches it.
// Once it is learned, the other end is looked at now and then. A round begins each
// `reconcile_every`; only a record that came through the end shows that the end can be trusted, and
// while one has lately a round a day is enough. So a record that upstream shows for longer is held,
// wherever in the list it stands. What must stay true: every step forward is committed with the
// page that justifies it, and an error is never taken for the end of a list.

import type { Failure } from '../../contracts/answer.ts';
import { ExportError } from '../../contracts/errors.ts';
import { mismatch, type PollResult, passingMs } from '../outcome.ts';
import { knowsEnd, type ListCheckpoint, roundRequested } from './checkpoint.ts';
import { noHorizon } from './horizon.ts';
import { isPartialPage, samePlace } from './page.ts';
import { type Doubt, doubtAfter, doubtError, doubtFinding, isPartRead } from './paging-doubt.ts';
import { type ListTimes, Poll, type PollMemory } from './poll.ts';
import { rewind } from './read-back.ts';
import { readEnd } from './read-end.ts';
import { isBlind, readRound, roundEveryMs } from './read-round.ts';
import { readStart } from './read-start.ts';
import type { ListReader } from './reader.ts';
import { isScopeLost, resetFinding, scopeFinding } from './recover.ts';
import { EmptyRuns } from './tail.ts';

/** Reads one list stream, a poll at a time. */
export class ListPoller {
  readonly #reader: ListReader;
  readonly #settings: ListTimes;
  readonly #memory: PollMemory = {
    tally: { counts: new Map(), at: null },
    empties: new EmptyRuns(),
    reached: { pages: 0, most: 0 },
    triedBackAt: null,
    polledAt: null,
    failed: false,
    lostAt: null,
    missed: false,
    reportedEndless: false,
  };

  constructor(reader: ListReader, settings: ListTimes) {
    this.#reader = reader;
    this.#settings = settings;
  }

  /** The checkpoint as committed last; null before the first poll. */
  get checkpoint(): ListCheckpoint | null {
    return this.#reader.loaded;
  }

  /** One poll: up to the tail, or until others have their turn. Never throws for upstream. */
  async poll(signal: AbortSignal): Promise<PollResult> {
    const poll = new Poll(this.#reader, this.#settings, { memory: this.#memory, signal });
    const { steps, loaded } = this.#reader;
    try {
      const result = await this.#read(poll);
      if (result.outcome !== 'done') {
        const isFurther = this.#isFurther(loaded);
        // A part that brings new records each time is no progress: its place stays where it is.
        const hasMore = this.#reader.steps > steps && !isPartialPage(result);
        return { ...result, advanced: isFurther || hasMore };
      }
      Object.assign(this.#memory.reached, { pages: 0, most: 0 });
      return result;
    } catch (error) {
      this.#memory.failed = true;
      this.#reader.discard();
      if (signal.aborted || !(error instanceof ExportError)) throw error;
      return error.code === 'checkpoint_mismatch'
        ? mismatch(error)
        : { outcome: 'retry', cause: error };
    } finally {
      this.#memory.polledAt = poll.begunAt;
    }
  }

  /** Whether a poll that failed has come further: a round that begins anew each time does not. */
  #isFurther(before: ListCheckpoint | null): boolean {
    const { reached } = this.#memory;
    const isFurther = reached.pages > reached.most;
    reached.most = Math.max(reached.most, reached.pages);
    const resume = this.#reader.loaded?.end.resume ?? null;
    return isFurther || !samePlace(before?.end.resume ?? null, resume);
  }

  async #read(poll: Poll): Promise<PollResult> {
    await this.#reader.load();
    await poll.begin();
    const failure = (await readEnds(poll)) ?? (await lookFurther(poll));
    if (failure !== null) {
      poll.signal.throwIfAborted();
      this.#memory.failed = true;
      // What was judged but not committed is not known after all.
      this.#reader.discard();
      await this.#reader.load();
      return await this.#failed(poll, failure);
    }
    await poll.commit({ told: { scopeLost: false } }, this.#reader.unreported());
    const { suspected } = poll.checkpoint.told;
    const doubt = await this.#suspect(poll, doubtAfter(suspected, poll.verdicts));
    this.#memory.lostAt = null;
    this.#memory.failed = false;
    const { fresh, more } = poll;
    return { outcome: 'done', fresh, more, ...(doubt === null ? {} : { doubt }) };
  }

  /** Keeps what is doubted, and tells it once. */
  async #suspect(poll: Poll, suspected: Doubt | null): Promise<ExportError | null> {
    const { stream } = this.#reader.deps;
    const isNew = suspected !== null && suspected.sign !== poll.checkpoint.told.suspected?.sign;
    await poll.commit({ told: { suspected } }, isNew ? [doubtFinding(stream, suspected)] : []);
    return suspected && doubtError(stream, suspected);
  }

  /** What a failure leads to. A cursor that dies in a walk costs no more than another walk. */
  async #failed(poll: Poll, failure: Failure): Promise<PollResult> {
    const { about, cause } = failure;
    const { stream } = this.#reader.deps;
    if (isPartRead(failure)) {
      await this.#suspect(poll, failure.doubt);
      return failure;
    }
    if (about === 'sort') {
      if (poll.checkpoint.server.unsorted) return { outcome: 'retry', cause };
      await forgetOrder(poll, cause);
      return { outcome: 'done', fresh: poll.fresh, more: true };
    }
    if (await isScopeLost(this.#reader, failure, poll)) {
      this.#memory.lostAt ??= poll.begunAt;
      const { scopeLost: reported } = poll.checkpoint.told;
      const denied = { ...failure, outcome: 'denied' } as const;
      const isEnd = this.#reader.deps.isMoved?.() === true;
      if (reported || isEnd || poll.begunAt - this.#memory.lostAt < passingMs(failure))
        return denied;
      await poll.commit({ told: { scopeLost: true } }, [scopeFinding(stream.name, cause)]);
      return { ...denied, isDefinite: true };
    }
    const again = about === 'cursor' && this.#settings.onCursorInvalid !== 'halt';
    return again ? { outcome: 'retry', cause } : failure;
  }
}

/** Without the sorting the list is in another order: what is known of its ends is void. */
async function forgetOrder(poll: Poll, cause: ExportError): Promise<void> {
  const { resume } = poll.checkpoint.end;
  const { name } = poll.reader.deps.stream;
  await poll.commit(
    {
      server: { unsorted: true, firstPage: null },
      growth: { order: 'unknown', learnedAt: null },
      end: { resume: null, overlap: null, resumePage: null },
      whole: { round: null },
      start: { openWalk: null },
    },
    resume === null ? [] : [resetFinding(name, 'sorting', cause)],
  );
}

/** Reads the end or ends where new records may turn up. */
async function readEnds(poll: Poll): Promise<Failure | null> {
  const { growth, whole, end } = poll.checkpoint;
  const { order } = growth;
  const { swept, round } = whole;
  // The first round may be stuck for long, and what is new is not to wait for it.
  const isStuck = round !== null && poll.memory.failed;
  const growsAtStart = order !== 'oldest_first' && (swept || isStuck);
  // Where all fits on one page, the end is the start.
  const isOnePage = order !== 'newest_first' && samePlace(end.resume, poll.first);
  const atStart = growsAtStart && !isOnePage ? await readStart(poll) : null;
  if (atStart !== null || poll.more) return atStart;
  const atEnd = order !== 'newest_first' || !swept ? await readEnd(poll) : null;
  if (atEnd === null) await poll.learn();
  return atEnd;
}

/** Looks for what the ends do not show, as far as that is due. */
async function lookFurther(poll: Poll): Promise<Failure | null> {
  const { rewindEveryMs, reconcileEveryMs } = poll.settings;
  const { growth, memory } = poll.checkpoint;
  const { order } = growth;
  if (order === 'oldest_first' && poll.due('rewoundAt', rewindEveryMs)) {
    const failure = await rewind(poll);
    if (failure !== null) return failure;
  }
  if (poll.due('probedAt', reconcileEveryMs)) {
    // What has no time and is forgotten would look new there.
    const isTimed = poll.first.window !== undefined;
    const isStart = order === 'oldest_first' && memory.horizon !== noHorizon && !isTimed;
    const isEnd = order === 'newest_first' && knowsEnd(poll.checkpoint);
    const failure = isStart ? await readStart(poll) : isEnd ? await readEnd(poll) : null;
    if (failure !== null) return failure;
    await poll.commit({ looked: { probedAt: poll.begunAt } });
    await poll.learn();
  }
  const { whole, looked } = poll.checkpoint;
  if ((whole.round !== null && !poll.more) || poll.due('sweptAt', roundEveryMs(poll))) {
    const anew = looked.sweptAt === roundRequested;
    const hurried = anew || isBlind(poll.checkpoint, poll.now);
    const failure = await readRound(poll, { hurried, anew });
    if (failure !== null) return failure;
    await poll.learn();
  }
  return null;
}

// Reads a list so that nothing is lost under any server that the upstream documents allow. The documents state no
// order, no time filter and no lifetime of cursors. So the positions at which new records arrive are learned, and
// checked again and again. Four strategies:
//
// - end (read-end.ts): requests the last cursor that worked, and follows: finds new records of a list that grows at its
//   end
// - start (read-start.ts): walks from the first page to known records: finds new records of a list that grows at its
//   start
// - back (read-back.ts): walks from a cursor of some minutes ago to the end: finds late records
// - full scan (full-scan.ts): walks through the whole list, a few pages at each poll: finds everything else
//
// While the order is unknown, each poll reads both ends, and new records teach the order. Once it is learned, the other
// end is read now and then. A full scan starts each `reconcile_every`. Only a record that arrived through the end
// proves that the end can be trusted; while one did lately, a scan a day is enough. So each record that upstream shows
// for long enough is stored, wherever it is in the list.
//
// Invariants: each step forward is committed with the page that justifies it; an error is never taken for the end of a
// list.

import { ExportError, type Failure } from '../contracts/index.ts';
import { mismatch, type PollResult, passingMs } from '../poll/index.ts';
import { knowsEnd, type ListCheckpoint, noHorizon, scanRequested } from './checkpoint.ts';
import { fullScanEveryMs, isBlind, runFullScan } from './full-scan.ts';
import { isPartialPage, samePosition } from './page.ts';
import { type Doubt, doubtAfter, doubtError, doubtFinding, isPartRead } from './paging-doubt.ts';
import { type ListTimes, Poll, type PollMemory } from './poll.ts';
import { rewind } from './read-back.ts';
import { readEnd } from './read-end.ts';
import { readStart } from './read-start.ts';
import type { ListReader } from './reader.ts';
import { isIgnoredPosition, isScopeLost, resetFinding, scopeFinding } from './recover.ts';
import { EmptyRuns } from './walk-end.ts';

/** Reads one list stream, a poll at a time. */
export class ListPoller {
  readonly #reader: ListReader;
  readonly #settings: ListTimes;
  readonly #memory: PollMemory = {
    tally: null,
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

  /** The checkpoint of the last commit; null before the first poll. */
  get checkpoint(): ListCheckpoint | null {
    return this.#reader.loaded;
  }

  /** How far the clock of its records is ahead (reader.ts); null: not known. */
  get aheadMs(): number | null {
    return this.#reader.aheadMs;
  }

  /**
   * One poll: up to the tail, or until other streams have their turn. Upstream failures are results, never exceptions.
   */
  async poll(signal: AbortSignal): Promise<PollResult> {
    const poll = new Poll(this.#reader, this.#settings, { memory: this.#memory, signal });
    const { steps, loaded } = this.#reader;
    try {
      const result = await this.#read(poll);
      if (result.outcome !== 'done') {
        const isFurther = this.#isFurther(loaded);
        // A partial page with new records is no progress: its position is not passed.
        const hasMore = this.#reader.steps > steps && !isPartialPage(result);
        return { ...result, advanced: isFurther || hasMore };
      }
      Object.assign(this.#memory.reached, { pages: 0, most: 0 });
      if (poll.checkpoint.whole.round === null) this.#memory.tally = null;
      return result;
    } catch (error) {
      this.#memory.failed = true;
      this.#reader.discard();
      if (signal.aborted || !(error instanceof ExportError)) throw error;
      // On a nearly full disk each poll stores some pages and fails: its waits must not grow.
      return error.code === 'checkpoint_mismatch'
        ? mismatch(error)
        : { outcome: 'retry', cause: error, advanced: this.#reader.steps > steps };
    } finally {
      this.#memory.polledAt = poll.begunAt;
    }
  }

  /** Whether a failed poll has advanced; a full scan that restarts each time has not. */
  #isFurther(before: ListCheckpoint | null): boolean {
    const { reached } = this.#memory;
    const isFurther = reached.pages > reached.most;
    reached.most = Math.max(reached.most, reached.pages);
    const resume = this.#reader.loaded?.end.resume ?? null;
    return isFurther || !samePosition(before?.end.resume ?? null, resume);
  }

  async #read(poll: Poll): Promise<PollResult> {
    await this.#reader.load();
    await poll.begin();
    const failure = (await readEnds(poll)) ?? (await lookFurther(poll));
    if (failure !== null) {
      poll.signal.throwIfAborted();
      this.#memory.failed = true;
      // Records that were judged but not committed are unknown again.
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

  /** Stores the doubt, and reports it once. */
  async #suspect(poll: Poll, suspected: Doubt | null): Promise<ExportError | null> {
    const { stream } = this.#reader.deps;
    const isNew = suspected !== null && suspected.sign !== poll.checkpoint.told.suspected?.sign;
    await poll.commit({ told: { suspected } }, isNew ? [doubtFinding(stream, suspected)] : []);
    return suspected && doubtError(stream, suspected);
  }

  /** The result of a failure. A cursor that expires within a walk costs only another walk. */
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
    const isHalt = this.#settings.onCursorInvalid === 'halt' && !isIgnoredPosition(failure);
    const again = about === 'cursor' && !isHalt;
    return again ? { outcome: 'retry', cause } : failure;
  }
}

/** Without the sorting the list has another order: all facts on its ends are void. */
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
    resume === null ? [] : [resetFinding(name, 'upstream no longer accepts the sorting', cause)],
  );
}

/** Reads the end or ends at which new records may arrive. */
async function readEnds(poll: Poll): Promise<Failure | null> {
  const { growth, whole, end } = poll.checkpoint;
  const { order } = growth;
  const { swept, round: scan } = whole;
  // The first full scan may be stuck for long, and new records must not wait for it.
  const isStuck = scan !== null && poll.memory.failed;
  const growsAtStart = order !== 'oldest_first' && (swept || isStuck);
  // If everything fits on one page, the end is the start.
  const isOnePage = order !== 'newest_first' && samePosition(end.resume, poll.first);
  const atStart = growsAtStart && !isOnePage ? await readStart(poll) : null;
  if (atStart !== null || poll.more) return atStart;
  const atEnd = order !== 'newest_first' || !swept ? await readEnd(poll) : null;
  if (atEnd === null) await poll.learn();
  return atEnd;
}

/** Searches for records that the ends do not show, if a search is due. */
async function lookFurther(poll: Poll): Promise<Failure | null> {
  const { rewindEveryMs, reconcileEveryMs } = poll.settings;
  const { growth, memory } = poll.checkpoint;
  const { order } = growth;
  if (order === 'oldest_first' && poll.due('rewoundAt', rewindEveryMs)) {
    const failure = await rewind(poll);
    if (failure !== null) return failure;
  }
  if (poll.due('probedAt', reconcileEveryMs)) {
    // Forgotten records without a time would look new there.
    const isTimed = poll.first.window !== undefined;
    const isStart = order === 'oldest_first' && memory.horizon !== noHorizon && !isTimed;
    const isEnd = order === 'newest_first' && knowsEnd(poll.checkpoint);
    const failure = isStart ? await readStart(poll) : isEnd ? await readEnd(poll) : null;
    if (failure !== null) return failure;
    await poll.commit({ looked: { probedAt: poll.begunAt } });
    await poll.learn();
  }
  const { whole, looked } = poll.checkpoint;
  if ((whole.round !== null && !poll.more) || poll.due('sweptAt', fullScanEveryMs(poll))) {
    const restarts = looked.sweptAt === scanRequested;
    const hurried = restarts || isBlind(poll.checkpoint, poll.now);
    const failure = await runFullScan(poll, { hurried, restarts });
    if (failure !== null) return failure;
    await poll.learn();
  }
  return null;
}

// One poll of a list: the state that its strategies (poller.ts) share, and their findings.

import type { ListReading } from '../contracts/config.ts';
import type { Answer } from '../contracts/index.ts';
import type { Finding } from '../poll/index.ts';
import {
  type CheckpointChange,
  type ListCheckpoint,
  noHorizon,
  scanRequested,
} from './checkpoint.ts';
import { follow } from './follow.ts';
import { orderShown, type WalkGrowth } from './growth.ts';
import { firstPosition, type ListPosition } from './page.ts';
import { type EndVerdicts, totalSign } from './paging-doubt.ts';
import type { ListReader } from './reader.ts';
import { aheadFinding } from './recover.ts';
import type { IdlessTally } from './stage.ts';
import type { EmptyRuns } from './tail.ts';
import type { Walk, Walked } from './walk.ts';

/** The intervals of a list's reading, and the reaction to a rejected cursor. */
export type ListTimes = Omit<ListReading, 'order' | 'start'>;

/** State that is kept from poll to poll, and rebuilt after a restart. */
export interface PollMemory {
  /** Counts of the full scan under way; null: none is under way in this process. */
  tally: IdlessTally | null;
  readonly empties: EmptyRuns;
  /** Pages that this full scan has passed, and the most of any scan since a poll last succeeded. */
  readonly reached: { pages: number; most: number };
  /** When a step back last failed, epoch milliseconds; null: it has not failed since it last worked. */
  triedBackAt: number | null;
  /** Start of the previous poll, epoch milliseconds; null before the first. */
  polledAt: number | null;
  /** An endless list end was logged. */
  reportedEndless: boolean;
  /** The last full scan seemed to miss rows. */
  missed: boolean;
  /** The previous poll failed. */
  failed: boolean;
  /** Since when the company cannot be read, epoch milliseconds; null: it can be, as far as known. */
  lostAt: number | null;
}

/** One poll. */
export class Poll {
  fresh = 0;
  more = false;
  /** Verdicts on the paging from the ends of the list. */
  verdicts: EndVerdicts = {};
  readonly reader: ListReader;
  readonly settings: ListTimes;
  readonly memory: PollMemory;
  readonly signal: AbortSignal;
  readonly begunAt: number;
  #grown = { atStart: false, atEnd: false };

  constructor(
    reader: ListReader,
    settings: ListTimes,
    { memory, signal }: { memory: PollMemory; signal: AbortSignal },
  ) {
    this.reader = reader;
    this.settings = settings;
    this.memory = memory;
    this.signal = signal;
    this.begunAt = reader.deps.clock.now();
  }

  get checkpoint(): ListCheckpoint {
    return this.reader.checkpoint;
  }

  /** The first position of the list. */
  get first(): ListPosition {
    return firstPosition(this.reader.deps.stream.pagination, this.checkpoint.wanted.since);
  }

  get now(): number {
    return this.reader.deps.clock.now();
  }

  /**
   * Event time up to which records at the start of the list count as known, because they may be forgotten; null: none.
   * Records late by at most `lookback` are rather stored twice than lost.
   */
  get forgottenUpTo(): number | null {
    const { whole, memory } = this.checkpoint;
    const { horizon } = memory;
    // Before the first full scan, older records may not have been read yet.
    const isKnown = whole.swept && horizon !== null && horizon !== noHorizon;
    return isKnown ? horizon - this.settings.lookbackMs : null;
  }

  /**
   * True if `everyMs` has passed since and this poll has reached the end so far. A time in the future comes from a
   * clock that was ahead, so its real age is unknown and it counts as due.
   */
  due(last: keyof ListCheckpoint['looked'], everyMs: number): boolean {
    const sinceMs = this.now - this.checkpoint.looked[last];
    return !this.more && (sinceMs >= everyMs || sinceMs < 0);
  }

  /**
   * Prepares a poll. With `start: now`, records from shortly before are not reported but must be known, so that later
   * changes show. If a clock that was ahead noted the last check for late records, the age of that check and the
   * positions of later rows are unknown: a full scan is due. If it noted the start of the
   * list, all records up to then would be skipped: the list starts now, with records late by up to `lookback`.
   */
  async begin(): Promise<void> {
    if (this.checkpoint.looked.rewoundAt > this.begunAt) {
      await this.commit({ looked: { rewoundAt: this.begunAt, sweptAt: scanRequested } });
    }
    const { since, standingBefore } = this.checkpoint.wanted;
    const { start, stream } = this.reader.deps;
    if (since !== null && since > this.begunAt && since !== start) {
      const time = this.begunAt - this.settings.lookbackMs;
      const wanted = { since: time, standingBefore: null };
      await this.commit({ wanted }, [aheadFinding(stream.name, time)]);
      return;
    }
    if (start !== 'now' || standingBefore === null || standingBefore !== since) return;
    await this.commit(this.fromNowOn(standingBefore));
  }

  /** The checkpoint's step to reading from a time on, with up to `lookback` late; epoch milliseconds. */
  fromNowOn(time: number): Pick<ListCheckpoint, 'wanted'> {
    return { wanted: { since: time - this.settings.lookbackMs, standingBefore: time } };
  }

  /** Walks. `growth` has noted the walk's pages. */
  async follow(walk: Walk, growth: WalkGrowth | null = null): Promise<Answer<Walked>> {
    const empties = this.memory.empties.before(walk.from.resume);
    const goesOn = empties.count > 0;
    const walked = await follow(this.reader, { ...walk, empties }, this.signal);
    if (walked.outcome !== 'ok') return walked;
    // Empty pages of an earlier walk are still to be continued.
    const { paused, next } = walked;
    if (paused !== null || goesOn) this.memory.empties.keep(paused === null ? null : next, empties);
    this.fresh += walked.fresh;
    if (walked.leadsOn && !this.memory.reportedEndless) {
      this.memory.reportedEndless = true;
      this.reader.deps.log.warn(
        'empty_pages_ended',
        'empty pages follow the last record; treated as the end, one more is followed per poll',
      );
    }
    this.more ||= walked.paused === 'empty';
    const { page = null, whole = null } = this.verdicts;
    // One of several ends that names a next page is enough.
    this.verdicts = {
      ...this.verdicts,
      ...walked.verdicts,
      ...(page === null ? {} : { page }),
      ...(whole === null ? {} : { whole }),
    };
    if (growth !== null && !walked.restarted) {
      this.#grown = {
        atStart: this.#grown.atStart || growth.atStart,
        atEnd: this.#grown.atEnd || growth.atEnd,
      };
    }
    return walked;
  }

  /** True once, if the list seems longer than the rows read: scan again. */
  missesRows(): boolean {
    const { whole, ...rest } = this.verdicts;
    const isFirst = whole?.sign === totalSign && !this.memory.missed;
    this.memory.missed = isFirst;
    if (!isFirst) return false;
    this.verdicts = rest;
    this.more = true;
    return true;
  }

  /** Commits a checkpoint step without a page, if it changes anything. */
  async commit(change: CheckpointChange, findings: readonly Finding[] = []): Promise<void> {
    if (findings.length === 0 && !this.reader.differs(change)) return;
    await this.reader.commit(change, findings);
  }

  /** Stores the order that the list has shown in this poll. */
  async learn(): Promise<void> {
    const { order: pinned, log } = this.reader.deps;
    const { growth, looked } = this.checkpoint;
    const { order: before } = growth;
    const order = orderShown(before, this.#grown);
    // The growth that raised a question must not answer it.
    this.#grown = { atStart: false, atEnd: false };
    if (order === before || pinned !== 'auto') return;
    log.info('list_order_learned', 'learned the order of the list', { before, order });
    const learnedAt = order === 'unknown' ? null : this.now;
    // The last check for late records looked where they would be in another order.
    const rewoundAt = Math.min(looked.rewoundAt, looked.sweptAt);
    await this.commit({ growth: { order, learnedAt }, looked: { rewoundAt } });
  }
}

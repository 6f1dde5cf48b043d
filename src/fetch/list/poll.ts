// One poll of a list: what its strategies (see poller.ts) share while it lasts, and what they have
// found.

import type { Answer } from '../../contracts/answer.ts';
import type { ListReading } from '../../contracts/definition.ts';
import type { Finding } from '../own-pages.ts';
import { type CheckpointChange, type ListCheckpoint, roundRequested } from './checkpoint.ts';
import { follow } from './follow.ts';
import { orderShown, type WalkGrowth } from './growth.ts';
import { noHorizon } from './horizon.ts';
import { firstPlace, type ListPosition } from './page.ts';
import { type EndVerdicts, totalSign } from './paging-doubt.ts';
import type { ListReader } from './reader.ts';
import type { IdlessTally } from './stage.ts';
import type { EmptyRuns } from './tail.ts';
import type { Walk, Walked } from './walk.ts';

/** The times that a list is read by, and what to do when its cursor has died. */
export type ListTimes = Omit<ListReading, 'order' | 'start'>;

/** What is remembered from poll to poll, and found out again after a restart. */
export interface PollMemory {
  /** Of the round under way. */
  tally: IdlessTally;
  readonly empties: EmptyRuns;
  /** Pages that this round has passed, and the most that any has since a poll ended well. */
  readonly reached: { pages: number; most: number };
  /** When stepping back was tried in vain, epoch milliseconds; null: not since it was not. */
  triedBackAt: number | null;
  /** When the poll before began, epoch milliseconds; null before the first. */
  polledAt: number | null;
  /** That the list leads on at its end was logged. */
  reportedEndless: boolean;
  /** The last round seemed to miss rows. */
  missed: boolean;
  /** It failed. */
  failed: boolean;
  /** Since when the company cannot be read, epoch ms; null: it can, as far as is known. */
  lostAt: number | null;
}

/** One poll. */
export class Poll {
  fresh = 0;
  more = false;
  /** What the list's ends have shown of its paging. */
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

  /** Where the list begins. */
  get first(): ListPosition {
    return firstPlace(this.reader.deps.stream.pagination, this.checkpoint.wanted.since);
  }

  get now(): number {
    return this.reader.deps.clock.now();
  }

  /**
   * Event time up to which records at the list's start count as known, since they may be forgotten;
   * null: none do. Those that are late by no more than `lookback` are rather held twice than not at
   * all.
   */
  get forgottenUpTo(): number | null {
    const { whole, memory } = this.checkpoint;
    const { horizon } = memory;
    // Before the list was read whole, what is older may not have been read yet.
    const isKnown = whole.swept && horizon !== null && horizon !== noHorizon;
    return isKnown ? horizon - this.settings.lookbackMs : null;
  }

  /**
   * True where so much time has passed since, and this poll has come so far. Of a time to come, which
   * a clock has said that was ahead, nobody knows when it was.
   */
  due(last: keyof ListCheckpoint['looked'], everyMs: number): boolean {
    const sinceMs = this.now - this.checkpoint.looked[last];
    return !this.more && (sinceMs >= everyMs || sinceMs < 0);
  }

  /**
   * Before a poll's first page. Of a list that is read from now on, what stands in it from shortly
   * before is not told, yet has to be known, so that what comes late is. And where a clock that was
   * ahead has noted when late records were looked for, it is not known how long ago that was, nor
   * where those stand that have come since: the list is to be read whole.
   */
  async begin(): Promise<void> {
    if (this.checkpoint.looked.rewoundAt > this.begunAt) {
      await this.commit({ looked: { rewoundAt: this.begunAt, sweptAt: roundRequested } });
    }
    const { since, standingBefore } = this.checkpoint.wanted;
    if (this.reader.deps.start !== 'now' || standingBefore === null || standingBefore !== since)
      return;
    await this.commit(this.fromNowOn(standingBefore));
  }

  /** The checkpoint's step to reading from a time on, up to `lookback` late; epoch milliseconds. */
  fromNowOn(time: number): Pick<ListCheckpoint, 'wanted'> {
    return { wanted: { since: time - this.settings.lookbackMs, standingBefore: time } };
  }

  /** Walks; `growth` has noted the walk's pages. */
  async follow(walk: Walk, growth: WalkGrowth | null = null): Promise<Answer<Walked>> {
    const empties = this.memory.empties.before(walk.from.resume);
    const goesOn = empties.count > 0;
    const walked = await follow(this.reader, { ...walk, empties }, this.signal);
    if (walked.outcome !== 'ok') return walked;
    // What another walk has met is still to be gone on with.
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
    // One of several ends that leads on is enough.
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

  /** True where the list seems longer than what was read, for the first time: look again. */
  missesRows(): boolean {
    const { whole, ...rest } = this.verdicts;
    const isFirst = whole?.sign === totalSign && !this.memory.missed;
    this.memory.missed = isFirst;
    if (!isFirst) return false;
    this.verdicts = rest;
    this.more = true;
    return true;
  }

  /** Commits a step of the checkpoint without a page, where it is one. */
  async commit(change: CheckpointChange, findings: readonly Finding[] = []): Promise<void> {
    if (findings.length === 0 && !this.reader.differs(change)) return;
    await this.reader.commit(change, findings);
  }

  /** Takes the list for what it has shown itself to be in this poll. */
  async learn(): Promise<void> {
    const { order: pinned, log } = this.reader.deps;
    const { growth, looked } = this.checkpoint;
    const { order: before } = growth;
    const order = orderShown(before, this.#grown);
    // What has opened a question does not answer it as well.
    this.#grown = { atStart: false, atEnd: false };
    if (order === before || pinned !== 'auto') return;
    log.info('list_order_learned', 'learned the order of the list', { before, order });
    const learnedAt = order === 'unknown' ? null : this.now;
    // Late records were looked for where they would stand in another order.
    const rewoundAt = Math.min(looked.rewoundAt, looked.sweptAt);
    await this.commit({ growth: { order, learnedAt }, looked: { rewoundAt } });
  }
}

// One poll of a list: the state that its strategies (poller.ts) share, their findings, and the order of the list that
// they teach.

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
import type { Identified } from './identity.ts';
import { firstPosition, isFirst, type ListPosition } from './page.ts';
import { type EndVerdicts, totalSign } from './paging-doubt.ts';
import type { ListReader } from './reader.ts';
import { aheadFinding } from './recover.ts';
import { identityWords, keyBytes } from './repeats.ts';
import type { IdlessTally, Stage } from './stage.ts';
import type { Walk, Walked } from './walk.ts';
import type { EmptyRuns } from './walk-end.ts';

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

// The order of a list follows from the positions at which new records arrive. A new record between known ones may be
// late and teaches nothing. Only a new very first or very last record does, in a list with known records.

/** The growth that one walk shows. */
export class WalkGrowth {
  #known: boolean;
  #knownCount = 0;
  #firstIsNew = false;
  #lastIsNew = false;
  /** Key of the last record on the last page with records. */
  #last = '';
  #ended = false;
  #fresh = 0;
  #inOrder = true;

  /** `known`: the walk begins after known records. */
  constructor(known: boolean) {
    this.#known = known;
  }

  /** Adds a page of the walk. */
  note({ position, next, taken, overlap }: Stage): void {
    const { fresh } = taken.judged;
    const count = taken.page.records.length;
    const known = count - overlap - fresh.length;
    if (isFirst(position)) this.#firstIsNew ||= fresh[0] === 0;
    // Rows of the previous page say nothing about later ones. Neither does a page that ends as the previous one did: at
    // its end a list may repeat its last rows.
    const last = lastKey(taken.judged.identified);
    const isAgain = fresh.length === 0 && last === this.#last;
    if (count > overlap && !isAgain) this.#lastIsNew = fresh.at(-1) === count - 1;
    if (count > 0) this.#last = last;
    // All known records come before all new ones.
    const isBehind = fresh.length === 0 || fresh[0] === count - fresh.length;
    this.#inOrder &&= isBehind && (this.#fresh === 0 || known === 0);
    this.#fresh += fresh.length;
    this.#knownCount += known;
    this.#known ||= known > 0;
    this.#ended ||= next === null;
  }

  /** The known records come before the new ones, although the walk saw none of them. */
  confirm(): void {
    this.#known = true;
  }

  /** The list has grown at its start. */
  get atStart(): boolean {
    return this.#known && this.#firstIsNew;
  }

  /** The walk saw new records after at most `known` known ones, and no known one after them. */
  isBehind(known: number): boolean {
    return this.#fresh > 0 && this.#inOrder && this.#knownCount <= known;
  }

  /** The list has grown at its end. */
  get atEnd(): boolean {
    return this.#known && this.#ended && this.#lastIsNew;
  }
}

function lastKey({ words, count }: Identified): string {
  const at = (count - 1) * identityWords;
  return words.subarray(at, at + keyBytes / 4).join();
}

/** The order that the growth of one poll shows, given the order assumed before. */
function orderShown(
  before: ListCheckpoint['growth']['order'],
  { atStart, atEnd }: { readonly atStart: boolean; readonly atEnd: boolean },
): ListCheckpoint['growth']['order'] {
  // The other end may be idle.
  if (before === 'mixed' || !(atStart || atEnd)) return before;
  if (atStart && atEnd) return 'mixed';
  const shown = atStart ? 'newest_first' : 'oldest_first';
  return before === 'unknown' || before === shown ? shown : 'unknown';
}

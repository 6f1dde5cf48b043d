// The required records, and whether they are stored. The rule:
//
//   a record at the end where the list grows must be stored after two polls, if upstream has no faults;
//   a record shown no later than `lookback` after it happened must be stored once upstream has shown it for
//   `reconcile_every` and a few polls more, in which every poll reached the tail;
//   any other record must be stored once that has lasted a day, and so must some that cannot be recognised sooner: one
//   that is not the first with its bytes, and one that came late into a list that grows at both ends, whose cursors
// count
//   rows that expire, or whose server is so slow that a full scan takes many polls, or that is requested by windows of
//   time and had faults;
//   no record is stored more often than upstream has it, and none that upstream never had.
//
// Identical records without ids are one and the same to the reader, so they are counted and not distinguished. And if a
// server answers an expired cursor, or the number of a page after the last, with another position, records without ids
// may be stored twice: a few known ones among new ones could be others that look the same. So may they if rows are
// counted, move, and one of them is not shown: the rows before that one cannot be requested again together with the
// rows after it.

import type { PollResult } from '../../src/poll/outcome.ts';
import { type Dress, isNumbered } from './dress.ts';
import type { ModelList, ModelRecord } from './list.ts';
import type { ModelSpool } from './spool.ts';
import type { Traits } from './traits.ts';

const minuteMs = 60_000;
const dayMs = 24 * 60 * minuteMs;
const lookbackMs = 10 * minuteMs;
/** As late as records of one burst come. */
const burstMs = 1_000;
/** Polls that a full scan may take once it is due, and another one that was under way before it. */
const roundPolls = 4;
/** The most reports of one hidden row: it is identified by the one before it, which may expire, or come late. */
const gapsMax = 8;
/** Polls within which what is plainly new is held. */
const promptPolls = 2;
/** Polls in a row that may fail while nothing goes wrong any more. */
const failuresMax = 12;

/** Watches one world. */
export class Oracle {
  readonly findings: string[] = [];
  readonly #traits: Traits & { readonly dress: Dress };
  readonly #list: ModelList;
  readonly #spool: ModelSpool;
  readonly #soonMs: number;
  /** When the polls began that reached the tail, since the last one that did not. */
  #well: number[] = [];

  constructor(
    traits: Traits & { readonly dress: Dress },
    {
      list,
      spool,
      reconcileMs,
    }: { readonly list: ModelList; readonly spool: ModelSpool; readonly reconcileMs: number },
  ) {
    this.#traits = traits;
    this.#list = list;
    this.#spool = spool;
    this.#soonMs = reconcileMs;
  }

  /** Takes note of a poll that has ended, and looks. */
  observe(
    result: PollResult | 'killed',
    begunAt: number,
    now: number,
    blocked: ModelRecord | null,
  ): void {
    this.#lookForTooMany(now);
    if (result === 'killed' || result.outcome !== 'done' || result.more) {
      this.#well = [];
      return;
    }
    this.#well.push(begunAt);
    this.#lookForLost(now, blocked);
  }

  /** The end, a day after anything went wrong. */
  finish(now: number, blocked: ModelRecord | null): void {
    if (this.#well.length < failuresMax) this.findings.push('polls fail though all is well');
    const gaps = this.#spool.conditions.filter((condition) => condition === 'source.gap').length;
    const isHidden = blocked !== null && blocked.shownAt <= now && now < blocked.goneAt;
    if (isHidden && gaps === 0) this.findings.push('a row that is not shown was not told');
    if (gaps > gapsMax) this.findings.push(`one row that is not shown was told ${gaps} times`);
    for (const condition of this.#spool.conditions) {
      if (condition === 'integrity_violation' && !this.#traits.shared)
        this.findings.push('a violation that never was');
    }
  }

  #lookForLost(now: number, blocked: ModelRecord | null): void {
    const owed = new Map<string, number>();
    for (const record of this.#list.records) {
      const isTwin = owed.has(record.text);
      if (record === blocked || !this.#isOwed(record, { isTwin, now })) continue;
      const count = (owed.get(record.text) ?? 0) + 1;
      owed.set(record.text, count);
      if (count > (this.#spool.held.get(record.text) ?? 0)) {
        this.findings.push(
          `lost: ${record.text}, shown at ${new Date(record.shownAt).toISOString()}`,
        );
      }
    }
  }

  #isOwed(
    { happenedAt, shownAt, goneAt, isOutermost }: ModelRecord,
    { isTwin, now }: { isTwin: boolean; now: number },
  ): boolean {
    if (shownAt > now || goneAt <= now) return false;
    const first = this.#well.find((at) => at >= shownAt);
    if (first === undefined) return false;
    if (isOutermost && !isTwin && this.#isPlain) {
      // A record that has just happened is in a window that is not requested yet.
      const { lagMs } = this.#traits.dress;
      const closed = lagMs === 0 ? 0 : lagMs + 1_000;
      return this.#well.filter((at) => at >= shownAt + closed).length >= promptPolls;
    }
    const lateMs = this.#mayRewind ? lookbackMs : burstMs;
    const { answerMs, trouble, dress } = this.#traits;
    // All windows are read again but once a day.
    const isSure = answerMs === 0 && (dress.style !== 'window' || trouble === 0);
    const isSoon = !isTwin && shownAt - happenedAt <= lateMs && isSure;
    const dueAt = first + (isSoon ? this.#soonMs : dayMs);
    return this.#well.filter((at) => at >= dueAt).length >= roundPolls;
  }

  /** A server that does nothing unusual with a list that grows at one end. */
  get #isPlain(): boolean {
    const { order, cursor, late, trouble, retentionMs, shared } = this.#traits;
    const { by, bound, lifetimeMs } = cursor;
    const isLive = by === 'place' && bound === 'live' && lifetimeMs === null;
    // A record that changes often at first is reported once it no longer changes.
    const isCalm = late === 'never' && trouble === 0 && retentionMs === null && !shared;
    return order !== 'both_ends' && isLive && isCalm;
  }

  /** There is an unchanged position to step back to, followed only by newer records. */
  get #mayRewind(): boolean {
    const { order, cursor, retentionMs } = this.#traits;
    return order !== 'both_ends' && (cursor.by === 'place' || retentionMs === null);
  }

  #lookForTooMany(now: number): void {
    const { ids, cursor, paging, blocked, dress } = this.#traits;
    const mayRepeat =
      (cursor.lifetimeMs !== null && cursor.refusal === 'ignored') ||
      (paging === 'offset' && blocked) ||
      (isNumbered(dress) && dress.beyond === 'last');
    if (ids !== 'all' && mayRepeat) return;
    const shown = new Map<string, number>();
    for (const { text, shownAt } of this.#list.records) {
      if (shownAt <= now) shown.set(text, (shown.get(text) ?? 0) + 1);
    }
    for (const [text, count] of this.#spool.held) {
      const most = shown.get(text) ?? 0;
      if (count > most) this.findings.push(`held ${count} times and shown ${most} times: ${text}`);
    }
  }
}

// Compares the clock of the reading process with upstream's: each response has its creation time (RFC 9110, section
// 6.6.1, `Date`). Invariants: the check never decides which of two clocks is wrong; no page is rejected for a
// difference.

import { type PageContext, parseHttpDate } from '../contracts/index.ts';
import { exactSpanText } from '../tools/index.ts';
import type { PageEntry } from './entries.ts';

/** Tolerance for the duration of reading and the age of a cached response. */
const differenceMsMax = 5 * 60_000;
const minuteMs = 60_000;

/**
 * The difference between the local clock and upstream's when a page was read at `fetchedAt` (epoch milliseconds), such
 * as `26h ahead of`; null: they agree, or upstream sent no date.
 */
export function clockDifference(fetchedAt: number, date: string | undefined): string | null {
  const reported = date === undefined ? null : parseHttpDate(date, fetchedAt);
  const aheadMs = reported === null ? 0 : fetchedAt - reported;
  if (Math.abs(aheadMs) <= differenceMsMax) return null;
  const minutes = Math.round(Math.abs(aheadMs) / minuteMs) * minuteMs;
  return `${exactSpanText(minutes)} ${aheadMs > 0 ? 'ahead of' : 'behind'}`;
}

/** When a page was read, epoch milliseconds: by the local clock, and by upstream's too if they differ. */
export function readTimes({
  fetched_at,
  answer,
}: Pick<PageEntry, 'fetched_at' | 'answer'>): readonly number[] {
  const local = Date.parse(fetched_at);
  if (answer?.date === undefined || clockDifference(local, answer.date) === null) return [local];
  return [local, parseHttpDate(answer.date, local) ?? local];
}

/** When a page was read by the local clock alone. */
export function localReadTime({ fetched_at }: Pick<PageEntry, 'fetched_at'>): readonly number[] {
  return [Date.parse(fetched_at)];
}

/** The time that upstream's clock has reached, from the pages of one process. */
export class UpstreamClock {
  #answered = Number.NEGATIVE_INFINITY;
  #unanswered = Number.NEGATIVE_INFINITY;

  /** Adds a page. Pages that sluice makes itself, of changes and conditions, prove no time. */
  take({ kind, fetchedAt, answer }: Pick<PageContext, 'kind' | 'fetchedAt' | 'answer'>): void {
    if (answer !== undefined) {
      const sentAt = parseHttpDate(answer.date ?? '', fetchedAt) ?? fetchedAt;
      this.#answered = Math.max(this.#answered, sentAt);
    } else if (kind === 'audit' || kind === 'log') {
      this.#unanswered = Math.max(this.#unanswered, fetchedAt);
    }
  }

  /**
   * Epoch milliseconds; `-Infinity`: not known. By the local clock if upstream sends no dates, or no page is a response,
   * as with webhooks alone.
   */
  get reached(): number {
    return this.#answered === Number.NEGATIVE_INFINITY ? this.#unanswered : this.#answered;
  }
}

/** Counts an archive's pages whose clocks differ. */
export class ClockDifferences {
  #pages = 0;
  #first = '';

  /** Adds the next page of the log. */
  take(index: number, { fetched_at, answer }: PageEntry): void {
    const difference = clockDifference(Date.parse(fetched_at), answer?.date);
    if (difference === null) return;
    this.#pages += 1;
    if (this.#pages === 1) this.#first = `first ${difference} it, at entry ${index}`;
  }

  /** The remark for the reader. */
  remarks(): readonly string[] {
    if (this.#pages === 0) return [];
    const pages = `${this.#pages} page${this.#pages === 1 ? '' : 's'}`;
    return [
      `${pages} were read by a clock that differs from upstream’s (${this.#first}): one of the two was wrong then`,
    ];
  }
}

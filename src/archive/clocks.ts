// Whether the clock that pages were read by was right, as far as upstream tells: each answer says
// when it was made (RFC 9110, section 6.6.1, `Date`). What must stay true: a clock is never
// concluded to be the wrong one of two, and no page is refused for it.

import { parseHttpDate } from '../contracts/http-date.ts';
import { exactSpanText } from '../tools/time-text.ts';
import type { PageEntry } from './entries.ts';

/** An answer may take so long to be read, and be so old where something between has kept it. */
const differenceMsMax = 5 * 60_000;
const minuteMs = 60_000;

/**
 * How this machine's clock stood to upstream's when a page was read at `fetchedAt` (epoch
 * milliseconds), such as `26h ahead of`; null: they agree, or upstream has not said.
 */
export function clockDifference(fetchedAt: number, date: string | undefined): string | null {
  const reported = date === undefined ? null : parseHttpDate(date, fetchedAt);
  const aheadMs = reported === null ? 0 : fetchedAt - reported;
  if (Math.abs(aheadMs) <= differenceMsMax) return null;
  const minutes = Math.round(Math.abs(aheadMs) / minuteMs) * minuteMs;
  return `${exactSpanText(minutes)} ${aheadMs > 0 ? 'ahead of' : 'behind'}`;
}

/** Counts pages of an archive that were read by another clock than upstream's. */
export class ClockDifferences {
  #pages = 0;
  #first = '';

  /** The next page of the log. */
  take(index: number, { fetched_at, answer }: PageEntry): void {
    const difference = clockDifference(Date.parse(fetched_at), answer?.date);
    if (difference === null) return;
    this.#pages += 1;
    if (this.#pages === 1) this.#first = `first ${difference} it, at entry ${index}`;
  }

  /** What is to be known of it. */
  tell(): readonly string[] {
    if (this.#pages === 0) return [];
    const pages = `${this.#pages} page${this.#pages === 1 ? '' : 's'}`;
    return [
      `${pages} were read by a clock that differs from upstream’s (${this.#first}): one of the two was wrong then`,
    ];
  }
}

// The growth of a list: its number of records at a time, and the time of each record. Both are computed, so a list of
// ten million records costs nothing. Growth is a chain of segments, each starting at the end of the previous one. More
// records or another rate append a segment, so the time and text of existing records never change.

interface Segment {
  readonly from: number;
  readonly atMs: number;
  readonly ratePerS: number;
}

/** Distance of records before the epoch, so a few hundred of them cover some hours. */
const PAST_STEP_MS = 20_000;

/** The growth of one list. Times are milliseconds since 1970; rates are records per second. */
export class SandboxGrowth {
  readonly #segments: Segment[];
  readonly #start: number;
  #sizeMax = 0;

  /** `start` records exist at `epochMs`; more are added at `ratePerS` from then on. */
  constructor(start: number, epochMs: number, ratePerS: number) {
    this.#start = start;
    this.#segments = [{ from: start, atMs: epochMs, ratePerS }];
  }

  /** Number of records at `nowMs`. Never decreases, even if the clock is set back. */
  sizeAt(nowMs: number): number {
    const last = this.#last();
    const elapsedS = Math.max(0, nowMs - last.atMs) / 1000;
    this.#sizeMax = Math.max(this.#sizeMax, last.from + Math.floor(elapsedS * last.ratePerS));
    return this.#sizeMax;
  }

  /** The time of record `index`. Never decreases from one index to the next. */
  timeOf(index: number): number {
    if (index < this.#start) {
      const jitterMs = (index * 7_919) % PAST_STEP_MS;
      const firstMs = this.#segments[0]?.atMs ?? 0;
      return firstMs - (this.#start - index) * PAST_STEP_MS + jitterMs;
    }
    const { from, atMs, ratePerS } =
      this.#segments.findLast((segment) => segment.from <= index) ?? this.#last();
    if (ratePerS === 0 || ratePerS === Number.POSITIVE_INFINITY) return Math.floor(atMs);
    return Math.floor(atMs + ((index - from + 1) * 1000) / ratePerS);
  }

  /** Adds `count` records at once; growth then continues as before. */
  grow(count: number, nowMs: number): void {
    const from = this.sizeAt(nowMs);
    const { ratePerS } = this.#last();
    this.#segments.push({ from, atMs: nowMs, ratePerS: Number.POSITIVE_INFINITY });
    this.#segments.push({ from: from + count, atMs: nowMs, ratePerS });
  }

  /** Changes the rate from now on; 0 stops the growth. */
  setRate(ratePerS: number, nowMs: number): void {
    this.#segments.push({ from: this.sizeAt(nowMs), atMs: nowMs, ratePerS });
  }

  #last(): Segment {
    const last = this.#segments.at(-1);
    if (last === undefined) throw new Error('a growth has at least one segment');
    return last;
  }
}

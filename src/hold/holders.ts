// Decides which sinks retain pages, and what happens to the pages of a removed sink. Invariants:
// pages that a sink of a running config needs are never deleted; pages that only removed sinks need
// are deleted after their retention, or if the spool or the disk is full, oldest first, and each
// deletion is counted for the sink that loses events.

import type { Offset } from '../contracts/index.ts';
import type { Statements } from './database.ts';
import { type KnownSink, KnownSinks } from './known-sinks.ts';
import type { Pages, ReleasedPage } from './pages.ts';
import type { Present } from './present.ts';
import type { SetAside } from './set-aside.ts';

/** Polling resumes below this share of the spool's bound, which gives it hysteresis. */
export const resumeShare = 0.9;

/** Storage of the events that sinks retain. */
interface HeldEvents {
  readonly pages: Pages;
  readonly aside: SetAside;
}

/** The holders of one database. */
export class Holders {
  readonly known: KnownSinks;
  readonly #removedMs: number;
  readonly #present: Present;
  /** Readers of pages in the running config, sinks and others; null: not named yet. */
  #readers: readonly string[] | null = null;
  #hasReleased = false;
  /** Polling waits for space: it resumes only below a share of the bound. */
  #isPaused = false;

  constructor(statements: Statements, removedMs: number, present: Present) {
    this.#present = present;
    this.#removedMs = removedMs;
    this.known = new KnownSinks(statements);
  }

  /** Names the sinks of the config, and other readers, whose positions retain pages. */
  retainFor(readers: readonly string[]): void {
    this.#readers = readers;
  }

  /** Notes whether polling waits for space in the spool. */
  paused(isPaused: boolean): void {
    this.#isPaused = isPaused;
  }

  /** The offset before which no sink retains pages; `end`: offset of the next event. */
  passed(end: Offset): Offset {
    const kept = this.#kept().map((one) => this.known.neededFrom(one));
    return Math.min(this.#passedByRunning(end), ...kept);
  }

  /** Ends the retention of removed sinks whose time is over. */
  expire({ pages, aside }: HeldEvents, now: number): void {
    const kept = this.#kept();
    if (kept.length === 0) return;
    const present = this.#present.at(now);
    for (const sink of kept) {
      if (present - (sink.missingSince ?? present) < this.#removedMs) continue;
      const events = pages.held(this.known.neededFrom(sink)).events + aside.forget(sink.name);
      this.known.expire(sink, events, now);
      this.#hasReleased ||= events > 0;
    }
  }

  /** Deletes pages that only removed sinks need, if polling would pause otherwise. */
  makeRoom({ pages, aside }: HeldEvents, now: number): void {
    const bytesMax = pages.bytesMax * (this.#isPaused ? resumeShare : 1);
    this.#release({ pages, aside }, bytesMax, now);
  }

  /**
   * On a full disk: deletes a tenth of the stored bytes, as far as only removed sinks need them.
   */
  makeDiskRoom({ pages, aside }: HeldEvents, now: number): void {
    const bytesMax = (pages.gauge().bytes + aside.bytes) * resumeShare;
    this.#release({ pages, aside }, bytesMax, now);
  }

  #release({ pages, aside }: HeldEvents, bytesMax: number, now: number): void {
    const kept = this.#kept();
    if (kept.length === 0) return;
    const used = pages.gauge().bytes + aside.bytes;
    if (used === 0 || used < bytesMax) return;
    // Set-aside events are older than the events that a sink has yet to pass.
    const names = kept.map(({ name }) => name);
    for (const [name, events] of aside.release(names, used - bytesMax + 1)) {
      const sink = kept.find((one) => one.name === name);
      if (sink === undefined) continue;
      this.known.release(sink, { to: sink.releasedTo, events }, now);
      this.#hasReleased = true;
    }
    this.#releasePages(pages, bytesMax - aside.bytes, now);
  }

  #releasePages(pages: Pages, bytesMax: number, now: number): void {
    const kept = this.#kept();
    const gone = pages.release(this.#passedByRunning(pages.end), bytesMax);
    const last = gone.at(-1);
    if (last === undefined) return;
    for (const sink of kept) {
      const from = this.known.neededFrom(sink);
      if (from >= last.end) continue;
      const events = gone.reduce((sum, page) => sum + eventsFor(sink.name, page, from), 0);
      this.known.release(sink, { to: last.end, events }, now);
      this.#hasReleased ||= events > 0;
    }
  }

  /** Whether events of a removed sink were released since the last call. */
  hasReleased(): boolean {
    const hasReleased = this.#hasReleased;
    this.#hasReleased = false;
    return hasReleased;
  }

  #kept(): readonly KnownSink[] {
    const isKept = ({ name, missingSince, keeps }: KnownSink) =>
      missingSince !== null && keeps && this.#readers?.includes(name) !== true;
    return [...this.known.all().values()].filter(isKept);
  }

  #passedByRunning(end: Offset): Offset {
    if (this.#readers === null) return 0;
    const running = [...this.known.all().values()].flatMap(({ name, missingSince }) =>
      missingSince === null ? name : [],
    );
    const positions = [...this.#readers, ...running].map((name) => this.known.position(name));
    return Math.min(end, ...positions);
  }
}

/** Events of a page that a sink at `from` has not passed. */
function eventsFor(sink: string, { first, end, onlySink }: ReleasedPage, from: Offset): number {
  const isForSink = onlySink === null || onlySink === sink;
  return isForSink ? Math.max(0, end - Math.max(first, from)) : 0;
}

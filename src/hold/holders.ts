// Which sinks hold pages back, and what becomes of the pages of a sink that was removed. What must
// stay true: pages that a sink of a running config needs are never deleted; pages that only removed
// sinks need are deleted where their time is over, or the spool or the disk is full, oldest first, and each
// deletion is counted for the sink that loses events by it.

import type { Offset } from '../contracts/event.ts';
import { type KnownSink, KnownSinks } from './known-sinks.ts';
import type { Pages, ReleasedPage } from './pages.ts';
import type { SetAside } from './set-aside.ts';
import type { Statements } from './statements.ts';

/** Polling resumes below this share of the spool's bound, so that it does not flutter at the edge. */
export const resumeShare = 0.9;

/** What is held for sinks. */
interface HeldEvents {
  readonly pages: Pages;
  readonly aside: SetAside;
}

/** Those of one database. */
export class Holders {
  readonly known: KnownSinks;
  readonly #removedMs: number;
  /** Of the config that runs, with other readers of pages; null: not named yet. */
  #readers: readonly string[] | null = null;
  #hasReleased = false;
  /** Polling waits for room: it resumes only below a share of the bound. */
  #isPaused = false;

  constructor(statements: Statements, removedMs: number) {
    this.#removedMs = removedMs;
    this.known = new KnownSinks(statements);
  }

  /** Names the sinks of the config, and other readers, whose positions hold pages back. */
  retainFor(readers: readonly string[]): void {
    this.#readers = readers;
  }

  /** Notes whether polling waits for room in the spool. */
  paused(isPaused: boolean): void {
    this.#isPaused = isPaused;
  }

  /** The offset before which no sink holds pages back; `end`: that of the next event. */
  passed(end: Offset): Offset {
    const kept = this.#kept().map((one) => this.known.neededFrom(one));
    return Math.min(this.#passedByRunning(end), ...kept);
  }

  /** Ends the time of removed sinks whose time is over. */
  expire({ pages, aside }: HeldEvents, now: number): void {
    for (const sink of this.#kept()) {
      if (now - (sink.missingSince ?? now) < this.#removedMs) continue;
      const events = pages.held(this.known.neededFrom(sink)).events + aside.forget(sink.name);
      this.known.expire(sink, events, now);
      this.#hasReleased ||= events > 0;
    }
  }

  /** Deletes what only removed sinks need, where it would pause polling. */
  makeRoom({ pages, aside }: HeldEvents, now: number): void {
    const bytesMax = pages.bytesMax * (this.#isPaused ? resumeShare : 1);
    this.#release({ pages, aside }, bytesMax, now);
  }

  /** On a full disk: deletes a tenth of what is held, as far as only removed sinks need it. */
  makeDiskRoom({ pages, aside }: HeldEvents, now: number): void {
    const bytesMax = (pages.gauge().bytes + aside.bytes) * resumeShare;
    this.#release({ pages, aside }, bytesMax, now);
  }

  #release({ pages, aside }: HeldEvents, bytesMax: number, now: number): void {
    const kept = this.#kept();
    if (kept.length === 0) return;
    const used = pages.gauge().bytes + aside.bytes;
    if (used === 0 || used < bytesMax) return;
    // Events that were set aside are older than what a sink has yet to pass.
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

  /** Whether events of a removed sink were released since this was asked last. */
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

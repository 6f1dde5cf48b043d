// Calls at set times. Thousands of streams wait at the same time, and a promise, a timer and a signal for each would be
// most of an idle stream's memory. So all waits are in one heap, and one sleep of the clock serves the earliest.
// Invariants: no call comes early; calls come in the order of their times; a cancelled one never comes; a call or a sleep
// that fails is an error of the process, and prevents no other call.

import type { Clock } from '../contracts/index.ts';

/** One wait. */
export interface Alarm {
  /** Ends the wait without the call; harmless afterwards. */
  cancel(): void;
}

class Entry implements Alarm {
  readonly dueMs: number;
  readonly #alarms: Alarms;
  /** Null: it has rung or was cancelled. */
  #call: (() => void) | null;
  /** Its index in the heap; -1: it is not there. */
  index = -1;

  constructor(alarms: Alarms, dueMs: number, call: () => void) {
    this.#alarms = alarms;
    this.dueMs = dueMs;
    this.#call = call;
  }

  ring(): void {
    const call = this.#call;
    this.#call = null;
    call?.();
  }

  cancel(): void {
    this.#call = null;
    if (this.index >= 0) this.#alarms.remove(this);
  }
}

/** Ends a sleep that is no longer needed. */
const noLonger = new Error('the wait has changed');

/** All waits of one clock. */
export class Alarms {
  readonly #clock: Clock;
  /** A binary heap: the earliest is first. */
  readonly #heap: Entry[] = [];
  /** The sleep under way. */
  #sleep: { readonly dueMs: number; readonly end: AbortController } | null = null;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Calls `call` after so many milliseconds, never within this call. */
  set(ms: number, call: () => void): Alarm {
    const entry = new Entry(this, this.#clock.monotonic() + Math.max(0, ms), call);
    this.#rise(entry, this.#heap.length);
    this.#rest();
    return entry;
  }

  /** Removes an entry that is in the heap. */
  remove(entry: Entry): void {
    this.#take(entry);
    this.#rest();
  }

  #take(entry: Entry): void {
    const { index } = entry;
    const last = this.#heap.pop();
    entry.index = -1;
    if (last === undefined || last === entry) return;
    this.#sink(last, index);
    this.#rise(last, last.index);
  }

  /** Sleeps until the earliest entry; an earlier one than before ends the sleep under way. */
  #rest(): void {
    const dueMs = this.#heap[0]?.dueMs ?? null;
    if (this.#sleep !== null) {
      // A later wake-up is not moved: most waits are cancelled only when a stream stops.
      if (dueMs !== null && dueMs >= this.#sleep.dueMs) return;
      this.#sleep.end.abort(noLonger);
      this.#sleep = null;
    }
    if (dueMs === null) return;
    const sleep = { dueMs, end: new AbortController() };
    this.#sleep = sleep;
    const ms = Math.max(0, dueMs - this.#clock.monotonic());
    this.#clock.sleep(ms, sleep.end.signal).then(
      () => this.#woken(sleep),
      (error) => {
        if (this.#sleep !== sleep) return;
        this.#sleep = null;
        throw error;
      },
    );
  }

  #woken(sleep: object): void {
    if (this.#sleep !== sleep) return;
    this.#sleep = null;
    const now = this.#clock.monotonic();
    // First, so that a wait that is set meanwhile does not ring at once.
    const due: Entry[] = [];
    for (let first = this.#heap[0]; first !== undefined && first.dueMs <= now; ) {
      this.#take(first);
      due.push(first);
      first = this.#heap[0];
    }
    // Each by itself, so that an error in one does not prevent the others.
    for (const entry of due) queueMicrotask(() => entry.ring());
    this.#rest();
  }

  #rise(entry: Entry, from: number): void {
    let index = from;
    while (index > 0) {
      const above = (index - 1) >> 1;
      const parent = this.#heap[above];
      if (parent === undefined || parent.dueMs <= entry.dueMs) break;
      this.#put(parent, index);
      index = above;
    }
    this.#put(entry, index);
  }

  #sink(entry: Entry, from: number): void {
    let index = from;
    for (;;) {
      const left = this.#heap[2 * index + 1];
      const right = this.#heap[2 * index + 2];
      const child =
        right !== undefined && left !== undefined && right.dueMs < left.dueMs ? right : left;
      if (child === undefined || child.dueMs >= entry.dueMs) break;
      const below = child.index;
      this.#put(child, index);
      index = below;
    }
    this.#put(entry, index);
  }

  #put(entry: Entry, index: number): void {
    this.#heap[index] = entry;
    entry.index = index;
  }
}

// The events of a receiver that may get an event more than once: by uid how often, what, and when the one before came.
// The accounts hold each repeat against what was broken at that time, and its content against the first.

import { digestOf } from './digest.ts';

/** An event that came again. Both times are milliseconds of `performance.now()`. */
export interface Repeat {
  readonly uid: string;
  /** When it had come before. */
  readonly beforeMs: number;
  readonly atMs: number;
}

interface Arrived {
  times: number;
  lastMs: number;
  readonly digest: string;
}

/** Everything that has come to one receiver. */
export class Arrivals {
  readonly #events = new Map<string, Arrived>();
  readonly #repeats: Repeat[] = [];
  /** When something came; what comes together has one time. Milliseconds of `performance.now()`. */
  readonly timesMs: number[] = [];
  readonly #altered = new Set<string>();

  /** How often each uid came. */
  get times(): ReadonlyMap<string, number> {
    return new Map([...this.#events].map(([uid, { times }]) => [uid, times]));
  }

  get repeats(): readonly Repeat[] {
    return this.#repeats;
  }

  /** Uids under which different contents came. */
  get altered(): readonly string[] {
    return [...this.#altered];
  }

  /** How many came, repeats included. */
  get count(): number {
    return this.#events.size + this.#repeats.length;
  }

  /** The content of each uid, as `digestOf` gives it. */
  *digests(): Iterable<readonly [uid: string, digest: string]> {
    for (const [uid, { digest }] of this.#events) yield [uid, digest];
  }

  /** Notes one event. */
  take(uid: string, content: string, atMs = performance.now()): void {
    const digest = digestOf(content);
    if (this.timesMs.at(-1) !== atMs) this.timesMs.push(atMs);
    const known = this.#events.get(uid);
    if (known === undefined) {
      this.#events.set(uid, { times: 1, lastMs: atMs, digest });
      return;
    }
    this.#repeats.push({ uid, beforeMs: known.lastMs, atMs });
    if (known.digest !== digest) this.#altered.add(uid);
    known.times += 1;
    known.lastMs = atMs;
  }
}

// The queue of requests that wait for their turn at an upstream: round robin by tenant, then by
// path, so that one large tenant cannot starve the rest and a path that is blocked for a month
// delays no other. The queue queries its owner for the wait of a lane and notifies it when a
// request goes; the throttles decide the wait.

import type { Clock } from '../contracts/index.ts';

/** The target of a request. `template`: the path with its placeholders; `tenant`: its owner. */
export interface Lane {
  readonly path: string;
  readonly template: string;
  readonly tenant: string;
}

/** The interface between the queue and its owner. */
export interface Turnstile {
  /** Milliseconds that a request on this lane must wait now; 0: none. */
  delay(lane: Lane): number;
  /** A request on this lane goes now. */
  take(lane: Lane): void;
}

interface Waiter {
  readonly lane: Lane;
  readonly admit: () => void;
}

/** A queue that serves tenants and paths in turn. */
export class FairQueue {
  readonly #clock: Clock;
  readonly #turnstile: Turnstile;
  /**
   * Waiters by tenant, then by path; a Map keeps its order, and the last served entry moves to the
   * end.
   */
  readonly #waiting = new Map<string, Map<string, Waiter[]>>();
  #dozing: AbortController | null = null;
  #wakeAtMs = Number.NEGATIVE_INFINITY;

  constructor(clock: Clock, turnstile: Turnstile) {
    this.#clock = clock;
    this.#turnstile = turnstile;
  }

  /**
   * Resolves when it is this lane's turn, and counts the request; rejects with the signal's reason.
   */
  async turn(lane: Lane, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const ahead = this.#waiting.get(lane.tenant)?.has(lane.path) ?? false;
    if (!ahead && this.#turnstile.delay(lane) === 0) {
      this.#turnstile.take(lane);
      return;
    }
    await new Promise<void>((resolve, reject) => {
      const leave = () => {
        this.#remove(waiter);
        reject(signal.reason);
      };
      const waiter: Waiter = {
        lane,
        admit: () => {
          signal.removeEventListener('abort', leave);
          resolve();
        },
      };
      signal.addEventListener('abort', leave, { once: true });
      this.#enqueue(waiter);
    });
  }

  #enqueue(waiter: Waiter): void {
    const { tenant, path } = waiter.lane;
    const lanes = this.#waiting.getOrInsertComputed(tenant, () => new Map<string, Waiter[]>());
    const queue = lanes.getOrInsert(path, []);
    queue.push(waiter);
    // A waiter that cannot go before the next wake-up does not need to wake the loop.
    const dueMs = this.#clock.monotonic() + this.#turnstile.delay(waiter.lane);
    if (this.#dozing === null || dueMs < this.#wakeAtMs) this.#stir();
  }

  #remove(waiter: Waiter): void {
    const { tenant, path } = waiter.lane;
    const lanes = this.#waiting.get(tenant);
    const queue = lanes?.get(path);
    if (!lanes || !queue) return;
    const rest = queue.filter((other) => other !== waiter);
    if (rest.length > 0) lanes.set(path, rest);
    else lanes.delete(path);
    if (lanes.size === 0) this.#waiting.delete(tenant);
    if (this.#waiting.size === 0) this.#stir();
  }

  /** Wakes the serving loop, or starts it. */
  #stir(): void {
    if (this.#dozing) this.#dozing.abort();
    else if (this.#waiting.size > 0) void this.#serve();
  }

  async #serve(): Promise<void> {
    while (this.#waiting.size > 0) {
      const delayMs = this.#admitReady();
      if (this.#waiting.size === 0) return;
      this.#dozing = new AbortController();
      this.#wakeAtMs = this.#clock.monotonic() + delayMs;
      try {
        await this.#clock.sleep(delayMs, this.#dozing.signal);
      } catch {
        // Woken early: the waiters have changed.
      }
      this.#dozing = null;
    }
  }

  /**
   * Admits all waiters that may go, one tenant at a time in turn; returns the time until the next
   * may.
   */
  #admitReady(): number {
    for (;;) {
      let soonestMs = Number.POSITIVE_INFINITY;
      let admitted = false;
      for (const [tenant, lanes] of [...this.#waiting]) {
        const waitMs = this.#admitOne(tenant, lanes);
        if (waitMs === 0) admitted = true;
        else soonestMs = Math.min(soonestMs, waitMs);
      }
      if (!admitted) return soonestMs;
    }
  }

  /**
   * Admits the first waiter that may go, and moves its tenant and path to the end; returns 0, or
   * the wait.
   */
  #admitOne(tenant: string, lanes: Map<string, Waiter[]>): number {
    let soonestMs = Number.POSITIVE_INFINITY;
    for (const [path, queue] of lanes) {
      const [waiter, ...rest] = queue;
      if (waiter === undefined) continue;
      const waitMs = this.#turnstile.delay(waiter.lane);
      if (waitMs > 0) {
        soonestMs = Math.min(soonestMs, waitMs);
        continue;
      }
      lanes.delete(path);
      if (rest.length > 0) lanes.set(path, rest);
      this.#waiting.delete(tenant);
      if (lanes.size > 0) this.#waiting.set(tenant, lanes);
      this.#turnstile.take(waiter.lane);
      waiter.admit();
      return 0;
    }
    return soonestMs;
  }
}

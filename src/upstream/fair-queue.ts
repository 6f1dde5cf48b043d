// Who waits for a turn at an upstream, and who is next: by tenant in turn, then by path, so that
// one large tenant cannot starve the rest and a path that is parked for a month delays nobody else.
// It asks its owner how long a lane has to wait and tells it when one goes; what a wait follows
// from is the throttles' business.

import type { Clock } from '../contracts/tools.ts';

/** Where a request goes. `template`: the path with its placeholders; `tenant`: whose it is. */
export interface Lane {
  readonly path: string;
  readonly template: string;
  readonly tenant: string;
}

/** What the queue asks and tells its owner. */
export interface Turnstile {
  /** Milliseconds that a request on this lane has to wait now; 0 for none. */
  delay(lane: Lane): number;
  /** A request on this lane goes now. */
  take(lane: Lane): void;
}

interface Waiter {
  readonly lane: Lane;
  readonly admit: () => void;
}

/** See the head of this file. */
export class FairQueue {
  readonly #clock: Clock;
  readonly #turnstile: Turnstile;
  /** Waiters by tenant, then by path; a Map keeps its order, and who was served goes to the end. */
  readonly #waiting = new Map<string, Map<string, Waiter[]>>();
  #dozing: AbortController | null = null;
  #wakeAtMs = Number.NEGATIVE_INFINITY;

  constructor(clock: Clock, turnstile: Turnstile) {
    this.#clock = clock;
    this.#turnstile = turnstile;
  }

  /** Resolves when it is this lane's turn, and takes it; rejects with the signal's reason. */
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
    const lanes = this.#waiting.get(tenant) ?? new Map<string, Waiter[]>();
    this.#waiting.set(tenant, lanes);
    const queue = lanes.get(path) ?? [];
    lanes.set(path, queue);
    queue.push(waiter);
    // Who could not go before the next waking anyway need not wake anybody.
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

  /** Wakes the loop that serves the waiting, or starts it. */
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
        // Woken early: who waits has changed.
      }
      this.#dozing = null;
    }
  }

  /** Admits all who may go, a tenant at a time in turn; says how long until the next may. */
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

  /** Admits the first waiter that may go, its tenant and path last now; 0, or how long to wait. */
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

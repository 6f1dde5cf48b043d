// Limits the number of streams that poll at the same time. Waiting streams are served in order. Invariant: slow polls do not
// keep others waiting: after a while a poll passes its turn on, up to a number of such polls.

/** Bounds for slow polls. */
interface SlowPolls {
  /** A poll that holds its turn for longer passes it on, milliseconds. */
  readonly afterMs: number;
  /** How many polls may have passed their turn on. */
  readonly max: number;
}

/** Enough for a company whose lists all take long, with connections for each (tools/http-client.ts). */
const usualSlowPolls: SlowPolls = { afterMs: 5_000, max: 16 };

interface Holder {
  readonly since: number;
  isSlow: boolean;
}

/** Bounded concurrency. */
export class Turns {
  #free: number;
  #slow = 0;
  readonly #bounds: SlowPolls;
  /** In the order in which they began. */
  readonly #holders = new Set<Holder>();
  readonly #waiting: (() => void)[] = [];
  #timer: NodeJS.Timeout | null = null;

  /** At most `max` turns at a time, and as many slow polls beside them as `slow` allows. */
  constructor(max: number, slow: SlowPolls = usualSlowPolls) {
    this.#free = max;
    this.#bounds = slow;
  }

  /** Resolves with the function that releases the turn. */
  async take(signal: AbortSignal): Promise<() => void> {
    signal.throwIfAborted();
    if (this.#free > 0) this.#free -= 1;
    else await this.#wait(signal);
    const holder: Holder = { since: performance.now(), isSlow: false };
    this.#holders.add(holder);
    if (this.#waiting.length > 0) this.#watch();
    return () => this.#release(holder);
  }

  async #wait(signal: AbortSignal): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const abort = () => {
      const place = this.#waiting.indexOf(resolve);
      // Absent if its turn has just come: then the turn is taken, and its owner releases it.
      if (place >= 0) this.#waiting.splice(place, 1);
      reject(signal.reason);
    };
    this.#waiting.push(resolve);
    this.#watch();
    signal.addEventListener('abort', abort, { once: true });
    await promise;
    signal.removeEventListener('abort', abort);
  }

  #release(holder: Holder): void {
    if (!this.#holders.delete(holder)) return;
    if (holder.isSlow) this.#slow -= 1;
    else this.#passOn();
    this.#watch();
  }

  #passOn(): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#free += 1;
    else next();
  }

  /** Waits until the oldest poll counts as slow, as long as a stream waits. */
  #watch(): void {
    if (this.#timer !== null || this.#waiting.length === 0) return;
    if (this.#slow >= this.#bounds.max) return;
    const oldest = [...this.#holders].find(({ isSlow }) => !isSlow);
    if (oldest === undefined) return;
    const ms = Math.max(0, oldest.since + this.#bounds.afterMs - performance.now());
    this.#timer = setTimeout(
      () => {
        this.#timer = null;
        this.#passSlowOn();
        this.#watch();
      },
      Math.max(1, ms),
    );
    this.#timer.unref();
  }

  #passSlowOn(): void {
    const before = performance.now() - this.#bounds.afterMs;
    for (const holder of this.#holders) {
      if (this.#waiting.length === 0 || this.#slow >= this.#bounds.max) return;
      if (holder.isSlow) continue;
      if (holder.since > before) return;
      holder.isSlow = true;
      this.#slow += 1;
      this.#passOn();
    }
  }
}

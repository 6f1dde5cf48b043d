// A credential that upstream has rejected. Further requests with it could lock the account, so all
// its users together send one probe a minute, and other requests get the cached failure until
// upstream accepts it again. Meanwhile the secret is checked once a second: a changed one is tried
// at once. Upstream may reject a credential on some paths only: one other path is tried at once,
// and if it is accepted, only the rejected paths stay under suspicion.

import type { Clock, ExportError, Failure } from '../contracts/index.ts';
import { otherThan } from '../tools/index.ts';

/** `fingerprint`: a digest of the current secret; `refresh` runs the commands behind the secret again. */
export interface SuspicionDeps {
  readonly clock: Clock;
  readonly fingerprint: () => string;
  readonly refresh?: () => Promise<void>;
}

const probeEveryMs = 60_000;

/** The suspicion against one credential. */
export class Suspicion {
  readonly #deps: SuspicionDeps;
  /** Null: no suspicion. */
  #cause: ExportError | null = null;
  readonly #refusedPaths = new Set<string>();
  /** Another path is being tried; and: it was accepted. */
  #isTriedElsewhere = false;
  #isAcceptedElsewhere = false;
  #fingerprint = '';
  #probeAtMs = Number.NEGATIVE_INFINITY;
  readonly #waiting = new Set<() => void>();
  #watching: AbortController | null = null;

  constructor(deps: SuspicionDeps) {
    this.#deps = deps;
  }

  /** The failure for a request on this path that must not be sent; null: it may be sent. */
  held(path = ''): Failure | null {
    const cause = this.#causeOn(path);
    if (cause === null || this.isDue() || this.#isSecondOpinion(path)) return null;
    return this.#denial(cause);
  }

  /** As `held`, for a request that is sent at once if allowed: under suspicion it is the probe. */
  admit(path: string): Failure | null {
    const held = this.held(path);
    if (held !== null || this.#causeOn(path) === null) return held;
    if (this.isDue()) this.#probeAtMs = this.#now + probeEveryMs;
    this.#isTriedElsewhere ||= !this.#refusedPaths.has(path);
    return null;
  }

  /** Upstream has rejected the credential with this secret's fingerprint; returns the failure. */
  refuse(cause: ExportError, path: string, fingerprint = this.#deps.fingerprint()): Failure {
    if (this.#cause === null) {
      this.#isTriedElsewhere = false;
      this.#isAcceptedElsewhere = false;
    }
    this.#cause = cause;
    this.#fingerprint = fingerprint;
    this.#refusedPaths.add(path);
    // A probe's minute counts from its sending, so that the longest waiting request is the next
    // probe.
    if (this.#probeAtMs <= this.#now) this.#probeAtMs = this.#now + probeEveryMs;
    return this.#denial(cause);
  }

  /** Upstream has accepted it. */
  accept(path = ''): void {
    if (this.#cause === null) return;
    const wasRefused = this.#refusedPaths.has(path);
    if (!wasRefused && this.#isAcceptedElsewhere) return;
    this.#isAcceptedElsewhere = true;
    if (wasRefused) {
      this.#cause = null;
      this.#refusedPaths.clear();
      this.#probeAtMs = Number.NEGATIVE_INFINITY;
    }
    this.#release();
  }

  /** True if a probe may be sent: its minute is over, or the secret has changed. */
  isDue(): boolean {
    const fingerprint = this.#deps.fingerprint();
    if (fingerprint !== this.#fingerprint) {
      this.#fingerprint = fingerprint;
      this.#probeAtMs = this.#now;
    }
    return this.#now >= this.#probeAtMs;
  }

  get #now(): number {
    return this.#deps.clock.monotonic();
  }

  #causeOn(path: string): ExportError | null {
    return this.#isAcceptedElsewhere && !this.#refusedPaths.has(path) ? null : this.#cause;
  }

  #isSecondOpinion(path: string): boolean {
    return !this.#isTriedElsewhere && !this.#refusedPaths.has(path);
  }

  #denial(cause: ExportError): Failure {
    const wait = {
      ms: Math.max(0, this.#probeAtMs - this.#now),
      cut: () => {
        this.#probeAtMs = this.#now;
      },
      repaired: (signal: AbortSignal) => this.#repaired(signal),
    };
    return { outcome: 'denied', status: 401, isDefinite: true, wait, cause };
  }

  async #repaired(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const leave = () => reject(signal.reason);
    signal.addEventListener('abort', leave, { once: true });
    this.#waiting.add(resolve);
    void this.#watch();
    try {
      await promise;
    } finally {
      signal.removeEventListener('abort', leave);
      this.#waiting.delete(resolve);
      if (this.#waiting.size === 0) this.#watching?.abort();
    }
  }

  /** Checks the secret as long as a request waits. */
  async #watch(): Promise<void> {
    if (this.#watching !== null) return;
    const watching = new AbortController();
    this.#watching = watching;
    const { signal } = watching;
    while (!signal.aborted) {
      await otherThan(this.#fingerprint, this.#deps, signal).catch(() => undefined);
      if (!signal.aborted && this.isDue()) this.#release();
    }
    this.#watching = null;
    if (this.#waiting.size > 0) void this.#watch();
  }

  #release(): void {
    for (const resolve of this.#waiting) resolve();
  }
}

// One call at a time, shared by all who wait for it: who comes while it is under way gets the same
// answer. It is broken off when all who waited have given up, so that a shutdown does not wait for
// what nobody wants any longer.

interface UnderWay<T> {
  readonly answer: Promise<T>;
  readonly stop: AbortController;
}

/** See the head of this file. */
export class SharedCall<T> {
  readonly #call: (signal: AbortSignal) => Promise<T>;
  #underWay: UnderWay<T> | null = null;
  #waiting = 0;

  /** `call` must not reject: who has started it may be gone. */
  constructor(call: (signal: AbortSignal) => Promise<T>) {
    this.#call = call;
  }

  /** Starts the call unless one is under way; nobody waits for it. */
  start(): void {
    this.#start();
  }

  /** The answer of the call under way, started if need be; rejects only with the signal. */
  async join(signal: AbortSignal): Promise<T> {
    const { answer, stop } = this.#start();
    this.#waiting++;
    const left = Promise.withResolvers<never>();
    const leave = () => left.reject(signal.reason);
    signal.addEventListener('abort', leave, { once: true });
    try {
      return await Promise.race([answer, left.promise]);
    } finally {
      signal.removeEventListener('abort', leave);
      this.#waiting--;
      if (this.#waiting === 0 && this.#underWay?.stop === stop) {
        this.#underWay = null;
        stop.abort();
      }
    }
  }

  #start(): UnderWay<T> {
    if (this.#underWay !== null) return this.#underWay;
    const stop = new AbortController();
    const answer = this.#call(stop.signal).finally(() => {
      if (this.#underWay?.stop === stop) this.#underWay = null;
    });
    this.#underWay = { answer, stop };
    return this.#underWay;
  }
}

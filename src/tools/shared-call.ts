// One call at a time, shared by all its callers: a caller during a running call gets the same
// result. The call is aborted when all callers have given up, so that a shutdown does not wait for
// an unused result.

import { untilAborted } from '../contracts/index.ts';

interface UnderWay<T> {
  readonly answer: Promise<T>;
  readonly stop: AbortController;
}

/** One shared call. */
export class SharedCall<T> {
  readonly #call: (signal: AbortSignal) => Promise<T>;
  #underWay: UnderWay<T> | null = null;
  #waiting = 0;

  /** `call` must not reject: its first caller may have given up. */
  constructor(call: (signal: AbortSignal) => Promise<T>) {
    this.#call = call;
  }

  /** Starts the call unless one is running, without waiting for it. */
  start(): void {
    this.#start();
  }

  /** The result of the running call, started if necessary; rejects only with the signal. */
  async join(signal: AbortSignal): Promise<T> {
    const { answer, stop } = this.#start();
    this.#waiting++;
    try {
      return await untilAborted(answer, signal);
    } finally {
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

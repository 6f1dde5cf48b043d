// Checks that are repeated beside the polls of a stream, such as the one for silence. Invariants: a check never overlaps
// with the next one; after a stop there is one last check, which stores what it has counted.

import type { Alarm, Alarms } from './alarms.ts';

/** A check of a stream. */
export interface StreamCheck {
  /** Time between two checks, milliseconds. */
  readonly everyMs: number;
  /** Checks once; never rejects. */
  look(): Promise<void>;
}

/** Repeats one check. */
export class Repeated {
  readonly #alarms: Alarms;
  readonly #check: StreamCheck;
  #alarm: Alarm | null = null;
  /** The check under way. */
  #looking: Promise<void> | null = null;
  #isStopped = false;

  constructor(alarms: Alarms, check: StreamCheck) {
    this.#alarms = alarms;
    this.#check = check;
  }

  /** Begins; the first check follows after the time between two. */
  start(): void {
    if (this.#isStopped) return;
    this.#alarm = this.#alarms.set(this.#check.everyMs, () => {
      this.#looking = this.look().then(() => {
        this.#looking = null;
        this.start();
      });
    });
  }

  /** Checks once more. */
  look(): Promise<void> {
    return this.#check.look();
  }

  /** Resolves after the last check. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    if (this.#alarm === null) return;
    this.#alarm.cancel();
    await this.#looking;
    await this.look();
  }
}

// Time of a simulated cluster: events happen at their time, one after the other. All consequences of an event
// that need no wait happen before the next event. Invariant: only the seed decides the order, so the same seed
// gives the same run.

import { setImmediate } from 'node:timers/promises';
import type { Clock } from '../../../src/contracts/tools.ts';
import type { Random } from '../../../src/sandbox/random.ts';
import type { Tell } from '../verdict.ts';

/** Start time of each world. */
const begin = Date.UTC(2026, 0, 1);

/** The clocks of all processes of a machine. */
export interface Machine {
  /** How far the wall clock is ahead, milliseconds. */
  aheadMs: number;
  /** Length of all sleeps, which the monotonic clock does not count. */
  asleepMs: number;
}

/** One run of a process. A killed one does nothing more; a stopped one does nothing until it resumes. */
export interface Life {
  readonly name: string;
  readonly machine: Machine;
  isAlive: boolean;
  /** Simulated milliseconds. */
  stoppedUntil: number;
  cutFromKafkaUntil: number;
  cutFromUpstreamUntil: number;
}

interface Due {
  readonly at: number;
  readonly order: number;
  readonly life: Life | null;
  readonly happen: () => void;
}

/** The time of one world. */
export class Course {
  /** Milliseconds since the start of the world. */
  now = 0;
  /** The life to which the current event belongs; null: to none with a clock. */
  current: Life | null = null;
  readonly random: Random;
  readonly #tell: Tell;
  #dues: Due[] = [];
  #order = 0;

  constructor(random: Random, report: Tell) {
    this.random = random;
    this.#tell = report;
  }

  tell(line: string): void {
    this.#tell(`${(this.now / 1_000).toFixed(3).padStart(8)} ${line}`);
  }

  /** Runs work after a wait; work of a life only while the life is neither dead nor stopped. */
  after(ms: number, life: Life | null, happen: () => void): void {
    this.#order += 1;
    this.#add({ at: this.now + ms, order: this.#order, life, happen });
  }

  wait(ms: number, life: Life | null): Promise<void> {
    return new Promise((resolve) => this.after(ms, life, resolve));
  }

  /** The clock of a process. */
  clockOf(life: Life): Clock {
    return {
      now: () => begin + this.now + life.machine.aheadMs,
      monotonic: () => this.now - life.machine.asleepMs,
      sleep: (ms, signal) =>
        new Promise((resolve, reject) => {
          if (signal?.aborted) return reject(signal.reason);
          const stop = () => reject(signal?.reason);
          signal?.addEventListener('abort', stop, { once: true });
          this.after(ms, life, () => {
            signal?.removeEventListener('abort', stop);
            resolve();
          });
        }),
    };
  }

  /** Runs the next event. False: there is none before `until`. */
  async step(until: number): Promise<boolean> {
    const next = this.#dues.at(-1);
    if (next === undefined || next.at > until) {
      this.now = until;
      return false;
    }
    this.#dues.pop();
    this.now = next.at;
    const { life } = next;
    if (life !== null && !life.isAlive) return true;
    if (life !== null && life.stoppedUntil > this.now) {
      this.#add({ ...next, at: life.stoppedUntil });
      return true;
    }
    this.current = life;
    next.happen();
    await setImmediate();
    this.current = null;
    return true;
  }

  /** The last element is the next event. */
  #add(due: Due): void {
    let [low, high] = [0, this.#dues.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      const other = this.#dues[middle] as Due;
      if (other.at > due.at || (other.at === due.at && other.order > due.order)) low = middle + 1;
      else high = middle;
    }
    this.#dues.splice(low, 0, due);
  }
}

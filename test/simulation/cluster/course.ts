// Time of a simulated cluster: what happens next happens at its moment, one thing after the other,
// and whatever follows from it without waiting has happened before the next thing does. What must
// stay true: nothing but the seed decides the order, so a seed does the same again.

import { setImmediate } from 'node:timers/promises';
import type { Clock } from '../../../src/contracts/tools.ts';
import type { Random } from '../../../src/sandbox/random.ts';
import type { Tell } from '../verdict.ts';

/** When each world begins. */
const begin = Date.UTC(2026, 0, 1);

/** What all that run on a machine have for clocks. */
export interface Machine {
  /** How far its clock is ahead. */
  aheadMs: number;
  /** How long it was asleep, which its monotonic clock does not count. */
  asleepMs: number;
}

/** One run of a process: killed, it does nothing more; stopped, nothing until it goes on. */
export interface Life {
  readonly name: string;
  readonly machine: Machine;
  isAlive: boolean;
  /** Milliseconds of the course. */
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

/** The course of one world. */
export class Course {
  /** Milliseconds since it began. */
  now = 0;
  /** To whom what happens at the moment happens; null: to nobody who has a clock. */
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

  /** Has something happen after a while; to a life, only while it is alive and not stopped. */
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

  /** The next thing happens. False: there is none before `until`. */
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

  /** The last one is the next. */
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

// What must be true of who works on which shard of a simulated cluster: never two on one, beyond one
// request of whoever does not know yet; and where all is well, nobody is disturbed, and a shard that
// changes hands in order is worked on again within a session.

import type { Course, Life } from './course.ts';

/** What may happen to shards at the moment. */
export interface Mode {
  /** Shards whose workers may change or not be heard; others change only where that makes loads more even. */
  readonly moving: 'all' | 'none' | number;
  /** Whoever ends does so in order, and another one is there. */
  readonly inOrder: boolean;
}

/** What is judged by. */
interface SharingMeans {
  readonly course: Course;
  readonly sessionMs: number;
  /** Whether a process has two shards more than another one. */
  readonly isUneven: () => boolean;
  readonly find: (what: string) => void;
}

/** Judges. */
export class Sharing {
  mode: Mode = { moving: 'all', inOrder: false };
  /** Of each shard who works on it, or did last. */
  readonly #workers = new Map<number, Life>();
  /** Since when nobody does. */
  readonly #endedAt = new Map<number, number>();
  /** Those that work, and whom the group does not answer at the moment. */
  readonly #unheard = new Set<Life>();
  /** Requests beside whoever works. */
  readonly #strays = new Map<Life, number>();
  readonly #in: SharingMeans;

  constructor(means: SharingMeans) {
    this.#in = means;
  }

  /** It knows what the shard holds, and works from now on. */
  begins(shard: number, life: Life): void {
    const { course, sessionMs, find } = this.#in;
    const at = course.now;
    course.tell(`${life.name} works on shard ${shard}`);
    const idleMs = at - (this.#endedAt.get(shard) ?? at);
    if (this.mode.inOrder && idleMs > sessionMs) {
      find(`shard ${shard} was given away in order, and stood still for ${idleMs} ms`);
    }
    this.#endedAt.delete(shard);
    this.#workers.set(shard, life);
  }

  ends(shard: number, life: Life): void {
    if (this.#workers.get(shard) !== life || this.#endedAt.has(shard)) return;
    this.#endedAt.set(shard, this.#in.course.now);
    if (this.#mayMove(shard) || this.#in.isUneven()) return;
    this.#in.find(`${life.name} lets go of shard ${shard}, and need not`);
  }

  /** It asks upstream. */
  asks(shard: number, life: Life): void {
    this.#unheard.delete(life);
    const worker = this.workerOf(shard);
    if (worker === null || this.#unheard.has(worker)) {
      // Whom the group has given up, and then knows of no other one, goes on.
      this.#endedAt.delete(shard);
      this.#workers.set(shard, life);
      return;
    }
    if (worker === life) return;
    const strays = (this.#strays.get(life) ?? 0) + 1;
    this.#strays.set(life, strays);
    if (strays < 2) return;
    this.#in.find(`${life.name} asks upstream of shard ${shard} again beside ${worker.name}`);
  }

  /** It works, and the group has not answered whoever it has the shard by. */
  unheard(shard: number, life: Life): void {
    this.#unheard.add(life);
    if (!this.#mayMove(shard)) this.#in.find(`${life.name} is not heard, and nothing was wrong`);
  }

  /** Who works on a shard; null: nobody. */
  workerOf(shard: number): Life | null {
    const worker = this.#workers.get(shard);
    const works = worker?.isAlive && !this.#endedAt.has(shard);
    return works && worker.stoppedUntil <= this.#in.course.now ? worker : null;
  }

  #mayMove(shard: number): boolean {
    const { moving } = this.mode;
    return moving === 'all' || moving === shard;
  }
}

// Conditions for the owners of the shards of a simulated cluster: never two on one shard, except for one request
// of a process that does not know of its successor. Without faults no work is disturbed, and a shard that moves in
// order is worked on again within a session.

import type { Course, Life } from './course.ts';

/** The faults that are allowed at present. */
export interface Mode {
  /** Lives whose work on a shard may end or be silent; others end only for a more even distribution. */
  readonly mayEnd: (shard: number, life: Life) => boolean;
  /** Each end is orderly, and another process is ready. */
  readonly inOrder: boolean;
}

/** A life that works on a shard. */
interface Worker {
  readonly life: Life;
  /** Time at which it started to own the shard, or owned it again. */
  readonly since: number;
  /** The group, or the supervisor of the worker, responds to it. */
  readonly hasContact: () => boolean;
  /** Requests during the work of another life. */
  strays: number;
}

/** The inputs of the checks. */
interface SharingMeans {
  readonly course: Course;
  readonly sessionMs: number;
  /** Whether one process has two shards more than another one. */
  readonly isUneven: () => boolean;
  readonly find: (what: string) => void;
}

/** Checks the conditions. */
export class Sharing {
  mode: Mode = { mayEnd: () => true, inOrder: false };
  /** By shard and life. */
  readonly #known = new Map<string, Worker>();
  /** The worker that owns each shard, or owned it last. */
  readonly #workers = new Map<number, Worker>();
  /** Since when no worker owns it. */
  readonly #endedAt = new Map<number, number>();
  readonly #in: SharingMeans;

  constructor(deps: SharingMeans) {
    this.#in = deps;
  }

  /** The life has owned the shard since `since`, knows the state, and works from now on. */
  begins(shard: number, life: Life, since: number, hasContact: () => boolean): void {
    const { course, sessionMs, find } = this.#in;
    course.tell(`${life.name} works on shard ${shard}`);
    const worker = { life, since, hasContact, strays: 0 };
    this.#known.set(keyOf(shard, life), worker);
    // The machine may have slept meanwhile, and others may have owned the shard since.
    if ((this.#workers.get(shard)?.since ?? 0) > since) return;
    const idleMs = course.now - (this.#endedAt.get(shard) ?? course.now);
    if (this.mode.inOrder && idleMs > sessionMs) {
      find(`shard ${shard} was given away in order, and stood still for ${idleMs} ms`);
    }
    this.#worksNow(shard, worker);
  }

  ends(shard: number, life: Life): void {
    if (this.#workers.get(shard)?.life !== life || this.#endedAt.has(shard)) return;
    this.#endedAt.set(shard, this.#in.course.now);
    if (this.mode.mayEnd(shard, life) || this.#in.isUneven()) return;
    this.#in.find(`${life.name} lets go of shard ${shard}, and need not`);
  }

  /** The life sends a request to upstream. */
  asks(shard: number, life: Life): void {
    const other = this.#workers.get(shard);
    const own = this.#known.get(keyOf(shard, life));
    if (own === undefined || other === own) return;
    if (this.workerOf(shard) === null || other?.hasContact() !== true) {
      // A life that the group removed without another owner continues.
      this.#worksNow(shard, { ...own, since: this.#in.course.now });
      return;
    }
    own.strays += 1;
    if (own.strays < 2) return;
    this.#in.find(`${life.name} asks upstream of shard ${shard} again beside ${other.life.name}`);
  }

  /** The life works, and the group does not receive its heartbeats. */
  unheard(shard: number, life: Life): void {
    if (this.mode.mayEnd(shard, life)) return;
    this.#in.find(`${life.name} is not heard, and nothing was wrong`);
  }

  /** The lives that work on a shard; null: none. */
  workerOf(shard: number): Life | null {
    const life = this.#workers.get(shard)?.life;
    const works = life?.isAlive && !this.#endedAt.has(shard);
    return works && life.stoppedUntil <= this.#in.course.now ? life : null;
  }

  #worksNow(shard: number, worker: Worker): void {
    this.#known.set(keyOf(shard, worker.life), worker);
    this.#endedAt.delete(shard);
    this.#workers.set(shard, worker);
  }
}

function keyOf(shard: number, { name }: Life): string {
  return `${shard} ${name}`;
}

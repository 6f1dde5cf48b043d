// What must be true of who works on which shard of a simulated cluster: never two on one, beyond one
// request of whoever does not know yet; and where all is well, nobody is disturbed, and a shard that
// changes hands in order is worked on again within a session.

import type { Course, Life } from './course.ts';

/** What may happen to shards at the moment. */
export interface Mode {
  /** Whose work on a shard may end, or not be heard; others end only where that makes loads more even. */
  readonly mayEnd: (shard: number, life: Life) => boolean;
  /** Whoever ends does so in order, and another one is there. */
  readonly inOrder: boolean;
}

/** One that works on a shard. */
interface Worker {
  readonly life: Life;
  /** When it has begun to take it, or has taken it again. */
  readonly since: number;
  /** The group answers it, or whoever it has the shard by. */
  readonly hasContact: () => boolean;
  /** Requests beside whoever works. */
  strays: number;
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

  /** It has begun to take the shard at `since`, knows what it holds, and works from now on. */
  begins(shard: number, life: Life, since: number, hasContact: () => boolean): void {
    const { course, sessionMs, find } = this.#in;
    course.tell(`${life.name} works on shard ${shard}`);
    const worker = { life, since, hasContact, strays: 0 };
    this.#known.set(keyOf(shard, life), worker);
    // It may have slept meanwhile, and others have taken it since.
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

  /** It asks upstream. */
  asks(shard: number, life: Life): void {
    const other = this.#workers.get(shard);
    const own = this.#known.get(keyOf(shard, life));
    if (own === undefined || other === own) return;
    if (this.workerOf(shard) === null || other?.hasContact() !== true) {
      // Whom the group has given up, and then knows of no other one, goes on.
      this.#worksNow(shard, { ...own, since: this.#in.course.now });
      return;
    }
    own.strays += 1;
    if (own.strays < 2) return;
    this.#in.find(`${life.name} asks upstream of shard ${shard} again beside ${other.life.name}`);
  }

  /** It works, and is not heard. */
  unheard(shard: number, life: Life): void {
    if (this.mode.mayEnd(shard, life)) return;
    this.#in.find(`${life.name} is not heard, and nothing was wrong`);
  }

  /** Who works on a shard; null: nobody. */
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

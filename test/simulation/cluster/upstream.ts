// The upstream of a simulated cluster: a list that grows, read from a record number, and a limit on requests.
// It counts the requests above the limit.

import type { Course, Life } from './course.ts';

/** The limit: one request per interval, and a burst. */
const limit = { everyMs: 500, atOnce: 5 } as const;
const latencyMs = 10;

/** Permits the requests within a limit. */
export class Bucket {
  #tokens: number;
  #at: number;

  constructor(now: number, tokens: number) {
    this.#at = now;
    this.#tokens = tokens;
  }

  take(now: number): boolean {
    this.#tokens = Math.min(limit.atOnce, this.#tokens + (now - this.#at) / limit.everyMs);
    this.#at = now;
    if (this.#tokens < 1 - 1e-9) return false;
    this.#tokens -= 1;
    return true;
  }
}

/** The upstream. */
export class Upstream {
  records = 5;
  requests = 0;
  tooMany = 0;
  readonly #course: Course;
  readonly #bucket = new Bucket(0, limit.atOnce);

  constructor(course: Course) {
    this.#course = course;
  }

  /** The numbers of the records from this one. */
  async get(from: number, most: number, life: Life): Promise<readonly number[]> {
    const { now, random } = this.#course;
    const ended = this.#course.wait(latencyMs + random.below(100), life);
    if (life.cutFromUpstreamUntil > now) {
      await ended;
      throw new Error('upstream cannot be reached');
    }
    this.requests += 1;
    const isLet = this.#bucket.take(now);
    if (!isLet) this.tooMany += 1;
    this.#course.tell(`${life.name} asks upstream from ${from}${isLet ? '' : ': too many'}`);
    const count = Math.max(0, Math.min(most, this.records - from));
    await ended;
    return Array.from({ length: count }, (_, at) => from + at);
  }
}

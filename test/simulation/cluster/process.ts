// One run of a process of a simulated cluster whose state has one shard: it joins the group, and works as soon
// as it owns the shard.

import { gainOnly } from '../../../src/cluster/group-member.ts';
import type { MemberSettings } from '../../../src/cluster/log/settings.ts';
import type { Membership } from '../../../src/cluster/ownership.ts';
import type { Log } from '../../../src/contracts/tools.ts';
import { silent } from '../../support/silent-log.ts';
import type { Course, Life } from './course.ts';
import { networks } from './kafka.ts';
import type { Sharing } from './sharing.ts';
import { type ShardWorld, Work } from './work.ts';

export const prefix = 'sim';
export const sessionMs = 6_000;
export const port = 9092;

/** The environment of a process. */
export interface Surroundings {
  readonly course: Course;
  readonly shards: readonly ShardWorld[];
  readonly sharing: Sharing;
}

/** One run. */
export interface Process {
  readonly life: Life;
  /** Its own life, and those of its workers. */
  readonly parts: readonly Part[];
  /** Resolves when it has ended. */
  run(): Promise<void>;
  /** Requests an orderly end. */
  stop(): void;
}

/** What a machine knows of a process. */
export interface Part {
  readonly life: Life;
  kill(): void;
}

/** Reports the log lines of a process to the course. */
export function logOf(course: Course, life: Life): Log {
  const report = (_event: string, line: string, fields?: object) =>
    course.tell(`${life.name}: ${line}${fields ? ` ${JSON.stringify(fields)}` : ''}`);
  const log: Log = { ...silent, info: report, warn: report, error: report, with: () => log };
  return log;
}

/** Nothing more happens in a life, or reaches it. */
export function end(life: Life): void {
  life.isAlive = false;
  networks.delete(life.name);
}

/** A life that gets all messages, or none. */
export class LoneProcess implements Process {
  readonly life: Life;
  readonly #course: Course;
  readonly #settings: MemberSettings;
  readonly #stop = new AbortController();
  readonly #work: Work;
  readonly #log: Log;

  constructor(life: Life, { course, shards, sharing }: Surroundings, instance: string | undefined) {
    const [of] = shards;
    if (of === undefined) throw new RangeError('there is no shard');
    this.life = life;
    this.#course = course;
    this.#log = logOf(course, life);
    this.#settings = {
      ...{ brokers: [{ host: life.name, port }], prefix, sessionMs, instance },
      deployment: () => ['simulated'],
    };
    const [settings, log] = [this.#settings, this.#log];
    this.#work = new Work({ ...of, course, life, sharing, settings, log });
  }

  get parts(): readonly Part[] {
    return [{ life: this.life, kill: () => end(this.life) }];
  }

  async run(): Promise<void> {
    const clock = this.#course.clockOf(this.life);
    const lost = (why: Error) => this.#end(why);
    const deps = { log: this.#log, clock, lost };
    let ownership: Membership | null = null;
    try {
      ownership = await gainOnly(this.#settings, deps, this.#stop.signal);
      await this.#work.run(ownership);
    } catch (error) {
      this.#course.tell(`${this.life.name} ends: ${String(error)}`);
      this.#end(error as Error);
    }
    await this.#work.close();
    await ownership?.close();
    end(this.life);
  }

  stop(): void {
    this.#end(new Error('it was asked to end'));
  }

  #end(why: Error): void {
    this.#stop.abort(why);
    this.#work.stop(why);
  }
}

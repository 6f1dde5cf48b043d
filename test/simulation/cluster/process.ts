// One run of a process of a simulated cluster: it joins, takes the shard and works as a run does
// (src/run/journey.ts), with the real ownership and the real log of the shard. Its work is the least
// that has all that matters: a list is read from a checkpoint on, its pages are sent to a sink, and
// both go into the log.

import type { MemberSettings } from '../../../src/cluster/log/settings.ts';
import { ShardLog } from '../../../src/cluster/log/shard-log.ts';
import { Ownership } from '../../../src/cluster/ownership.ts';
import type { Clock, Log } from '../../../src/contracts/tools.ts';
import type { OutboxRow } from '../../../src/hold/outbox.ts';
import { silent } from '../../support/silent-log.ts';
import type { Course, Life } from './course.ts';
import { networks } from './kafka.ts';
import type { Oracle } from './oracle.ts';
import { held } from './rebuilding.ts';
import { Bucket, type Upstream } from './upstream.ts';

export const prefix = 'sim';
const sessionMs = 6_000;
/** Oftener than upstream lets anyone ask. */
const everyMs = 150;
const pageMax = 4;
const confirmEveryMs = 1_000;
/** Nobody knows what the one before has left. */
const tokensAtTakeover = 0;

/** Where a process runs. */
export interface Surroundings {
  readonly course: Course;
  readonly upstream: Upstream;
  readonly oracle: Oracle;
}

/** One run. */
export class Process {
  readonly life: Life;
  readonly #in: Surroundings;
  readonly #settings: MemberSettings;
  readonly #stop = new AbortController();
  readonly #log: Log;
  #ownership: Ownership | null = null;
  #shard: ShardLog | null = null;
  #rows = new Map<string, Uint8Array>();
  /** The checkpoint that it has given to the log; whether that stands it may not know yet. */
  #written = 0;

  constructor(life: Life, around: Surroundings, instance: string | undefined) {
    this.life = life;
    this.#in = around;
    this.#settings = {
      ...{ brokers: [{ host: life.name, port: 9092 }], prefix, sessionMs, instance },
      deployment: () => ['simulated'],
    };
    const tell = (line: string, fields?: object) =>
      around.course.tell(`${life.name}: ${line}${fields ? ` ${JSON.stringify(fields)}` : ''}`);
    this.#log = { ...silent, info: tell, warn: tell };
  }

  /** Resolves when it has ended. */
  async run(): Promise<void> {
    try {
      await this.#run();
    } catch (error) {
      this.#in.course.tell(`${this.life.name} ends: ${String(error)}`);
    }
    await this.#close();
  }

  /** Asks it to end in order. */
  stop(): void {
    this.#shard?.hurry();
    this.#stop.abort(new Error('it was asked to end'));
  }

  async #run(): Promise<void> {
    const { course, oracle } = this.#in;
    const clock = course.clockOf(this.life);
    const lost = (why: Error) => this.#stop.abort(why);
    const means = { log: this.#log, clock, lost };
    this.#ownership = await Ownership.gain(this.#settings, means, this.#stop.signal);
    const { confirm, isHeard } = this.#ownership;
    this.#shard = await ShardLog.take(this.#settings, { log: this.#log, clock, confirm });
    const known = oracle.checkpoint;
    await this.#shard.rebuild(this.life.name);
    this.#rows = held.get(this.life.name) ?? this.#rows;
    this.#written = this.#number('checkpoint list');
    oracle.restored(this.life.name, this.#written, known);
    const bucket = new Bucket(course.now, tokensAtTakeover);
    void this.#confirmAgain(clock).catch(() => undefined);
    while (!this.#stop.signal.aborted) {
      await clock.sleep(everyMs, this.#stop.signal);
      await this.#send();
      if (!isHeard() || !bucket.take(course.now)) continue;
      // It may be stopped between looking and asking.
      await course.wait(1, this.life);
      await this.#poll();
    }
  }

  /** As a sink does before it puts out whoever was connected before it; meanwhile all else goes on. */
  async #confirmAgain(clock: Clock): Promise<void> {
    const { oracle } = this.#in;
    for (;;) {
      await clock.sleep(confirmEveryMs, this.#stop.signal);
      const known = oracle.checkpoint;
      await this.#shard?.confirm(this.#stop.signal);
      oracle.confirmed(this.life.name, this.#written, known);
    }
  }

  async #poll(): Promise<void> {
    const from = this.#number('checkpoint list');
    const asked = this.#in.upstream.get(from, pageMax, this.life);
    const found = await asked.catch(() => []);
    if (found.length === 0 || this.#stop.signal.aborted) return;
    this.#written = from + found.length;
    const checkpoint = row('checkpoint', ['list'], this.#written);
    await this.#commit([row('page', [from], found), checkpoint]);
  }

  async #send(): Promise<void> {
    const { course, oracle } = this.#in;
    const position = this.#number('position sink');
    const pages = [...this.#rows].filter(([name]) => name.startsWith('page '));
    const numbers = pages.flatMap(([, value]) => JSON.parse(String(value)) as number[]);
    const due = numbers.filter((number) => number >= position);
    if (due.length === 0) return;
    const next = Math.max(...due) + 1;
    await course.wait(1 + course.random.below(100), this.life);
    oracle.delivered(due);
    await this.#commit([row('position', ['sink'], next)]);
    for (const [name] of pages) this.#rows.delete(name);
    this.#shard?.forgetBefore(next);
  }

  async #commit(rows: readonly OutboxRow[]): Promise<void> {
    await this.#shard?.commit(rows);
    for (const { table, key, value } of rows) {
      if (value !== null) this.#rows.set([table, ...key].join(' '), value);
    }
  }

  #number(name: string): number {
    const value = this.#rows.get(name);
    return value === undefined ? 0 : (JSON.parse(Buffer.from(value).toString()) as number);
  }

  async #close(): Promise<void> {
    this.#shard?.hurry();
    await this.#shard?.close();
    await this.#ownership?.close();
    this.life.isAlive = false;
    networks.delete(this.life.name);
  }
}

function row(table: string, key: readonly (string | number)[], value: unknown): OutboxRow {
  return { table, key, value: Buffer.from(JSON.stringify(value)) };
}

// The work of a simulated process on its shard, like that of a run (src/run/journey.ts), with the real log of
// the shard. It is the least work with all relevant parts: it reads a list from a checkpoint, sends the pages to a
// sink, and writes both to the log.

import type { StateLogSettings } from '../../../src/cluster/log/settings.ts';
import { ShardLog } from '../../../src/cluster/log/shard-log.ts';
import type { Membership } from '../../../src/cluster/ownership.ts';
import type { Clock, Log } from '../../../src/contracts/tools.ts';
import type { OutboxRow } from '../../../src/hold/outbox.ts';
import type { Course, Life } from './course.ts';
import type { Oracle } from './oracle.ts';
import { held } from './rebuilding.ts';
import type { Sharing } from './sharing.ts';
import { Bucket, type Upstream } from './upstream.ts';

/** Shorter than the limit of upstream permits. */
const everyMs = 150;
const pageMax = 4;
const confirmEveryMs = 1_000;
/** The use of the limit by the previous owner is unknown. */
const tokensAtTakeover = 0;

/** A shard without its log. */
export interface ShardWorld {
  readonly shard: number;
  readonly upstream: Upstream;
  readonly oracle: Oracle;
}

/** Dependencies of the work on a shard. */
export interface WorkMeans extends ShardWorld {
  readonly course: Course;
  readonly life: Life;
  readonly sharing: Sharing;
  readonly settings: StateLogSettings;
  readonly log: Log;
}

/** The work of one process on a shard. */
export class Work {
  readonly #in: WorkMeans;
  readonly #stop = new AbortController();
  #shard: ShardLog | null = null;
  #rows = new Map<string, Uint8Array>();
  /** The checkpoint that the life wrote to the log; the life may not know yet whether it is committed. */
  #written = 0;

  constructor(deps: WorkMeans) {
    this.#in = deps;
  }

  /** Requests an orderly end. */
  stop(why: Error): void {
    this.#shard?.hurry();
    this.#stop.abort(why);
  }

  /** Owns the shard and works on it until stopped; rejects with the reason of its end. */
  async run({ confirm, hasContact }: Membership): Promise<void> {
    const { course, oracle, life, log, settings, sharing, shard } = this.#in;
    const clock = course.clockOf(life);
    const since = course.now;
    this.#shard = await ShardLog.take(settings, { log, clock, confirm });
    const known = oracle.checkpoint;
    const dir = `${life.name}/${shard}`;
    await this.#shard.rebuild(dir);
    this.#rows = held.get(dir) ?? this.#rows;
    this.#written = this.#number('checkpoint list');
    oracle.restored(life.name, this.#written, known);
    let bucket = new Bucket(course.now, tokensAtTakeover);
    this.#stop.signal.throwIfAborted();
    sharing.begins(shard, life, since, hasContact);
    this.#stop.signal.addEventListener('abort', () => sharing.ends(shard, life));
    void this.#confirmAgain(clock).catch(() => undefined);
    while (!this.#stop.signal.aborted) {
      await clock.sleep(everyMs, this.#stop.signal);
      await this.#send();
      if (!hasContact()) {
        sharing.unheard(shard, life);
        // Others may have sent requests meanwhile.
        bucket = new Bucket(course.now, tokensAtTakeover);
        continue;
      }
      if (!bucket.take(course.now)) continue;
      // The process may be stopped between the check and the request.
      await course.wait(1, life);
      await this.#poll();
    }
  }

  /** As a sink does before it fences the previous connection; other work continues meanwhile. */
  async #confirmAgain(clock: Clock): Promise<void> {
    const { oracle, life } = this.#in;
    for (;;) {
      await clock.sleep(confirmEveryMs, this.#stop.signal);
      const known = oracle.checkpoint;
      await this.#shard?.confirm(this.#stop.signal);
      oracle.confirmed(life.name, this.#written, known);
    }
  }

  async #poll(): Promise<void> {
    const from = this.#number('checkpoint list');
    const { sharing, shard, upstream, life } = this.#in;
    sharing.asks(shard, life);
    const asked = upstream.get(from, pageMax, life);
    const found = await asked.catch(() => []);
    if (found.length === 0 || this.#stop.signal.aborted) return;
    this.#written = from + found.length;
    const checkpoint = row('checkpoint', ['list'], this.#written);
    await this.#commit([row('page', [from], found), checkpoint]);
  }

  async #send(): Promise<void> {
    const { course, oracle, life } = this.#in;
    const position = this.#number('position sink');
    const pages = [...this.#rows].filter(([name]) => name.startsWith('page '));
    const numbers = pages.flatMap(([, value]) => JSON.parse(String(value)) as number[]);
    const due = numbers.filter((number) => number >= position);
    if (due.length === 0) return;
    const next = Math.max(...due) + 1;
    await course.wait(1 + course.random.below(100), life);
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

  /** Releases the shard. */
  async close(): Promise<void> {
    this.#shard?.hurry();
    await this.#shard?.close();
  }
}

function row(table: string, key: readonly (string | number)[], value: unknown): OutboxRow {
  return { table, key, value: Buffer.from(JSON.stringify(value)) };
}

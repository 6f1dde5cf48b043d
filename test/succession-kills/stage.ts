// What the kills of a move are played on (kills.ts): two upstreams over one ledger, receivers of each promise, and the
// processes of a state in SQLite or in Kafka. Of a state in Kafka two processes share three shards, of which one has the pair
// and one has tickets of another client. The operator's commands have a directory of their own, as on another machine.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { readConfig } from '../../src/config/config.ts';
import { shardOfStream } from '../../src/config/shards.ts';
import { type RunningSluice, runHere, type SluiceResult, startSluice } from '../support/cli.ts';
import { consumeAll, createTopic } from '../support/kafka.ts';
import { LinesFile } from '../support/lines-file.ts';
import {
  type Delivered,
  type MovingUpstreams,
  startMovingUpstreams,
} from '../support/moving/upstreams.ts';
import { startTcpReceiver, type TcpReceiver } from '../support/tcp-receiver.ts';
import { waitUntil } from '../support/temp.ts';

/** Where the state of the processes is. */
export type StateKind = 'sqlite' | 'kafka';

/** What a stage is made from. */
export interface StageOptions {
  readonly state: StateKind;
  /** Addresses of a real Apache Kafka. */
  readonly brokers: readonly string[];
  readonly dir: string;
  /** Keys of `succeeds`. */
  readonly succeeds: object;
  /** The most records of a page. */
  readonly pageMax: number;
}

const shards = 3;
const drivers = ['kafkajs', 'platformatic'] as const;

/** A line of the log of a process that has a shard worked on. */
interface Begun {
  readonly shard: number;
  readonly pid: number;
  readonly time: string;
}

/** What a command shows of a stream. */
interface StreamFacts {
  readonly name: string;
  readonly caught_up_at: string | null;
}

/** The stage; its processes are those of one deployment. */
export class Stage {
  readonly pair: MovingUpstreams;
  readonly syslog: TcpReceiver;
  readonly topics: readonly string[];
  readonly #options: StageOptions;
  readonly #lines: LinesFile<string>;
  readonly #names: readonly string[];
  readonly #running = new Map<string, RunningSluice>();
  readonly #ended: RunningSluice[] = [];
  /** The upstream of the tickets. */
  #apart = 'tickets';

  private constructor(options: StageOptions, parts: Pick<Stage, 'pair' | 'syslog' | 'topics'>) {
    this.#options = options;
    ({ pair: this.pair, syslog: this.syslog, topics: this.topics } = parts);
    this.#names = options.state === 'kafka' ? ['one', 'two'] : ['one'];
    const all = [...this.#names, 'operator'];
    do {
      this.#apart += '-apart';
      for (const name of all) this.#write(name);
    } while (options.state === 'kafka' && this.#shardOf('tickets') === this.shard);
    const file = options.state === 'kafka' ? `events-${this.shard}.ndjson` : 'events.ndjson';
    this.#lines = new LinesFile(join(options.dir, file), (line) => line);
  }

  static async open(options: StageOptions): Promise<Stage> {
    const { brokers, pageMax } = options;
    const topics = drivers.map((driver) => `moved-${driver}-${crypto.randomUUID()}`);
    for (const topic of topics) await createTopic(brokers, topic);
    const pair = await startMovingUpstreams({ pageMax });
    return new Stage(options, { pair, topics, syslog: await startTcpReceiver() });
  }

  /** The shard of the pair. */
  get shard(): number {
    return this.#shardOf('new_audit');
  }

  /** The config of a command: of the machine of a process, or of another machine. */
  get command(): string {
    return this.#file(this.#options.state === 'kafka' ? 'operator' : 'one');
  }

  /** The delivered lines of the file sink. */
  get lines(): readonly string[] {
    return this.#lines.read();
  }

  /** List requests to both sides so far. */
  get requests(): number {
    return this.pair.requests('old') + this.pair.requests('new');
  }

  /** Starts each process that does not run. */
  startAll(): void {
    for (const name of this.#names) {
      if (this.#running.get(name)?.running === true) continue;
      this.#running.set(name, startSluice(['run', '-c', this.#file(name)]));
    }
  }

  /** Kills the process that works on the pair; of a shard, that one's own process or the one that has started it. */
  async killOwner(which: 'shard' | 'whole'): Promise<void> {
    const owner = await waitUntil(() => this.#owner(), { what: 'a process to own the pair' });
    if (which === 'shard' && owner.pid !== null) {
      process.kill(owner.pid, 'SIGKILL');
      this.#killed.add(owner.pid);
      return;
    }
    this.#ended.push(owner.sluice);
    await owner.sluice.kill('SIGKILL');
  }

  readonly #killed = new Set<number>();

  /** Ends all in order. */
  async end(): Promise<void> {
    const all = [...this.#running.values()].filter(({ running }) => running);
    for (const { exitCode, stderr } of await Promise.all(all.map((one) => one.kill('SIGTERM')))) {
      if (exitCode !== 0) throw new Error(`SIGTERM ended a process with ${exitCode}: ${stderr}`);
    }
  }

  /** What `succession --json` shows of the pair on the machine of the operator. */
  async report(): Promise<Readonly<Record<'phase' | 'brake' | 'waiting' | 'matched', unknown>>> {
    const { stdout, stderr } = await runHere(['succession', '-c', this.command, '--json']);
    if (stdout === '') throw new Error(stderr);
    return JSON.parse(stdout).sources[0];
  }

  /** True once the successor's first walk has ended. */
  async isWalked(): Promise<boolean> {
    const of = this.#options.state === 'kafka' ? 'cluster' : 'status';
    const { stdout } = await runHere([of, '-c', this.command, '--json']);
    if (stdout === '') return false;
    const { streams } = JSON.parse(stdout) as { readonly streams: readonly StreamFacts[] };
    return streams.some((one) => one.name === 'new_audit' && one.caught_up_at !== null);
  }

  /** Gives the command `succession cutover` or `rollback` there. */
  async turn(turn: 'cutover' | 'rollback', ...more: readonly string[]): Promise<SluiceResult> {
    return await runHere(['succession', turn, ...more, '-c', this.command, 'new_audit']);
  }

  /** What each receiver has by now, by its name. */
  async delivered(): Promise<ReadonlyMap<string, Delivered>> {
    const { brokers } = this.#options;
    const texts = new Map([
      ['file', this.lines.join('\n')],
      ['syslog', this.syslog.frames.map(({ text }) => text.replaceAll('\n', ' ')).join('\n')],
    ]);
    for (const [index, topic] of this.topics.entries()) {
      const read = await consumeAll(topic, { brokers });
      texts.set(drivers[index] ?? topic, read.map(({ value }) => value).join('\n'));
    }
    return new Map([...texts].map(([name, text]) => [name, this.pair.count(text)]));
  }

  /** What the processes have logged. */
  get logs(): readonly string[] {
    return [...this.#ended, ...this.#running.values()].flatMap(({ stderr }) => stderr);
  }

  /** The one that has begun to work on the pair last; null: it has ended since. */
  #owner(): { readonly sluice: RunningSluice; readonly pid: number | null } | null {
    const one = this.#running.get('one');
    if (this.#options.state === 'sqlite') {
      return one?.running === true ? { sluice: one, pid: null } : null;
    }
    const begun = [...this.#running.values()].flatMap((sluice) =>
      sluice.stderr
        .filter((line) => line.includes('shard_worker_started'))
        .map((line) => ({ sluice, ...(JSON.parse(line) as Begun) }))
        .filter(({ shard }) => shard === this.shard),
    );
    const last = begun.toSorted((a, b) => (a.time < b.time ? -1 : 1)).at(-1);
    if (last === undefined || !last.sluice.running || this.#killed.has(last.pid)) return null;
    return last;
  }

  #shardOf(source: string): number {
    return shardOfStream(readConfig(this.#file('operator')), source) ?? -1;
  }

  #file(name: string): string {
    return join(this.#options.dir, `${name}.yaml`);
  }

  #write(name: string): void {
    const { state, brokers, dir, succeeds } = this.#options;
    const usual = { type: 'logs', every: '100ms', rewind_every: '1s', reconcile_every: '1s' };
    const kafka = { brokers, prefix: `moved-${this.topics[0]?.slice(-12)}`, shards };
    const of = { session_timeout: '6s', instance: name };
    const lake = (topic: string, index: number) => ({
      ...{ type: 'kafka', brokers, topic, driver: drivers[index], exactly_once: true },
      ...{ format: 'json', retry: { min: '100ms', max: '1s' } },
    });
    const { base_url: url = '', ...rest } = this.pair.upstreams.new as {
      readonly base_url?: string;
    };
    const apart = { ...rest, base_url: url.replace('127.0.0.1', 'localhost') };
    const config = {
      state: {
        dir: join(dir, `state-${name}`),
        ...(state === 'kafka' && { kafka: { ...kafka, ...of } }),
      },
      upstreams: { ...this.pair.upstreams, [this.#apart]: apart },
      sources: {
        old_audit: {
          ...{ ...usual, upstream: 'old', path: '/audit', time: ['eventTime'] },
          pagination: { style: 'page', page_param: 'page', size_param: 'page_size' },
        },
        new_audit: {
          ...{ ...usual, upstream: 'new', path: '/api/logs/v1/audit', time: ['event_time'] },
          ...{ pagination: { style: 'cursor' }, succeeds: { source: 'old_audit', ...succeeds } },
        },
        tickets: {
          ...{ type: 'collection', upstream: this.#apart, path: '/api/ticketing/v1/tickets' },
          ...{ id: 'ticket_id', kind: 'ticket', pagination: { style: 'offset' }, every: '1s' },
        },
      },
      sinks: {
        disk: {
          ...{ type: 'file', format: 'json' },
          path: join(dir, state === 'kafka' ? 'events-{partition}.ndjson' : 'events.ndjson'),
        },
        ...Object.fromEntries(
          this.topics.map((topic, index) => [drivers[index], lake(topic, index)]),
        ),
        siem: { type: 'syslog', address: `tcp://127.0.0.1:${this.syslog.port}` },
      },
      shutdown: { timeout: '20s' },
    };
    writeFileSync(this.#file(name), JSON.stringify(config));
  }
}

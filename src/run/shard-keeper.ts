// A process where the state in Kafka has several shards: it stands ready for each that has work, and
// has a process of its own work on each that it gets (shard-process.ts), with a log and a directory
// as those of a state of one shard. So one that fails, or has much to do, takes nothing from the
// others. What must stay true: a shard's process works only while we are its owner in the group; and
// whoever has more than a fair share gives some away, in order, one at a time.

import { aborted } from 'node:util';
import { isGiver } from '../cluster/assignment.ts';
import { type ConfigPrint, printAfter } from '../cluster/config-print.ts';
import { type MemberSettings, processName } from '../cluster/log/settings.ts';
import { usedShards } from '../cluster/log/topics.ts';
import { Ownership } from '../cluster/ownership.ts';
import { processesOf } from '../cluster/processes.ts';
import { type Config, readConfig } from '../config/config.ts';
import { inShards, ofShard, shardsOf } from '../config/shards.ts';
import { asExportError, type ExportError } from '../contracts/errors.ts';
import type { Clock, Log } from '../contracts/tools.ts';
import type { Asked } from '../pipeline.ts';
import { joinedMoment } from '../watch/joined.ts';
import type { Moment } from '../watch/live.ts';
import { refuseBeside } from './cluster.ts';
import { storeDeployment } from './deployment.ts';
import type { Drains } from './drains.ts';
import type { Member } from './member-note.ts';
import type { ReloadRequests } from './reload-requests.ts';
import { ShardProcess } from './shard-process.ts';
import { keyOf, ShardTally, type WorkerKey } from './shard-tally.ts';

/** What shards are kept with. */
export interface KeeperMeans {
  readonly config: Config;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The command line of a process for a shard. */
  readonly args: readonly string[];
  /** Each shard is worked on until its process ends by itself. */
  readonly once: boolean;
  readonly drains: Pick<Drains, 'isDrained' | 'orDrained'> & Partial<Pick<Drains, 'control'>>;
  /** Left out: the config is not read again. */
  readonly requests?: ReloadRequests | undefined;
  /** A changed config may drop streams and sinks. */
  readonly removalAllowed: boolean;
  /** What the commands of this machine read of this process; left out: nothing. */
  readonly member?: Pick<Member, 'note'> | undefined;
  readonly clock: Clock;
  readonly log: Log;
  readonly random: () => number;
}

const noteEveryMs = 1_000;
const pauseMsMin = 1_000;
const pauseMsMax = 30_000;

/** The shards of this process. */
export class ShardKeeper {
  readonly #means: KeeperMeans;
  #config: Config;
  /** What the other processes know of its config. */
  #print: ConfigPrint | null;
  /** Those it has, by the names of their seats. */
  readonly #processes = new Map<string, ShardProcess>();
  /** The seats that it serves, by their names, with what ends that. */
  readonly #served = new Map<
    string,
    {
      readonly seat: WorkerKey;
      readonly done: Promise<number>;
      end(why: Error): void;
    }
  >();
  /** Why a shard cannot be served, which ends them all. */
  readonly #failed = Promise.withResolvers<never>();
  /** Given away, until another process has it. */
  #given: string | null = null;
  readonly #tally = new ShardTally();

  constructor(means: KeeperMeans) {
    this.#means = means;
    this.#config = means.config;
    this.#print = printOf(means.config);
    this.#failed.promise.catch(() => undefined);
  }

  /** What runs: another one after a reload. */
  get config(): Config {
    return this.#config;
  }

  /** Those that it has and that tell how they stand. */
  get shown(): readonly ShardProcess[] {
    return [...this.#processes.values()].filter(({ moment }) => moment !== null);
  }

  /** The status of all workers together. */
  look(): Moment {
    const moments = [...this.#processes.values()].flatMap(({ moment }) => moment ?? []);
    const commits = moments.flatMap(({ cluster }) => cluster?.commitMs ?? []);
    const { share, takeovers, heardAt } = this.#tally;
    return {
      ...joinedMoment(moments, this.#config.state.maxBytes, this.#standsBy()),
      cluster: {
        ...{ share, takeovers, heardAt },
        commitMs: commits.length === 0 ? null : Math.max(...commits),
      },
    };
  }

  /** Why this process has no work; null: it has some. */
  #standsBy(): string | null {
    const { owned, failing } = this.#tally.share;
    if (owned.length > 0 || failing.length > 0 || this.#processes.size > 0) return null;
    return this.#means.drains.isDrained()
      ? 'it is drained: sluice cluster undrain lets it work again'
      : `other processes have the shards of ${this.#config.state.kafka?.prefix} in Kafka`;
  }

  /** Has the streams and sinks of a name asked now. */
  askNow(name: string): readonly Asked[] {
    const here = [...this.#processes.values()];
    const { senders = [] } = this.#config.state.kafka ?? {};
    const isElsewhere = senders.includes(name) && here.every(({ sink }) => sink !== name);
    const asked = here.flatMap((one) => one.askNow(name));
    return asked.filter(({ part }) => part === 'stream' || !isElsewhere);
  }

  /**
   * Serves all shards until stopped, or once each; resolves with the worst exit code. Rejects where
   * one cannot be served.
   */
  async run(stop: AbortSignal): Promise<number> {
    for (const part of inShards(this.#config)) {
      // Told once, instead of by each of its shards.
      if (part.state.kafka)
        await refuseBeside(part.state.kafka, this.#means.clock, { waits: true });
    }
    const over = new AbortController();
    const ending = AbortSignal.any([stop, over.signal]);
    const left = await this.#left();
    for (const shard of [...shardsOf(this.#config), ...left]) this.#serveShard(shard, ending);
    const beside = this.#means.once
      ? []
      : [this.#balance(ending), this.#reloads(ending), this.#notes(ending)].map((work) =>
          work.catch(() => undefined),
        );
    const ended = async () =>
      Math.max(0, ...(await Promise.all([...this.#served.values()].map(({ done }) => done))));
    try {
      const through = this.#means.once ? ended() : aborted(stop, this);
      await Promise.race([through, this.#failed.promise]);
      // What is served may change until then.
      return await ended();
    } finally {
      over.abort(new Error('the shards are done'));
      await Promise.all([...beside, ended()]);
    }
  }

  /** Shards that no upstream is in any more, and that may still hold what their sinks have not had. */
  async #left(): Promise<readonly number[]> {
    const { kafka } = this.#config.state;
    if (kafka === null) return [];
    const wanted = shardsOf(this.#config);
    const used = await usedShards(kafka, this.#means.clock);
    return used.filter((shard) => !wanted.includes(shard));
  }

  /** Serves a shard and its sinks; where its work has an end, they end with it. */
  #serveShard(shard: number, stop: AbortSignal): void {
    const seats = seatsOf(this.#config, shard);
    for (const seat of seats) if (!this.#served.has(keyOf(seat))) this.#serve(seat, stop);
    const done = this.#served.get(keyOf({ shard, sink: null }))?.done;
    void done?.then(() => {
      for (const seat of seats) {
        if (seat.sink !== null) this.#served.get(keyOf(seat))?.end(new Error('the shard is done'));
      }
    });
  }

  #serve(seat: WorkerKey, stop: AbortSignal): void {
    const own = new AbortController();
    const ending = AbortSignal.any([stop, own.signal]);
    const done = this.#keep(seat, ending)
      .catch((error) => {
        if (ending.aborted) return 0;
        this.#means.log.error('a shard cannot be served', { ...told(seat) });
        this.#failed.reject(error);
        return 1;
      })
      .finally(() => this.#tally.left(seat));
    this.#served.set(keyOf(seat), { seat, done, end: (why) => own.abort(why) });
  }

  /** Waits for a shard and works on it, again and again. */
  async #keep(seat: WorkerKey, stop: AbortSignal): Promise<number> {
    const { clock } = this.#means;
    for (let pauseMs = pauseMsMin; ; ) {
      const begunAt = clock.monotonic();
      const isLeft = !shardsOf(this.#config).includes(seat.shard);
      const hasEnd = seat.sink === null && (this.#means.once || isLeft);
      const code = await this.#turn(seat, isLeft, stop);
      if (hasEnd || stop.aborted) return code;
      pauseMs = code === 0 || clock.monotonic() - begunAt > pauseMsMax ? pauseMsMin : pauseMs * 2;
      if (code !== 0) await clock.sleep(Math.min(pauseMs, pauseMsMax), stop);
    }
  }

  /** From waiting for a seat to the end of its process; resolves with that one's exit code. */
  async #turn(seat: WorkerKey, isLeft: boolean, stop: AbortSignal): Promise<number> {
    const { clock, drains, env } = this.#means;
    const { shard, sink } = seat;
    const name = keyOf(seat);
    // What is left over is delivered, and nothing read.
    const beyond = isLeft && !this.#means.once ? ['--once'] : [];
    const args = [...this.#means.args, ...beyond];
    const log = this.#means.log.with(told(seat));
    const member = memberOf(this.#config, seat);
    if (member === null) return 0;
    // The sinks that a process has matter where pages are held.
    const kafka = sink === null ? { ...member, config: () => this.#print } : member;
    const own: { process: ShardProcess | null } = { process: null };
    const ownership = await Ownership.gain(
      kafka,
      {
        ...{ log, clock },
        isDrained: () => drains.isDrained(),
        isGiven: () => this.#given === name,
        waits: () => this.#tally.given(seat),
        heard: (at) => this.#tally.heard(seat, at),
        load: () => this.#processes.size - (this.#processes.has(name) ? 1 : 0),
        lost: (why: ExportError) => own.process?.lose(why),
      },
      stop,
    );
    this.#tally.gained(seat);
    const turn = drains.orDrained(stop);
    try {
      const { sessionMs } = kafka;
      const means = { shard, sink, args, env, ownership, sessionMs, clock, log };
      const process = new ShardProcess(means);
      own.process = process;
      this.#processes.set(name, process);
      this.#tally.started(seat, process);
      const end = () => process.stop();
      turn.addEventListener('abort', end, { once: true });
      if (turn.aborted) end();
      const code = await process.ended;
      this.#tally.ended(seat, process.isStopped ? 0 : code);
      turn.removeEventListener('abort', end);
      if (code !== 0) {
        log.warn(`the process of the ${sink === null ? 'shard' : 'sink'} has ended`, { code });
      }
      if (ownership.nameTaken !== null) throw ownership.nameTaken;
      return code;
    } finally {
      this.#processes.delete(name);
      await ownership.close(stop.aborted);
      this.#tally.released(seat);
    }
  }

  /** Has the commands of this machine know which shards are here. */
  async #notes(stop: AbortSignal): Promise<void> {
    const { member, clock } = this.#means;
    while (member !== undefined) {
      member.note({ standing_by: this.#standsBy(), shards: this.#tally.share });
      await clock.sleep(noteEveryMs, stop);
    }
  }

  /** Gives away what is more than a fair share. */
  async #balance(stop: AbortSignal): Promise<void> {
    const { clock, log, random } = this.#means;
    for (;;) {
      const { kafka } = this.#config.state;
      if (kafka === null) return;
      await clock.sleep(kafka.sessionMs * (1 + random()), stop);
      const seats = shardsOf(this.#config).flatMap((shard) => seatsOf(this.#config, shard));
      const members = seats.flatMap((seat) => memberOf(this.#config, seat) ?? []);
      const asked = Promise.all(members.map((one) => processesOf(one, clock)));
      const processes = await asked.catch(() => null);
      if (processes === null) continue;
      if (this.#given !== null && !this.#processes.has(this.#given)) {
        // Whoever wanted it has it by now.
        this.#given = null;
        continue;
      }
      // What only sends has no state to be read anew.
      const mine = [...this.#processes].sort(([, a], [, b]) => order(a) - order(b));
      const [name] = mine.at(-1) ?? [];
      if (name === undefined || !isGiver(processName(kafka), processes)) continue;
      this.#given = name;
      log.info('another process has less to do, and gets a part', { part: name });
      this.#processes.get(name)?.stop();
    }
  }

  /** Serves what a changed config has work for; what is in each shard its process reads by itself. */
  async #reloads(stop: AbortSignal): Promise<void> {
    const { requests, env, config, log, removalAllowed } = this.#means;
    while (requests !== undefined) {
      const reason = await requests.next(stop);
      if (reason === 'SIGHUP') for (const one of this.#processes.values()) one.reload();
      try {
        const next = readConfig(config.file, { env });
        const wanted = new Set(shardsOf({ ...next, state: config.state }));
        const dropped = shardsOf(this.#config).filter((shard) => !wanted.has(shard));
        // Its process refuses what drops its streams.
        if (dropped.length > 0 && !removalAllowed) continue;
        this.#config = { ...next, state: this.#config.state };
        this.#print = printAfter(this.#print, printOf(next), removalAllowed);
        const { control } = this.#means.drains;
        if (control) storeDeployment(next.state.kafka, { ...this.#means, control });
        for (const shard of wanted) this.#serveShard(shard, stop);
        const seats = new Set(
          [...wanted].flatMap((shard) => seatsOf(this.#config, shard).map(keyOf)),
        );
        for (const [name, { seat, end }] of this.#served) {
          if (seats.has(name) || !dropped.includes(seat.shard)) continue;
          end(new Error('the config has no more work for it'));
          this.#served.delete(name);
        }
      } catch (error) {
        const { message } = asExportError(error, 'reading the config again');
        log.warn('the config is not read again', { error: message.split('\n')[0] ?? '' });
      }
    }
  }
}

function printOf({ state }: Config): ConfigPrint | null {
  return state.kafka?.config?.() ?? null;
}

/** All that processes are to be had for in a shard. */
function seatsOf({ state }: Config, shard: number): readonly WorkerKey[] {
  const { senders = [] } = state.kafka ?? {};
  return [{ shard, sink: null }, ...senders.map((sink) => ({ shard, sink }))];
}

/** By what a process is in a seat's group; null: the state is not in Kafka. */
function memberOf(config: Config, { shard, sink }: WorkerKey): MemberSettings | null {
  const { kafka } = ofShard(config, shard).state;
  return kafka && { ...kafka, ...(sink !== null && { sink }) };
}

function order({ sink }: ShardProcess): number {
  return sink === null ? 0 : 1;
}

function told({ shard, sink }: WorkerKey): { shard: number; sink?: string } {
  return sink === null ? { shard } : { shard, sink };
}

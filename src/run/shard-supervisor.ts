// The supervisor of a process whose state in Kafka has several shards. It accepts each shard with work, by one membership in the
// group of the processes, and runs each owned shard in one of its worker processes (worker-pool.ts), with a log and a directory
// like those of a state of one shard. So a shard that fails or has much work affects the others little. Invariants: a shard
// runs only while this process owns it in the group; a shard that the group moves is stopped in order first.

import { aborted } from 'node:util';
import { type ConfigPrint, printAfter } from '../cluster/index.ts';
import { GroupMember, usedShards } from '../cluster/kafka.ts';
import { type Config, reloadConfig, shardOfStream, shardsOf } from '../config/index.ts';
import { type Clock, ExportError, type Log } from '../contracts/index.ts';
import type { RetryRequest } from '../pipeline.ts';
import { version } from '../tools/index.ts';
import { joinedMoment, type StatusMoment } from '../watch/running-status.ts';
import { refuseBeside } from './cluster.ts';
import { storeDeployment } from './deployment.ts';
import type { Drains } from './drains.ts';
import { agreeOnHomes } from './homes.ts';
import type { MemberFile } from './member-note.ts';
import { RefusedReload } from './refused-reload.ts';
import type { ReloadReason, ReloadRequests } from './reload-requests.ts';
import { acceptedOf } from './shard-messages.ts';
import { ShardTally } from './shard-tally.ts';
import type { ShardTurn } from './shard-turn.ts';
import { WorkerPool } from './worker-pool.ts';

/** Dependencies of a supervisor. */
export interface SupervisorDeps {
  readonly config: Config;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The command line of a worker process. */
  readonly args: readonly string[];
  /** Maximum of worker processes. */
  readonly workers: number;
  /** Each shard is read to its tail and delivered once. */
  readonly once: boolean;
  readonly drains: Pick<Drains, 'isDrained' | 'orDrained'> & Partial<Pick<Drains, 'control'>>;
  /** Default: the config is not read again. */
  readonly requests?: ReloadRequests | undefined;
  /** A changed config may remove streams and sinks. */
  readonly removalAllowed: boolean;
  /** Throws if a reload may not replace the first config by the second one; default: any change is accepted. */
  readonly refuse?: ((before: Config, next: Config) => void) | undefined;
  /** The note of this process for commands on this machine; default: none. */
  readonly member?: Pick<MemberFile, 'note'> | undefined;
  readonly clock: Clock;
  readonly log: Log;
}

const noteEveryMs = 1_000;
const pauseMsMin = 1_000;
const pauseMsMax = 30_000;

/** The shards of this process. */
export class ShardSupervisor {
  readonly #deps: SupervisorDeps;
  #config: Config;
  /** The fingerprint of the config, for other processes. */
  #print: ConfigPrint | null;
  /** The turns of owned shards, by shard. */
  readonly #turns = new Map<number, ShardTurn>();
  /** The shards that this process accepts or runs until `own` aborts. */
  readonly #served = new Map<
    number,
    { readonly done: Promise<number>; readonly own: AbortController }
  >();
  /** Rejects if a shard cannot be served, which ends all. */
  readonly #failed = Promise.withResolvers<never>();
  readonly #tally = new ShardTally();
  readonly #pool: WorkerPool;
  /** The membership in the group, while the supervisor runs. */
  #member: GroupMember | null = null;
  readonly #refused = new RefusedReload();

  constructor(deps: SupervisorDeps) {
    this.#deps = deps;
    const size = Math.max(1, Math.min(deps.workers, shardsOf(deps.config).length));
    const { sessionMs = 0 } = deps.config.state.kafka ?? {};
    this.#pool = new WorkerPool({ ...deps, size, sessionMs, version: version() });
    this.#config = deps.config;
    this.#print = printOf(deps.config);
    this.#failed.promise.catch(() => undefined);
  }

  /** The running config: another one after a reload. */
  get config(): Config {
    return this.#config;
  }

  /** The turns with a status. */
  get shown(): readonly ShardTurn[] {
    return [...this.#turns.values()].filter(({ moment }) => moment !== null);
  }

  /** The status of all workers together. */
  look(): StatusMoment {
    const moments = [...this.#turns.values()].flatMap(({ moment }) => moment ?? []);
    const commits = moments.flatMap(({ cluster }) => cluster?.commitMs ?? []);
    const { share, takeovers } = this.#tally;
    return {
      ...joinedMoment(moments, this.#config.state.maxBytes, this.#standsBy()),
      cluster: {
        ...{ share, takeovers, answeredAt: this.#member?.contact.answeredAt ?? null },
        commitMs: commits.length === 0 ? null : Math.max(...commits),
      },
    };
  }

  /** Why this process has no work; null: it has work. */
  #standsBy(): string | null {
    const { owned, failing } = this.#tally.share;
    if (owned.length > 0 || failing.length > 0 || this.#turns.size > 0) return null;
    return this.#deps.drains.isDrained()
      ? 'it is drained: sluice cluster undrain lets it work again'
      : `other processes have the shards of ${this.#config.state.kafka?.prefix} in Kafka`;
  }

  /** Retries the streams and sinks of a name now. */
  retryNow(name: string): readonly RetryRequest[] {
    return [...this.#turns.values()].flatMap((one) => one.retryNow(name));
  }

  /**
   * Serves all shards until stopped, or each once; resolves with the worst exit code. Rejects if one cannot be served.
   */
  async run(stop: AbortSignal): Promise<number> {
    const { clock, log, drains } = this.#deps;
    const { kafka } = this.#config.state;
    try {
      if (kafka === null) return 0;
      await refuseBeside(kafka, clock, { waits: true });
      const settings = { ...kafka, config: () => this.#print };
      const isDrained = () => drains.isDrained();
      this.#member = new GroupMember(settings, { log, clock, isDrained, ending: stop });
      return await this.#serveAll(this.#member, stop);
    } finally {
      await this.#member?.close(stop.aborted);
      await this.#pool.close();
    }
  }

  async #serveAll(member: GroupMember, stop: AbortSignal): Promise<number> {
    const over = new AbortController();
    const ending = AbortSignal.any([stop, over.signal]);
    const left = await this.#left();
    for (const shard of [...shardsOf(this.#config), ...left]) this.#serve(member, shard, ending);
    const beside = this.#deps.once
      ? []
      : [this.#reloads(member, ending), this.#notes(ending)].map((work) =>
          work.catch(() => undefined),
        );
    const ended = async () =>
      Math.max(0, ...(await Promise.all([...this.#served.values()].map(({ done }) => done))));
    try {
      const through = this.#deps.once ? ended() : aborted(stop, this);
      await Promise.race([through, this.#failed.promise]);
      // Meanwhile a reload may add shards.
      return await ended();
    } finally {
      over.abort(new Error('the shards are done'));
      await Promise.all([...beside, ended()]);
    }
  }

  /** Shards without upstreams, which may still hold undelivered events. */
  async #left(): Promise<readonly number[]> {
    const { kafka } = this.#config.state;
    if (kafka === null) return [];
    const requested = shardsOf(this.#config);
    const used = await usedShards(kafka, this.#deps.clock);
    return used.filter((shard) => !requested.includes(shard));
  }

  #serve(member: GroupMember, shard: number, stop: AbortSignal): void {
    const last = this.#served.get(shard);
    if (last?.own.signal.aborted === false) return;
    const own = new AbortController();
    const ending = AbortSignal.any([stop, own.signal]);
    // A shard that was dropped a moment ago may still deliver: it would run twice.
    const done = Promise.resolve(last?.done)
      .then(() => this.#keep(member, shard, ending))
      .catch((error) => {
        if (ending.aborted) return 0;
        this.#deps.log.error('shard_failed', 'cannot work on a shard', { shard });
        this.#failed.reject(error);
        return 1;
      })
      .finally(() => this.#tally.given(shard));
    this.#served.set(shard, { done, own });
  }

  /** Waits for a shard and runs it, again and again. */
  async #keep(member: GroupMember, shard: number, stop: AbortSignal): Promise<number> {
    const { clock } = this.#deps;
    for (let pauseMs = pauseMsMin; ; ) {
      const begunAt = clock.monotonic();
      const isLeft = !shardsOf(this.#config).includes(shard);
      const code = await this.#turn(member, { shard, isLeft }, stop);
      if (this.#deps.once || isLeft || stop.aborted) return code;
      pauseMs = code === 0 || clock.monotonic() - begunAt > pauseMsMax ? pauseMsMin : pauseMs * 2;
      if (code !== 0) await clock.sleep(Math.min(pauseMs, pauseMsMax), stop);
    }
  }

  /** Waits for a shard, and runs it in a worker to its end; resolves with its exit code. */
  async #turn(
    member: GroupMember,
    { shard, isLeft }: { readonly shard: number; readonly isLeft: boolean },
    stop: AbortSignal,
  ): Promise<number> {
    const { clock, drains } = this.#deps;
    const log = this.#deps.log.with({ shard });
    const own: { turn: ShardTurn | null } = { turn: null };
    const moved = new AbortController();
    const deps = {
      log,
      waits: () => this.#tally.given(shard),
      gives: () => moved.abort(new Error('the shard moves to a process that has fewer shards')),
      lost: (why: ExportError) => (own.turn === null ? moved.abort(why) : own.turn.lose(why)),
    };
    const ownership = await member.gain(shard, deps, stop);
    this.#tally.gained(shard);
    const ending = AbortSignal.any([drains.orDrained(stop), moved.signal]);
    try {
      const once = this.#deps.once || isLeft;
      const running = this.#config;
      const config = acceptedOf(running);
      const turn = await this.#pool.start({ shard, once, config, ownership, clock }, ending);
      if (turn === null) return 0;
      own.turn = turn;
      this.#turns.set(shard, turn);
      this.#tally.started(shard, turn);
      // It reports the refused config, or gets the one that was accepted while it waited for a worker.
      if (this.#refused.error !== null || running !== this.#config)
        this.#reload(turn, 'the file has changed');
      const end = () => {
        turn.stop(String(ending.reason?.message));
        if (!moved.signal.aborted) return;
        log.info('shard_released', 'released a shard to a process with fewer shards', { shard });
      };
      ending.addEventListener('abort', end, { once: true });
      if (ending.aborted) end();
      const code = await turn.ended;
      this.#tally.ended(shard, turn.isStopped ? 0 : code);
      ending.removeEventListener('abort', end);
      if (code !== 0) {
        const why = turn.error === null ? {} : { error: turn.error.message };
        log.warn('shard_worker_ended', 'the shard ended in its worker process', { code, ...why });
      }
      if (member.nameTaken !== null) throw member.nameTaken;
      return code;
    } finally {
      this.#turns.delete(shard);
      await ownership.close(stop.aborted);
      this.#tally.released(shard);
    }
  }

  /** Writes the shards of this process for commands on this machine. */
  async #notes(stop: AbortSignal): Promise<void> {
    const { member, clock } = this.#deps;
    while (member !== undefined) {
      member.note({ standing_by: this.#standsBy(), shards: this.#tally.share });
      await clock.sleep(noteEveryMs, stop);
    }
  }

  /** Serves the shards of a changed config. It is accepted as a whole: a refused one must not apply to some shards. */
  async #reloads(member: GroupMember, stop: AbortSignal): Promise<void> {
    const { requests, clock, config, log } = this.#deps;
    while (requests !== undefined) {
      const reason = await this.#refused.next(requests, clock, stop);
      try {
        await this.#accept(requests, member, stop);
        this.#refused.accept();
      } catch (error) {
        if (!this.#refused.refuse(error, reason, { log, file: config.file })) continue;
      }
      for (const turn of this.#turns.values()) this.#reload(turn, reason);
    }
  }

  #reload(turn: ShardTurn, reason: ReloadReason): void {
    turn.reload(reason, acceptedOf(this.#config), this.#refused.error);
  }

  /** Reads the config again. Throws if it may not run. */
  async #accept(requests: ReloadRequests, member: GroupMember, stop: AbortSignal): Promise<void> {
    const { env, config, removalAllowed, refuse } = this.#deps;
    const next = await reloadConfig(config.file, { env });
    requests.follow(next);
    const requested = new Set(shardsOf({ ...next, state: config.state }));
    const dropped = shardsOf(this.#config).filter((shard) => !requested.has(shard));
    refuse?.(this.#config, next);
    const { control } = this.#deps.drains;
    const running = { ...next, state: config.state };
    const sources = Object.keys(this.#config.sources).filter(
      (name) => shardOfStream(this.#config, name) !== shardOfStream(running, name),
    );
    // The shard where it is read would refuse to drop it, and another one would read it too.
    if (sources.length > 0 && !removalAllowed) throw moved(sources);
    // Last: a refused config must not change where a source is at home.
    if (control) await agreeOnHomes(running, { ...this.#deps, control });
    this.#config = running;
    this.#print = printAfter(this.#print, printOf(next), removalAllowed);
    if (control) storeDeployment(next.state.kafka, { ...this.#deps, control });
    for (const shard of requested) this.#serve(member, shard, stop);
    for (const shard of dropped)
      this.#served.get(shard)?.own.abort(new Error('the config has no more work for it'));
  }
}

function moved(sources: readonly string[]): ExportError {
  const what = `reloading the config: it drops ${sources.join(', ')} or reads them in another shard`;
  return new ExportError('config_invalid', what, {
    next: 'Put them back, or restart to apply. With --allow-removal, a reload may do so.',
  });
}

function printOf({ state }: Config): ConfigPrint | null {
  return state.kafka?.config?.() ?? null;
}

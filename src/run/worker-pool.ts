// The worker processes of a shard supervisor: a few that start with the process, so that a takeover does not wait for Node, each
// with the journeys of several shards. Invariants: a silent worker is killed, since it would block its shards; the shards of a
// worker that has ended can start in another one at once; a shard whose worker has ended several times gets its own worker, so
// that it cannot end the others.

import type { ChildProcess } from 'node:child_process';
import type { Clock, Log } from '../contracts/index.ts';
import { startChild } from './shard-child.ts';
import { type FromWorker, type ToWorker, workerVariable } from './shard-messages.ts';
import { ShardTurn, type ShardTurnDeps } from './shard-turn.ts';
import { serveCommands } from './worker-commands.ts';

/** Dependencies of a worker pool. */
export interface WorkerPoolDeps {
  /** Number of workers, without those of single shards. */
  readonly size: number;
  /** Arguments of their command line. */
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Version of this process, read at its start. */
  readonly version: string;
  readonly sessionMs: number;
  readonly clock: Clock;
  readonly log: Log;
}

/** Checks of a worker per session; each also sends the time of the last answer of the group to its shards. */
const looksInSession = 10;
/** A worker sends a message each second. After so many silent sessions it counts as hung. */
const silentSessionsMax = 3;
/** So many shards of a worker start at the same time: more of them only disturb each other. */
const startingMax = 8;
const startLookMs = 100;
/** A worker that has ended sooner is replaced only when a shard needs it. */
const soonMs = 10_000;
/** After so many ends of its worker within this time, a shard gets its own worker. */
const endsMax = 3;
const endsWithinMs = 600_000;

/** The workers of one process. */
export class WorkerPool {
  readonly #deps: WorkerPoolDeps;
  readonly #workers = new Set<WorkerProcess>();
  /** By shard, the ends of its workers; monotonic milliseconds. */
  readonly #ends = new Map<number, readonly number[]>();
  #isClosed = false;

  constructor(deps: WorkerPoolDeps) {
    this.#deps = deps;
    for (let n = 0; n < deps.size; n += 1) this.#start(false);
  }

  /** Starts a shard when fewer are starting, in the worker that has the fewest; null: `stop` aborted before. */
  async start(of: ShardTurnDeps, stop: AbortSignal): Promise<ShardTurn | null> {
    const { clock, size } = this.#deps;
    const starting = () => [...this.#workers].reduce((sum, one) => sum + one.starting, 0);
    while (!stop.aborted && starting() >= startingMax * size) {
      await clock.sleep(startLookMs, stop).catch(() => undefined);
    }
    if (stop.aborted) return null;
    const isAlone = this.#endsOf(of.shard).length >= endsMax;
    const shared = [...this.#workers].filter((one) => !one.isAlone);
    const isMissing = isAlone || shared.length < this.#deps.size;
    const worker = isMissing
      ? this.#start(isAlone)
      : shared.reduce((least, one) => (one.load < least.load ? one : least));
    return worker.begin(of);
  }

  /** Ends all workers after their shards have ended. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all(Array.from(this.#workers, (one) => one.close()));
  }

  #start(isAlone: boolean): WorkerProcess {
    const { clock } = this.#deps;
    const begunAt = clock.monotonic();
    const worker = new WorkerProcess(this.#deps, isAlone, (shards) => {
      this.#workers.delete(worker);
      const now = clock.monotonic();
      for (const shard of shards) this.#ends.set(shard, [...this.#endsOf(shard), now]);
      if (!this.#isClosed && !isAlone && now - begunAt > soonMs) this.#start(false);
    });
    this.#workers.add(worker);
    return worker;
  }

  #endsOf(shard: number): readonly number[] {
    const since = this.#deps.clock.monotonic() - endsWithinMs;
    return (this.#ends.get(shard) ?? []).filter((at) => at > since);
  }
}

class WorkerProcess {
  readonly #deps: WorkerPoolDeps;
  readonly #child: ChildProcess;
  readonly #turns = new Map<number, ShardTurn>();
  readonly #over = new AbortController();
  #lastTurn = 0;
  #looksInSilence = 0;
  /** Only one shard starts in it. */
  readonly isAlone: boolean;
  readonly #ended: Promise<void>;

  /** `ended` is called with the shards that may have ended it, before their turns end. */
  constructor(deps: WorkerPoolDeps, isAlone: boolean, ended: (shards: readonly number[]) => void) {
    this.#deps = deps;
    this.isAlone = isAlone;
    this.#child = startChild(deps.args, { ...deps.env, [workerVariable]: deps.version });
    this.#child.on('message', (message) => this.#received(message as FromWorker));
    serveCommands(this.#child, deps.env);
    this.#ended = this.#end(ended);
    this.#looks().catch(() => undefined);
  }

  get load(): number {
    return this.#turns.size;
  }

  /** The shards that are starting. */
  get starting(): number {
    return this.#turns.values().reduce((sum, one) => sum + Number(one.isStarting), 0);
  }

  begin(of: ShardTurnDeps): ShardTurn {
    const { log } = this.#deps;
    this.#lastTurn += 1;
    const id = this.#lastTurn;
    const turn = new ShardTurn(of, (message) => this.#send({ turn: id, message }));
    this.#turns.set(id, turn);
    void turn.ended.then(() => {
      this.#turns.delete(id);
      if (this.isAlone) void this.close();
    });
    const pid = this.#child.pid ?? null;
    log.info('shard_worker_started', 'shard started in a worker process', { shard: of.shard, pid });
    if (this.#over.signal.aborted) turn.end(1);
    return turn;
  }

  async close(): Promise<void> {
    if (this.#child.connected) this.#child.disconnect();
    await this.#ended;
  }

  async #end(report: (shards: readonly number[]) => void): Promise<void> {
    const { log } = this.#deps;
    const ended = Promise.withResolvers<void>();
    this.#child.once('exit', () => ended.resolve());
    this.#child.once('error', (error) => {
      const text = 'cannot start a worker process';
      log.error('shard_worker_not_started', text, { error: String(error) });
      ended.resolve();
    });
    await ended.promise;
    this.#over.abort();
    const turns = [...this.#turns.values()];
    // A worker that has lost a shard ends by design, not by a fault of a shard.
    report(turns.some(({ isLost }) => isLost) ? [] : turns.map(({ shard }) => shard));
    for (const turn of turns) turn.end(1);
  }

  async #looks(): Promise<void> {
    const { clock, sessionMs, log } = this.#deps;
    for (;;) {
      await clock.sleep(sessionMs / looksInSession, this.#over.signal);
      // Checks are counted, not time: after a suspend of the machine no worker is killed.
      this.#looksInSilence += 1;
      if (this.#looksInSilence > silentSessionsMax * looksInSession) {
        const fields = { pid: this.#child.pid ?? null, silent_ms: silentSessionsMax * sessionMs };
        log.error('shard_worker_silent', 'a worker process is silent; stopping it', fields);
        this.#child.kill('SIGKILL');
        return;
      }
      for (const turn of this.#turns.values()) turn.look();
    }
  }

  #received(said: FromWorker): void {
    this.#looksInSilence = 0;
    // Requests for values of commands have no turn (worker-commands.ts).
    if (typeof said.turn === 'number') this.#turns.get(said.turn)?.received(said.message);
  }

  #send(message: ToWorker): void {
    // After its end nothing receives it.
    if (this.#child.connected) this.#child.send(message, () => undefined);
  }
}

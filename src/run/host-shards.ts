// `sluice run` in a worker process (worker-pool.ts): runs the journeys of several shards, as its supervisor requests.
// Invariants: a journey that fails ends alone; a shard runs the config that the supervisor accepted, whatever the file has by
// now; shards that start or reload together share one reading of the config and one reader of the control topic.

import { readFileSync } from 'node:fs';
import type { Control } from '../cluster/kafka.ts';
import { type Config, loadConfig, reloadConfig } from '../config/index.ts';
import {
  asExportError,
  ExportError,
  type Log,
  type LogLevel,
  untilAborted,
} from '../contracts/index.ts';
import { systemClock, version } from '../tools/index.ts';
import { refuseMoved } from './homes.ts';
import { oneJourney, reportEnd } from './one-journey.ts';
import { openOwnLog } from './own-log.ts';
import type { Running } from './running.ts';
import { type AcceptedConfig, workerVariable } from './shard-messages.ts';
import { type HostedTurn, serveTurns } from './shard-worker.ts';
import { type Processes, sharedProcesses } from './watch-configs.ts';
import { requestCommands } from './worker-commands.ts';

/** Dependencies of a worker process. */
export interface HostDeps {
  readonly file: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly logLevel: LogLevel | undefined;
  readonly deps: Running['deps'] & { readonly exit: (code: 1) => void };
  /** Runs a journey to its end. */
  readonly go: (running: Running, turn: HostedTurn) => Promise<0 | 1>;
}

/** A reading of the config is shared by what starts within this time. */
const sharedMs = 1_000;

/** Runs shards until the supervisor ends the process. Never resolves. */
export async function hostShards(deps: HostDeps): Promise<never> {
  const shared = new Shared(deps);
  const clock = systemClock();
  const own = {
    send: process.send?.bind(process),
    on: process.on.bind(process),
    once: process.once.bind(process),
    exit: () => deps.deps.exit(1),
  };
  if (process.send !== undefined) {
    const send = process.send.bind(process);
    requestCommands({ send: (message) => void send(message), on: own.on });
  }
  if (process.send !== undefined) refuseOther(deps.env[workerVariable]);
  const { stopAll } = serveTurns((turn) => workOn(turn, shared, deps), { own, clock });
  // The supervisor may have ended while this process loaded its code: that event is over.
  if (process.send !== undefined && !process.connected) own.exit();
  // A service manager may signal all processes of the service. Only the supervisor ends this process.
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.on(signal, () => stopAll(`stopped by ${signal}`));
  }
  process.on('SIGHUP', () => undefined);
  await shared.warm();
  return await new Promise<never>(() => undefined);
}

/** A worker that replaces another one has the files of today, which may not be those of its supervisor. */
function refuseOther(startedBy: string | undefined): void {
  const own = version();
  if (startedBy === own) return;
  throw new ExportError(
    'broken_invariant',
    `starting a worker process: it has version ${own}, and the process that started it ${startedBy ?? 'none'}`,
    {
      next: 'The files of sluice were replaced while it runs: restart it. Nothing held was lost.',
    },
  );
}

/** One turn of a shard; never rejects. */
async function workOn(
  turn: HostedTurn,
  shared: Shared,
  { deps, logLevel, go }: HostDeps,
): Promise<0 | 1> {
  let control: Control | null = null;
  let stopMs: number | null = null;
  turn.stop.addEventListener('abort', () => {
    stopMs = performance.now();
  });
  const read = async () => {
    const part = turn.part(await shared.config(turn.config, reloadConfig));
    await control?.caughtUp();
    if (control !== null) refuseMoved(part, control);
    return part;
  };
  try {
    const config = turn.part(await shared.config(turn.config, loadConfig));
    const opened = await openOwnLog(config, logLevel);
    const log = opened.log.with({ shard: turn.shard });
    const own = { ...opened, log };
    try {
      control = await shared.control(config, opened.log, turn.stop);
      if (control !== null) refuseMoved(config, control);
      const shutdown = { stop: turn.stop, release: () => undefined };
      const of = { own, shutdown, control, deps, hosted: turn, read };
      const { processes } = shared;
      const journey = { ...of, drains: null, deploymentChanged: null, processes };
      return (await oneJourney(config, journey, (running) => go(running, turn))).code;
    } catch (error) {
      if (turn.stop.aborted && error === turn.stop.reason) return 0;
      reportEnd(log, asExportError(error, 'running'), turn);
      return 1;
    } finally {
      await own.close(stopMs);
    }
  } catch (error) {
    turn.ends(error);
    return 1;
  }
}

/** The shared parts of the shards of a worker process. */
class Shared {
  readonly #deps: HostDeps;
  readonly #clock = systemClock();
  #read: { readonly key: string; readonly config: Promise<Config>; readonly at: number } | null =
    null;
  #control: Promise<Control> | null = null;
  readonly processes: Processes = sharedProcesses(this.#clock);

  constructor(deps: HostDeps) {
    this.#deps = deps;
  }

  /**
   * A config as the supervisor accepted it. A shard that starts waits for no command that has a value (`loadConfig`). Rejects with a
   * ConfigError if, for example, one of its secrets is missing.
   */
  async config(
    accepted: AcceptedConfig,
    read: typeof loadConfig | typeof reloadConfig,
  ): Promise<Config> {
    const now = this.#clock.monotonic();
    const key = JSON.stringify([read.name, accepted]);
    if (this.#read?.key !== key || now - this.#read.at > sharedMs) {
      const { file, env } = this.#deps;
      const companies = new Map(accepted.companies);
      const readFile = (path: string) => {
        if (path === file) return Buffer.from(accepted.text);
        const ids = companies.get(path);
        return ids === undefined ? readFileSync(path) : Buffer.from(ids.join('\n'));
      };
      this.#read = { key, config: read(file, { env, readFile }), at: now };
    }
    return await this.#read.config;
  }

  /** Read to its end, and followed for as long as this process runs; null: the state is not in Kafka. */
  async control({ state }: Config, log: Log, stop: AbortSignal): Promise<Control | null> {
    const { kafka } = state;
    if (kafka === null) return null;
    const open = async () => {
      const { Control: ControlTopic } = await import('../cluster/kafka.ts');
      const control = new ControlTopic(kafka, this.#clock);
      await control.follow(log);
      return control;
    };
    this.#control ??= open();
    this.#control.catch(() => {
      this.#control = null;
    });
    return await untilAborted(this.#control, stop);
  }

  /** Loads the code that a shard needs before the first shard starts. */
  async warm(): Promise<void> {
    await Promise.all([import('../cluster/kafka.ts'), import('./own-process-upgrade.ts')]);
    try {
      await loadConfig(this.#deps.file, { env: this.#deps.env });
    } catch {
      // Each shard reports that when it starts.
    }
  }
}

// Everything that a torture run happens on: a sandbox with its ledger, a real receiver for each sink, and the real program
// as a child process. It starts, stops and kills the program and notes when that ended by itself; what is done to it all
// is in the acts.

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type ListBehaviour, type Sandbox, startSandbox } from '../../src/sandbox/sandbox.ts';
import { type RunningSluice, startSluice } from '../support/cli.ts';
import { waitUntil } from '../support/temp.ts';
import { configText } from './config.ts';
import { FiledEvents } from './filed.ts';
import type { Act } from './plan.ts';
import { endReceivers, type Receivers, startReceivers } from './receivers.ts';
import { Signs } from './signs.ts';

/** How a run is set up. */
export interface StageOptions {
  readonly seed: number;
  /** How the lists behave throughout. */
  readonly lists: readonly ListBehaviour[];
  /** Audit events a second; logs come three times as fast. */
  readonly rate: number;
}

const eventsAtStart = 400;
const tokenLifetimeS = 20;

/** Starts everything but the program. */
export async function openStage(options: StageOptions): Promise<Stage> {
  const dir = mkdtempSync(join(tmpdir(), 'sluice-torture-'));
  for (const folder of ['log', 'out']) mkdirSync(join(dir, folder));
  const signs = new Signs();
  const sandbox = await startSandbox({
    seed: options.seed,
    events: eventsAtStart,
    logs: eventsAtStart,
    rate: options.rate,
    firewallEveryS: 0,
    tokenLifetimeS,
    faults: { lists: options.lists },
  });
  const receivers = await startReceivers(dir, { signs, upstreamPort: sandbox.port });
  const stage = new Stage({ dir, sandbox, receivers, signs, options });
  const { activeFile } = stage;
  writeFileSync(stage.config, configText({ dir, activeFile, sandbox, receivers }));
  return stage;
}

interface StageParts {
  readonly dir: string;
  readonly sandbox: Sandbox;
  readonly receivers: Receivers;
  readonly signs: Signs;
  readonly options: StageOptions;
}

/** The surroundings of the program, and the program. */
export class Stage {
  readonly dir: string;
  readonly sandbox: Sandbox;
  readonly receivers: Receivers;
  readonly signs: Signs;
  readonly options: StageOptions;
  /** What went wrong on the way, apart from what the accounts will show. */
  readonly defects: string[] = [];
  /** Acts whose moment did not come. */
  readonly missed = new Set<Act>();
  readonly filed: FiledEvents;
  #sluice: RunningSluice | null = null;
  /** Was sent SIGTERM, and may end in order. */
  #asked: RunningSluice | null = null;
  #runs = 0;

  constructor(parts: StageParts) {
    this.dir = parts.dir;
    this.sandbox = parts.sandbox;
    this.receivers = parts.receivers;
    this.signs = parts.signs;
    this.options = parts.options;
    this.filed = new FiledEvents(this.activeFile);
  }

  get config(): string {
    return join(this.dir, 'sluice.yaml');
  }

  get surroundings() {
    return { cwd: this.dir, env: { EDGE_SECRET: this.sandbox.credentials.clientSecret } };
  }

  get stateDir(): string {
    return join(this.dir, 'state');
  }

  get activeFile(): string {
    return join(this.dir, 'out', 'events.ndjson');
  }

  /** Starts the program, unless it runs. */
  start(): void {
    if (this.#sluice !== null) return;
    const sluice = startSluice(['run', '-c', this.config], this.surroundings);
    this.#sluice = sluice;
    this.#runs += 1;
    const logFile = join(this.dir, 'log', `run-${String(this.#runs).padStart(3, '0')}.log`);
    sluice.exited
      .then(({ stderr, stdout, exitCode }) => {
        writeFileSync(logFile, stderr + stdout);
        if (this.#sluice !== sluice) return;
        this.#sluice = null;
        if (this.#asked === sluice && (exitCode === 0 || !hasBegun(sluice))) return;
        this.defects.push(`sluice ended by itself with ${exitCode}, see ${logFile}`);
      })
      .catch(() => undefined);
  }

  /** Resolves once the program runs; started long ago or just now. */
  async begun(): Promise<void> {
    const sluice = this.#sluice;
    await waitUntil(() => sluice === null || !sluice.running || hasBegun(sluice), {
      what: 'sluice to begin',
    });
  }

  /** Sends the running program a signal. */
  signal(signal: NodeJS.Signals): void {
    if (this.#sluice?.running !== true) return;
    if (signal === 'SIGTERM') this.#asked = this.#sluice;
    process.kill(this.#sluice.pid, signal);
  }

  /** Kills the program if it runs; resolves when it is gone. */
  async kill(): Promise<void> {
    const sluice = this.#sluice;
    this.#sluice = null;
    if (sluice === null) return;
    await sluice.kill('SIGKILL');
  }

  /** Stops the program, and expects it to end in order and in time. */
  async stop(): Promise<void> {
    const sluice = this.#sluice;
    this.#sluice = null;
    if (sluice === null) return;
    const begun = performance.now();
    const { exitCode } = await sluice.kill('SIGTERM');
    const tookMs = Math.round(performance.now() - begun);
    if (exitCode !== 0 && hasBegun(sluice))
      this.defects.push(`SIGTERM ended sluice with ${exitCode} after ${tookMs} ms`);
  }

  /** Ends every server; keeps the directory where something went wrong. */
  async close(keep: boolean): Promise<void> {
    await this.kill();
    await Promise.all([endReceivers(this.receivers), this.sandbox.close()]);
    if (!keep) rmSync(this.dir, { recursive: true, force: true });
  }
}

/** Before it has begun to run, a signal ends the program as it ends any other. */
function hasBegun(sluice: RunningSluice): boolean {
  return sluice.stderr.some((line) => line.includes('"msg":"running"'));
}

// The stage for three processes with their state in one Apache Kafka: a sandbox with its ledger and a common ceiling
// behind a proxy, a broker that keeps state and events, an archive that they share, and for each process a proxy in
// front of the broker, so that it alone can be cut from the broker. Their clocks differ by hours. A process that ends
// by itself, for example because it has lost the state, is restarted, as a deployment system would do.

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { signingKeyText } from '../../../src/archive/note.ts';
import { readConfig } from '../../../src/config/config.ts';
import { shardsOf } from '../../../src/config/shards.ts';
import { type ListBehaviour, type Sandbox, startSandbox } from '../../../src/sandbox/sandbox.ts';
import { type RunningSluice, startSluice } from '../../support/cli.ts';
import { createTopic, type KafkaBroker, startKafka } from '../../support/kafka.ts';
import { freePorts } from '../../support/temp.ts';
import { type NetworkProxy, startProxy } from '../proxy.ts';

/** The list that is read. */
export const audit = '/v1/audit/events';
/** The sink's topic. */
export const topic = 'lake';
/** The ceiling of all processes together: at zero, without a time given, sluice would wait for half a minute. */
const ceiling = { path: audit, requests: 110, per_s: 5 };
/** What the config says that each may. */
const allowed = 100;
/** After which a silent process is taken for dead, in seconds. */
export const sessionS = 6;

const hourMs = 3_600_000;

/** A module by which the calendar of a process is so far ahead. */
function clockOff(ms: number): string {
  const text = `
    const Right = Date;
    globalThis.Date = class extends Right {
      constructor(...given) { super(...(given.length === 0 ? [Right.now() + ${ms}] : given)); }
      static now() { return Right.now() + ${ms}; }
    };`;
  return `data:text/javascript,${encodeURIComponent(text)}`;
}

/** How a run is set up. */
export interface ClusterStageOptions {
  readonly seed: number;
  /** How the list behaves throughout. */
  readonly lists: readonly ListBehaviour[];
  /** Events a second. */
  readonly rate: number;
  readonly processes: number;
  /**
   * With more than one, the process that has the upstream's shard starts a worker for it, which is not frozen with it.
   */
  readonly shards: number;
}

/** Starts everything but the processes. */
export async function openClusterStage(options: ClusterStageOptions): Promise<ClusterStage> {
  const dir = mkdtempSync(join(tmpdir(), 'sluice-cluster-torture-'));
  mkdirSync(join(dir, 'log'));
  const sandbox = await startSandbox({
    ...{ seed: options.seed, events: 400, logs: 0, rate: options.rate, firewallEveryS: 0 },
    faults: { lists: options.lists, limits: [ceiling] },
  });
  const ports = await freePorts(options.processes);
  const toKafka = await Promise.all(ports.map((port) => startProxy(port)));
  const behind = ports.map((port, i) => ({ port, proxy: toKafka[i]?.port ?? 0 }));
  const kafka = await startKafka({ behind });
  // Else it would refuse what the process sends whose clock is two hours ahead.
  const settings = { 'message.timestamp.type': 'LogAppendTime' };
  await createTopic([kafka.addresses.plain], topic, { settings });
  const toUpstream = await startProxy(sandbox.port);
  return new ClusterStage({ dir, sandbox, kafka, toKafka, toUpstream, options });
}

interface ClusterParts {
  readonly dir: string;
  readonly sandbox: Sandbox;
  readonly kafka: KafkaBroker;
  /** For each process. */
  readonly toKafka: readonly NetworkProxy[];
  readonly toUpstream: NetworkProxy;
  readonly options: ClusterStageOptions;
}

/** The surroundings of the processes, and the processes. */
export class ClusterStage {
  readonly dir: string;
  readonly sandbox: Sandbox;
  readonly kafka: KafkaBroker;
  readonly toKafka: readonly NetworkProxy[];
  readonly toUpstream: NetworkProxy;
  readonly options: {
    readonly lists: readonly ListBehaviour[];
    readonly limits: [typeof ceiling];
    readonly shards: number;
  };
  /** What went wrong on the way, apart from what the accounts will show. */
  readonly defects: string[] = [];
  /** How often a process has taken the state. */
  takeovers = 0;
  readonly #running = new Map<number, RunningSluice>();
  readonly #wanted = new Set<number>();
  #runs = 0;

  constructor({ dir, sandbox, kafka, toKafka, toUpstream, options }: ClusterParts) {
    this.dir = dir;
    this.sandbox = sandbox;
    this.kafka = kafka;
    this.toKafka = toKafka;
    this.toUpstream = toUpstream;
    this.options = {
      lists: options.lists,
      limits: [ceiling],
      shards: options.shards,
    };
    toKafka.forEach((_, index) => {
      writeFileSync(this.configOf(index), this.#configText(index));
    });
  }

  /** Where the archive of the upstream's shard is. */
  get archive(): string {
    const { shards } = this.options;
    const [shard] = shardsOf(readConfig(this.configOf(0)));
    return shards === 1 ? this.#archives : join(this.#archives, String(shard));
  }

  get #archives(): string {
    return join(this.dir, 'archive');
  }

  configOf(index: number): string {
    return join(this.dir, `sluice-${index}.yaml`);
  }

  /** Starts a process, unless it runs. */
  start(index: number): void {
    this.#wanted.add(index);
    if (this.#running.has(index)) return;
    const env = { NODE_OPTIONS: `--import=${clockOff(index * hourMs)}` };
    const sluice = startSluice(['run', '-c', this.configOf(index)], { cwd: this.dir, env });
    this.#running.set(index, sluice);
    this.#runs += 1;
    const log = join(this.dir, 'log', `${String(this.#runs).padStart(3, '0')}-of-${index}.log`);
    sluice.exited
      .then(({ stderr, stdout, exitCode }) => {
        writeFileSync(log, stderr + stdout);
        this.takeovers += stderr.split('this process owns the state in Kafka').length - 1;
        if (this.#running.get(index) !== sluice) return;
        this.#running.delete(index);
        if (!this.#wanted.has(index)) return;
        if (!stderr.includes('"code":"state_locked"')) {
          this.defects.push(`sluice-${index} ended by itself with ${exitCode}, see ${log}`);
        }
        this.start(index);
      })
      .catch(() => undefined);
  }

  /** Sends a process that runs a signal. */
  signal(index: number, signal: NodeJS.Signals): void {
    const sluice = this.#running.get(index);
    if (sluice?.running === true) process.kill(sluice.pid, signal);
  }

  /** Ends a process; SIGTERM has to end it in order. */
  async end(index: number, signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
    const sluice = this.#running.get(index);
    this.#wanted.delete(index);
    this.#running.delete(index);
    if (sluice === undefined) return;
    const { exitCode, stderr } = await sluice.kill(signal);
    // Another may have the state by then, or Kafka be cut off: what was not committed is read again.
    const isInOrder = exitCode === 0 || /"code":"(state_locked|sink_unreachable)"/.test(stderr);
    const hasBegun = stderr.includes('"msg":"running"') || stderr.includes('standing by');
    if (signal === 'SIGTERM' && hasBegun && !isInOrder) {
      this.defects.push(`SIGTERM ended sluice-${index} with ${exitCode}: ${stderr.slice(-500)}`);
    }
  }

  async endAll(signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
    await Promise.all(this.toKafka.map((_, index) => this.end(index, signal)));
  }

  /** Ends every server; keeps the directory where something went wrong. */
  async close(keep: boolean): Promise<void> {
    await this.endAll('SIGKILL');
    await Promise.all([...this.toKafka, this.toUpstream].map((proxy) => proxy.close()));
    await Promise.all([this.kafka.kill(), this.sandbox.close()]);
    if (!keep) rmSync(this.dir, { recursive: true, force: true });
  }

  #configText(index: number): string {
    const brokers = `["127.0.0.1:${this.toKafka[index]?.port}"]`;
    const { unifiedBaseUrl, port, credentials } = this.sandbox;
    const url = unifiedBaseUrl.replace(`:${port}`, `:${this.toUpstream.port}`);
    const key = join(this.dir, 'key');
    writeFileSync(key, signingKeyText('torture', Buffer.alloc(32, 1)));
    const { per_s: perS } = ceiling;
    return `state:
  dir: ${this.dir}/state-${index}
  kafka: { brokers: ${brokers}, prefix: torture, shards: ${this.options.shards}, session_timeout: ${sessionS}s, instance: sluice-${index} }
upstreams:
  edge:
    api: unified
    ends: never
    base_url: ${url}
    allow_http: true
    timeout: 2s
    rate_limit_pause: 5s
    auth: { api_key: ${credentials.apiKey} }
    throttle: [{ path: /audit/events, requests: ${allowed}, per: ${perS}s }]
sources:
  audit: { type: audit_events, upstream: edge, every: 1s, page_limit: 50, lookback: 30s, rewind_every: 30s, reconcile_every: 2m }
sinks:
  lake: { type: kafka, brokers: ${brokers}, topic: ${topic}, format: { type: json, raw_data: true }, exactly_once: true, timeout: 5s, retry: { min: 100ms, max: 2s } }
  proof: { type: archive, shared: true, location: ${this.#archives}, signing_key: "\${file:${key}}", checkpoint_every: 1s, retry: { min: 100ms, max: 2s } }
shutdown: { timeout: 4s }
`;
  }
}

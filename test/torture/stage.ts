// Everything that a torture run happens on: a sandbox with its ledger, a real receiver for each sink (with a bad network
// in front where one is wanted), and the real program as a child process. It starts, stops and kills the program and
// notes when that ended by itself; what is done to it all is in the acts.

import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type ListBehaviour, type Sandbox, startSandbox } from '../../src/sandbox/sandbox.ts';
import { makeCa } from '../support/certificates.ts';
import { type RunningSluice, startSluice } from '../support/cli.ts';
import { type HttpReceiver, startHttpReceiver } from '../support/http-receiver.ts';
import { createTopic, type KafkaBroker, startKafka } from '../support/kafka.ts';
import { runDir } from '../support/once-per-run.ts';
import { type OtlpReceiver, startOtlpReceiver } from '../support/otlp-receiver.ts';
import { type Rsyslog, startRsyslog } from '../support/rsyslog.ts';
import { waitUntil } from '../support/temp.ts';
import { type Arrival, Posts } from './posts.ts';
import { type NetworkProxy, startProxy } from './proxy.ts';
import { Signs } from './signs.ts';

/** How a run is set up. */
export interface StageOptions {
  readonly seed: number;
  /** How the lists behave throughout. */
  readonly lists: readonly ListBehaviour[];
  /** Audit events a second; logs come three times as fast. */
  readonly rate: number;
}

const topic = 'torture';
const eventsAtStart = 400;
const tokenLifetimeS = 20;
/** Bytes after which the file sink begins a new segment. */
const rotateBytes = '512KiB';

/** Starts everything but the program. */
export async function openStage(options: StageOptions): Promise<Stage> {
  const dir = mkdtempSync(join(tmpdir(), 'sluice-torture-'));
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
  const ca = await makeCa();
  const [rsyslog, kafka, otel, post] = await Promise.all([
    startRsyslog({ tls: ca }),
    startKafka(),
    startOtlpReceiver(),
    startHttpReceiver(),
  ]);
  await createTopic([kafka.addresses.plain], topic);
  const posts = { otel: new Posts('otel', signs), post: new Posts('post', signs) };
  otel.answer(({ records }) =>
    posts.otel.take(
      records.map(({ attributes }) => ({ uid: String(attributes['log.record.uid']), raw: null })),
    ),
  );
  post.answer(async ({ body }) => {
    const answer = await posts.post.take(arrivalsIn(body));
    if (answer.answer === 'accept') return { answer: 'reply', status: 200 };
    return answer.answer === 'partly' ? { answer: 'reply', status: 400 } : answer;
  });
  const receivers: Receivers = {
    rsyslog,
    kafka,
    otel,
    post,
    posts,
    siem: await startProxy(rsyslog.tlsPort),
    archive: await startProxy(rsyslog.tcpPort),
  };
  writeFileSync(
    join(dir, 'sluice.yaml'),
    configText({ dir, sandbox, receivers, caFile: ca.caFile }),
  );
  mkdirSync(join(dir, 'log'));
  return new Stage({ dir, sandbox, receivers, signs, options });
}

/** The receivers of all sinks. */
export interface Receivers {
  readonly rsyslog: Rsyslog;
  readonly kafka: KafkaBroker;
  readonly otel: OtlpReceiver;
  readonly post: HttpReceiver;
  readonly posts: { readonly otel: Posts; readonly post: Posts };
  /** In front of rsyslog's TLS port. */
  readonly siem: NetworkProxy;
  /** In front of rsyslog's TCP port. */
  readonly archive: NetworkProxy;
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
  readonly topic = topic;
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

  /** The log of a partition on this broker's disk; null where it cannot be seen. */
  partitionLog(partition: string): string | null {
    const logs = readdirSync(runDir())
      .filter((name) => name.startsWith('kafka-'))
      .map((name) => join(runDir(), name, 'log'));
    const mine = logs.find((log) => existsSync(join(log, `${topic}-0`)));
    return mine === undefined ? null : join(mine, partition, '00000000000000000000.log');
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
        if (!hasBegun(sluice) || (this.#asked === sluice && exitCode === 0)) return;
        this.defects.push(`sluice ended by itself with ${exitCode}, see ${logFile}`);
      })
      .catch(() => undefined);
  }

  /** Resolves once the program runs; started long ago or just now. */
  async begun(): Promise<void> {
    const sluice = this.#sluice;
    await waitUntil(() => sluice === null || !sluice.running || hasBegun(sluice), {
      what: 'sluice to begin',
      timeoutMs: 30_000,
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

  /** Asks the program to end, and expects it to do so in order and in time. */
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
    const { rsyslog, kafka, otel, post, siem, archive } = this.receivers;
    await Promise.all([siem.close(), archive.close(), otel.close(), post.close()]);
    await Promise.all([rsyslog.kill(), kafka.kill(), this.sandbox.close()]);
    if (!keep) rmSync(this.dir, { recursive: true, force: true });
  }
}

/** Before it has begun to run, a signal ends the program as it ends any other. */
function hasBegun(sluice: RunningSluice): boolean {
  return sluice.stderr.some((line) => line.includes('"msg":"running"'));
}

function arrivalsIn(body: Buffer): readonly Arrival[] {
  const lines = body.toString('utf8').split('\n');
  return lines
    .filter((line) => line !== '')
    .map((line) => {
      const { metadata, raw_data } = JSON.parse(line) as {
        readonly metadata: { readonly uid: string };
        readonly raw_data: string;
      };
      return { uid: metadata.uid, raw: raw_data };
    });
}

interface ConfigParts {
  readonly dir: string;
  readonly sandbox: Sandbox;
  readonly receivers: Receivers;
  readonly caFile: string;
}

function configText({ dir, sandbox, receivers, caFile }: ConfigParts): string {
  const { siem, archive, kafka, otel, post } = receivers;
  const { clientId } = sandbox.credentials;
  const auth = `client_id: ${clientId}, client_secret: "\${env:EDGE_SECRET}"`;
  const reading = 'every: 1s, lookback: 30s, rewind_every: 5s, reconcile_every: 5s';
  const retry = 'retry: { min: 100ms, max: 2s }';
  return `state: { dir: ${dir}/state }
upstreams:
  edge:
    api: unified
    base_url: ${sandbox.unifiedBaseUrl}
    allow_http: true
    timeout: 2s
    auth: { ${auth}, scope: events:read }
  ops:
    api: services
    base_url: ${sandbox.servicesBaseUrl}
    allow_http: true
    timeout: 2s
    auth: { ${auth}, scope: "urn:sandbox:api:public" }
    companies: [c-1, c-2]
sources:
  audit: { type: audit_events, upstream: edge, page_limit: 100, ${reading} }
  events: { type: logs, upstream: ops, page_limit: 100, ${reading}, path: "/api/logs/v1/companies/{company_id}/events" }
  web: { type: logs, upstream: ops, page_limit: 100, ${reading}, path: "/api/logs/v1/companies/{company_id}/web", pagination: { style: offset } }
  alerts: { type: logs, upstream: ops, ${reading}, path: "/api/logs/v1/companies/{company_id}/all", pagination: { style: none } }
  firewall: { type: firewall, upstream: ops, every: 2s, confirm_after: 0s, settle: 1s, removals_after: 2, baseline: full }
sinks:
  siem: { type: syslog, address: "tls://127.0.0.1:${siem.port}", format: { type: cef, vendor: Acme, product: Edge }, max_message: 60000, tls: { ca_file: ${caFile} }, ${retry} }
  archive: { type: syslog, address: "tcp://127.0.0.1:${archive.port}", format: json, max_message: 60000, resend_window: 500ms, confirm: close, ${retry} }
  lake: { type: kafka, brokers: ["${kafka.addresses.plain}"], topic: ${topic}, format: json, exactly_once: true, compression: gzip, transactional_id: torture, timeout: 5s, ${retry} }
  otel: { type: otlp, url: "${otel.url}", compression: gzip, timeout: 2s, batch: { events: 200, wait: 200ms }, ${retry} }
  post: { type: http, url: "${post.url}/in", format: { type: json, raw_data: true }, timeout: 2s, batch: { events: 200, wait: 200ms }, ${retry} }
  disk: { type: file, path: ${dir}/out/events.ndjson, format: json, rotate: { bytes: ${rotateBytes} }, compress: gzip, batch: { wait: 50ms }, ${retry} }
shutdown: { timeout: 4s }
`;
}

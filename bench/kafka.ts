// `npx node bench/kafka.ts [--events N]`: what a Kafka sink costs, with either client and each compression, on a real
// Apache Kafka. The real program runs as `run --once` over records of 1 KB that it passes on as they are; upstream is
// this process, the broker one of its own. CPU is what the sluice process says it has used when it ends, all threads,
// start-up taken off by a run over a single page. Beside it stands the same run into a file: the rest is Kafka's.

import { type ChildProcess, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { startKafka } from '../test/support/kafka-broker.ts';
import { main } from './program.ts';
import { pageEvents, recordsOf } from './work.ts';

/** What is measured, in the shape of main.ts: a name, its floor, and the `sinks` of its config. */
export interface KafkaJob {
  readonly name: string;
  readonly floor: 'original';
  readonly driver: string;
  readonly compression: string;
  readonly exactlyOnce: boolean;
  sinks(): string;
}

/** Both clients, each with and without compression, and with transactions; each job has a topic of its own. */
export function kafkaJobs(broker: string): readonly KafkaJob[] {
  const ways = [
    { compression: 'none', exactlyOnce: false },
    { compression: 'gzip', exactlyOnce: false },
    { compression: 'zstd', exactlyOnce: false },
    { compression: 'none', exactlyOnce: true },
    { compression: 'zstd', exactlyOnce: true },
  ];
  return ways.flatMap(({ compression, exactlyOnce }) =>
    ['kafkajs', 'platformatic'].map((driver): KafkaJob => {
      const name = `${driver}, ${compression}${exactlyOnce ? ', exactly once' : ''}`;
      const settings = `driver: ${driver}, compression: ${compression}, exactly_once: ${exactlyOnce}`;
      // A topic for each run, so that a run finds nothing of the one before.
      const sinks = () =>
        `lake: { type: kafka, brokers: ["${broker}"], topic: bench-${crypto.randomUUID()}, ${settings}, ${format} }`;
      return { name, floor: 'original', driver, compression, exactlyOnce, sinks };
    }),
  );
}

const format = 'format: { type: json, schema: original }';
const recordBytes = 1024;

/** A page of records that are filled up to 1 KB with what does not compress, such as ids and signatures. */
function pageOf(page: number, last: boolean): Buffer {
  const records = recordsOf(page).map((record, i) => {
    const filled = { ...record, signature: '' };
    const missing = Math.max(0, recordBytes - Buffer.byteLength(JSON.stringify(filled)));
    const seed = createHash('shake256', { outputLength: missing }).update(`${page} ${i}`);
    return { ...filled, signature: seed.digest('base64').slice(0, missing) };
  });
  return Buffer.from(JSON.stringify({ data: records, next_cursor: last ? null : `${page + 1}` }));
}

async function serve(pages: number) {
  const bodies = Array.from({ length: pages }, (_, page) => pageOf(page, page === pages - 1));
  const server = createServer((request, response) => {
    const cursor = new URL(request.url ?? '/', 'http://localhost').searchParams.get('cursor');
    response.setHeader('content-type', 'application/json');
    response.end(bodies[Number(cursor ?? 0)]);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return { server, port: (server.address() as AddressInfo).port };
}

interface Usage {
  readonly cpuUs: number;
  readonly rssPeakBytes: number;
  readonly seconds: number;
}

// The program's own first line stays as it is: this is put before its first module.
const tellUsage = `
  import { writeSync } from 'node:fs';
  process.on('exit', () => {
    const { userCPUTime, systemCPUTime, maxRSS } = process.resourceUsage();
    writeSync(2, '\\nusage ' + (userCPUTime + systemCPUTime) + ' ' + maxRSS * 1024);
  });`;

async function measured(sinks: (dir: string) => string, pages: number): Promise<Usage> {
  const dir = mkdtempSync(join(tmpdir(), 'sluice-bench-'));
  const { server, port } = await serve(pages);
  try {
    const file = join(dir, 'sluice.yaml');
    writeFileSync(
      file,
      `state: { dir: ${dir}/state }
upstreams:
  edge: { api: unified, ends: never, base_url: "http://127.0.0.1:${port}", allow_http: true, auth: { api_key: bench } }
sources:
  audit: { type: audit_events, upstream: edge, every: 30s, page_limit: ${pageEvents}, path: /audit/events }
sinks:
  ${sinks(dir)}
`,
    );
    const begun = performance.now();
    const preload = `--import=data:text/javascript,${encodeURIComponent(tellUsage)}`;
    const child = spawn(main, ['run', '--once', '-c', file], {
      cwd: dir,
      env: { ...process.env, NODE_OPTIONS: preload },
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    const reported = await ended(child);
    const [, cpuUs, rssPeakBytes] = /usage (\d+) (\d+)$/.exec(reported) ?? [];
    const seconds = (performance.now() - begun) / 1_000;
    return { cpuUs: Number(cpuUs), rssPeakBytes: Number(rssPeakBytes), seconds };
  } finally {
    server.closeAllConnections();
    server.close();
    rmSync(dir, { recursive: true, force: true });
  }
}

/** What it wrote to stderr, once it has ended well. */
async function ended(child: ChildProcess): Promise<string> {
  let reported = '';
  child.stderr?.on('data', (chunk: Buffer) => {
    reported += chunk.toString();
  });
  const [code] = (await once(child, 'close')) as [number];
  if (code !== 0) throw new Error(`sluice ended with ${code}:\n${reported}`);
  return reported;
}

async function perEvent(sinks: (dir: string) => string, pages: number) {
  const startUp = await measured(sinks, 1);
  const whole = await measured(sinks, pages);
  return { whole, cpuUs: (whole.cpuUs - startUp.cpuUs) / ((pages - 1) * pageEvents) };
}

async function bench(): Promise<void> {
  const { values } = parseArgs({ options: { events: { type: 'string', default: '100000' } } });
  const pages = Math.max(2, Math.round(Number(values.events) / pageEvents));
  const broker = await startKafka();
  try {
    const toFile = (dir: string) => `disk: { type: file, path: ${dir}/events.ndjson, ${format} }`;
    const file = await perEvent(toFile, pages);
    const rows = [row('file', file, file.cpuUs)];
    for (const job of kafkaJobs(broker.addresses.plain)) {
      rows.push(row(job.name, await perEvent(job.sinks, pages), file.cpuUs));
    }
    console.table(rows);
    console.log(
      `${pages * pageEvents} events of ${recordBytes} bytes, Node ${process.versions.node}`,
    );
  } finally {
    await broker.kill();
  }

  function row(sink: string, { whole, cpuUs }: { whole: Usage; cpuUs: number }, fileUs: number) {
    return {
      sink,
      'CPU us/event': cpuUs.toFixed(1),
      'more than a file': (cpuUs - fileUs).toFixed(1),
      'events/second': Math.round((pages * pageEvents) / whole.seconds),
      'RSS peak MB': Math.round(whole.rssPeakBytes / 1e6),
    };
  }
}

if (import.meta.main) await bench();

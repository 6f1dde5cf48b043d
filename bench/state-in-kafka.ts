// `npx node bench/state-in-kafka.ts [--pages N] [--blocks N] [--program EVENTS [--rounds N]]`: the cost of the state in
// Kafka beside SQLite, and the time until another machine resumes. A real Apache Kafka of one broker runs beside it,
// with SQLite's fsync on the same disk. CPU is of this process with all its threads, without the broker. The state is
// read back by a process of its own, whose peak memory is reported. With `--program`, the real program reads so many
// events into a file instead, with each state in turn.

import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { ShardLog } from '../src/cluster/log/shard-log.ts';
import { parseHostPort } from '../src/contracts/settings.ts';
import { identityBytes } from '../src/contracts/spool.ts';
import { type OwnSpool, openSpool } from '../src/hold/spool.ts';
import { systemClock } from '../src/tools/clock.ts';
import { startKafka } from '../test/support/kafka-broker.ts';
import { silent } from '../test/support/silent-log.ts';
import { costOf, inTurn, median, mediansOf } from './cost.ts';
import { type Job, jobs, runJob } from './jobs.ts';
import { pageBody, pageEvents } from './work.ts';

const { values } = parseArgs({
  options: {
    pages: { type: 'string', default: '400' },
    blocks: { type: 'string', default: '10000' },
    /** Only reads the state of this prefix at this broker. */
    rebuild: { type: 'string' },
    broker: { type: 'string', default: '' },
    program: { type: 'string' },
    rounds: { type: 'string', default: '3' },
  },
});
const streams = 10;
const clock = systemClock();
const dir = mkdtempSync(join(tmpdir(), 'sluice-bench-'));
process.once('exit', () => rmSync(dir, { recursive: true, force: true }));

async function take(broker: string, prefix: string): Promise<ShardLog> {
  const brokers = [parseHostPort(broker)].filter((one) => one !== null);
  return await ShardLog.take({ brokers, prefix }, { clock, log: silent });
}

async function opened(name: string, log?: ShardLog): Promise<OwnSpool> {
  const settings = { dir: join(dir, name), keepMs: 0, bytesMax: 1e12, sinks: ['a'] };
  if (log === undefined) return await openSpool({ ...settings, sync: 'full' });
  await log.rebuild(settings.dir);
  return await openSpool({ ...settings, sync: 'none', log });
}

/** CPU microseconds that one of so many takes. */
async function cpuUs(count: number, work: () => Promise<void>): Promise<number> {
  const begun = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(begun);
  return Number(((user + system) / count).toFixed(2));
}

/** Each stream holds its share of these steps, one after the other. */
async function inStreams(steps: number, step: (stream: string, n: number) => Promise<unknown>) {
  const own = async (stream: number) => {
    for (let n = stream; n < steps; n += streams) await step(`s${stream}`, n);
  };
  await Promise.all(Array.from({ length: streams }, (_, stream) => own(stream)));
}

async function hold(spool: OwnSpool, pages: number): Promise<number> {
  const bodies = Array.from({ length: 8 }, (_, page) => pageBody(page, false));
  const [uids, identities] = [
    randomBytes(32 * pageEvents),
    randomBytes(identityBytes * pageEvents),
  ];
  return await cpuUs(pages * pageEvents, async () => {
    await inStreams(pages, async (stream, n) => {
      const context = { source: 's', stream, kind: 'audit', fetchedAt: 0 } as const;
      const body = bodies[n % bodies.length] ?? Buffer.of();
      const page = { context, body, items: 'data', kept: null, uids };
      await spool.append({ stream, pages: [page], checkpoint: { n }, identities });
    });
    // As a sink that keeps up would have it: what is passed goes.
    await spool.acknowledge('a', { position: spool.gauge.end });
  });
}

async function rebuild(prefix: string): Promise<void> {
  const begun = performance.now();
  const log = await take(values.broker, prefix);
  await log.rebuild(join(dir, 'rebuilt'));
  const seconds = Number(((performance.now() - begun) / 1000).toFixed(1));
  console.log(
    JSON.stringify({ seconds, 'RSS peak MB': Math.round(process.resourceUsage().maxRSS / 1000) }),
  );
  await log.close();
}

async function measure(): Promise<void> {
  const { addresses } = await startKafka();
  const [pages, blocks] = [Number(values.pages), Number(values.blocks)];
  const sqlite = await opened('sqlite');
  const log = await take(addresses.plain, 'pages');
  const kafka = await opened('kafka', log);
  for (const spool of [sqlite, kafka]) await hold(spool, pages / 10); // first uses cost more
  const rows = { SQLite: await hold(sqlite, pages), Kafka: await hold(kafka, pages) };
  console.log(
    `${pages} pages of ${pageEvents} events from ${streams} streams, CPU us an event:`,
    rows,
  );
  await Promise.all([sqlite.close(), kafka.close()]);

  const other = await take(addresses.plain, 'identities');
  const filled = await opened('identities', other);
  const identities = randomBytes(identityBytes * pageEvents);
  await inStreams(blocks, (stream, n) =>
    filled.append({ stream, pages: [], checkpoint: { n }, identities }),
  );
  await filled.close();
  const args = [import.meta.filename, '--rebuild', 'identities', '--broker', addresses.plain];
  const found = execFileSync(process.execPath, args, { encoding: 'utf8' });
  console.log(`${blocks * pageEvents} identities read back:`, found.trim());
}

/** The real program from upstream to a file: with the state in SQLite and in Kafka. */
async function program(events: number): Promise<void> {
  const { addresses } = await startKafka();
  const [first] = jobs.filter(({ name }) => name === 'JSON (original) to file');
  if (first === undefined) throw new Error('the job of the file is missing');
  const sqlite: Job = { ...first, name: 'SQLite' };
  // A state of its own for each run: a run finds nothing of the one before.
  const state = () =>
    `, kafka: { brokers: ["${addresses.plain}"], prefix: bench-${crypto.randomUUID()} }`;
  const cases: readonly Job[] = [sqlite, { ...first, name: 'Kafka', state }];
  const pages = Math.max(3, Math.round(events / pageEvents));
  const found = await inTurn(cases, Number(values.rounds), (job) =>
    costOf((count) => runJob(job, count), pages),
  );
  console.table(cases.map(({ name }, i) => ({ state: name, ...mediansOf(found[i] ?? []) })));
  const [own = [], log = []] = found;
  const more = log.map(({ cpuUs }, round) => cpuUs - (own[round]?.cpuUs ?? Number.NaN));
  console.log(
    `${pages * pageEvents} events, Kafka beside SQLite: ${median(more).toFixed(1)} us an event more`,
  );
}

if (values.rebuild !== undefined) await rebuild(values.rebuild);
else if (values.program !== undefined) await program(Number(values.program));
else await measure();
process.exit(0);

// `npx node bench/peers.ts [--events N] [--rounds N] [--job TEXT] [--peer TEXT] [--sync] [--json FILE]`: the same
// events through sluice and through other programs (peer-programs.ts), in turn. CPU is user + system time of the whole
// process; start-up is subtracted both ways (cost.ts); `times sluice` compares runs of the same pass.
//
// The work is as similar as possible. Over TCP, an event is read, queued on disk, parsed as JSON, written in the job's
// format and sent to a receiver that counts. The differences favour the peers: they read lines from a file, not pages
// over HTTP; they rename some fields, and do not normalise; of their queues only Fluent Bit's is synced, as sluice's
// spool is. rsyslog can sync each event (`--sync`; slow), syslog-ng cannot. To a file, pages are polled over HTTP from
// the same upstream and followed by their cursor; of the peers only Bindplane syncs that cursor, and none the data.

import { spawn } from 'node:child_process';
import { closeSync, mkdirSync, openSync, readdirSync, readFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { costOf, inTurn, mediansOf, type Run, spreadOf } from './cost.ts';
import { type Job, jobs, runJob } from './jobs.ts';
import { upstreamScript } from './nginx-upstream.ts';
import { configOf, type Peer, type Program, peers } from './peer-programs.ts';
import { inDirectory, startHelper, type Usage, watched } from './program.ts';
import { writeResults } from './results.ts';
import { pageEvents, recordsOf } from './work.ts';

const { values } = parseArgs({
  options: {
    events: { type: 'string', default: '200000' },
    rounds: { type: 'string', default: '3' },
    job: { type: 'string', default: '' },
    peer: { type: 'string', default: '' },
    sync: { type: 'boolean', default: false },
    json: { type: 'string' },
  },
});
const pages = Math.max(3, Math.round(Number(values.events) / pageEvents));
const lookEveryMs = 50;
/** A peer from which nothing has come for so long will send no more. */
const patienceMs = 20_000;

type Used = Pick<Usage, 'cpuUs' | 'rssPeakBytes'>;

function writeEvents(file: string, count: number): void {
  const out = openSync(file, 'w');
  for (let page = 0; page < count; page += 1) {
    writeSync(
      out,
      recordsOf(page).reduce((text, record) => `${text}${JSON.stringify(record)}\n`, ''),
    );
  }
  closeSync(out);
}

/** Events in the files of a directory: each has its id in it once. */
function eventsIn(dir: string): number {
  let count = 0;
  for (const entry of readdirSync(dir, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const bytes = readFileSync(join(entry.parentPath, entry.name));
    for (let at = bytes.indexOf('"evt_'); at >= 0; at = bytes.indexOf('"evt_', at + 1)) count += 1;
  }
  return count;
}

/** Starts a peer in a directory; what it prints goes to a file in `out/`. */
function started(peer: Peer, { command, env }: Program, config: string, dir: string, port: number) {
  for (const name of ['storage', 'out']) mkdirSync(join(dir, name));
  const output = openSync(join(dir, 'out/printed'), 'w');
  const [program = '', ...first] = command;
  const child = spawn(program, [...first, ...peer.args(config, dir, port)], {
    cwd: dir,
    stdio: ['ignore', output, 'pipe'],
    env: {
      ...process.env,
      ...env,
      BENCH_DIR: dir,
      BENCH_PORT: String(port),
      TZ: 'UTC',
      BENCH_SYNC: values.sync ? 'on' : 'off',
    },
  });
  closeSync(output);
  const said = { last: '' };
  child.stderr?.on('data', (chunk: Buffer) => {
    said.last = `${said.last}${chunk}`.slice(-2_000);
  });
  return { child, said, ended: watched(child) };
}

function complete(peer: Peer, arrived: number, count: number, said: string): void {
  if (arrived === count * pageEvents) return;
  throw new Error(`${peer.name}: ${arrived} of ${count * pageEvents} events arrived\n${said}`);
}

/** Runs a peer that reads lines over so many pages of them. Throws where not everything arrived. */
async function sendLines(peer: Peer, program: Program, config: string, count: number) {
  const sink = await startHelper(
    './counting-sink.ts',
    config.includes('-otlp.') ? 'otlp' : peer.sends,
  );
  try {
    return await inDirectory(async (dir): Promise<Used> => {
      writeEvents(join(dir, 'events.ndjson'), count);
      const { child, said, ended } = started(peer, program, config, dir, sink.port);
      let arrived = 0;
      let since = performance.now();
      while (
        arrived < count * pageEvents &&
        performance.now() - since < patienceMs &&
        child.exitCode === null
      ) {
        await delay(lookEveryMs);
        const now = Number(await sink.ask());
        if (now !== arrived) since = performance.now();
        arrived = now;
      }
      child.kill();
      const usage = await ended;
      complete(peer, arrived, count, said.last);
      return usage;
    });
  } finally {
    sink.child.kill();
  }
}

/** Runs a peer that polls over so many pages, until it ends. Throws where its file has not every event once. */
async function pollPages(peer: Peer, program: Program, config: string, count: number) {
  const upstream = await startHelper(upstreamScript(), String(count));
  try {
    return await inDirectory(async (dir): Promise<Used> => {
      const { said, ended } = started(peer, program, config, dir, upstream.port);
      const usage = await ended;
      complete(peer, eventsIn(join(dir, 'out')), count, said.last);
      return usage;
    });
  } finally {
    upstream.child.kill();
  }
}

/** The records as they came, which no job of main.ts sends over TCP. */
const asItCame: Job = {
  name: 'JSON (original) over TCP',
  floor: 'original',
  frames: 1,
  sinks: ({ tcp }) =>
    `text: { type: syslog, address: "tcp://127.0.0.1:${tcp}", resend_window: 100ms, format: { type: syslog, message: original } }`,
};
/** OTLP as the other programs send it. */
const otlp: Job = {
  name: 'OTLP (protobuf) over HTTP',
  floor: 'otlp',
  frames: 0,
  sinks: ({ http }) =>
    `otel: { type: otlp, url: "http://127.0.0.1:${http}/v1/logs", compression: none }`,
};
const [cef, ocsf, file] = jobs as readonly [Job, Job, Job];
/** The jobs, and what the configurations that do them are called. */
const compared = [
  { config: 'cef', job: cef },
  { config: 'ocsf', job: ocsf },
  { config: 'json', job: asItCame },
  { config: 'otlp', job: otlp },
  { config: 'rest', job: { ...file, name: 'JSON (original) from REST to file' } },
].filter(({ job }) => job.name.includes(values.job));

const requested = peers.filter(
  (peer) => peer.name.includes(values.peer) && compared.some((one) => configOf(peer, one.config)),
);
const found: { peer: Peer; program: Program }[] = [];
for (const peer of requested) {
  await peer.find().then(
    (program) => found.push({ peer, program }),
    (error: Error) => console.log(`${peer.name} is left out: ${error.message}`),
  );
}

const rows: Record<string, string | number>[] = [];
for (const { config: name, job } of compared) {
  const cases: { program: string; run: Run<Used> }[] = [
    { program: 'sluice', run: (count) => runJob(job, count) },
  ];
  for (const { peer, program } of found) {
    const config = configOf(peer, name);
    if (config === null) continue;
    if (peer.can?.(program, name) === false) {
      console.log(`${peer.name} is left out of ${job.name}: this build of it cannot do that`);
      continue;
    }
    const through = peer.sends === 'file' ? pollPages : sendLines;
    const run = (count: number) => through(peer, program, config, count);
    cases.push({ program: `${peer.name} ${program.version}`, run });
  }
  const said = await inTurn(cases, Number(values.rounds), ({ run }) => costOf(run, pages));
  for (const [i, { program }] of cases.entries()) {
    const rounds = said[i] ?? [];
    const times = (by: 'cpuUs' | 'warmUs') =>
      spreadOf(rounds.map((round, at) => round[by] / (said[0]?.[at]?.[by] ?? Number.NaN)));
    const short = (n: number) => Number(n.toFixed(2));
    const { median, least, most } = times('cpuUs');
    rows.push({
      job: job.name,
      program,
      ...mediansOf(rounds),
      'times sluice': short(median),
      'times, least': short(least),
      'times, most': short(most),
      'times warm': short(times('warmUs').median),
    });
  }
  console.table(rows.filter((row) => row.job === job.name));
}
if (values.json !== undefined) {
  writeResults(values.json, pages * pageEvents, { rounds: Number(values.rounds), rows });
}

// `npx node bench/peers.ts [--events N] [--job TEXT] [--peer TEXT] [--sync] [--json FILE]`: the same events through sluice and
// through other programs that are found here, one after another in the same run. A peer is looked for on PATH, or where
// FLUENT_BIT, RSYSLOG or SYSLOG_NG says; one that is not found is skipped and said so.
//
// The work is as alike as it can be made: an event is read, queued on disk, parsed as JSON, written in the job's format and sent
// over TCP to a receiver that counts. What differs speaks for the peers: they read lines from a file, not pages over HTTP; they
// rename some fields, and do not normalise; of their queues only Fluent Bit's is synced, as sluice's spool is. rsyslog can sync
// each event (`--sync`; slow), syslog-ng cannot. CPU is user + system time of the whole process, start-up taken off by a run
// over a single page.

import { spawn, spawnSync } from 'node:child_process';
import { closeSync, existsSync, mkdirSync, openSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { findRsyslog } from '../test/support/rsyslog-program.ts';
import { type Job, jobs, runJob } from './jobs.ts';
import { inDirectory, startHelper, type Usage, watched } from './program.ts';
import { writeResults } from './results.ts';
import { pageEvents, recordsOf } from './work.ts';

/** How a peer is started. */
interface Program {
  readonly command: string;
  readonly env?: Readonly<Record<string, string>>;
}

interface Peer {
  readonly name: string;
  /** Null where it is not installed. */
  readonly find: () => Promise<Program | null>;
  readonly version: string;
  /** How what it sends over TCP is framed: octet-counted (`tcp`) or as lines. */
  readonly framing: 'tcp' | 'lines';
  /** The ending of its configs in `bench/peers/`. */
  readonly ending: string;
  readonly args: (config: string, dir: string) => readonly string[];
}

const { values } = parseArgs({
  options: {
    events: { type: 'string', default: '200000' },
    job: { type: 'string', default: '' },
    peer: { type: 'string', default: '' },
    sync: { type: 'boolean', default: false },
    json: { type: 'string' },
  },
});
const pages = Math.max(2, Math.round(Number(values.events) / pageEvents));
const lookEveryMs = 50;
/** A peer from which nothing has come for so long will send no more. */
const patienceMs = 20_000;

/** The program that `variable` names or that is on PATH. */
function installed(variable: string, name: string, version: string): Program | null {
  const command = process.env[variable] ?? name;
  return spawnSync(command, [version]).error === undefined ? { command } : null;
}

/** Where `RSYSLOG` says, else the one that the tests use. */
async function rsyslog(): Promise<Program | null> {
  if (process.env.RSYSLOG !== undefined) return installed('RSYSLOG', 'rsyslogd', '-v');
  const found = await findRsyslog().catch(() => null);
  if (found === null) return null;
  const env = { LD_LIBRARY_PATH: found.libraryDirs, RSYSLOG_MODDIR: found.moduleDirs };
  return { command: found.command, env };
}

const peers: readonly Peer[] = [
  {
    name: 'Fluent Bit',
    find: async () => installed('FLUENT_BIT', 'fluent-bit', '--version'),
    version: '--version',
    framing: 'lines',
    ending: 'yaml',
    args: (config) => ['-q', '-c', config],
  },
  {
    name: 'rsyslog',
    find: rsyslog,
    version: '-v',
    framing: 'tcp',
    ending: 'conf',
    args: (config, dir) => ['-n', '-i', join(dir, 'pid'), '-f', config],
  },
  {
    name: 'syslog-ng',
    find: async () => installed('SYSLOG_NG', 'syslog-ng', '--version'),
    version: '--version',
    framing: 'tcp',
    ending: 'conf',
    args: (config, dir) => [
      ...['-F', '--no-caps', '-f', config, '--persist-file', join(dir, 'persist')],
      ...['--pidfile', join(dir, 'pid'), '--control', join(dir, 'control')],
    ],
  },
];

/** The first version number that a program tells of itself. */
function versionOf(peer: Peer, { command, env }: Program): string {
  const { stdout, stderr } = spawnSync(command, [peer.version], {
    env: { ...process.env, ...env },
    encoding: 'utf8',
  });
  return /\d+\.\d+(\.\d+)?/.exec(`${stdout}${stderr}`)?.[0] ?? 'unknown';
}

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

function configOf(peer: Peer, format: string): string {
  const name = `${peer.name.toLowerCase().replace(' ', '-')}-${format}.${peer.ending}`;
  return new URL(`./peers/${name}`, import.meta.url).pathname;
}

/** Runs a peer over so many pages of events. Throws where not everything arrived. */
async function runPeer(peer: Peer, program: Program, format: string, count: number) {
  const sink = await startHelper('./counting-sink.ts', peer.framing);
  try {
    return await inDirectory(async (dir): Promise<Pick<Usage, 'cpuUs' | 'rssPeakBytes'>> => {
      writeEvents(join(dir, 'events.ndjson'), count);
      mkdirSync(join(dir, 'storage'));
      const child = spawn(program.command, peer.args(configOf(peer, format), dir), {
        cwd: dir,
        stdio: ['ignore', 'ignore', 'pipe'],
        env: {
          ...process.env,
          ...program.env,
          BENCH_DIR: dir,
          BENCH_PORT: String(sink.port),
          TZ: 'UTC',
          BENCH_SYNC: values.sync ? 'on' : 'off',
        },
      });
      let said = '';
      child.stderr.on('data', (chunk: Buffer) => {
        said = `${said}${chunk}`.slice(-2_000);
      });
      const ended = watched(child);
      const expected = count * pageEvents;
      let arrived = 0;
      let since = performance.now();
      while (
        arrived < expected &&
        performance.now() - since < patienceMs &&
        child.exitCode === null
      ) {
        await new Promise((resolve) => setTimeout(resolve, lookEveryMs));
        const now = Number(await sink.ask());
        if (now !== arrived) since = performance.now();
        arrived = now;
      }
      child.kill();
      const usage = await ended;
      if (arrived === expected) return usage;
      throw new Error(`${peer.name}: ${arrived} of ${expected} events arrived\n${said}`);
    });
  } finally {
    sink.child.kill();
  }
}

type Run = (count: number) => Promise<Pick<Usage, 'cpuUs' | 'rssPeakBytes'>>;

/** CPU microseconds per event, start-up taken off, and the most memory. */
async function measure(run: Run) {
  const startUp = await run(1);
  const whole = await run(pages);
  const cpuUs = (whole.cpuUs - startUp.cpuUs) / ((pages - 1) * pageEvents);
  return { cpuUs, rssMb: Math.round(whole.rssPeakBytes / 1e6) };
}

/** The records as they came, which no job of main.ts sends over TCP. */
const asItCame: Job = {
  name: 'JSON (as it came) over TCP',
  floor: 'original',
  frames: 1,
  sinks: ({ tcp }) =>
    `text: { type: syslog, address: "tcp://127.0.0.1:${tcp}", resend_window: 100ms, format: { type: syslog, message: original } }`,
};
const [cef, ocsf] = jobs as readonly [Job, Job];
/** The jobs, and what the configs that do them are called. */
const compared = [
  { format: 'cef', job: cef },
  { format: 'ocsf', job: ocsf },
  { format: 'json', job: asItCame },
].filter(({ job }) => job.name.includes(values.job));
const found: { peer: Peer; program: Program; version: string }[] = [];
for (const peer of peers.filter(({ name }) => name.includes(values.peer))) {
  const program = await peer.find();
  if (program === null) console.log(`${peer.name} is not installed: skipped`);
  else found.push({ peer, program, version: versionOf(peer, program) });
}
const rows: Record<string, string | number>[] = [];
for (const { format, job } of compared) {
  const own = await measure((count) => runJob(job, count));
  const row = (program: string, { cpuUs, rssMb }: typeof own) =>
    rows.push({
      job: job.name,
      program,
      'CPU us/event': Number(cpuUs.toFixed(1)),
      'times sluice': Number((cpuUs / own.cpuUs).toFixed(2)),
      'RSS peak MB': rssMb,
    });
  row('sluice', own);
  for (const { peer, program, version } of found) {
    // OCSF is more than the templates of rsyslog and syslog-ng can say.
    if (!existsSync(configOf(peer, format))) continue;
    const theirs = await measure((count) => runPeer(peer, program, format, count));
    row(`${peer.name} ${version}`, theirs);
  }
}
console.table(rows);
if (values.json !== undefined) writeResults(values.json, pages * pageEvents, { rows });

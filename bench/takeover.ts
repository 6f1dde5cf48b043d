// `npx node bench/takeover.ts [--shards N] [--processes N] [--rounds N] [--apart-s N] [--rest-s N]
// [--trees DIR,DIR]`: processes of one state in Kafka whose shards have nothing new: the time from the start of all processes until each has its share; their memory and
// CPU at rest, the records that they write, their memberships; then one process is killed (SIGKILL) again and again, and the
// time until others are active on its shards is measured, with their CPU until then, and the time until a new process has its
// share. Each stage prints a line. `--apart-s`: between the starts of the processes. `--rest-s 0`: nothing at rest. `--trees`: checkouts to compare, one after the other in each pass. Needs Java.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { Kafka, logLevel } from 'kafkajs';
import { startKafka } from '../test/support/kafka-broker.ts';
import { countedOf, inDirectory, startHelper } from './program.ts';
import { pageEvents } from './work.ts';

const { values } = parseArgs({
  options: {
    shards: { type: 'string', default: '8' },
    processes: { type: 'string', default: '2' },
    rounds: { type: 'string', default: '3' },
    'apart-s': { type: 'string', default: '0' },
    'rest-s': { type: 'string', default: '20' },
    trees: { type: 'string', default: join(import.meta.dirname, '..') },
  },
});
const [shards, processes, rounds] = [values.shards, values.processes, values.rounds].map(Number);
const [restS, apartS] = [values['rest-s'], values['apart-s']].map(Number) as [number, number];
const sessionS = 6;
const pollEveryS = 60;
const lookMs = 20;
const settleLookMs = 500;
const settleMsMax = 600_000;
const reportEveryMs = 5_000;
const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

interface One {
  readonly child: ChildProcess;
  readonly dir: string;
  log: string;
}

/** A process and those that it has started. */
function familyOf({ child: { pid = 0 } }: One): readonly number[] {
  const children = readdirSync('/proc').filter((name) => {
    try {
      const stat = readFileSync(`/proc/${name}/stat`, 'utf8').replace(/^.*\) /s, '');
      return /^\d+$/.test(name) && Number(stat.split(' ')[1]) === pid;
    } catch {
      return false;
    }
  });
  return [pid, ...children.map(Number)];
}

const sumOf = (ones: readonly One[], of: (pid: number) => number) =>
  ones.flatMap(familyOf).reduce((sum, pid) => sum + of(pid), 0);
const cpuOf = (ones: readonly One[]) => sumOf(ones, (pid) => countedOf(pid)?.cpuUs ?? 0) / 1e6;
/** What several share counts in parts. */
const pssOf = (ones: readonly One[]) =>
  sumOf(ones, (pid) => {
    try {
      return (
        Number(/^Pss:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'))?.[1]) / 1e3
      );
    } catch {
      return 0;
    }
  });

/** The shards on which a process works, by its log. */
function runningAt(log: string): ReadonlySet<number> {
  const lines = log.split('\n').filter((line) => line.includes('"event":"running"'));
  return new Set(lines.map((line) => Number(/"shard":(\d+)/.exec(line)?.[1])));
}

class Cluster {
  readonly #tree: string;
  readonly #dir: string;
  readonly #port: number;
  readonly #broker: string;
  readonly #prefix = `bench-${crypto.randomUUID()}`;
  #ones: One[] = [];
  #started = 0;

  constructor(tree: string, dir: string, port: number, broker: string) {
    [this.#tree, this.#dir, this.#port, this.#broker] = [tree, dir, port, broker];
  }

  start(): void {
    this.#started += 1;
    const name = `sluice-${this.#started}`;
    const dir = join(this.#dir, name);
    mkdirSync(dir);
    const ups = Array.from({ length: shards ?? 1 }, (_, n) => `u${n}`);
    writeFileSync(
      join(dir, 'sluice.yaml'),
      `state:
  dir: ${dir}/state
  kafka: { brokers: ["${this.#broker}"], prefix: ${this.#prefix}, shards: ${shards}, session_timeout: ${sessionS}s, instance: ${name} }
upstreams:
${ups.map((one, n) => `  ${one}: { api: services, base_url: "http://127.0.0.1:${this.#port}", allow_http: true, shard: ${n}, auth: { api_key: "bench-${n}" }, companies: [c-${n}] }`).join('\n')}
sources:
${ups.map((one) => `  ${one}: { type: logs, upstream: ${one}, every: ${pollEveryS}s, path: "/v1/companies/{company_id}/logs", pagination: { style: cursor }, page_limit: ${pageEvents} }`).join('\n')}
sinks:
  lake: { type: file, path: "${dir}/{partition}.ndjson", format: json }
`,
    );
    const { bin } = JSON.parse(readFileSync(join(this.#tree, 'package.json'), 'utf8'));
    const args = ['run', '-c', join(dir, 'sluice.yaml')];
    const child = spawn(join(this.#tree, bin.sluice), args, {
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    const one: One = { child, dir, log: '' };
    child.stderr.on('data', (chunk: Buffer) => {
      one.log += chunk.toString();
    });
    this.#ones.push(one);
  }

  /** The shards that a process runs, by its note for the commands of this machine. */
  #runs(one: One): readonly number[] {
    const file = `state/kafka-${this.#prefix}/member/member.json`;
    try {
      return JSON.parse(readFileSync(join(one.dir, file), 'utf8')).shards.running;
    } catch {
      return [];
    }
  }

  /** All shards are worked on, and no process has two more than another; returns the seconds until then. */
  async settled(what: string): Promise<number> {
    const begun = performance.now();
    const cpu = cpuOf(this.#ones);
    const secondsSince = () => (performance.now() - begun) / 1_000;
    for (let reports = 1; ; ) {
      await pause(settleLookMs);
      const owned = this.#ones.map((one) => this.#runs(one).length);
      const sum = owned.reduce((all, some) => all + some, 0);
      if (sum === shards && Math.max(...owned) - Math.min(...owned) <= 1) {
        const spent = (cpuOf(this.#ones) - cpu).toFixed(1);
        console.log(`  ${what}: settled after ${secondsSince().toFixed(1)} s, ${spent} CPU-s`);
        return secondsSince();
      }
      if (performance.now() - begun > reports * reportEveryMs) {
        reports += 1;
        console.log(`    ${secondsSince().toFixed(0)} s: ${owned.join(' ')} shards`);
      }
      const ended = this.#ones.find(({ child }) => child.exitCode !== null);
      if (ended !== undefined) throw new Error(`sluice has ended:\n${ended.log}`);
      if (performance.now() - begun > settleMsMax) throw new Error(`not settled: ${owned}`);
    }
  }

  async atRest(admin: ReturnType<Kafka['admin']>) {
    // Every stream has had its first poll, which writes its checkpoint.
    await pause((pollEveryS + 5) * 1_000);
    const written = async () =>
      (await admin.fetchTopicOffsets(`${this.#prefix}.state`)).reduce(
        (sum, { high }) => sum + Number(high),
        0,
      );
    const [cpu, records] = [cpuOf(this.#ones), await written()];
    await pause(restS * 1_000);
    const { groups } = await admin.listGroups();
    const ids = groups.map(({ groupId }) => groupId).filter((id) => id.startsWith(this.#prefix));
    const described = await admin.describeGroups(ids);
    return {
      'processes of the system': this.#ones.flatMap(familyOf).length,
      'PSS MB': Math.round(pssOf(this.#ones)),
      'PSS MB/shard': Number((pssOf(this.#ones) / (shards ?? 1)).toFixed(1)),
      'CPU ms/s': Math.round(((cpuOf(this.#ones) - cpu) * 1e3) / restS),
      'records/s': Number((((await written()) - records) / restS).toFixed(2)),
      memberships: described.groups.reduce((sum, { members }) => sum + members.length, 0),
    };
  }

  /** Kills the oldest. */
  async takeover(): Promise<{ readonly seconds: number; readonly cpu: number }> {
    const [first, ...others] = this.#ones;
    if (first === undefined) throw new Error('there is none');
    const before = others.map((one) => one.log.length);
    const had = this.#runs(first);
    const cpu = cpuOf(others);
    first.child.kill('SIGKILL');
    await once(first.child, 'exit');
    const begun = performance.now();
    const isWorkedOn = (shard: number) =>
      others.some(({ log }, n) => runningAt(log.slice(before[n])).has(shard));
    while (!had.every(isWorkedOn)) {
      await pause(lookMs);
      if (performance.now() - begun > 300_000) throw new Error('no takeover');
    }
    this.#ones = others;
    return { seconds: (performance.now() - begun) / 1_000, cpu: cpuOf(others) - cpu };
  }

  end(): void {
    for (const { child } of this.#ones) child.kill('SIGKILL');
  }
}

const { addresses } = await startKafka();
const admin = new Kafka({ brokers: [addresses.plain], logLevel: logLevel.NOTHING }).admin();
await admin.connect();
const upstream = await startHelper('./upstream-server.ts', '1');
await inDirectory(async (dir) => {
  for (const [n, tree] of values.trees.split(',').entries()) {
    const takeovers: { readonly seconds: number; readonly cpu: number }[] = [];
    const settled: number[] = [];
    const own = join(dir, `${n}`);
    mkdirSync(own);
    const cluster = new Cluster(tree, own, upstream.port, addresses.plain);
    try {
      for (let one = 0; one < (processes ?? 1); one += 1) {
        if (one > 0) await pause(apartS * 1_000);
        cluster.start();
      }
      const first = await cluster.settled(`${processes} new processes`);
      console.log(`${tree}: ${shards} shards, ${processes} processes, at rest:`, {
        'settled after s': Number(first.toFixed(1)),
        ...(restS > 0 && (await cluster.atRest(admin))),
      });
      for (let round = 0; round < (rounds ?? 1); round += 1) {
        const takeover = await cluster.takeover();
        takeovers.push(takeover);
        console.log(`  round ${round + 1}: taken over after ${takeover.seconds.toFixed(1)} s`);
        cluster.start();
        settled.push(await cluster.settled(`round ${round + 1}, one new process`));
      }
    } finally {
      cluster.end();
    }
    const inOrder = (list: readonly number[]) => list.toSorted((a, b) => a - b);
    const written = (list: readonly number[]) => list.map((one) => one.toFixed(1)).join(' ');
    const sorted = inOrder(takeovers.map(({ seconds }) => seconds));
    console.log(`${tree}: seconds from the end of a process until its shards run:`, {
      median: sorted[Math.floor(sorted.length / 2)]?.toFixed(1),
      all: written(sorted),
      'CPU s': written(takeovers.map(({ cpu }) => cpu)),
      'session s': sessionS,
      'settled with a new process after s': written(inOrder(settled)),
    });
  }
});
process.exit(0);

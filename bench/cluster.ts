// `npx node bench/cluster.ts [--processes 1,2,4] [--streams N] [--pages N] [--shards N]`: several processes on one
// Kafka read the same streams from their start into a topic. A real Apache Kafka of one broker and the upstream run on
// the same cores, so their usage is counted beside. Then one of the processes is killed, and the time until its shards
// are active again is measured. Beside each measurement is the prediction of the model in cluster-plan.ts, with
// parameters from a run of one shard and one process; then its prediction for a larger load (`--plan-streams`,
// `--plan-events`). Needs Java.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { Kafka, logLevel } from 'kafkajs';
import { startKafka } from '../test/support/kafka-broker.ts';
import { type Costs, plan, takeoverS, throughput } from './cluster-plan.ts';
import { countedOf, type Helper, inDirectory, main, startHelper } from './program.ts';
import { pageEvents } from './work.ts';

const { values } = parseArgs({
  options: {
    processes: { type: 'string', default: '1,2,4' },
    streams: { type: 'string', default: '100' },
    pages: { type: 'string', default: '6' },
    shards: { type: 'string', default: '8' },
    'plan-streams': { type: 'string', default: '100000' },
    'poll-us': { type: 'string', default: '720' },
    'stream-bytes': { type: 'string', default: '33000' },
    'plan-events': { type: 'string', default: '1000000' },
  },
});
const sessionS = 6;
const lookMs = 50;
/** From taking a shard to working on it. */
const beginS = 1;
const cores = availableParallelism();

interface One {
  readonly child: ChildProcess;
  log: string;
}

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** A process and those that it has started. */
function familyOf(pid: number): readonly number[] {
  const children = readdirSync('/proc').filter((name) => {
    if (!/^\d+$/.test(name)) return false;
    try {
      const stat = readFileSync(`/proc/${name}/stat`, 'utf8').replace(/^.*\) /s, '');
      return Number(stat.split(' ')[1]) === pid;
    } catch {
      return false;
    }
  });
  return [pid, ...children.map(Number)];
}

const cpuOf = (pids: readonly number[]) =>
  pids.reduce((sum, pid) => sum + (countedOf(pid)?.cpuUs ?? 0), 0);

class Cluster {
  readonly #broker: string;
  readonly #brokerPid: number;
  readonly #shards: number;
  readonly #streams: number;
  readonly #pages: number;

  constructor(
    broker: { address: string; pid: number },
    of: { shards: number; streams: number; pages: number },
  ) {
    this.#broker = broker.address;
    this.#brokerPid = broker.pid;
    this.#shards = of.shards;
    this.#streams = of.streams;
    this.#pages = of.pages;
  }

  get events(): number {
    return this.#streams * this.#pages * pageEvents;
  }

  async measure(processes: number) {
    return await inDirectory(async (dir) => {
      const upstream = await startHelper('./upstream-server.ts', `${this.#pages}`);
      const topic = `bench-${crypto.randomUUID()}`;
      const kafka = new Kafka({ brokers: [this.#broker], logLevel: logLevel.NOTHING });
      const admin = kafka.admin();
      await admin.connect();
      await admin.createTopics({ topics: [{ topic, numPartitions: 8 }], waitForLeaders: true });
      const ones = Array.from({ length: processes }, (_, n) =>
        this.#start(dir, { name: `sluice-${n}`, topic, prefix: topic, port: upstream.port }),
      );
      try {
        const held = async () =>
          (await admin.fetchTopicOffsets(topic)).reduce((sum, { high }) => sum + Number(high), 0);
        const figures = await this.#flow(ones, upstream, held);
        const shards = ones.map((one) => shardsAt(one).size);
        const takeover = processes > 1 ? await killed(ones) : null;
        return { ...figures, shards, takeover };
      } finally {
        for (const { child } of ones) child.kill('SIGKILL');
        await admin.disconnect();
        upstream.child.stdin?.end();
      }
    });
  }

  /** From the first page to the last event. */
  async #flow(ones: readonly One[], upstream: Helper, held: () => Promise<number>) {
    while (Number(await upstream.ask()) === 0) await pause(lookMs);
    const pids = () => ones.flatMap(({ child }) => familyOf(child.pid ?? 0));
    const used = () => ({
      sluice: cpuOf(pids()),
      broker: cpuOf([this.#brokerPid]),
      upstream: cpuOf([upstream.child.pid ?? 0]),
      written: countedOf(this.#brokerPid)?.writtenBytes ?? 0,
    });
    const [begun, before] = [performance.now(), used()];
    while ((await held()) < this.events) {
      await pause(4 * lookMs);
      const ended = ones.find(({ child }) => child.exitCode !== null);
      if (ended !== undefined) throw new Error(`sluice has ended:\n${ended.log}`);
    }
    const seconds = (performance.now() - begun) / 1_000;
    const after = used();
    const each = (who: 'sluice' | 'broker' | 'upstream') =>
      (after[who] - before[who]) / this.events;
    const starters = ones.map(({ child }) => child.pid ?? 0);
    const rss = pids()
      .filter((pid) => !starters.includes(pid))
      .map((pid) => countedOf(pid)?.rssBytes ?? 0);
    return {
      eventsPerS: this.events / seconds,
      sluiceUs: each('sluice'),
      brokerUs: each('broker'),
      upstreamUs: each('upstream'),
      shardBytes: Math.max(...rss),
      // Pages, and the topic of the sink.
      eventBytes: (after.written - before.written) / this.events,
    };
  }

  #start(
    dir: string,
    { name, topic, prefix, port }: { name: string; topic: string; prefix: string; port: number },
  ): One {
    const upstreams = Array.from({ length: this.#shards }, (_, n) => `u${n}`);
    const own = (n: number) =>
      Array.from({ length: this.#streams }, (_, stream) => `c-${stream}`).filter(
        (_, stream) => stream % this.#shards === n,
      );
    mkdirSync(join(dir, name));
    const file = join(dir, name, 'sluice.yaml');
    writeFileSync(
      file,
      `state:
  dir: ${dir}/${name}/state
  kafka: { brokers: ["${this.#broker}"], prefix: ${prefix}, shards: ${this.#shards * 4}, session_timeout: ${sessionS}s, instance: ${name} }
upstreams:
${upstreams.map((one, n) => `  ${one}: { api: services, base_url: "http://127.0.0.1:${port}", allow_http: true, auth: { api_key: "bench-${n}" }, companies: [${own(n).join(', ')}] }`).join('\n')}
sources:
${upstreams.map((one) => `  ${one}: { type: logs, upstream: ${one}, every: 60s, path: "/v1/companies/{company_id}/logs", pagination: { style: cursor }, page_limit: ${pageEvents} }`).join('\n')}
sinks:
  lake: { type: kafka, brokers: ["${this.#broker}"], topic: ${topic}, format: json, compression: zstd }
`,
    );
    const child = spawn(main, ['run', '-c', file], { stdio: ['ignore', 'ignore', 'pipe'] });
    const one: One = { child, log: '' };
    child.stderr.on('data', (chunk: Buffer) => {
      one.log += chunk.toString();
    });
    return one;
  }
}

/** The shards on which a process has worked, by its log. */
function shardsAt({ log }: One): Set<number> {
  const lines = log.split('\n').filter((line) => line.endsWith('"msg":"running"}'));
  return new Set(lines.map((line) => Number(/"shard":(\d+)/.exec(line)?.[1])));
}

/** Seconds from the end of the first process until others work on all that it had. */
async function killed(ones: readonly One[]): Promise<number> {
  const [first, ...others] = ones;
  if (first === undefined) return Number.NaN;
  const had = shardsAt(first);
  first.child.kill('SIGKILL');
  await once(first.child, 'exit');
  const begun = performance.now();
  const isWorkedOn = (shard: number) => others.some((one) => shardsAt(one).has(shard));
  while (![...had].every(isWorkedOn)) await pause(lookMs);
  return (performance.now() - begun) / 1_000;
}

const rounded = (value: number, digits = 1) => Number(value.toFixed(digits));

const { addresses, pid = 0 } = await startKafka({
  // As Kafka has it: all that start together share the work from the start.
  settings: { 'group.initial.rebalance.delay.ms': '3000' },
});
const broker = { address: addresses.plain, pid };
const [streams, pages, shards] = [
  Number(values.streams),
  Number(values.pages),
  Number(values.shards),
];
// The run for the model's parameters: one shard, with as much work as one of several has. It is run before each of the
// others, since machines are noisy.
const alone = new Cluster(broker, { shards: 1, streams: Math.ceil(streams / shards), pages });
const cluster = new Cluster(broker, { shards, streams, pages });
type Measured = Awaited<ReturnType<Cluster['measure']>>;
const runs: { readonly count: number; readonly one: Measured; readonly found: Measured }[] = [];
for (const count of values.processes.split(',').map(Number)) {
  runs.push({ count, one: await alone.measure(1), found: await cluster.measure(count) });
}
type Figure = Exclude<keyof Measured, 'shards' | 'takeover'>;
const mean = (of: Figure) => runs.reduce((sum, { one }) => sum + one[of], 0) / runs.length;
const costs: Costs = {
  ...{ sluiceUs: mean('sluiceUs'), brokerUs: mean('brokerUs'), upstreamUs: mean('upstreamUs') },
  ...{ shardBytes: mean('shardBytes'), shardEventsPerS: mean('eventsPerS') },
};
console.log(`one shard, means of ${runs.length} runs:`, {
  'events/s': runs.map(({ one }) => Math.round(one.eventsPerS)),
  'sluice us/event': rounded(costs.sluiceUs),
  'broker us/event': rounded(costs.brokerUs),
  'upstream us/event': rounded(costs.upstreamUs),
  'RSS of its process MB': Math.round(costs.shardBytes / 1e6),
  'bytes/event in Kafka': Math.round(mean('eventBytes')),
});
const expected = throughput(costs, shards, cores);
const takes = takeoverS(sessionS, beginS);
const rows = runs.map(({ count, found }) => ({
  processes: count,
  'events/s': Math.round(found.eventsPerS),
  'by the model': Math.round(expected),
  'model / measured': rounded(expected / found.eventsPerS, 2),
  'sluice us/event': rounded(found.sluiceUs),
  'broker us/event': rounded(found.brokerUs),
  'shards of each': found.shards.join(' '),
  'takeover s': found.takeover === null ? '' : rounded(found.takeover),
  'takeover by the model s': `${rounded(takes.least)} to ${rounded(takes.most)}`,
}));
console.log(
  `${streams} streams, ${cluster.events} events, ${shards} upstreams, ${cores} cores for all of it:`,
);
console.table(rows);
const load = {
  streams: Number(values['plan-streams']),
  eventsPerS: Number(values['plan-events']),
  eventBytes: mean('eventBytes'),
  // What bench/streams.ts --streams 1,10000 has printed for streams that have nothing new.
  ...{ everyS: 60, pollUs: Number(values['poll-us']), streamBytes: Number(values['stream-bytes']) },
};
console.log(`By the model, for ${load.streams} streams and ${load.eventsPerS} events/s:`);
console.table(plan(costs, load));
process.exit(0);

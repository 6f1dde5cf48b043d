// One seed: a cluster of processes on a modelled Kafka, with one shard or several, and its faults (faults.ts),
// while responses are late or lost. The seed decides everything. After the faults, all records must arrive, each
// shard must be worked on, and each process must have its share. Then an orderly change, or a fault of one shard,
// must disturb no other one.

import { ownersOf } from '../../../src/cluster/log/settings.ts';
import { partitionsOf, topicsOf } from '../../../src/cluster/log/topics.ts';
import { Random } from '../../../src/sandbox/random.ts';
import type { Tell, Verdict } from '../verdict.ts';
import { Brokers } from './broker.ts';
import { Course, type Life } from './course.ts';
import { dropCoordinator, fault, faultMsMax, type Scene } from './faults.ts';
import { Groups } from './group.ts';
import { networks } from './kafka.ts';
import { KeepingProcess } from './keeping.ts';
import { runIn } from './machine.ts';
import { Oracle } from './oracle.ts';
import { end, LoneProcess, type Process, prefix, sessionMs } from './process.ts';
import { Sharing } from './sharing.ts';
import { Upstream } from './upstream.ts';
import type { ShardWorld } from './work.ts';

const troubleMs = 40_000;
/** Longer than an open transaction, a session, and one wait for Kafka. */
const wellWithinMs = 150_000;
/** After this time the groups have forgotten each removed member. */
const forgottenMs = 2 * sessionMs;
/** Long enough for several checks of an even distribution. */
const quietMs = 3 * sessionMs;
const findingsMax = 5;

/** Runs one seed, and reports each step. */
export async function runCluster(seed: number, report: Tell = () => undefined): Promise<Verdict> {
  const world = new ClusterWorld(seed, report);
  report(JSON.stringify(world.traits));
  // Most refused requests are repeated, so their stacks are not used.
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 0;
  try {
    return await world.run();
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
  }
}

class ClusterWorld {
  readonly traits: {
    readonly shards: number;
    readonly processes: number;
    readonly named: boolean;
    readonly faultEveryMs: number;
    readonly growEveryMs: number;
    readonly clocks: 'right' | 'set' | 'asleep';
  };
  readonly #seed: number;
  readonly #course: Course;
  readonly #sharing: Sharing;
  readonly #shards: readonly ShardWorld[];
  readonly #scene: Scene & { readonly processes: (Process | null)[] };
  readonly #findings: string[] = [];
  #isTroubled = true;
  #kills = 0;
  #lives = 0;

  constructor(seed: number, report: Tell) {
    const random = new Random(seed, 1);
    const shared = new Random(seed, 3);
    const shards = shared.pick([1, 2, 3, 4]);
    this.traits = {
      shards,
      processes: 2 + random.below(2) + (shards === 1 ? 0 : shared.below(2)),
      named: random.chance(0.3),
      faultEveryMs: random.pick([1_500, 4_000, 8_000]),
      // A process without a write does not learn from the log that it was fenced.
      growEveryMs: random.pick([8_000, 700, 700]),
      // A clock that is set during a sleep of the machine hides the sleep.
      clocks: shared.pick(['right', 'set', 'asleep']),
    };
    this.#seed = seed;
    const course = new Course(new Random(seed, 2), report);
    this.#course = course;
    runIn(course);
    const find = (what: string) => {
      if (this.#findings.length < findingsMax) this.#findings.push(what);
    };
    const isUneven = () => this.#isUneven();
    this.#sharing = new Sharing({ course, sessionMs, isUneven, find });
    this.#shards = Array.from({ length: shards }, (_, shard) => {
      const oracle = new Oracle((what) => find(`shard ${shard}: ${what}`));
      return { shard, oracle, upstream: new Upstream(course) };
    });
    const witnessOf = (id: string) => {
      const shard = /^sim\.shard\.(\d+)/.exec(id)?.[1];
      return this.#shards[Number(shard)]?.oracle ?? null;
    };
    const topics = Object.fromEntries(
      topicsOf({ prefix }).map((topic) => [topic, partitionsOf(topic, { prefix, shards })]),
    );
    const brokers = new Brokers(course, witnessOf, topics);
    this.#scene = {
      ...{ course, brokers, groups: new Groups(course), shards, processes: [] },
      clocks: this.traits.clocks,
      killed: (process, part) => {
        this.#kills += 1;
        const n = this.#scene.processes.indexOf(process);
        if (part.life === process.life && n >= 0) this.#startSoon(n);
      },
    };
  }

  async run(): Promise<Verdict> {
    for (let n = 0; n < this.traits.processes; n += 1) this.#start(n);
    this.#grow();
    this.#trouble();
    await this.#until(troubleMs, () => false);
    this.#isTroubled = false;
    this.#course.tell('all is well from here on');
    this.#scene.brokers.isOut = false;
    // Faults end by themselves.
    await this.#until(troubleMs + faultMsMax, () => false);
    await this.#settle('all was well');
    await this.#disturb();
    for (const process of this.#scene.processes) {
      for (const { life } of process?.parts ?? []) end(life);
    }
    const sum = (of: 'requests' | 'records') =>
      this.#shards.reduce((all, { upstream }) => all + upstream[of], 0);
    return {
      ...{ seed: this.#seed, traits: this.traits, findings: this.#findings },
      ...{ requests: sum('requests'), records: sum('records'), crashes: this.#kills },
    };
  }

  async #until(until: number, isDone: () => boolean): Promise<void> {
    while (this.#findings.length === 0 && !isDone() && (await this.#course.step(until))) {
      for (const { oracle, upstream } of this.#shards) oracle.asked(upstream.tooMany);
    }
  }

  /** All records arrive, and then nothing changes any more. */
  async #settle(since: string): Promise<void> {
    const begun = this.#course.now;
    let owed: readonly string[] = [];
    const isDone = () => {
      owed = this.#owed();
      return owed.length === 0;
    };
    await this.#until(begun + wellWithinMs, isDone);
    if (this.#findings.length > 0) return;
    if (owed.length > 0) {
      const late = owed.map((what) => `${wellWithinMs} ms after ${since} ${what}`);
      this.#findings.push(...late.slice(0, findingsMax));
      return;
    }
    this.#course.tell(`settled ${this.#course.now - begun} ms after ${since}`);
    await this.#until(this.#course.now + forgottenMs, () => false);
    this.#sharing.mode = { mayEnd: () => false, inOrder: false };
    await this.#until(this.#course.now + quietMs, () => false);
  }

  /** The conditions that do not hold at the end. */
  #owed(): readonly string[] {
    const { processes } = this.#scene;
    const missing = this.#shards.flatMap(({ shard, oracle, upstream }) => [
      ...oracle.missing(upstream.records),
      ...(this.#isServed(shard) ? [] : [`no process works on shard ${shard}`]),
    ]);
    if (processes.includes(null)) return [...missing, 'a process is not there'];
    return this.#isUneven() ? [...missing, 'one has two shards more than another'] : missing;
  }

  /** The life to which the group has assigned the shard. */
  #isServed(shard: number): boolean {
    const worker = this.#sharing.workerOf(shard);
    const owner = this.#scene.processes.find((one) => one?.life.name === this.#ownerOf(shard));
    return worker !== null && (owner?.parts.some(({ life }) => life === worker) ?? false);
  }

  #ownerOf(shard: number): string | null {
    return this.#scene.groups.seen(ownersOf({ prefix })).ownerOf(shard);
  }

  #isUneven(): boolean {
    const owners = this.#shards.map(({ shard }) => this.#ownerOf(shard));
    const loads = this.#scene.processes.map(
      (process) => owners.filter((owner) => owner === process?.life.name).length,
    );
    return Math.max(...loads) - Math.min(...loads) > 1;
  }

  /** An orderly change, or a fault of one shard. */
  async #disturb(): Promise<void> {
    if (this.#findings.length > 0) return;
    const { course, processes, shards } = this.#scene;
    const { random } = course;
    const shard = random.below(shards);
    const worker = this.#sharing.workerOf(shard);
    const ofWorker = processes.find((one) => one?.parts.some(({ life }) => life === worker));
    const parts = ofWorker?.parts ?? [];
    const part = parts.find(({ life }) => life === worker);
    const leaves = {
      inOrder: true,
      mayEnd: (_: number, life: Life) => parts.some((one) => one.life === life),
    };
    const joins = { inOrder: true, mayEnd: () => false };
    const all = { inOrder: false, mayEnd: () => true };
    // All shards of its worker end with it.
    const ofPart = { inOrder: false, mayEnd: (_: number, life: Life) => life === worker };
    const events = [
      ['one is asked to end', leaves, () => ofWorker?.stop()],
      ['another one joins', joins, () => this.#start(processes.length)],
      ['the coordinator falls out', all, () => dropCoordinator(this.#scene, 3 * sessionMs)],
      ['the worker of a shard is killed', ofPart, () => part?.kill()],
      [
        'the worker of a shard is frozen',
        ofPart,
        () => {
          if (part) part.life.stoppedUntil = Number.POSITIVE_INFINITY;
        },
      ],
    ] as const;
    const [what, mode, happen] = random.pick(shards === 1 ? events.slice(0, 2) : events);
    course.tell(`${what}: shard ${shard}`);
    this.#sharing.mode = mode;
    happen();
    // The affected process must notice first.
    await this.#until(course.now + forgottenMs, () => false);
    await this.#settle(what);
  }

  #grow(): void {
    if (!this.#isTroubled) return;
    const { random } = this.#course;
    for (const { upstream } of this.#shards) upstream.records += random.below(3);
    this.#course.after(this.traits.growEveryMs, null, () => this.#grow());
  }

  #start(n: number): void {
    this.#lives += 1;
    const life: Life = {
      ...{ name: `p${n}-${this.#lives}-of-${this.#seed}`, isAlive: true },
      machine: { aheadMs: 0, asleepMs: 0 },
      ...{ stoppedUntil: 0, cutFromKafkaUntil: 0, cutFromUpstreamUntil: 0 },
    };
    const { named, shards } = this.traits;
    const { course, brokers, groups, processes } = this.#scene;
    networks.set(life.name, {
      ...{ course, brokers, groups, life, hearsNames: named },
      isTroubled: () => this.#isTroubled,
    });
    const configEnv = { course, shards: this.#shards, sharing: this.#sharing };
    const name = named ? `name-${n}` : undefined;
    const process =
      shards === 1
        ? new LoneProcess(life, configEnv, name)
        : new KeepingProcess(life, configEnv, name ?? life.name);
    processes[n] = process;
    course.tell(`${life.name} begins`);
    void process.run().then(() => {
      if (processes[n] === process) this.#startSoon(n);
    });
  }

  #startSoon(n: number): void {
    this.#scene.processes[n] = null;
    this.#course.after(200 + this.#course.random.below(4_000), null, () => this.#start(n));
  }

  #trouble(): void {
    const { random } = this.#course;
    this.#course.after(random.below(2 * this.traits.faultEveryMs), null, () => {
      if (!this.#isTroubled) return;
      fault(this.#scene);
      this.#trouble();
    });
  }
}

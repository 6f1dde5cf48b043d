// One seed: a cluster of processes on a modelled Kafka, and what happens to them: killed, stopped,
// cut from Kafka or from upstream, asked to end, while answers are late or lost, brokers fall out,
// the state is compacted, and somebody else's transaction hangs in it. Everything is drawn from the
// seed. Then all is well, and what is owed has to arrive.

import { topicsOf } from '../../../src/cluster/log/topics.ts';
import { Random } from '../../../src/sandbox/random.ts';
import type { Tell, Verdict } from '../verdict.ts';
import { Brokers, type Producing } from './broker.ts';
import { Course, type Life } from './course.ts';
import { Group } from './group.ts';
import { networks } from './kafka.ts';
import { Oracle } from './oracle.ts';
import { Process, prefix } from './process.ts';
import { Upstream } from './upstream.ts';

const troubleMs = 40_000;
/** Longer than a transaction is left open, than a session, and than Kafka is waited for in one go. */
const wellWithinMs = 150_000;

/** Runs one seed; `tell` is told each step. */
export async function runCluster(seed: number, tell: Tell = () => undefined): Promise<Verdict> {
  const world = new ClusterWorld(seed, tell);
  tell(JSON.stringify(world.traits));
  return await world.run();
}

class ClusterWorld {
  readonly traits: {
    readonly processes: number;
    readonly named: boolean;
    readonly faultEveryMs: number;
    readonly growEveryMs: number;
  };
  readonly #seed: number;
  readonly #course: Course;
  readonly #oracle: Oracle;
  readonly #brokers: Brokers;
  readonly #group: Group;
  readonly #upstream: Upstream;
  readonly #processes: (Process | null)[] = [];
  #isTroubled = true;
  #kills = 0;
  #lives = 0;
  #strangers = 0;

  constructor(seed: number, tell: Tell) {
    const random = new Random(seed, 1);
    this.traits = {
      processes: 2 + random.below(2),
      named: random.chance(0.3),
      faultEveryMs: random.pick([1_500, 4_000, 8_000]),
      // Who has nothing to write does not hear from the log that it was put out.
      growEveryMs: random.pick([8_000, 700, 700]),
    };
    this.#seed = seed;
    this.#course = new Course(new Random(seed, 2), tell);
    this.#oracle = new Oracle(`${prefix}.shard.0`);
    const topics = topicsOf(prefix);
    this.#brokers = new Brokers(this.#course, this.#oracle, topics);
    this.#group = new Group(this.#course);
    this.#upstream = new Upstream(this.#course);
  }

  async run(): Promise<Verdict> {
    const { findings } = this.#oracle;
    for (let n = 0; n < this.traits.processes; n += 1) this.#start(n);
    this.#grow();
    this.#trouble();
    await this.#until(troubleMs, () => false);
    this.#isTroubled = false;
    this.#course.tell('all is well from here on');
    this.#brokers.isOut = false;
    const end = troubleMs + wellWithinMs;
    const isDone = () => this.#oracle.hasAll(this.#upstream.records);
    await this.#until(end, isDone);
    if (findings.length === 0 && !isDone()) {
      this.#oracle.late(this.#upstream.records, wellWithinMs);
    }
    for (const process of this.#processes) if (process) this.#forget(process.life);
    return {
      ...{ seed: this.#seed, traits: this.traits, findings },
      ...{ requests: this.#upstream.requests, records: this.#upstream.records },
      crashes: this.#kills,
    };
  }

  async #until(end: number, isDone: () => boolean): Promise<void> {
    const { findings } = this.#oracle;
    while (findings.length === 0 && !isDone() && (await this.#course.step(end))) {
      this.#oracle.asked(this.#upstream.tooMany);
    }
  }

  #grow(): void {
    if (!this.#isTroubled) return;
    this.#upstream.records += this.#course.random.below(3);
    this.#course.after(this.traits.growEveryMs, null, () => this.#grow());
  }

  #start(n: number): void {
    this.#lives += 1;
    const life: Life = {
      ...{ name: `p${n}-${this.#lives}-of-${this.#seed}`, isAlive: true },
      ...{ stoppedUntil: 0, cutFromKafkaUntil: 0, cutFromUpstreamUntil: 0 },
    };
    const [course, brokers, group] = [this.#course, this.#brokers, this.#group];
    networks.set(life.name, {
      ...{ course, brokers, group, life },
      isTroubled: () => this.#isTroubled,
    });
    const around = { course, upstream: this.#upstream, oracle: this.#oracle };
    const process = new Process(life, around, this.traits.named ? `name-${n}` : undefined);
    this.#processes[n] = process;
    course.tell(`${life.name} begins`);
    void process.run().then(() => {
      if (this.#processes[n] === process) this.#startSoon(n);
    });
  }

  #startSoon(n: number): void {
    this.#processes[n] = null;
    this.#course.after(200 + this.#course.random.below(4_000), null, () => this.#start(n));
  }

  #forget(life: Life): void {
    life.isAlive = false;
    networks.delete(life.name);
  }

  #trouble(): void {
    const { random } = this.#course;
    this.#course.after(random.below(2 * this.traits.faultEveryMs), null, () => {
      if (!this.#isTroubled) return;
      this.#fault();
      this.#trouble();
    });
  }

  #fault(): void {
    const { random, now } = this.#course;
    const n = random.below(this.#processes.length);
    const process = this.#processes[n];
    const ms = random.pick([300, 2_000, 5_000, 9_000, 15_000]) + random.below(1_000);
    const what = random.below(9);
    const names = ['killed', 'killed', 'stopped', 'stopped', 'cut from Kafka', 'cut from upstream'];
    const said = [...names, 'asked to end', 'the brokers fall out', 'a stranger hangs'][what];
    this.#course.tell(`${said}: ${process?.life.name}, ${ms} ms`);
    this.#brokers.log(`${prefix}.state`).compact();
    if (what === 7) {
      this.#brokers.isOut = true;
      this.#course.after(ms / 2, null, () => {
        this.#brokers.isOut = false;
      });
    } else if (what === 8) void this.#hang();
    else if (process) {
      const { life } = process;
      if (what < 2) {
        this.#kills += 1;
        this.#forget(life);
        this.#startSoon(n);
      } else if (what < 4) life.stoppedUntil = now + ms;
      else if (what === 4) life.cutFromKafkaUntil = now + ms;
      else if (what === 5) life.cutFromUpstreamUntil = now + ms;
      else process.stop();
    }
  }

  /** Another writer begins a transaction in the state, and is never heard of again. */
  async #hang(): Promise<void> {
    const name = `${prefix}.state`;
    this.#strangers += 1;
    const by: Producing = await this.#brokers.begin(`stranger-${this.#strangers}`);
    await this.#brokers.addPartitions(by, [name]);
    const key = Buffer.from(JSON.stringify(['stranger']));
    this.#brokers.produce(by, name, [{ key, value: Buffer.from('0') }]);
  }
}

// One run of a process of a simulated cluster whose state has several shards: the real supervisor of
// shards with its real pool of workers, and the real turns of shards in each worker.

import { parseConfig } from '../../../src/config/config.ts';
import { ofShard } from '../../../src/config/shards.ts';
import { ShardSupervisor } from '../../../src/run/shard-supervisor.ts';
import { type HostedTurn, serveTurns } from '../../../src/run/shard-worker.ts';
import type { Life } from './course.ts';
import { networks } from './kafka.ts';
import { Child, machines, startedBy } from './machine.ts';
import {
  end,
  logOf,
  type Part,
  type Process,
  port,
  prefix,
  type Surroundings,
  sessionMs,
} from './process.ts';
import { Work } from './work.ts';

/** With upstreams of these names, each of two, three or four shards has some. */
const upstreams = ['u0', 'u1', 'u2', 'u5', 'u6'];
/** Start time of a worker. */
const beginMsMax = 1_000;
const workers = 2;

/** The config of a state with this number of shards. */
function configOf(shards: number) {
  const auth = (name: string) => `{ client_id: ${name}, client_secret: s, scope: 'events:read' }`;
  const text = `
state: { dir: ./sim, kafka: { brokers: ['sim:${port}'], prefix: ${prefix}, shards: ${shards}, session_timeout: ${sessionMs}ms } }
upstreams:
${upstreams.map((name) => `  ${name}: { api: unified, ends: never, base_url: 'https://${name}.example', auth: ${auth(name)} }`).join('\n')}
sources:
${upstreams.map((name) => `  ${name}: { type: audit_events, upstream: ${name} }`).join('\n')}
sinks:
  disk: { type: file, path: './{partition}.ndjson', format: json }
`;
  return parseConfig(text, '/sim/sluice.yaml', { env: {} });
}

const configs = new Map([2, 3, 4].map((shards) => [shards, configOf(shards)]));

/** A process that can run all shards. */
export class KeepingProcess implements Process {
  readonly life: Life;
  readonly #around: Surroundings;
  readonly #supervisor: ShardSupervisor;
  readonly #stop = new AbortController();
  readonly #config: ReturnType<typeof configOf>;
  readonly #children = new Set<Child>();
  #begun = 0;

  constructor(life: Life, configEnv: Surroundings, instance: string) {
    const { course, shards } = configEnv;
    const config = configs.get(shards.length);
    if (!config?.state.kafka) throw new RangeError(`no config has ${shards.length} shards`);
    const kafka = { ...config.state.kafka, brokers: [{ host: life.name, port }], instance };
    this.life = life;
    this.#around = configEnv;
    this.#config = { ...config, state: { ...config.state, kafka } };
    machines.set(life.name, () => this.#begin());
    this.#supervisor = new ShardSupervisor({
      ...{ config: this.#config, env: { [startedBy]: life.name }, args: [], once: false, workers },
      drains: { isDrained: () => false, orDrained: (stop) => stop },
      ...{ removalAllowed: false, clock: course.clockOf(life), log: logOf(course, life) },
    });
  }

  get parts(): readonly Part[] {
    const own = { life: this.life, kill: () => this.#end() };
    const others = [...this.#children].filter(({ life }) => life.isAlive);
    return [own, ...others.map((one) => ({ life: one.life, kill: () => one.kill('SIGKILL') }))];
  }

  async run(): Promise<void> {
    try {
      await this.#supervisor.run(this.#stop.signal);
    } catch (error) {
      this.#around.course.tell(`${this.life.name} ends: ${String(error)}`);
    }
    this.#end();
  }

  stop(): void {
    this.#stop.abort(new Error('it was asked to end'));
  }

  #end(): void {
    end(this.life);
    machines.delete(this.life.name);
    for (const child of this.#children) child.abandon();
  }

  #begin(): Child {
    const { course } = this.#around;
    this.#begun += 1;
    const life: Life = { ...this.life, name: `${this.life.name}.${this.#begun}`, isAlive: true };
    const network = networks.get(this.life.name);
    if (network !== undefined) networks.set(life.name, { ...network, life });
    const child = new Child(course, this.life, life);
    this.#children.add(child);
    child.on('exit', () => this.#children.delete(child));
    course.after(100 + course.random.below(beginMsMax), life, () => {
      const clock = course.clockOf(life);
      serveTurns((turn) => this.#work(child, turn), { own: child.own, clock });
    });
    return child;
  }

  /** Does the same as a journey in a worker (src/run/host-shards.ts). */
  async #work(child: Child, turn: HostedTurn): Promise<number> {
    const { course, shards, sharing } = this.#around;
    const { life } = child;
    const { shard } = turn;
    const clock = course.clockOf(life);
    const log = logOf(course, life);
    const of = shards.find((one) => one.shard === shard);
    const { kafka } = ofShard(this.#config, shard).state;
    if (of === undefined || kafka === null) throw new Error('it has no shard');
    const settings = { ...kafka, brokers: [{ host: life.name, port }] };
    const work = new Work({ ...of, course, life, sharing, settings, log });
    let code = 0;
    const membership = turn.membership(sessionMs, { clock, log }, (why) => {
      course.tell(`${life.name} has lost shard ${shard}: ${String(why)}`);
      sharing.ends(shard, life);
      child.end(1, null);
    });
    turn.stop.addEventListener('abort', () => work.stop(turn.stop.reason));
    if (turn.stop.aborted) work.stop(turn.stop.reason);
    try {
      await work.run(membership);
    } catch (error) {
      course.tell(`${life.name} ends shard ${shard}: ${String(error)}`);
      if (!turn.stop.aborted) code = 1;
      sharing.ends(shard, life);
    }
    await work.close();
    await membership.close();
    return code;
  }
}

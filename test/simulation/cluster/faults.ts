// Faults of a simulated cluster: processes are killed, stopped, cut off from Kafka or from upstream, or
// stopped in order: all processes of a machine, or one of them. Brokers and the coordinator of a group
// fail, and a transaction of another writer stays open.

import { ownersOf } from '../../../src/cluster/log/settings.ts';
import type { Brokers, Producing } from './broker.ts';
import type { Course } from './course.ts';
import type { Groups } from './group.ts';
import { type Part, type Process, prefix } from './process.ts';

/** The parts that can fail. */
export interface Scene {
  readonly course: Course;
  readonly brokers: Brokers;
  readonly groups: Groups;
  readonly shards: number;
  /** Some clocks may be set, or stop while a machine is stopped. */
  readonly clocks: 'right' | 'set' | 'asleep';
  readonly processes: readonly (Process | null)[];
  /** A part of a process has been killed. */
  killed(process: Process, part: Part): void;
}

const kinds = [
  ...['killed', 'killed', 'stopped', 'stopped', 'cut from Kafka', 'cut from upstream'],
  ...['asked to end', 'the brokers fall out', 'a stranger hangs'],
] as const;
/** Faults of a state with several shards. */
const moreKinds = [...kinds, 'the coordinator falls out', 'frozen'] as const;

/** No fault lasts longer, except those that another fault ends. */
export const faultMsMax = 16_000;

/** Runs one fault. */
export function fault(scene: Scene): void {
  const { course, brokers, shards, processes, clocks } = scene;
  const { random } = course;
  const process = random.pick(processes);
  const ms = random.pick([300, 2_000, 5_000, 9_000, faultMsMax - 1_000]) + random.below(1_000);
  const kind = random.pick<string>(shards === 1 ? kinds : moreKinds);
  const parts = process === null ? [] : partsOf(process, scene);
  if (clocks === 'set' && process !== null && random.chance(0.3)) {
    process.life.machine.aheadMs = random.pick([-3_600_000, -5_000, 5_000, 3_600_000]);
  }
  course.tell(`${kind}: ${parts.map(({ life }) => life.name).join(' ')}, ${ms} ms`);
  const shard = shards === 1 ? 0 : random.below(shards);
  brokers.log(`${prefix}.state`, shard).compact();
  if (kind === 'the brokers fall out') {
    brokers.isOut = true;
    course.after(ms / 2, null, () => {
      brokers.isOut = false;
    });
  } else if (kind === 'a stranger hangs') void hang(scene, shard);
  else if (kind === 'the coordinator falls out') dropCoordinator(scene, ms);
  else if (process !== null) befall(kind, process, parts, ms, scene);
}

/** The group has no coordinator for some time. */
export function dropCoordinator({ groups, course }: Scene, ms: number) {
  const owners = ownersOf({ prefix });
  groups.out.add(owners);
  course.after(ms, null, () => groups.out.delete(owners));
}

/** Lives of a machine: all, the supervisor, or a worker. */
function partsOf(process: Process, { course: { random }, shards }: Scene): readonly Part[] {
  const { parts } = process;
  if (shards === 1 || random.chance(0.4)) return parts;
  return [random.pick(parts)];
}

function befall(
  kind: string,
  process: Process,
  parts: readonly Part[],
  ms: number,
  { course: { now }, killed, clocks }: Scene,
): void {
  if (kind === 'asked to end') process.stop();
  // The monotonic clock continues if only processes are stopped.
  if (kind === 'stopped' && clocks === 'asleep' && parts.length === process.parts.length) {
    const { machine, stoppedUntil } = process.life;
    machine.asleepMs += Math.max(0, now + ms - Math.max(now, stoppedUntil));
  }
  for (const part of parts) {
    const { life } = part;
    if (kind === 'killed') {
      part.kill();
      killed(process, part);
    } else if (kind === 'stopped') life.stoppedUntil = Math.max(life.stoppedUntil, now + ms);
    else if (kind === 'cut from Kafka') life.cutFromKafkaUntil = now + ms;
    else if (kind === 'cut from upstream') life.cutFromUpstreamUntil = now + ms;
    // Only a worker is watched by another process.
    else if (kind === 'frozen' && life !== process.life) {
      life.stoppedUntil = Number.POSITIVE_INFINITY;
    }
  }
}

/** Another writer starts a transaction in the state, and never ends the transaction. */
async function hang({ brokers, course }: Scene, shard: number): Promise<void> {
  const log = brokers.log(`${prefix}.state`, shard);
  const by: Producing = await brokers.begin(`stranger-${course.now}`);
  await brokers.addPartitions(by, [log]);
  const key = Buffer.from(JSON.stringify(['stranger']));
  brokers.produce(by, log, [{ key, value: Buffer.from('0') }]);
}

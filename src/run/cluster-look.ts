// A view of a whole state in Kafka, from any machine: the processes of the group with their shards, and the committed status of
// streams and sinks. Invariants: owners are not disturbed; Kafka gets few requests, since copies continue from their last
// position, and the state of an own shard is on the local disk.

import { rmSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { type MemberSettings, processName } from '../cluster/index.ts';
import {
  askForProcesses,
  type ClusterProcess,
  clusterError,
  OwnerQuery,
  processText,
  StateCopy,
} from '../cluster/kafka.ts';
import { type Config, inShards } from '../config/index.ts';
import type { Clock } from '../contracts/index.ts';
import { lookInto } from '../hold/index.ts';
import { cleanText, timeText } from '../tools/index.ts';
import { readState, type StoredStatus, streamsAndSinks } from '../watch/index.ts';
import {
  type ClusterSight,
  type ClusterStatus,
  type FencedProcess,
  joinedSinks,
  joinedStatus,
  type ProcessStatus,
} from '../watch/running-status.ts';
import { type ClusterNote, clusterNote } from './cluster.ts';
import type { WholePlan } from './plan.ts';
import { planToLook } from './plan-to-look.ts';
import { differencesAmong } from './watch-configs.ts';

/** Dependencies of a look. */
export interface LookDeps {
  /** A config with its state in Kafka; another one after a reload. */
  readonly config: () => Config;
  /** A directory for this look only: it has the copies, and is removed at the end. */
  readonly scratch: string;
  readonly clock: Clock;
}

interface Part {
  readonly config: Config;
  readonly kafka: MemberSettings;
  readonly plan: WholePlan;
}

const nameLengthMax = 200;
const differencesLengthMax = 1_000;

/** Looks at all shards, one after the other. */
export class ClusterLook implements ClusterSight {
  readonly #deps: LookDeps;
  #asking: OwnerQuery | null = null;
  readonly #copies = new Map<number, StateCopy>();
  /** Number of calls of `close`: a look that runs at one stops. */
  #closed = 0;
  #planned: { readonly config: Config; readonly parts: readonly Part[] } | null = null;

  constructor(deps: LookDeps) {
    this.#deps = deps;
  }

  async look(): Promise<ClusterStatus> {
    const config = this.#deps.config();
    const closed = this.#closed;
    try {
      const parts = await this.#parts(config);
      const processes = await this.#processes(parts);
      const seen: SeenShard[] = [];
      for (const part of parts) {
        if (this.#closed > closed) throw new Error('no reader any more');
        seen.push(await this.#seen(part, processes));
      }
      return joined(config, seen, processes);
    } catch (error) {
      if (this.#closed === closed) this.close();
      throw clusterError(error, `looking at the state ${config.state.kafka?.prefix}`);
    }
  }

  close(): void {
    this.#closed += 1;
    this.#asking?.close();
    this.#asking = null;
    for (const copy of this.#copies.values()) copy.close();
    this.#copies.clear();
    rmSync(this.#deps.scratch, { recursive: true, force: true });
  }

  async #parts(config: Config): Promise<readonly Part[]> {
    if (this.#planned?.config === config) return this.#planned.parts;
    const parts: Part[] = [];
    for (const part of inShards(config)) {
      const { kafka } = part.state;
      if (kafka !== null) parts.push({ config: part, kafka, plan: await planToLook(part) });
    }
    this.#planned = { config, parts };
    return parts;
  }

  async #processes([part]: readonly Part[]): Promise<readonly ClusterProcess[]> {
    if (part === undefined) return [];
    const { clock } = this.#deps;
    const { kafka } = part;
    this.#asking ??= new OwnerQuery(kafka, clock);
    return await askForProcesses(this.#asking, kafka, { clock, waitMs: kafka.sessionMs });
  }

  async #seen(
    { config, kafka, plan }: Part,
    processes: readonly ClusterProcess[],
  ): Promise<SeenShard> {
    const shard = kafka.shard ?? 0;
    const works = processes.find(({ owns }) => owns.includes(shard));
    const isOwn = works !== undefined && isThis(works, kafka);
    const dir = isOwn ? config.state.dir : await this.#copied(shard, kafka);
    if (isOwn) this.#forget(shard);
    const holder = works === undefined ? null : processText(works);
    const statusView = streamsAndSinks(readState(dir, isOwn ? undefined : { holder }), {
      ...{ plan, state: { ...config.state, dir }, refused: null },
    });
    return {
      shard,
      isOwned: works !== undefined,
      standing: statusView,
      note: lookInto(dir, null, clusterNote),
    };
  }

  async #copied(shard: number, kafka: MemberSettings): Promise<string> {
    const { scratch, clock } = this.#deps;
    const dir = join(scratch, `shard-${shard}`);
    const copy = this.#copies.getOrInsertComputed(shard, () => new StateCopy(kafka, dir, clock));
    await copy.catchUp();
    return dir;
  }

  #forget(shard: number): void {
    this.#copies.get(shard)?.close();
    this.#copies.delete(shard);
  }
}

function isThis({ process: name, host, pid }: ClusterProcess, kafka: MemberSettings): boolean {
  return name === processName(kafka) && host === hostname() && pid === process.pid;
}

/** A shard, as seen from outside. */
interface SeenShard {
  readonly shard: number;
  readonly isOwned: boolean;
  readonly standing: StoredStatus;
  readonly note: ClusterNote | null;
}

/** All shards together. */
function joined(
  { state: { kafka } }: Config,
  seen: readonly SeenShard[],
  processes: readonly ClusterProcess[],
): ClusterStatus {
  const { prefix = '', shards = 1 } = kafka ?? {};
  const { streams, sinks } = joinedStatus(seen.map(({ standing: statusView }) => statusView));
  const unowned = seen.filter(({ isOwned }) => !isOwned);
  return {
    prefix,
    ...(shards > 1 && { shards }),
    processes: processes
      .map((one) => processOf(one, seen, shards))
      .sort((a, b) => order.indexOf(a.state) - order.indexOf(b.state)),
    config_differences:
      kafka === null
        ? []
        : differencesAmong(processes, kafka, processText).map((text) =>
            cleanText(text, differencesLengthMax),
          ),
    takeovers: seen.reduce((sum, { note }) => sum + (note?.takeovers ?? 0), 0),
    fenced: fencedIn(seen, processes, shards),
    unowned:
      unowned.length === 0
        ? null
        : { shards: unowned.map(({ shard }) => shard), sinks: sinksIn(unowned) },
    ...{ streams, sinks },
  };
}

const order: readonly ProcessStatus['state'][] = ['working', 'starting', 'standing by', 'drained'];

function processOf(one: ClusterProcess, seen: readonly SeenShard[], shards: number): ProcessStatus {
  const { instance, host, pid, address, startedAt, isDrained } = one;
  const owned = seen.filter(({ shard }) => one.owns.includes(shard));
  // Each owner writes a note after its worker has opened the state.
  const isNoted = ({ note }: SeenShard) =>
    note !== null && note.host === host && note.pid === pid && note.ended !== true;
  const since = owned.filter(isNoted).flatMap(({ note }) => note?.since ?? []);
  const notRunning = owned.filter((shard) => !isNoted(shard)).map(({ shard }) => shard);
  const rests = isDrained ? 'drained' : 'standing by';
  return {
    instance: instance && cleanText(instance, nameLengthMax),
    host: host && cleanText(host, nameLengthMax),
    ...{ pid, address: cleanText(address, nameLengthMax) },
    state: since.length > 0 ? 'working' : owned.length > 0 ? 'starting' : rests,
    ...(shards > 1 && { shards: owned.map(({ shard }) => shard) }),
    ...(notRunning.length > 0 && { not_running: notRunning }),
    started_at: timeText(startedAt),
    works_since: since.length === 0 ? null : timeText(Math.min(...since)),
    sinks: sinksIn(owned),
  };
}

function sinksIn(seen: readonly SeenShard[]): StoredStatus['sinks'] {
  return joinedSinks(seen.map(({ standing: statusView }) => statusView));
}

/** Processes that were replaced and have not joined again. */
function fencedIn(
  seen: readonly SeenShard[],
  processes: readonly ClusterProcess[],
  shards: number,
): readonly FencedProcess[] {
  const all = seen.flatMap(({ shard, note }) => {
    const one = note?.fenced;
    if (!note || !one) return [];
    const isBack = processes.some(({ host, pid }) => host === one.host && pid === one.pid);
    return isBack ? [] : [{ ...one, shard, at: note.since }];
  });
  return [...Map.groupBy(all, ({ host, pid }) => `${pid} ${host}`).values()].map((of) => {
    const [{ instance, host, pid }] = of as [(typeof all)[number]];
    return {
      instance: instance && cleanText(instance, nameLengthMax),
      ...{ host: cleanText(host, nameLengthMax), pid },
      ...(shards > 1 && { shards: of.map(({ shard }) => shard) }),
      at: timeText(Math.max(...of.map(({ at }) => at))),
    };
  });
}

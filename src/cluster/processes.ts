// The processes of a state in Kafka: the members of the group of owners, each with the description that it has sent when it
// joined. Invariant: nothing is changed.

import type { Clock, JsonObject } from '../contracts/index.ts';
import { shareIn } from './assignment.ts';
import { type ConfigPrint, parsedPrint } from './config-print.ts';
import { clusterError } from './failure.ts';
import { ownersOf, type StateLogSettings } from './log/settings.ts';
import { type DescribedGroup, OwnerQuery } from './queries.ts';

/** A process's description of itself; null: a field that another version does not have. */
export interface SelfDescription {
  readonly host: string | null;
  readonly pid: number | null;
  /** Epoch milliseconds. */
  readonly startedAt: number | null;
  /** Its deployment (`MemberSettings.deployment`). */
  readonly deployment: readonly string[];
  /** The fingerprint of its config; null: none. */
  readonly print: ConfigPrint | null;
  /** Its name (`processName`). */
  readonly process: string | null;
}

/** One process. */
export interface ClusterProcess extends SelfDescription {
  /** `state.kafka.instance`; null: not set. */
  readonly instance: string | null;
  /** Its address as the brokers see it. */
  readonly address: string;
  /** The shards that it owns. */
  readonly owns: readonly number[];
  /** It owns a shard; otherwise it is on standby. */
  readonly works: boolean;
  /** It has reported that it is drained. */
  readonly isDrained: boolean;
}

const unsettled = new Set(['PreparingRebalance', 'CompletingRebalance']);
const pauseMs = 200;

/** All processes, owners first. Throws `sink_unreachable` or `sink_refused`. */
export async function processesOf(
  settings: StateLogSettings,
  clock: Clock,
): Promise<readonly ClusterProcess[]> {
  using asking = new OwnerQuery(settings, clock);
  return await askForProcesses(asking, settings, { clock, waitMs: 0 });
}

/**
 * The same with an open query, for repeated looks. During a rebalance brokers send neither descriptions nor assignments:
 * waits up to `waitMs` for its end.
 */
export async function askForProcesses(
  asking: OwnerQuery,
  settings: StateLogSettings,
  { clock, waitMs }: { readonly clock: Clock; readonly waitMs: number },
): Promise<readonly ClusterProcess[]> {
  const id = ownersOf(settings);
  const deadline = clock.monotonic() + waitMs;
  try {
    let group = await asking.group(id);
    while (unsettled.has(group?.groupState ?? '') && clock.monotonic() < deadline) {
      await clock.sleep(pauseMs);
      group = await asking.group(id);
    }
    return (group?.members ?? [])
      .map(processOf)
      .sort(
        (a, b) => Number(b.works) - Number(a.works) || processText(a).localeCompare(processText(b)),
      );
  } catch (error) {
    throw clusterError(error, `reading the group ${id}`);
  }
}

/** A process as messages name it. */
export function processText({ instance, pid, host, address }: ClusterProcess): string {
  const where = `process ${pid ?? 'unknown'} on ${host ?? address}`;
  return instance === null ? where : `${instance}, ${where}`;
}

function processOf(member: DescribedGroup['members'][number]): ClusterProcess {
  const owns = shareIn(member.memberAssignment).shards;
  return {
    instance: member.groupInstanceId ?? null,
    address: member.clientHost.replace(/^\//, ''),
    ...{ owns, works: owns.length > 0 },
    ...said(member.memberMetadata),
  };
}

/** Other programs may join: a description in another form counts as empty. */
function said(metadata: Buffer): SelfDescription & Pick<ClusterProcess, 'isDrained'> {
  let reported: JsonObject = {};
  try {
    const parsed: unknown = JSON.parse(metadata.toString());
    if (typeof parsed === 'object' && parsed !== null) reported = parsed as JsonObject;
  } catch {
    // The defaults below.
  }
  const { host, pid, startedAt, deployment, isDrained, process, print } = reported;
  return {
    isDrained: isDrained === true,
    print: parsedPrint(print),
    host: typeof host === 'string' ? host : null,
    pid: typeof pid === 'number' ? pid : null,
    process: typeof process === 'string' ? process : null,
    startedAt: typeof startedAt === 'number' && isTime(startedAt) ? startedAt : null,
    deployment: Array.isArray(deployment) ? deployment.map(String) : [],
  };
}

/** Whether a date has this time. */
function isTime(at: number): boolean {
  return !Number.isNaN(new Date(at).getTime());
}

// The processes of a state in Kafka: the members of the group of owners, with what each has said of
// itself when it joined. Looking changes nothing there.

import type { Clock, JsonObject } from '../contracts/index.ts';
import { shareIn } from './assignment.ts';
import { type ConfigPrint, parsedPrint } from './config-print.ts';
import { clusterError } from './failure.ts';
import { ownersOf, type StateLogSettings } from './log/settings.ts';
import { type DescribedGroup, OwnerQuery } from './queries.ts';

/** What a process says of itself; of what another version says, nulls. */
export interface SelfDescription {
  readonly host: string | null;
  readonly pid: number | null;
  /** Epoch milliseconds. */
  readonly startedAt: number | null;
  /** Whose work it does (`MemberSettings.deployment`). */
  readonly deployment: readonly string[];
  /** What it says of its config; null: nothing. */
  readonly print: ConfigPrint | null;
  /** Its name (`processName`). */
  readonly process: string | null;
}

/** One of them. */
export interface ClusterProcess extends SelfDescription {
  /** `state.kafka.instance`; null: it was given none. */
  readonly instance: string | null;
  /** From where it speaks to the brokers. */
  readonly address: string;
  /** The shards that it owns. */
  readonly owns: readonly number[];
  /** It owns any; else it stands by. */
  readonly works: boolean;
  /** It has told the group that it is to own nothing. */
  readonly isDrained: boolean;
}

const unsettled = new Set(['PreparingRebalance', 'CompletingRebalance']);
const pauseMs = 200;

/** All of them, who works first. Throws `sink_unreachable` or `sink_refused`. */
export async function processesOf(
  settings: StateLogSettings,
  clock: Clock,
): Promise<readonly ClusterProcess[]> {
  const asking = new OwnerQuery(settings, clock);
  try {
    return await askForProcesses(asking, settings, { clock, waitMs: 0 });
  } finally {
    asking.close();
  }
}

/**
 * The same for whoever asks again and again. While members come and go brokers tell neither what one
 * has said nor what it has: until the group is settled is waited for as long as that.
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

/** Others may write there: what is not as we write it is not known. */
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

/** Of what no date can be made it cannot be told. */
function isTime(at: number): boolean {
  return !Number.isNaN(new Date(at).getTime());
}

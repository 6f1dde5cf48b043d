// Beside other processes with a state in Kafka: who may join them, and what is noted in the state
// of the owner, for commands on other machines.

import { existsSync } from 'node:fs';
import { hostname } from 'node:os';
import { dirname, join } from 'node:path';
import { z } from 'zod';
import { type MemberSettings, oldOwnersOf, shardNames } from '../cluster/index.ts';
import type { Control } from '../cluster/kafka.ts';
import { asExportError, type Clock, ExportError, type Spool } from '../contracts/index.ts';
import { changeState, lookInto, type Store } from '../hold/index.ts';

const note = z.object({
  host: z.string(),
  pid: z.number(),
  /** Epoch milliseconds. */
  since: z.number(),
  /** How often another process than the one before has taken it. */
  takeovers: z.number(),
  instance: z.string().nullable().default(null),
  /** It has ended in order; undefined: written by an older version. */
  ended: z.boolean().optional(),
  /** The process that had it before and has not, which can write no more. */
  fenced: z
    .object({ host: z.string(), pid: z.number(), instance: z.string().nullable() })
    .nullable()
    .default(null),
});

/** Who works, or worked last. */
export type ClusterNote = z.output<typeof note>;

const kind = 'cluster';
const owner = 'owner';
const imported = 'import';

/** What is noted; null: nothing that can be read. */
export function clusterNote(store: Store): ClusterNote | null {
  return note.safeParse(store.noted(kind).get(owner)).data ?? null;
}

const importShape = z.object({
  state: z.enum(['begun', 'done']),
  /** Stands for what is imported, and how it is shared out; an older version did not say. */
  from: z.string().optional(),
});

/** How far an import has come. */
export type ImportNote = Readonly<z.output<typeof importShape>>;

/** Notes it. */
export function noteImport(store: Store, note: ImportNote, now: number): void {
  store.note(kind, imported, JSON.stringify(note), now);
}

/** What is noted of an import into the state of a directory; null: there was none. */
export function importNote(dir: string): ImportNote | null {
  return lookInto(dir, null, importNoteIn);
}

function importNoteIn(store: Store): ImportNote | null {
  return importShape.safeParse(store.noted(kind).get(imported)).data ?? null;
}

/** The directory of an import, beside its database and as long as it runs: a killed one leaves it, also before its first write to Kafka. */
export function importScratch(dir: string): string {
  return join(dir, 'unfinished-import');
}

/** Whether a killed import has left its directory beside the cache of a state in Kafka. */
export function isImportLeft(cache: string): boolean {
  return existsSync(importScratch(dirname(cache)));
}

/** Throws `state_damaged` where an import was broken off. */
export function refuseHalf(isHalf: boolean): void {
  if (!isHalf) return;
  throw new ExportError('state_damaged', 'an import into the state in Kafka was broken off', {
    next: 'Repeat sluice cluster import, which starts again; if it reports that there is a state already, the import was complete. Nothing is lost: the source state is unchanged.',
  });
}

/** A note, and whether another process had the state before. */
export interface OwnerNoted {
  readonly note: ClusterNote;
  readonly isTakeover: boolean;
}

/** Notes that this process has the state of a directory now. Throws where that is half of one. */
export function noteOwner(dir: string, kafka: MemberSettings, now: number): OwnerNoted {
  return changeState({ dir, sync: 'none', keepMs: 0 }, (store) => {
    refuseHalf(importNoteIn(store)?.state === 'begun');
    const before = clusterNote(store);
    const { instance = null, pid } = kafka.starter ?? {
      instance: kafka.instance,
      pid: process.pid,
    };
    const self = { host: hostname(), pid, instance };
    const isTakeover = before !== null && !(before.host === self.host && before.pid === pid);
    const isReplaced = isTakeover && before.ended === false;
    const note: ClusterNote = {
      ...{ ...self, since: now, ended: false },
      takeovers: before === null ? 0 : before.takeovers + 1,
      fenced: isReplaced ? { host: before.host, pid: before.pid, instance: before.instance } : null,
    };
    store.note(kind, owner, JSON.stringify(note), now);
    return { note, isTakeover };
  });
}

/** Notes that the owner ends in order. */
export function noteEnd(spool: Spool, note: ClusterNote): void {
  spool.note(kind, owner, { ...note, ended: true });
}

/**
 * Throws `config_invalid` if the state has another number of shards than the config: an upstream would be read again in
 * another shard, and held events of its earlier shard would not be delivered. The first process of a state of several shards
 * stores their number.
 */
export async function agreeOnShards(
  settings: MemberSettings,
  control: Control,
  clock: Clock,
): Promise<void> {
  const { prefix, shards = 1 } = settings;
  const refused = (has: number) =>
    new ExportError(
      'config_invalid',
      `state.kafka.shards is ${shards}, and the state ${prefix} in Kafka has ${has}`,
      {
        next: `Set it to ${has}, or give state.kafka.prefix another name and begin a new state there. Nothing was changed.`,
      },
    );
  if (control.shards !== null && control.shards !== shards) throw refused(control.shards);
  if (control.hasOldGroups) await refuseOldGroups(settings, { clock, isClosed: false });
  if (control.shards !== null || shards === 1) return;
  const { LogClient, ensureTopics, clusterError } = await import('../cluster/kafka.ts');
  using client = new LogClient(settings, clock);
  try {
    await ensureTopics(client, settings);
    const isBegun = (await client.end(shardNames({ ...settings, shard: 0 }).state)) > 0n;
    // Another process may have said it meanwhile, and begun after that.
    await control.caughtUp();
    if (control.shards !== null && control.shards !== shards) throw refused(control.shards);
    // Of one shard nothing is said.
    if (isBegun && control.shards === null) throw refused(1);
    if (control.shards === null) await control.divide(shards);
  } catch (error) {
    throw clusterError(error, `looking for the state ${prefix}`);
  }
}

/**
 * Throws `state_locked` if processes of an older version, which had a group for each shard, are members there: beside them each
 * shard would have two owners. Throws `sink_unreachable` if Kafka does not answer for a group. `isClosed`: older versions refuse
 * the state, so the account needs no right to these groups any more. Else throws `sink_refused` without that right.
 */
async function refuseOldGroups(
  settings: MemberSettings,
  { clock, isClosed }: { readonly clock: Clock; readonly isClosed: boolean },
): Promise<void> {
  const groups = oldOwnersOf(settings);
  if (groups.length === 0) return;
  const { OwnerQuery } = await import('../cluster/kafka.ts');
  using query = new OwnerQuery(settings, clock);
  const refuse = async (group: string) => {
    const count = await query.memberCount(group);
    if (count === null && !isClosed) throw withoutOldRight(settings, group);
    if (!count) return;
    const what = `processes of an older version of sluice work on the state ${settings.prefix}: the group ${group} in Kafka has ${count === 1 ? '1 member' : `${count} members`}`;
    throw new ExportError('state_locked', what, {
      next: 'Stop the processes of the older version on all machines, then start this version. Both must not run at the same time. Nothing was lost.',
    });
  };
  await Promise.all(groups.map(refuse));
}

function withoutOldRight({ prefix }: MemberSettings, group: string): ExportError {
  const what = `the account lacks Read on the group ${group}, which shows whether processes of an older version still work on the state ${prefix}`;
  return new ExportError('sink_refused', what, {
    next: `Grant Read on the groups that begin with ${prefix}.owners until this start has succeeded. Nothing was lost.`,
  });
}

/**
 * Makes processes of older versions refuse the state from now on. A process of an older version that started just before is a
 * member after one session at the latest: throws `state_locked` then. Until a process has waited that long and found no member,
 * each process of this version waits as well. Rejects with the reason of `stop`.
 */
export async function closeToOldVersions(
  settings: MemberSettings,
  control: Control,
  { clock, stop }: { readonly clock: Clock; readonly stop: AbortSignal },
): Promise<void> {
  const { shards = 1, sessionMs } = settings;
  if (!control.hasOldGroups) return;
  await control.divide(shards, { isClosing: true });
  await clock.sleep(sessionMs, stop);
  await refuseOldGroups(settings, { clock, isClosed: false });
  await control.divide(shards);
}

/**
 * Throws `config_invalid` if the processes that have the state read other upstreams, and `state_locked` if processes of an
 * older version work on it, or if any process has it and the caller does not wait. If Kafka cannot be reached, a caller that
 * waits continues: it waits for Kafka as well.
 */
export async function refuseBeside(
  settings: MemberSettings,
  clock: Clock,
  { waits }: { readonly waits: boolean },
): Promise<void> {
  const { processText, processesOf } = await import('../cluster/kafka.ts');
  const look = async () => {
    await refuseOldGroups(settings, { clock, isClosed: true });
    return await processesOf(settings, clock);
  };
  const others = await look().catch((error) => {
    const failure = asExportError(error, 'reading the other processes');
    if (waits && failure.code === 'sink_unreachable') return [];
    throw failure;
  });
  const { prefix } = settings;
  const deployment = settings.deployment();
  const foreign = others.find(
    (other) =>
      other.deployment.length > 0 &&
      deployment.length > 0 &&
      !other.deployment.some((one) => deployment.includes(one)),
  );
  if (foreign !== undefined) {
    const what = `${processText(foreign)} has the state ${prefix} in Kafka, and reads other upstreams than this config, or as another client`;
    throw new ExportError('config_invalid', what, {
      next: 'Give this deployment a state.kafka.prefix of its own. If it is the same one and all its upstreams have changed, stop the processes with the old config first. Nothing was changed.',
    });
  }
  const [owner] = others;
  if (waits || owner === undefined) return;
  const what = `${processText(owner)} has the state ${prefix} in Kafka`;
  throw new ExportError('state_locked', what, {
    next: 'Stop all processes first, which sluice cluster shows. Nothing was changed.',
  });
}

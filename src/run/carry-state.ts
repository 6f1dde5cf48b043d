// Moves a state from a SQLite database into Kafka, and back: pages, positions, checkpoints and all else. It is split
// for several shards, and joined from them. Invariants: no process works with either during the move; the origin is not
// changed; and no process can resume from half of a state.

import { createHash } from 'node:crypto';
import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { MemberSettings } from '../cluster/index.ts';
import type { Control, ShardLog } from '../cluster/kafka.ts';
import { shardOfStream, shardsOf } from '../config/index.ts';
import { type Clock, ExportError, type Log } from '../contracts/index.ts';
import { changeState, hasState, lookInto, takeLock } from '../hold/index.ts';
import { importBackfillFiles, putDatabase, regroup, rowsIn } from '../hold/open.ts';
import { type CarryConfig, carriedParts, carrying, partFor } from './carry-parts.ts';
import {
  agreeOnShards,
  clusterNote,
  type ImportNote,
  importNote,
  importScratch,
  noteImport,
  refuseBeside,
  refuseHalf,
} from './cluster.ts';
import { agreeOnDeployment } from './deployment.ts';

interface CarryDeps {
  readonly clock: Clock;
  readonly log: Log;
}

/** The result of a move. */
export interface CarriedState {
  readonly streams: number;
  readonly pages: number;
  /** The new name of the database that was at the target; null: there was none. */
  readonly aside: string | null;
}

/** A shard that is carried into or out of. */
interface Taken {
  readonly shard: number;
  readonly log: ShardLog;
  /** A directory for this move only; removed afterwards. */
  readonly scratch: string;
}

/** Carries the state of a directory into Kafka, where there must be none. */
export async function importState(
  config: CarryConfig,
  kafka: MemberSettings,
  { dir, ...deps }: CarryDeps & { readonly dir: string },
): Promise<CarriedState> {
  if (!hasState(dir)) {
    throw new ExportError('config_invalid', `there is no state in ${dir}`, {
      next: 'Say with --from where it is: the directory with sluice.db.',
    });
  }
  using _lock = takeLock(dir);
  importBackfillFiles({ dir, sync: 'full', keepMs: 0 });
  const from = printOf(config, dir);
  return await withShards(kafka, deps, {
    requested: shardsOf(config),
    scratch: importScratch(dir),
    work: async (taken, control) => {
      const left = await toImport(taken, { from, isImporting: control.isImporting, kafka });
      const isShared = (kafka.shards ?? 1) > 1;
      // One record, so that no shard is worked on while another has nothing yet.
      if (!control.isImporting) await control.importing(true);
      const carried = { streams: 0, pages: 0 };
      const targets = left.filter(({ shard }) => shardsOf(config).includes(shard));
      for (const one of targets) await one.log.commit(mark(one, { state: 'begun', from }, deps));
      for (const one of targets) {
        const part = isShared ? partOf(config, dir, one) : dir;
        for (const rows of rowsIn(part)) {
          carried.streams += rows.filter(({ table }) => table === 'checkpoint').length;
          carried.pages += rows.filter(({ table }) => table === 'page').length;
          await one.log.commit(rows);
        }
        await one.log.commit(mark(one, { state: 'done', from }, deps));
      }
      await control.importing(false);
      return { ...carried, aside: null };
    },
  });
}

/** Carries the state in Kafka into a directory, beside the database that is there. */
export async function exportState(
  config: CarryConfig,
  kafka: MemberSettings,
  { dir, ...deps }: CarryDeps & { readonly dir: string },
): Promise<CarriedState> {
  const lock = takeLock(dir);
  const made = join(dir, 'unfinished-export');
  try {
    // Of an export that was killed: a copy of the whole state.
    rmSync(made, { recursive: true, force: true });
    mkdirSync(made, { mode: 0o700 });
    // Its Kafka client is slow to load.
    const { takeOverSent } = await import('./own-process-upgrade.ts');
    return await withShards(kafka, deps, {
      requested: [],
      scratch: join(made, 'taken'),
      work: async (taken, control) => {
        refuseHalf(control.isImporting);
        if (taken.length === 0) {
          throw new ExportError('config_invalid', `there is no state ${kafka.prefix} in Kafka`, {
            next: 'Check state.kafka.prefix and brokers. Nothing was changed.',
          });
        }
        const dirs = new Map<number, string>();
        let whole = { streams: 0, pages: 0 };
        for (const { shard, log } of taken) {
          const place = join(made, `shard-${shard}`);
          whole = await readWhole(log, place, kafka);
          await takeOverSent({ ...kafka, shard }, { ...deps, dir: place });
          dirs.set(shard, place);
        }
        let [all = ''] = dirs.values();
        if ((kafka.shards ?? 1) > 1) {
          all = join(made, 'all');
          const of = { ...carrying(config, { isWhole: false }), counts: true };
          whole = regroup({ ...of, from: carriedParts(config, dirs), to: all });
        }
        return { ...whole, aside: putDatabase(all, dir, deps.clock.now()) };
      },
    });
  } finally {
    rmSync(made, { recursive: true, force: true });
    lock.release();
  }
}

/** Makes the database of a shard as it is in Kafka. Throws where that is not whole. */
async function readWhole(log: ShardLog, place: string, { prefix }: MemberSettings) {
  const { missing, ...whole } = await log.rebuild(place, { isCache: false });
  const isHalf = importNote(place)?.state === 'begun';
  if (missing === null && !isHalf) return whole;
  const what =
    missing === null
      ? 'an import into it was broken off'
      : `events ${missing.from} to ${missing.until - 1} are gone from it that a sink has not had`;
  throw new ExportError('state_damaged', `the state ${prefix} in Kafka: ${what}`, {
    next: 'Repeat sluice cluster import for the one, or start sluice run once for the other: it reports the gap to its sinks. Nothing was changed.',
  });
}

/** Those shards that the import has not been through with. Throws `config_invalid` where one holds something else. */
async function toImport(
  taken: readonly Taken[],
  {
    from,
    isImporting,
    kafka: { prefix },
  }: { readonly from: string; readonly isImporting: boolean; readonly kafka: MemberSettings },
): Promise<readonly Taken[]> {
  const left: Taken[] = [];
  for (const one of taken) {
    const { streams, pages } = await one.log.rebuild(one.scratch);
    const note = importNote(one.scratch);
    const isOfThis = note !== null && (note.from ?? from) === from;
    const isNew = note === null && streams + pages === 0;
    if (isOfThis && note.state === 'done') continue;
    if (isNew && lookInto(one.scratch, null, clusterNote) === null) left.push(one);
    else if (isOfThis) left.push(one);
    else if (note?.state === 'begun') {
      const what = `the import into the state ${prefix} that was broken off was of another database, or of this one before it was worked with again, or by another config`;
      throw new ExportError('config_invalid', what, {
        next: 'Import that one, give state.kafka.prefix another name, or delete the topics with that prefix, which hold nothing that is not in the database. Nothing was changed.',
      });
    } else throw alreadyThere(prefix);
  }
  if (left.length === 0 && !isImporting) throw alreadyThere(prefix);
  return left;
}

function alreadyThere(prefix: string): ExportError {
  return new ExportError('config_invalid', `there is a state ${prefix} in Kafka already`, {
    next: 'Give state.kafka.prefix another name, or delete the topics with that prefix if no process needs them. Nothing was changed.',
  });
}

/** Creates the database for a shard; returns its directory. */
function partOf(config: CarryConfig, dir: string, { shard, scratch }: Taken): string {
  const to = join(scratch, 'part');
  const { counts, ...part } = partFor(config, shard);
  regroup({ ...carrying(config, { isWhole: true }), from: [{ dir, ...part }], to, counts });
  return to;
}

/** A digest of the content of a database and of how it is split. */
function printOf(config: CarryConfig, dir: string): string {
  const { numbering, end } = lookInto(dir, null, (store) => ({
    numbering: store.numbering,
    end: store.end,
  })) ?? { numbering: null, end: 0 };
  const shards = Object.keys(config.sources).map((name) => [name, shardOfStream(config, name)]);
  const all = JSON.stringify([numbering, end, shards.sort()]);
  return createHash('sha256').update(all).digest('hex').slice(0, 16);
}

/** The rows of the note with the progress of the import. */
function mark({ scratch }: Taken, note: ImportNote, { clock }: CarryDeps) {
  return changeState({ dir: scratch, sync: 'none', keepMs: 0 }, (store) => {
    noteImport(store, note, clock.now());
    return store.drain();
  });
}

/**
 * Runs work with the requested shards and those that have content, each in a temporary directory and owned by this
 * process alone.
 */
async function withShards<T>(
  kafka: MemberSettings,
  deps: CarryDeps,
  {
    requested,
    scratch,
    work,
  }: {
    readonly requested: readonly number[];
    /** For their directories, in a directory that this process has locked. One that was killed may have left it. */
    readonly scratch: string;
    readonly work: (taken: readonly Taken[], control: Control) => Promise<T>;
  },
): Promise<T> {
  const { Control, ShardLog } = await import('../cluster/kafka.ts');
  const control = new Control(kafka, deps.clock);
  rmSync(scratch, { recursive: true, force: true });
  mkdirSync(scratch, { recursive: true, mode: 0o700 });
  const taken: Taken[] = [];
  try {
    // First, since a follower waits for a Kafka that cannot be reached.
    await control.readAll();
    await control.follow(deps.log);
    await agreeOnShards(kafka, control, deps.clock);
    await agreeOnDeployment(kafka, { control, ...deps });
    const all = new Set([...requested, ...(await shardsHeld(kafka, deps.clock))]);
    const settings = [...all].sort((a, b) => a - b).map((shard) => ({ ...kafka, shard }));
    await refuseOthers(kafka, control, { clock: deps.clock, isImport: requested.length > 0 });
    for (const one of settings) {
      const { shard } = one;
      const log = await ShardLog.take(one, deps);
      taken.push({ shard, log, scratch: join(scratch, String(shard)) });
    }
    return await work(taken, control);
  } finally {
    for (const { log } of taken) await log.close();
    await control.close();
    rmSync(scratch, { recursive: true, force: true });
  }
}

/**
 * Refuses to work beside other processes. An import into an empty state is noted first: a killed one may have written nothing
 * else, and a process of another machine, which does not see the directory, would start without the database.
 */
async function refuseOthers(
  kafka: MemberSettings,
  control: Control,
  { clock, isImport }: { readonly clock: Clock; readonly isImport: boolean },
): Promise<void> {
  const { LogClient, ensureTopics, usedShards } = await import('../cluster/kafka.ts');
  const isFirst = isImport && !control.isImporting && (await usedShards(kafka, clock)).length === 0;
  if (isFirst) {
    using client = new LogClient(kafka, clock);
    await ensureTopics(client, kafka);
    await control.importing(true);
  }
  try {
    await refuseBeside(kafka, clock, { waits: false });
  } catch (error) {
    if (isFirst) await control.importing(false);
    throw error;
  }
}

/** The shards with content in Kafka; a single shard always has some. */
async function shardsHeld(kafka: MemberSettings, clock: Clock): Promise<readonly number[]> {
  const { shards = 1 } = kafka;
  if (shards === 1) return [0];
  const [{ LogClient, clusterError }, { shardNames }] = await Promise.all([
    import('../cluster/kafka.ts'),
    import('../cluster/index.ts'),
  ]);
  using client = new LogClient(kafka, clock);
  try {
    const held: number[] = [];
    for (let shard = 0; shard < shards; shard += 1) {
      if ((await client.end(shardNames({ ...kafka, shard }).state)) > 0n) held.push(shard);
    }
    return held;
  } catch (error) {
    throw clusterError(error, `looking for the state ${kafka.prefix}`);
  }
}

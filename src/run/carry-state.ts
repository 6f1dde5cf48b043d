// A state carried from a SQLite database into Kafka, and back: with pages, positions, checkpoints
// and all else that it holds. What must stay true: nobody works with either meanwhile; what it was
// carried from stays as it was; and nobody goes on from half of it.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { MemberSettings } from '../cluster/log/settings.ts';
import type { ShardLog } from '../cluster/log/shard-log.ts';
import type { Config } from '../config/config.ts';
import { hasPlaceOfShard, inShards, shardOfStream } from '../config/shards.ts';
import { ExportError } from '../contracts/errors.ts';

import type { Clock, Log } from '../contracts/tools.ts';
import { driftKey } from '../drift/state.ts';
import { importBackfillFiles } from '../hold/backfill-files.ts';
import { putDatabase, rowsIn } from '../hold/carry.ts';
import { hasState } from '../hold/database.ts';
import { takeLock } from '../hold/lock.ts';
import { joinParts, takePart } from '../hold/parts.ts';
import { changeIn, lookInto } from '../hold/store.ts';
import { agreeOnShards, clusterNote, importNote, isHalfImported, refuseBeside } from './cluster.ts';
import { openDrains } from './drains.ts';

interface Means {
  readonly clock: Clock;
  readonly log: Log;
}

/** What was carried. */
export interface Carried {
  readonly streams: number;
  readonly pages: number;
  /** What the database that was in the place is called now; null: none was. */
  readonly aside: string | null;
}

/** A state in Kafka of one shard or several. */
export interface KafkaState {
  /** Of each shard with work. */
  readonly shards: readonly MemberSettings[];
  readonly shardOfStream: (stream: string) => number;
  /** Whether a sink writes to the same place with Kafka and without. */
  readonly keepsMark: (sink: string) => boolean;
  /** Whoever has a position (journey.ts), and those of them that read for themselves. */
  readonly sinks: readonly string[];
  readonly readers: readonly string[];
}

/** That of a config. Throws `config_invalid` where it is in another number of shards. */
export async function kafkaStateOf(config: Config, { log, clock }: Means): Promise<KafkaState> {
  const drains = await openDrains(config.state, log);
  const { kafka } = config.state;
  try {
    await drains?.known(new AbortController().signal);
    if (drains !== null && kafka !== null) await agreeOnShards(kafka, drains.control, clock);
  } finally {
    await drains?.close();
  }
  return {
    shards: inShards(config).flatMap(({ state }) => state.kafka ?? []),
    shardOfStream: shardOfStream(config),
    keepsMark: (sink) => {
      const configured = config.sinks[sink];
      return configured !== undefined && !hasPlaceOfShard(configured);
    },
    sinks: [...Object.keys(config.sinks), ...(config.watch.drift === null ? [] : [driftKey])],
    readers: [driftKey],
  };
}

/** Carries the state of a directory into Kafka, where there must be none. */
export async function importState(state: KafkaState, dir: string, means: Means): Promise<Carried> {
  if (!hasState(dir)) {
    throw new ExportError('config_invalid', `there is no state in ${dir}`, {
      next: 'Say with --from where it is: the directory with sluice.db.',
    });
  }
  const lock = takeLock(dir);
  try {
    importBackfillFiles({ dir, sync: 'full', keepMs: 0 });
    // Nobody may go on from some of the shards while others have nothing yet.
    const carries: boolean[] = [];
    for (const kafka of state.shards) carries.push(await begin(kafka, means));
    if (!carries.includes(true)) {
      const { prefix } = state.shards[0] as MemberSettings;
      throw new ExportError('config_invalid', `there is a state ${prefix} in Kafka already`, {
        next: 'Give state.kafka.prefix another name, or delete the topics with that prefix if nobody needs them. Nothing was changed.',
      });
    }
    const carried = { streams: 0, pages: 0 };
    for (const kafka of state.shards) {
      const part = await carryPart(state, kafka, dir, means);
      carried.streams += part.streams;
      carried.pages += part.pages;
    }
    return { ...carried, aside: null };
  } finally {
    lock.release();
  }
}

/** Marks a shard as one whose import has begun; false: it has a state that is whole. */
async function begin(kafka: MemberSettings, means: Means): Promise<boolean> {
  return await withShard(kafka, means, async (shard, scratch) => {
    const held = await shard.rebuild(scratch);
    const isNew = held.streams + held.pages === 0 && lookInto(scratch, null, clusterNote) === null;
    if (!isNew && !isHalfImported(scratch)) return false;
    await shard.commit(mark(scratch, 'begun', means));
    return true;
  });
}

function mark(scratch: string, state: 'begun' | 'done', { clock }: Means) {
  return changeIn({ dir: scratch, sync: 'none', keepMs: 0 }, (store) => {
    importNote(store, state, clock.now());
    return store.drain();
  });
}

/** Carries what is a shard's, where its import has begun. */
async function carryPart(
  { shards, shardOfStream, keepsMark }: KafkaState,
  kafka: MemberSettings,
  dir: string,
  means: Means,
): Promise<{ readonly streams: number; readonly pages: number }> {
  return await withShard(kafka, means, async (shard, scratch) => {
    const carried = { streams: 0, pages: 0 };
    await shard.rebuild(scratch);
    if (!isHalfImported(scratch)) return carried;
    // What this directory's database calls itself goes first, so that the other's name stays.
    await shard.commit(mark(scratch, 'begun', means));
    const part = mkdtempSync(join(scratch, 'part-'));
    const isOurs = (stream: string) => shardOfStream(stream) === (kafka.shard ?? 0);
    if (shards.length > 1) takePart(dir, part, { isOurs, keepsMark });
    for (const rows of rowsIn(shards.length > 1 ? part : dir)) {
      carried.streams += rows.filter(({ table }) => table === 'checkpoint').length;
      carried.pages += rows.filter(({ table }) => table === 'page').length;
      await shard.commit(rows);
    }
    await shard.commit(mark(scratch, 'done', means));
    return carried;
  });
}

/** Carries the state in Kafka into a directory, beside the database that is there. */
export async function exportState(
  { shards, ...state }: KafkaState,
  dir: string,
  means: Means,
): Promise<Carried> {
  const lock = takeLock(dir);
  const made = mkdtempSync(join(dir, 'export-'));
  try {
    const carried = { streams: 0, pages: 0 };
    const parts = shards.map(({ shard = 0 }) => join(made, `shard-${shard}`));
    for (const [index, kafka] of shards.entries()) {
      const part = await exportPart(kafka, parts[index] as string, means);
      carried.streams += part.streams;
      carried.pages += part.pages;
    }
    const [only = made, ...others] = parts;
    const now = means.clock.now();
    if (others.length > 0) joinParts(parts, made, { ...state, now });
    return { ...carried, aside: putDatabase(others.length > 0 ? made : only, dir, now) };
  } finally {
    rmSync(made, { recursive: true, force: true });
    lock.release();
  }
}

/** Makes the database of one shard. */
async function exportPart(kafka: MemberSettings, dir: string, means: Means) {
  return await withShard(kafka, means, async (shard) => {
    const { streams, pages, missing } = await shard.rebuild(dir, { isCache: false });
    if (missing !== null || isHalfImported(dir)) {
      const what =
        missing === null
          ? 'an import into it was broken off'
          : `events ${missing.from} to ${missing.until - 1} are gone from it that a sink has not had`;
      throw new ExportError('state_damaged', `the state ${kafka.prefix} in Kafka: ${what}`, {
        next: 'Give sluice cluster import again for the one, or start sluice run once for the other: it tells its sinks of the gap. Nothing was changed.',
      });
    }
    return { streams, pages };
  });
}

/** With a directory that is thrown away. */
async function withShard<T>(
  kafka: MemberSettings,
  means: Means,
  carry: (shard: ShardLog, scratch: string) => Promise<T>,
): Promise<T> {
  await refuseBeside(kafka, means.clock, { waits: false });
  const { ShardLog } = await import('../cluster/log/shard-log.ts');
  const shard = await ShardLog.take(kafka, means);
  const scratch = mkdtempSync(join(tmpdir(), 'sluice-carry-'));
  try {
    return await carry(shard, scratch);
  } finally {
    await shard.close();
    rmSync(scratch, { recursive: true, force: true });
  }
}

// A state carried from a SQLite database into Kafka, and back: with pages, positions, checkpoints
// and all else that it holds. What must stay true: nobody works with either meanwhile; what it was
// carried from stays as it was; and nobody goes on from half of it.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { MemberSettings } from '../cluster/log/settings.ts';
import type { ShardLog } from '../cluster/log/shard-log.ts';
import { ExportError } from '../contracts/errors.ts';
import type { Clock, Log } from '../contracts/tools.ts';
import { importBackfillFiles } from '../hold/backfill-files.ts';
import { putDatabase, rowsIn } from '../hold/carry.ts';
import { hasState } from '../hold/database.ts';
import { takeLock } from '../hold/lock.ts';
import { changeIn, lookInto } from '../hold/store.ts';
import { clusterNote, importNote, isHalfImported, refuseBeside } from './cluster.ts';

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

/** All of one partition. */

/** Carries the state of a directory into Kafka, where there must be none. */
export async function importState(
  kafka: MemberSettings,
  dir: string,
  means: Means,
): Promise<Carried> {
  if (!hasState(dir)) {
    throw new ExportError('config_invalid', `there is no state in ${dir}`, {
      next: 'Say with --from where it is: the directory with sluice.db.',
    });
  }
  const lock = takeLock(dir);
  try {
    importBackfillFiles({ dir, sync: 'full', keepMs: 0 });
    return await withShard(kafka, means, async (shard, scratch) => {
      const held = await shard.rebuild(scratch);
      const isNew =
        held.streams + held.pages === 0 && lookInto(scratch, null, clusterNote) === null;
      if (!isNew && !isHalfImported(scratch)) {
        throw new ExportError(
          'config_invalid',
          `there is a state ${kafka.prefix} in Kafka already`,
          {
            next: 'Give state.kafka.prefix another name, or delete the topics with that prefix if nobody needs them. Nothing was changed.',
          },
        );
      }
      const mark = (state: 'begun' | 'done') =>
        changeIn({ dir: scratch, sync: 'none', keepMs: 0 }, (store) => {
          importNote(store, state, means.clock.now());
          return store.drain();
        });
      await shard.commit(mark('begun'));
      const carried = { streams: 0, pages: 0 };
      for (const rows of rowsIn(dir)) {
        carried.streams += rows.filter(({ table }) => table === 'checkpoint').length;
        carried.pages += rows.filter(({ table }) => table === 'page').length;
        await shard.commit(rows);
      }
      await shard.commit(mark('done'));
      return { ...carried, aside: null };
    });
  } finally {
    lock.release();
  }
}

/** Carries the state in Kafka into a directory, beside the database that is there. */
export async function exportState(
  kafka: MemberSettings,
  dir: string,
  means: Means,
): Promise<Carried> {
  const lock = takeLock(dir);
  const made = mkdtempSync(join(dir, 'export-'));
  try {
    return await withShard(kafka, means, async (shard) => {
      const { streams, pages, missing } = await shard.rebuild(made, { isCache: false });
      if (missing !== null || isHalfImported(made)) {
        const what =
          missing === null
            ? 'an import into it was broken off'
            : `events ${missing.from} to ${missing.until - 1} are gone from it that a sink has not had`;
        throw new ExportError('state_damaged', `the state ${kafka.prefix} in Kafka: ${what}`, {
          next: 'Give sluice cluster import again for the one, or start sluice run once for the other: it tells its sinks of the gap. Nothing was changed.',
        });
      }
      return { streams, pages, aside: putDatabase(made, dir, means.clock.now()) };
    });
  } finally {
    rmSync(made, { recursive: true, force: true });
    lock.release();
  }
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

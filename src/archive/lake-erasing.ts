// Removes the events of an erased record from lake objects: each object is rewritten under its name without them, so
// retention, holds and readers still find it; an object without other events is deleted. Invariants: as with segments,
// nothing is changed before the entry about it is under a signed checkpoint; data under a hold or lock stays.

import { hash } from 'node:crypto';
import { errorText } from '../contracts/index.ts';
import { lockText, type ObjectStore } from '../objects/index.ts';
import { timeText } from '../tools/index.ts';
import type { Authority } from './authority.ts';
import type { EntryOf } from './entries.ts';
import { refuseHeld } from './holds.ts';
import type { LakeCopy } from './lake-copies.ts';
import { lakeBytesMax } from './lake-cuts.ts';
import type { ArchiveLog } from './log.ts';

/** The planned content of a lake object. */
export interface LakeRewriting {
  readonly entry: EntryOf<'lake_erased'>;
  /** Tag of the stored object. */
  readonly tag: string;
  /** Null: it is deleted. */
  readonly body: Uint8Array | null;
}

/** Limit of rows per entry. */
const rowsMax = 500;
/** Limit in bytes of objects waiting to be written; the others of a request follow later. */
const bytesMax = 64 * 1024 * 1024;

/** The objects without the erased events, and whether others are left for later. */
export async function withoutErased(
  lake: readonly LakeCopy[],
  {
    reason,
    authority,
    store,
    log,
    now,
  }: {
    readonly reason: string;
    readonly authority: Authority;
    readonly store: ObjectStore;
    readonly log: ArchiveLog;
    readonly now: number;
  },
): Promise<{ readonly lake: readonly LakeRewriting[]; readonly isAll: boolean }> {
  const made: LakeRewriting[] = [];
  let bytes = 0;
  for (const { object, sha256, read, uids } of lake) {
    if (bytes >= bytesMax) return { lake: made, isAll: false };
    const found = await store.read(object, { from: 0, length: lakeBytesMax + 1 });
    if (found === null || hash('sha256', found.body) !== sha256) {
      throw new SyntaxError(`${object} was changed at the same moment`);
    }
    const { lock } = (await store.facts(object)) ?? {};
    if (lock !== undefined) throw new SyntaxError(`${object}: ${lockText(lock)}`);
    refuseHeld(log.heads.holds, read);
    const { body, rows, gone } = await erased(object, found.body, uids);
    if (gone.length === 0) continue;
    const whole = body ?? new Uint8Array(0);
    const entry = {
      ...{ t: 'lake_erased' as const, at: timeText(now), object },
      ...{ from: sha256, uids: [...gone], reason },
      ...{ bytes: whole.length, sha256: hash('sha256', whole), rows },
      ...{ first: timeText(Math.max(read.first, 0)), last: timeText(read.last), ...authority },
    };
    made.push({ entry, tag: found.tag, body });
    bytes += whole.length;
  }
  return { lake: made, isAll: true };
}

/** Carries out the entries. Throws a SyntaxError if an object was changed meanwhile. */
export async function rewriteLake(
  store: ObjectStore,
  rewritings: readonly LakeRewriting[],
): Promise<void> {
  for (const { entry, tag, body } of rewritings) {
    const { object } = entry;
    if (body === null) await store.remove(object);
    else if ((await store.replace(object, [body], tag)) === null) {
      throw new SyntaxError(`${object} was changed at the same moment`);
    } else await store.removeOlder(object);
  }
}

async function erased(object: string, body: Uint8Array, uids: readonly string[]) {
  // The Parquet reader has a large schema: it is loaded only for an erasure.
  const { eraseEvents } = await import('../parquet/index.ts');
  const made = await eraseEvents(body, uids).catch((error: unknown) => {
    throw new SyntaxError(`${object}: ${errorText(error)}`);
  });
  if (made.gone.length <= rowsMax) return made;
  throw new SyntaxError(
    `${object}: ${made.gone.length} of its rows are to go, not ${rowsMax} at most`,
  );
}

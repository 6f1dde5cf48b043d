// Takes the events of a record that is erased out of the objects of the lake: each is written anew
// without them under its name, so that retention, holds and readers find it where it was; one that
// has no others goes. What must stay true: as with segments, nothing is changed before the entry that
// says so is under a signed checkpoint, and what a hold or a lock keeps stays.

import { hash } from 'node:crypto';
import { errorText } from '../contracts/errors.ts';
import { lockText, type ObjectStore } from '../objects/store.ts';
import { timeText } from '../tools/time-text.ts';
import type { Authority } from './authority.ts';
import type { EntryOf } from './entries.ts';
import { refuseHeld } from './holds.ts';
import type { LakeCopy } from './lake-copies.ts';
import { lakeBytesMax } from './lake-cuts.ts';
import type { ArchiveLog } from './log.ts';

/** An object of the lake as it is to be. */
export interface LakeRewriting {
  readonly entry: EntryOf<'lake_erased'>;
  /** Of the object that stands there. */
  readonly tag: string;
  /** Null: it goes. */
  readonly body: Uint8Array | null;
}

/** An entry names so many rows at most. */
const rowsMax = 500;
/** Of objects that wait to be written: the others of a request have the next turn. */
const bytesMax = 64 * 1024 * 1024;

/** Objects without events of theirs, and whether others are left for later. */
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
    if (found === null) continue;
    if (hash('sha256', found.body) !== sha256) {
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

/** Carries out what entries have said. Throws a SyntaxError where an object was changed meanwhile. */
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
  // Reading tables takes a large schema: it is loaded where something is erased.
  const { eraseEvents } = await import('../parquet/erase.ts');
  const made = await eraseEvents(body, uids).catch((error: unknown) => {
    throw new SyntaxError(`${object}: ${errorText(error)}`);
  });
  if (made.gone.length <= rowsMax) return made;
  throw new SyntaxError(
    `${object}: ${made.gone.length} of its rows are to go, not ${rowsMax} at most`,
  );
}

// Finds the objects of an archive's lake that have an event, so that a record which is to be erased goes
// from there as well. What must stay true: an object that has it is never passed over, and a lake that
// may yet get it from the spool is told from one that has been written beyond it.

import type { ErasureRequest } from './erasure-request.ts';
import { cutsPrefix, lakePlace, lakePrefix, parseLakeCut } from './lake-cuts.ts';
import type { PlaceInSpool } from './pages.ts';
import type { ArchiveReader } from './reader.ts';

/** An object that has it, under which of its uids, and when the pages of its cut were read. */
export type LakeCopy = ErasureRequest['lake'][number];

/** So much of a uid shows which cuts may have it: their lists have less than all of each. */
const shownBytes = 8;

/** The objects with an event of one of these uids. Throws a SyntaxError where the lake is damaged. */
export async function lakeCopiesOf(
  { store }: ArchiveReader,
  uids: readonly string[],
): Promise<readonly LakeCopy[]> {
  const shown = uids.map((uid) => Buffer.from(uid, 'hex').subarray(0, shownBytes));
  const copies: LakeCopy[] = [];
  for await (const { name: cut } of store.list(cutsPrefix)) {
    const body = Buffer.from((await store.read(cut))?.body ?? []);
    if (!shown.some((one) => body.includes(one))) continue;
    const { objects, read } = parseLakeCut(body);
    if (read === null) continue;
    for (const { object } of objects) {
      const found = await store.read(object);
      if (found === null) continue;
      const { readUids } = await import('../parquet/read.ts');
      const has = new Set(await readUids(found.body));
      const own = uids.filter((uid) => has.has(uid));
      if (own.length > 0) copies.push({ cut, object, uids: own, read: [...read] });
    }
  }
  return copies;
}

/** True where there is a lake that has not been written as far as one of these places of pages. */
export async function isLakeBehind(
  { store }: ArchiveReader,
  places: readonly PlaceInSpool[],
): Promise<boolean> {
  if ((await store.list(lakePrefix).next()).done === true) return false;
  const [epoch, next] = (await lakePlace(store)) ?? [-1, 0];
  return places.some(([at, until]) => at > epoch || (at === epoch && until > next));
}

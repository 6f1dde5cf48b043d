// Finds the objects of an archive's lake that have an event, so that a record which is to be erased goes
// from there as well. What must stay true: cuts and objects are those of proven entries, an object that has
// the event is never passed over, and a lake that may still get it is distinguished from one written beyond it.

import { hash } from 'node:crypto';
import { cutBytesMax } from './cut-signature.ts';
import { enteredLake } from './entered-lake.ts';
import { erasedRows, erasuresIn } from './erasures.ts';
import { cutsPrefix, lakePrefix, parseLakeCut } from './lake-cuts.ts';
import type { PlaceInSpool } from './pages.ts';
import { type CutSpan, type ProvenCut, type ProvenCuts, readSpanOf } from './proven-cuts.ts';
import type { ProvenReader } from './proven-reader.ts';
import type { ArchiveReader } from './reader.ts';
import { readSmall } from './small-objects.ts';

/** An object that has it, under which of its uids, and when the pages of its cut were read. */
export interface LakeCopy {
  readonly object: string;
  /** Of its bytes, which are proven. */
  readonly sha256: string;
  readonly uids: readonly string[];
  readonly read: CutSpan;
}

/**
 * The objects with events of these uids, which are of pages whose entries have these indexes. Throws a SyntaxError
 * where the lake is damaged.
 */
export async function lakeCopiesOf(
  reader: ProvenReader,
  cuts: ProvenCuts,
  { pages, uids }: { readonly pages: readonly number[]; readonly uids: readonly string[] },
): Promise<readonly LakeCopy[]> {
  const copies: LakeCopy[] = [];
  for await (const cut of cuts.all(reader)) {
    if (!mayHave(cut, pages)) continue;
    let read: CutSpan | null = null;
    for (const one of cut.objects) {
      const body = await existingObject(reader, one);
      if (body === null) continue;
      const { readUids } = await import('../parquet/read.ts');
      const has = new Set(await readUids(body));
      if (!uids.some((uid) => has.has(uid))) continue;
      // What was erased before goes again: somebody may have put an older object back.
      const before = (await erasuresIn(reader)).lake.get(one.object) ?? [];
      const due = new Set([...uids, ...before.flatMap((erased) => erased.uids)]);
      read ??= await readSpanOf(cut, reader);
      const sha256 = hash('sha256', body);
      copies.push({ object: one.object, sha256, uids: [...due.intersection(has)], read });
    }
  }
  return copies;
}

/** Null where the object is gone. Throws a SyntaxError where no entry leads to what is there. */
async function existingObject(reader: ProvenReader, entry: ProvenCut['objects'][number]) {
  const { object, sha256 } = entry;
  const erasures = await erasuresIn(reader);
  const versions = [entry, ...(erasures.lake.get(object) ?? [])];
  const length = Math.max(...versions.map(({ bytes }) => bytes)) + 1;
  const found = await reader.store.read(object, { from: 0, length });
  if (found === null) return null;
  const now = hash('sha256', found.body);
  if (now === sha256 || erasedRows(entry, now, erasures) !== null) return found.body;
  throw new SyntaxError(`${object} differs from its entry`);
}

/** Events that were sent again may be of any page. */
function mayHave({ entry: { entries } }: ProvenCut, pages: readonly number[]): boolean {
  return entries === null || pages.some((index) => index >= entries[0] && index <= entries[1]);
}

/**
 * True where there is a lake that has not been written as far as one of these places of pages. A cut that no entry names
 * yet counts, though others may have put it there: the writer waits for the entry of each cut before it erases.
 */
export async function isLakeBehind(
  reader: ArchiveReader,
  places: readonly PlaceInSpool[],
): Promise<boolean> {
  if ((await reader.store.list(lakePrefix).next()).done === true) return false;
  const [epoch, next] =
    (await writtenPlace(reader)) ?? (await enteredLake(reader)).place ?? ([-1, 0] as const);
  return places.some(([at, until]) => at > epoch || (at === epoch && until > next));
}

/** How far the newest cut says that it reaches; null where there is none, or it is damaged. */
async function writtenPlace({ store }: ArchiveReader): Promise<PlaceInSpool | null> {
  let last: string | null = null;
  for await (const { name } of store.list(cutsPrefix)) last = name;
  const found = last === null ? null : await readSmall(store, last, cutBytesMax);
  if (found === null) return null;
  try {
    const { epoch, next } = parseLakeCut(found.body).place;
    return [epoch, next];
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}

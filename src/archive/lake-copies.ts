// Finds the lake objects that contain an event, so that erasing a record includes the lake. Invariants: cuts and
// objects are those of proven entries; no object with the event is missed; a lake that may still receive the event is
// distinguished from one written beyond it.

import { hash } from 'node:crypto';
import { cutBytesMax } from './cut-signature.ts';
import { enteredLake } from './entered-lake.ts';
import { erasedRows, erasuresIn } from './erasures.ts';
import { cutsPrefix, lakePrefix, parseLakeCut } from './lake-cuts.ts';
import { isPruned } from './logged.ts';
import type { PlaceInSpool } from './pages.ts';
import { type CutSpan, type ProvenCut, type ProvenCuts, readSpanOf } from './proven-cuts.ts';
import type { ProvenReader } from './proven-reader.ts';
import type { ArchiveReader } from './reader.ts';
import { readSmall } from './small-objects.ts';

/** An object with the event: its name, the matching uids, and the reading times of its cut's pages. */
export interface LakeCopy {
  readonly object: string;
  /** Hash of its proven bytes. */
  readonly sha256: string;
  readonly uids: readonly string[];
  readonly read: CutSpan;
}

/**
 * The objects with events of these uids, from pages whose entries have these indices. Throws a SyntaxError if the lake
 * is damaged.
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
      const body = await existingObject(reader, one, cut.entry.object);
      if (body === null) continue;
      const { readUids } = await import('../parquet/index.ts');
      const has = new Set(await readUids(body));
      if (!uids.some((uid) => has.has(uid))) continue;
      // Rows of earlier erasures are removed again, because an older object may have been put back.
      const before = (await erasuresIn(reader)).lake.get(one.object) ?? [];
      const due = new Set([...uids, ...before.flatMap((erased) => erased.uids)]);
      read ??= await readSpanOf(cut, reader);
      const sha256 = hash('sha256', body);
      copies.push({ object: one.object, sha256, uids: [...due.intersection(has)], read });
    }
  }
  return copies;
}

/**
 * Null: the object is deleted, as entries say. Throws a SyntaxError if no entry leads to the stored content, or to its
 * absence: the event could be put back with it.
 */
async function existingObject(
  reader: ProvenReader,
  entry: ProvenCut['objects'][number],
  cut: string,
) {
  const { object, sha256 } = entry;
  const erasures = await erasuresIn(reader);
  const versions = [entry, ...(erasures.lake.get(object) ?? [])];
  const length = Math.max(...versions.map(({ bytes }) => bytes)) + 1;
  const found = await reader.store.read(object, { from: 0, length });
  if (found === null) {
    const isGone = versions.some(({ rows }) => rows === 0) || (await isPruned(reader, cut));
    if (isGone) return null;
    throw new SyntaxError(`${object} is missing`);
  }
  const now = hash('sha256', found.body);
  if (now === sha256 || erasedRows(entry, now, erasures) !== null) return found.body;
  throw new SyntaxError(`${object} differs from its entry`);
}

/** Repeated events may be of any page. */
function mayHave({ entry: { entries } }: ProvenCut, pages: readonly number[]): boolean {
  return entries === null || pages.some((index) => index >= entries[0] && index <= entries[1]);
}

/**
 * True if the lake is not written as far as one of these page positions. A cut without an entry counts too, although
 * others may have created it: the writer waits for the entry of each cut before it erases.
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

/** The end of the newest cut by its own file; null: none, or it is damaged. */
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

// The lake objects that the log names, for searches. Others can put objects below `lake/`; a verification calls them
// strays, and they are no evidence. Invariant: an object that no entry names is not read, and bytes of an object are
// returned only if an entry has their hash.

import { hash } from 'node:crypto';
import type { EntryOf } from './entries.ts';
import { lakeBytesMax, stemOfCut } from './lake-cuts.ts';
import { entriesOf } from './logged.ts';
import type { PlaceInSpool } from './pages.ts';
import type { ArchiveReader } from './reader.ts';

/** A lake object by its entries: as written, or after an erasure. */
export interface EnteredObject {
  /** SHA-256 in hex, and length. */
  readonly versions: Map<string, number>;
}

/** The lake as named by the entries under the newest checkpoint. */
export interface EnteredLake {
  /** By name, without pruned or completely erased objects. */
  readonly objects: ReadonlyMap<string, EnteredObject>;
  /** The end of its last cut in the spool; null: no cut is entered. */
  readonly place: PlaceInSpool | null;
}

/** Reads the entries of the lake. Throws a SyntaxError if the archive is damaged. */
export async function enteredLake(reader: ArchiveReader): Promise<EnteredLake> {
  const objects = new Map<string, EnteredObject>();
  const cuts = new Map<string, string[]>();
  let place: PlaceInSpool | null = null;
  let last: string[] = [];
  for await (const { entry } of entriesOf(reader, ['lake_cut', 'lake', 'pruned', 'lake_erased'])) {
    if (entry.t === 'lake_cut') {
      last = [];
      cuts.set(entry.object, last);
      const [epoch = ''] = stemOfCut(entry.object).split('-', 1);
      if (entry.events > 0 || place === null) place = [Number(epoch), entry.numbers[1]];
    } else if (entry.t === 'lake') {
      last.push(entry.object);
      objects.set(entry.object, { versions: new Map([[entry.sha256, entry.bytes]]) });
    } else if (entry.t === 'pruned') {
      for (const object of cuts.get(entry.object) ?? []) objects.delete(object);
      cuts.delete(entry.object);
    } else if (entry.rows === 0) objects.delete(entry.object);
    else addVersion(objects.get(entry.object), entry);
  }
  return { objects, place };
}

function addVersion(object: EnteredObject | undefined, entry: EntryOf<'lake_erased'>): void {
  if (object?.versions.has(entry.from)) object.versions.set(entry.sha256, entry.bytes);
}

/** The bytes of an object. Throws a SyntaxError that names it if no entry has their hash. */
export async function enteredBytes(
  reader: ArchiveReader,
  { objects }: EnteredLake,
  name: string,
): Promise<Uint8Array> {
  const versions = objects.get(name)?.versions ?? new Map<string, number>();
  const bytesMax = Math.min(lakeBytesMax, Math.max(0, ...versions.values()));
  const found = await reader.named('lake', name, { from: 0, length: bytesMax + 1 });
  if (found === null) throw new SyntaxError(`${name} is missing`);
  if (versions.get(hash('sha256', found, 'hex')) === found.length) return found;
  throw new SyntaxError(`${name} differs from its entry`);
}

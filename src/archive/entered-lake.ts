// The lake objects that the log names, for searches. Others can put objects below `lake/`; a verification calls them
// strays, and they are no evidence. Invariant: an object that no entry names is not read.

import { stemOfCut } from './lake-cuts.ts';
import { loggedEntries, newestCheckpoint } from './logged.ts';
import type { PlaceInSpool } from './pages.ts';
import type { ArchiveReader } from './reader.ts';

/** The lake as named by the entries under the newest checkpoint. */
export interface EnteredLake {
  /** Names of its objects, without pruned or completely erased ones. */
  readonly objects: ReadonlySet<string>;
  /** The end of its last cut in the spool; null: no cut is entered. */
  readonly place: PlaceInSpool | null;
}

/** Reads all entries without proof. Throws a SyntaxError if the archive is damaged. */
export async function enteredLake(reader: ArchiveReader): Promise<EnteredLake> {
  const { size } = reader.head ?? (await newestCheckpoint(reader));
  const cuts = new Map<string, Set<string>>();
  const gone = new Set<string>();
  let place: PlaceInSpool | null = null;
  let last = new Set<string>();
  for await (const { entry } of loggedEntries(reader, size)) {
    if (entry.t === 'lake_cut') {
      last = new Set();
      cuts.set(entry.object, last);
      const [epoch = ''] = stemOfCut(entry.object).split('-', 1);
      if (entry.events > 0 || place === null) place = [Number(epoch), entry.numbers[1]];
    } else if (entry.t === 'lake') last.add(entry.object);
    else if (entry.t === 'pruned') cuts.delete(entry.object);
    else if (entry.t === 'lake_erased' && entry.rows === 0) gone.add(entry.object);
  }
  const objects = new Set([...cuts.values()].flatMap((names) => [...names]));
  return { objects: objects.difference(gone), place };
}

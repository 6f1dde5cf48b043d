// `sluice archive reconcile`: compares a receiver's list of uids with those of an archive. The exit code is the result:
// 0 equal, 1 different, 2 not compared. Invariants: no result without a checkpoint that a given key has signed, and
// none if a part of the archive or of the list could not be read.

import { createReadStream } from 'node:fs';
import {
  archived,
  erased,
  listedFlag,
  markArchived,
  type ReconcileWishes,
  readUidList,
  TooManyUids,
  UidTable,
  uidsMax,
} from '../../archive/audit.ts';
import { ProvenReader, type Verifier } from '../../archive/index.ts';
import { ExportError, errorText, UsageError } from '../../contracts/index.ts';
import { counted } from '../../terminal/index.ts';
import { cleanText } from '../../tools/index.ts';
import { type CommandDeps, defineCommand, failureText } from '../shared/command.ts';
import { refuseUnknown } from '../shared/typed.ts';
import {
  archivesAt,
  keyOption,
  keysGiven,
  locationArgument,
  openArchive,
  shardAt,
} from './given.ts';
import { drained, readSpanGiven } from './raw.ts';
import { trustedHead } from './trusted.ts';

const shownMax = 200;

/** Compares uids. */
export const reconcile = defineCommand({
  name: 'reconcile',
  about: 'compare the uids of a receiver with those of an archive',
  arguments: { location: locationArgument },
  options: {
    key: keyOption,
    uids: { value: 'file', about: 'the uids, one a line; -: standard input', needed: true },
    from: { value: 'time', about: 'events that were read from this time on (RFC 3339)' },
    to: { value: 'time', about: 'events that were read before this time' },
    stream: { value: 'name', about: 'events of this stream only' },
  },
  more: `Prints the counts, then each difference: "missing here UID" is in the list and not in the archive, "missing there UID" is
in the archive and not in the list, also where a route leaves the event out. --from and --to are the time of reading, which
events have in metadata.logged_time; limit the list in the same way. No archive has the events that a sink reports about itself
(archive.*, sink.test, sink.gap): leave them out of the list. Repeated uids count once. Erased events are no difference.
Exit code: 0 equal, 1 not equal, 2 the archive or the list cannot be read, or the key did not sign the newest checkpoint.
Holds at most ${uidsMax} different uids; compare more in several spans of time.`,
  async run({ location, key, uids: file, stream, ...span }, deps) {
    const trusted = keysGiven(key);
    const wishes = { ...readSpanGiven(span), ...(stream === undefined ? {} : { stream }) };
    const table = new UidTable();
    try {
      const repeated = await readList(file, table);
      const found = await markAll(location, { trusted, wishes, table }, deps.env);
      refuseUnknown('stream', stream, found.streams);
      return await report(table, { ...found, repeated }, deps);
    } catch (error) {
      if (error instanceof ExportError) deps.err(failureText(error));
      else if (error instanceof TooManyUids) {
        deps.err(`not compared: ${error.message}; give --from and --to, and a list of that span`);
      } else throw error;
      return 2;
    }
  },
});

/** Returns how many lines repeat a uid. */
async function readList(file: string, table: UidTable): Promise<number> {
  let repeated = 0;
  try {
    const chunks = file === '-' ? process.stdin : createReadStream(file);
    await readUidList(chunks, (uid) => {
      if (table.mark(uid, 0, listedFlag) !== 0) repeated += 1;
    });
    return repeated;
  } catch (error) {
    if (error instanceof TooManyUids) throw error;
    const shown = file === '-' ? 'standard input' : cleanText(file, shownMax);
    if (!(error instanceof SyntaxError)) throw new UsageError(`--uids: ${errorText(error)}`);
    throw new ExportError('sink_refused', `--uids: ${shown}: ${error.message}`, {
      next: 'Export the uids alone, one a line, without a header or quotation marks; docs/archive/verify.md has queries for receivers.',
      cause: error,
    });
  }
}

interface Asked {
  readonly trusted: readonly Verifier[];
  readonly wishes: ReconcileWishes;
  readonly table: UidTable;
}

/** Marks the uids of each archive at a location: one, or one for each shard. */
async function markAll(
  location: string,
  { trusted, wishes, table }: Asked,
  env: CommandDeps['env'],
) {
  const streams = new Set<string>();
  const proven: string[] = [];
  let pruned = 0;
  for (const one of await archivesAt(location, env)) {
    const { store } = await openArchive(one, env);
    try {
      const head = await trustedHead(store, trusted, shardAt(one));
      const found = await markArchived(new ProvenReader(store, head), wishes, table);
      proven.push(`${head.origin}, log of size ${head.size}`);
      pruned += found.pruned;
      for (const name of found.streams) streams.add(name);
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error;
      throw new ExportError('sink_refused', `reading the archive ${one}: ${error.message}`, {
        next: 'Nothing was compared. `npx sluice archive verify` lists all that is broken; --key is the key that signs now.',
        cause: error,
      });
    } finally {
      store.close();
    }
  }
  return { streams, proven, pruned };
}

interface Found {
  readonly proven: readonly string[];
  readonly pruned: number;
  readonly repeated: number;
}

async function report(
  table: UidTable,
  { proven, pruned, repeated }: Found,
  { out, unread }: CommandDeps,
): Promise<0 | 1> {
  const has = (flags: number, flag: number) => (flags & flag) !== 0;
  const isMissingHere = (flags: number) => !has(flags, archived);
  const isMissingThere = (flags: number) => !has(flags, listedFlag) && !has(flags, erased);
  const missingHere = table.count(isMissingHere);
  const missingThere = table.count(isMissingThere);
  const isErased = (flags: number) => has(flags, erased);
  const gone = table.count(isErased);
  const stillThere = table.count((flags) => isErased(flags) && has(flags, listedFlag));
  const both = table.count((flags) => has(flags, listedFlag) && has(flags, archived)) - stillThere;
  const isEqual = missingHere + missingThere === 0;
  for (const log of proven) out(cleanText(`proven: ${log}`, shownMax));
  out(`${isEqual ? 'equal' : 'NOT EQUAL'}: ${counted(both, 'uid')} in both`);
  out(`missing here, in the list and not in the archive: ${missingHere}`);
  out(`missing there, in the archive and not in the list: ${missingThere}`);
  if (repeated > 0) out(`repeated in the list: ${repeated}`);
  if (gone > 0) out(`erased from the archive: ${gone}, of which ${stillThere} are in the list`);
  if (pruned > 0) {
    out(
      `pruned: ${pruned}; their uids are not known any more, and up to so many of those missing here may be theirs`,
    );
  }
  for (const [uid, flags] of table.entries()) {
    if (isMissingHere(flags)) out(`missing here ${uid}`);
    else if (isMissingThere(flags)) out(`missing there ${uid}`);
    else continue;
    await drained(unread);
    if (unread.aborted) break;
  }
  return isEqual ? 0 : 1;
}

// A damaged state database is set aside and another made in its place, before any other opens it:
//
//   look       damage.ts says whether there is damage; most starts end here
//   save       `sluice.db.partial` is filled with all that can be read (salvage.ts)
//   go back    where an event that was not delivered may be missing, every stream goes back to the
//              last place by which all was delivered (delivered.ts), or to its start, and its sinks
//              are told so
//   replace    the partial file becomes `sluice.db.mended`, the damaged one goes into a directory of
//              its own, where it stays, and the mended one takes its name
//
// What must stay true: an event that is not held in the new database, and that some sink has not
// passed, is read again; a start that is cut off anywhere in between is made good by the next; and
// nothing that was found is ever deleted.

import { closeSync, existsSync, fsyncSync, openSync, renameSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import type { Offset } from '../contracts/event.ts';
import type { Epoch } from '../contracts/numbering.ts';
import type { NewPage } from '../contracts/spool.ts';
import { findDamage, identityIn } from './damage.ts';
import { openDatabase, openToLook, storeError } from './database.ts';
import { type DeliveredCopy, readDelivered, writeDelivered } from './delivered.ts';
import { takeLock } from './lock.ts';
import { makePrivateDirectory, makePrivateFile } from './private-files.ts';
import { withReserve } from './reserve.ts';
import { nothingSalvaged, type Salvaged, salvage } from './salvage.ts';
import { databaseName } from './schema.ts';
import { Store } from './store.ts';

/** What is mended, and for whom. */
export interface RepairSettings {
  readonly dir: string;
  readonly sync: 'full' | 'normal';
  /** The sinks of the config: what all of them have passed need not be read again. */
  readonly sinks: readonly string[];
  /** The streams of the config. */
  readonly streams: readonly string[];
  /** The page that tells a stream's sinks that it went back; null: nobody is to be told. */
  readonly tell: (reset: StreamReset) => NewPage | null;
}

/** A stream that went back. */
export interface StreamReset {
  readonly stream: string;
  /** It goes on from where all was delivered at this time (epoch ms); null: from its start. */
  readonly deliveredAt: number | null;
  /** Damaged: what could not be read is read again. Older: what was read since is. */
  readonly reason: 'state_damaged' | 'state_older';
}

/** What was done. */
export interface Repaired {
  /** What was wrong, in SQLite's words or ours. */
  readonly damage: string;
  /** Where the damaged database is now; null where there was no file left. */
  readonly aside: string | null;
  /** Events that are still held. */
  readonly saved: number;
  /** Events that were held and are not any more; null where their number is not known. */
  readonly lost: number | null;
  readonly resets: readonly StreamReset[];
  readonly deadLettersSaved: boolean;
}

const partial = `${databaseName}.partial`;
const repaired = `${databaseName}.mended`;
/** SQLite's names for what belongs to a database file. */
const suffixes = ['', '-wal', '-shm', '-journal'];

/**
 * Looks the state database over and mends it where it has to be; null where it is sound, or there
 * is none. Throws `state_locked` while another process holds the directory, and `disk_full`, the
 * damaged database untouched.
 */
export function repairDatabase(settings: RepairSettings): Repaired | null {
  const { dir } = settings;
  const lock = takeLock(dir);
  try {
    return withReserve(dir, () => lookAndMend(settings));
  } finally {
    lock.release();
  }
}

function lookAndMend(settings: RepairSettings): Repaired | null {
  const { dir } = settings;
  try {
    if (existsSync(join(dir, repaired)) && !existsSync(join(dir, databaseName))) replace(dir);
    remove(dir, partial);
    remove(dir, repaired);
    const copy = readDelivered(dir);
    const damage = damageIn(dir, copy);
    if (damage === null) return null;
    const rebuilt = rebuild(settings, copy);
    renameSync(join(dir, partial), join(dir, repaired));
    syncDirectory(dir);
    const aside = replace(dir);
    writeDelivered(dir, rebuilt.copy);
    return { damage, aside, ...rebuilt.report };
  } catch (error) {
    throw storeError(error, `repairing the state database in ${dir}`);
  }
}

/** A file that is empty or gone is a database not made yet, unless a copy knows of one. */
function damageIn(dir: string, copy: DeliveredCopy | null): string | null {
  const path = join(dir, databaseName);
  const size = statSync(path, { throwIfNoEntry: false })?.size ?? null;
  if (size === null) return copy === null ? null : 'its file is gone';
  if (size === 0) return copy === null ? null : 'its file is empty';
  return findDamage(path, copy);
}

/** Puts the mended database in place; also where an earlier start was cut off at it. */
function replace(dir: string): string | null {
  const aside = setAside(dir);
  renameSync(join(dir, repaired), join(dir, databaseName));
  syncDirectory(dir);
  return aside;
}

/** The file itself goes first: while it is there, the next start begins anew. */
function setAside(dir: string): string | null {
  const names = suffixes.map((suffix) => databaseName + suffix);
  const found = names.filter((name) => existsSync(join(dir, name)));
  if (found.length === 0) return null;
  const aside = join(dir, `damaged-${new Date().toISOString().replaceAll(':', '')}`);
  makePrivateDirectory(aside);
  for (const name of found) {
    renameSync(join(dir, name), join(aside, name));
    makePrivateFile(join(aside, name));
  }
  syncDirectory(aside);
  syncDirectory(dir);
  return aside;
}

function remove(dir: string, name: string): void {
  for (const suffix of suffixes) rmSync(join(dir, name + suffix), { force: true });
}

function syncDirectory(path: string): void {
  const directory = openSync(path, 'r');
  try {
    fsyncSync(directory);
  } finally {
    closeSync(directory);
  }
}

interface Rebuilt {
  /** The second copy that belongs to the new database. */
  readonly copy: DeliveredCopy;
  readonly report: Pick<Repaired, 'saved' | 'lost' | 'resets' | 'deadLettersSaved'>;
}

/** Makes the new database: the same spool in an epoch of its own, lost numbers void. */
function rebuild(settings: RepairSettings, copy: DeliveredCopy | null): Rebuilt {
  const { dir, sync, sinks } = settings;
  const found = saveWhatCanBeRead(dir, sync, copy);
  const store = new Store({ dir, sync, name: partial, keepMs: 0 });
  try {
    const ofThisSpool = copy !== null && (found.spool === null || found.spool === copy.spool);
    const places = ofThisSpool ? copy.streams : {};
    // Pages go on behind the end that was found, or what it calls itself is gone: what stands beside
    // them is of another time, and neither its numbers nor that it lacks a checkpoint says anything.
    const isOutdated = found.spool === null || (found.end !== null && store.end > found.end);
    const lost = found.end === null || isOutdated ? null : missingBefore(store, sinks, found.end);
    const { checkpoint, identities, entity, dead_letter: deadLettersSaved } = found.salvaged;
    const held = new Set(store.streams.checkpoints().map(({ stream }) => stream));
    const placed = Object.keys(places);
    const checkpoints = checkpoint && placed.every((stream) => held.has(stream));
    const isWhole = lost === 0 && checkpoints && identities && entity;
    // A stream without a checkpoint has never been read, where all checkpoints are there.
    const streams = new Set([
      ...held,
      ...placed,
      ...(checkpoint && !isOutdated ? [] : settings.streams),
    ]);
    const { events: saved } = store.held();
    // What is read again gets other numbers: a sink that can look has to tell it by uid.
    if (!isWhole) store.doubtEpochs();
    store.beginEpoch(Date.now());
    const resets = isWhole ? [] : goBack(store, { streams, places, tell: settings.tell });
    const { end } = store.gauge();
    return {
      copy: { spool: store.id, end, streams: places },
      report: { saved, lost, resets, deadLettersSaved },
    };
  } finally {
    store.close();
  }
}

interface Found {
  readonly salvaged: Salvaged;
  readonly spool: string | null;
  readonly end: Offset | null;
  /** Those of its numbers; none where they cannot be read. */
  readonly epochs: readonly Epoch[];
}

function saveWhatCanBeRead(
  dir: string,
  sync: 'full' | 'normal',
  copy: DeliveredCopy | null,
): Found {
  const fresh = openDatabase({ dir, sync, name: partial });
  try {
    const found = readInto(fresh, join(dir, databaseName));
    const last = fresh.prepare('SELECT coalesce(max(first + count), 0) AS n FROM page').get()?.n;
    const bound = found.end ?? Number(last);
    // A sink that has lost its position gets again what is held.
    fresh
      .prepare("DELETE FROM position WHERE typeof(next) <> 'integer' OR next NOT BETWEEN 0 AND ?")
      .run(bound);
    // No sink may wait for an event between here and the old end: none will ever come there.
    fresh.exec(`UPDATE meta SET value = CAST(max(
      (SELECT coalesce(max(first + count), 0) FROM page),
      (SELECT coalesce(max(next), 0) FROM position)) AS TEXT) WHERE key = 'end'`);
    const spool = found.spool ?? copy?.spool ?? null;
    if (spool !== null) {
      fresh.prepare("UPDATE meta SET value = ? WHERE key = 'spool_id'").run(spool);
    }
    fresh.prepare("INSERT INTO meta VALUES ('epochs', ?)").run(JSON.stringify(found.epochs));
    return found;
  } finally {
    fresh.close();
  }
}

function readInto(fresh: DatabaseSync, path: string): Found {
  const nothing: Found = { salvaged: nothingSalvaged, spool: null, end: null, epochs: [] };
  // An empty file would be taken for a database without tables.
  if ((statSync(path, { throwIfNoEntry: false })?.size ?? 0) === 0) return nothing;
  let damaged: DatabaseSync | null = null;
  try {
    damaged = openToLook(path);
    return { salvaged: salvage(damaged, fresh), ...identityIn(damaged) };
  } finally {
    damaged?.close();
  }
}

/** Events that some sink, also a removed one, has not passed and that are not held any more. */
function missingBefore(store: Store, sinks: readonly string[], end: Offset): number {
  const kept = [...store.knownSinks.all().values()].flatMap((sink) =>
    sink.keeps && !sinks.includes(sink.name) ? store.knownSinks.neededFrom(sink) : [],
  );
  const positions = sinks.map((sink) => store.progress(sink).position);
  const lowest = Math.min(end, ...positions, ...kept);
  return end - lowest - store.held(lowest).events;
}

interface GoingBack {
  readonly streams: Iterable<string>;
  readonly places: DeliveredCopy['streams'];
  readonly tell: RepairSettings['tell'];
}

function goBack(store: Store, { streams, places, tell }: GoingBack): readonly StreamReset[] {
  const now = Date.now();
  return store.transaction(() => {
    // Numbers of forgotten blocks must not be given anew: a walk that is open would take later
    // blocks for earlier ones.
    const newest = Math.max(0, ...Object.values(places).map(({ block }) => block));
    store.streams.reserveBlocks(newest);
    return Array.from(streams, (stream) => {
      const place = Object.hasOwn(places, stream) ? places[stream] : undefined;
      const block = place?.block ?? 0;
      store.streams.forgetAfter(stream, block);
      // Where their lists had come when all was delivered nobody has noted.
      store.parents.reset(stream);
      store.parents.forgetSince(stream, 0);
      if (place === undefined) store.streams.reset(stream);
      else store.streams.saveCheckpoint(stream, place.checkpoint, place.at);
      const reset: StreamReset = {
        stream,
        deliveredAt: place?.at ?? null,
        reason: 'state_damaged',
      };
      const page = tell(reset);
      if (page !== null) store.hold(page, now);
      return reset;
    });
  });
}

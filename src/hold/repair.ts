// A damaged state database is set aside and a new one built instead, before any other opens it:
//
//   look       damage.ts finds damage; most starts end here
//   save       `sluice.db.partial` is filled with all readable rows (salvage.ts)
//   go back    if an undelivered event may be missing, every stream is reset to the last position at
//              which everything was delivered (delivered.ts), or to its start, and the reset is
//              reported to its sinks
//   replace    the partial file becomes `sluice.db.mended`, the damaged one is moved to a directory
//              of its own, where it stays, and the repaired one takes its name
//
// Invariants: an event that is missing from the new database and that some sink has not passed is
// read again; a start that is interrupted at any point is completed by the next; nothing found is
// ever deleted.

import { existsSync, renameSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import type { Epoch, NewPage, Offset } from '../contracts/index.ts';
import { findDamage, identityIn } from './damage.ts';
import { openDatabase, openToLook, Statements, storeError } from './database.ts';
import { type DeliveredCopy, readDelivered, writeDelivered } from './delivered.ts';
import { takeLock } from './lock.ts';
import { addOutbox, noteDifferences } from './outbox.ts';
import { makePrivateDirectory, makePrivateFile, syncPath } from './private-files.ts';
import { reachedName } from './reached.ts';
import { withReserve } from './reserve.ts';
import { nothingSalvaged, type Salvaged, salvage } from './salvage.ts';
import { databaseName, databaseSuffixes, type Sync } from './schema.ts';
import { Store } from './store.ts';

/** Settings of a repair. */
export interface RepairSettings {
  readonly dir: string;
  readonly sync: Sync;
  /** The sinks of the config: events that all of them have passed need not be read again. */
  readonly sinks: readonly string[];
  /** The streams of the config. */
  readonly streams: readonly string[];
  /** The database is the cache of a log, which must receive the repair; default: false. */
  readonly isCache?: boolean;
  /** Builds the page that reports a stream's reset to its sinks; null: no sink receives it. */
  readonly report: (reset: StreamReset) => NewPage | null;
}

/** A stream that was reset. */
export interface StreamReset {
  readonly stream: string;
  /**
   * It resumes from the time by which everything was delivered (epoch ms); null: from its start.
   */
  readonly deliveredAt: number | null;
  /** Damaged: the unreadable part is read again. Older: what was read since is read again. */
  readonly reason: 'state_damaged' | 'state_older';
}

/** The result of a repair. */
export interface Repaired {
  /** The damage, in SQLite's words or sluice's. */
  readonly damage: string;
  /** The damaged database's new path; null if no file was left. */
  readonly aside: string | null;
  /** Events still stored. */
  readonly saved: number;
  /** Events that were stored and are lost; null if their number is unknown. */
  readonly lost: number | null;
  readonly resets: readonly StreamReset[];
  readonly deadLettersSaved: boolean;
}

const partial = `${databaseName}.partial`;
const repaired = `${databaseName}.mended`;

/**
 * Checks the state database and repairs it if needed; null if it is sound or missing. Throws
 * `state_locked` while another process holds the directory, and `disk_full`, which leaves the
 * damaged database untouched.
 */
export function repairDatabase(settings: RepairSettings): Repaired | null {
  const { dir } = settings;
  using _lock = takeLock(dir);
  return withReserve(dir, () => checkAndRepair(settings));
}

function checkAndRepair(settings: RepairSettings): Repaired | null {
  const { dir } = settings;
  try {
    if (existsSync(join(dir, repaired)) && !existsSync(join(dir, databaseName))) replace(dir);
    remove(dir, partial);
    remove(dir, repaired);
    const copy = readDelivered(dir);
    const damage = damageIn(dir, copy);
    if (damage === null) return null;
    const rebuilt = rebuild(settings, copy);
    if (settings.isCache === true) noteRepair(settings);
    renameSync(join(dir, partial), join(dir, repaired));
    syncPath(dir);
    // First: of a start that ends after `replace`, the next one would take the new database for an older one.
    writeDelivered(dir, rebuilt.copy, settings.sync !== 'none');
    if (!rebuilt.isWhole) rmSync(join(dir, reachedName), { force: true });
    const aside = replace(dir);
    return { damage, aside, ...rebuilt.report };
  } catch (error) {
    throw storeError(error, `repairing the state database in ${dir}`);
  }
}

/** An empty or missing file is a database not created yet, unless a copy refers to one. */
function damageIn(dir: string, copy: DeliveredCopy | null): string | null {
  const path = join(dir, databaseName);
  const size = statSync(path, { throwIfNoEntry: false })?.size ?? null;
  if (size === null) return copy === null ? null : 'its file is gone';
  if (size === 0) return copy === null ? null : 'its file is empty';
  return findDamage(path, copy);
}

/** Puts the repaired database in place; also after an earlier start was interrupted here. */
function replace(dir: string): string | null {
  const aside = setAside(dir);
  renameSync(join(dir, repaired), join(dir, databaseName));
  syncPath(dir);
  return aside;
}

/** The file itself is moved first: while it exists, the next start repeats the repair. */
function setAside(dir: string): string | null {
  const names = databaseSuffixes.map((suffix) => databaseName + suffix);
  const found = names.filter((name) => existsSync(join(dir, name)));
  if (found.length === 0) return null;
  const aside = join(dir, `damaged-${new Date().toISOString().replaceAll(':', '')}`);
  makePrivateDirectory(aside);
  for (const name of found) {
    renameSync(join(dir, name), join(aside, name));
    makePrivateFile(join(aside, name));
  }
  syncPath(aside);
  syncPath(dir);
  return aside;
}

function remove(dir: string, name: string): void {
  for (const suffix of databaseSuffixes) rmSync(join(dir, name + suffix), { force: true });
}

interface Rebuilt {
  /** The second copy that belongs to the new database. */
  readonly copy: DeliveredCopy;
  /** False: it has no earlier epoch, so no position noted beside it is valid. */
  readonly isWhole: boolean;
  readonly report: Pick<Repaired, 'saved' | 'lost' | 'resets' | 'deadLettersSaved'>;
}

/** Builds the new database: the same spool with a new epoch; lost offsets are void. */
function rebuild(settings: RepairSettings, copy: DeliveredCopy | null): Rebuilt {
  const { dir, sync, sinks } = settings;
  const found = saveWhatCanBeRead(dir, sync, copy);
  using store = new Store({ dir, sync, name: partial, keepMs: 0 });
  const ofThisSpool = copy !== null && (found.spool === null || found.spool === copy.spool);
  const places = ofThisSpool ? copy.streams : {};
  // The stored pages end after the end that was found, or the identity is lost: the files beside
  // the database are of another time, and neither their offsets nor a missing checkpoint mean
  // anything.
  const isOutdated = found.spool === null || (found.end !== null && store.end > found.end);
  const lost = found.end === null || isOutdated ? null : missingBefore(store, sinks, found.end);
  const { checkpoint, identities, entity, dead_letter: deadLettersSaved } = found.salvaged;
  const held = new Set(store.streams.checkpoints().map(({ stream }) => stream));
  const placed = Object.keys(places);
  const checkpoints = checkpoint && placed.every((stream) => held.has(stream));
  const isWhole = lost === 0 && checkpoints && identities && entity;
  // A stream without a checkpoint has never been read, if all checkpoints were saved.
  const streams = new Set([
    ...held,
    ...placed,
    ...(checkpoint && !isOutdated ? [] : settings.streams),
  ]);
  const { events: saved } = store.held();
  // Records read again get other offsets: a sink that reads its destination must recognise them
  // by uid.
  if (!isWhole) store.doubtEpochs();
  store.beginEpoch(Date.now());
  const resets = isWhole ? [] : goBack(store, { streams, places, report: settings.report });
  const { end } = store.gauge();
  return {
    copy: { spool: store.id, end, streams: places },
    isWhole,
    report: { saved, lost, resets, deadLettersSaved },
  };
}

/** From now on the log receives all changes, and first those of the repair. */
function noteRepair({ dir, sync }: RepairSettings): void {
  using database = openDatabase({ dir, sync, name: partial });
  const statements = new Statements(database);
  addOutbox(statements);
  noteDifferences(statements, join(dir, databaseName));
  statements.clear();
}

interface Found {
  readonly salvaged: Salvaged;
  readonly spool: string | null;
  readonly end: Offset | null;
  /** The epochs of its offsets; none if unreadable. */
  readonly epochs: readonly Epoch[];
}

function saveWhatCanBeRead(dir: string, sync: Sync, copy: DeliveredCopy | null): Found {
  using fresh = openDatabase({ dir, sync, name: partial });
  const found = readInto(fresh, join(dir, databaseName));
  const last = fresh.prepare('SELECT coalesce(max(first + count), 0) AS n FROM page').get()?.n;
  const bound = found.end ?? Number(last);
  // A sink that has lost its position receives all stored events again.
  fresh
    .prepare("DELETE FROM position WHERE typeof(next) <> 'integer' OR next NOT BETWEEN 0 AND ?")
    .run(bound);
  // No sink may wait for an event between here and the old end: none will be stored there.
  fresh.exec(`UPDATE meta SET value = CAST(max(
    (SELECT coalesce(max(first + count), 0) FROM page),
    (SELECT coalesce(max(next), 0) FROM position)) AS TEXT) WHERE key = 'end'`);
  const spool = found.spool ?? copy?.spool ?? null;
  if (spool !== null) {
    fresh.prepare("UPDATE meta SET value = ? WHERE key = 'spool_id'").run(spool);
  }
  fresh.prepare("INSERT INTO meta VALUES ('epochs', ?)").run(JSON.stringify(found.epochs));
  return found;
}

function readInto(fresh: DatabaseSync, path: string): Found {
  const nothing: Found = { salvaged: nothingSalvaged, spool: null, end: null, epochs: [] };
  // An empty file would be opened as a database without tables.
  if ((statSync(path, { throwIfNoEntry: false })?.size ?? 0) === 0) return nothing;
  using damaged = openToLook(path);
  return { salvaged: salvage(damaged, fresh), ...identityIn(damaged) };
}

/** Missing events that some sink, also a removed one, has not passed. */
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
  readonly report: RepairSettings['report'];
}

function goBack(store: Store, { streams, places, report }: GoingBack): readonly StreamReset[] {
  const now = Date.now();
  return store.transaction(() => {
    // Numbers of deleted blocks must not be reused: an open walk would mistake later blocks for
    // earlier ones.
    const newest = Math.max(0, ...Object.values(places).map(({ block }) => block));
    store.streams.reserveBlocks(newest);
    return Array.from(streams, (stream) => {
      const place = Object.hasOwn(places, stream) ? places[stream] : undefined;
      const block = place?.block ?? 0;
      store.streams.forgetAfter(stream, block);
      // The lists' positions at the last complete delivery were not stored.
      store.parents.reset(stream);
      store.parents.forgetSince(stream, 0);
      if (place === undefined) store.streams.reset(stream);
      else store.streams.saveCheckpoint(stream, place.checkpoint, place.at);
      const reset: StreamReset = {
        stream,
        deliveredAt: place?.at ?? null,
        reason: 'state_damaged',
      };
      const page = report(reset);
      if (page !== null) store.hold(page, now);
      return reset;
    });
  });
}

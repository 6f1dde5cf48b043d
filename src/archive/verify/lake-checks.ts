// Checks the lake against the log: each cut and object against its entry, the events of a cut's objects against those
// of its pages, and objects without an entry. Invariants: memory is bounded by one cut; an object that waits for its
// entry, as after a crash or during writing, is reported and is no break; any other object without an entry is a break.

import { hash } from 'node:crypto';
import { ExportError, errorText, uidBytes } from '../../contracts/index.ts';
import type { EntryOf } from '../entries.ts';
import type { Erasures } from '../erasures.ts';
import { cutsPrefix, lakeBytesMax, lakePrefix, parseLakeCut, stemOfCut } from '../lake-cuts.ts';
import { eventsWithin } from '../lake-entries.ts';
import { loggedEntries } from '../logged.ts';
import type { ProvenReader } from '../proven-reader.ts';
import type { ArchiveReader } from '../reader.ts';
import { uidsRange } from '../segments.ts';
import type { Break } from './findings.ts';
import { LakeObjects } from './lake-objects.ts';
import { SegmentReading } from './page-bodies.ts';
import type { Strays } from './strays.ts';
import { UncutPages } from './uncut-pages.ts';

/** Dependencies of the checks. */
export interface LakeDeps {
  readonly reader: ArchiveReader;
  /** Entries proven by the signed tree. */
  readonly proven: ProvenReader;
  readonly strays: Strays;
  /** True for data read completely or partly in the requested time; RFC 3339. */
  readonly isAsked: (first: string, last?: string) => boolean;
  readonly found: (one: Break) => unknown;
  /** All erasures of the log; read only if something does not match its own entry. */
  readonly erasures: () => Promise<Erasures>;
}

/** A cut whose objects are being checked. */
interface OpenCut {
  readonly index: number;
  readonly entry: EntryOf<'lake_cut'>;
  readonly isAsked: boolean;
  /** By uid: occurrences in its objects minus occurrences in its pages. */
  readonly uids: Map<string, { left: number; readonly index: number; readonly object: string }>;
  objects: number;
  isBroken: boolean;
}

const nameDigits = 24;

/** Checks the lake of one archive. */
export class LakeChecks {
  readonly #deps: LakeDeps;
  #cut: OpenCut | null = null;
  #lastCut = '';
  /** Hashes of the names in entries, with the index of their cut: the names themselves could be many megabytes. */
  readonly #entered = new Map<string, number>();
  readonly #lakeObjects: LakeObjects;
  readonly uncut = new UncutPages();
  #objects = 0;
  #rows = 0;
  /** Events erased with their records. */
  #erased = 0;
  #pruned = 0;
  #absent = 0;
  /** Cuts that older versions entered without a signature. */
  #unsigned = 0;
  /** Events whose pages are unknown or deleted. */
  #uncompared = 0;

  constructor(deps: LakeDeps) {
    this.#deps = deps;
    this.#lakeObjects = new LakeObjects(deps);
  }

  async cut(index: number, entry: EntryOf<'lake_cut'>): Promise<void> {
    await this.end();
    const isAsked = this.#deps.isAsked(entry.first, entry.last);
    const isBroken = isAsked && (await this.#lakeObjects.cut(index, entry)) === 'broken';
    this.#cut = { index, entry, isAsked, uids: new Map(), objects: 0, isBroken };
    this.#lastCut = entry.object;
    this.uncut.cut(entry);
    this.#absent += entry.absent;
    if (entry.by === undefined) this.#unsigned += 1;
    this.#entered.set(keyOf(entry.object), index);
  }

  /** The entry of an object of the previous cut. */
  async object(index: number, entry: EntryOf<'lake'>): Promise<void> {
    const cut = this.#cut;
    this.#entered.set(keyOf(entry.object), cut?.index ?? index);
    if (cut === null) return this.#break(index, 'no cut names the object', entry.object);
    cut.objects += 1;
    if (!cut.isAsked) return;
    const object = await this.#lakeObjects.object(cut.entry.object, index, entry);
    if (object === 'broken') cut.isBroken = true;
    if (typeof object === 'string') return;
    const { body, erased } = object;
    this.#objects += 1;
    try {
      const left = body === null ? [] : await (await tables()).readUids(body);
      const uids = [...left, ...erased];
      if (uids.length !== entry.rows) {
        throw new SyntaxError(`it has ${left.length} rows, not ${entry.rows - erased.length}`);
      }
      this.#rows += left.length;
      this.#erased += erased.length;
      for (const uid of uids) {
        const known = cut.uids.get(uid);
        if (known === undefined) cut.uids.set(uid, { left: 1, index, object: entry.object });
        else known.left += 1;
      }
    } catch (error) {
      if (error instanceof ExportError) throw error;
      cut.isBroken = true;
      this.#break(index, `the object differs from its entry: ${errorText(error)}`, entry.object);
    }
  }

  /** Index of the cut's entry for an object or cut with this name; null: no entry names it. */
  cutOf(object: string): number | null {
    return this.#entered.get(keyOf(object)) ?? null;
  }

  /** A cut that was deleted with its objects. */
  pruned({ object }: EntryOf<'pruned'>): void {
    if (this.#lakeObjects.prune(object)) this.#pruned += 1;
  }

  /** An object that is rewritten without some events. */
  erased(index: number, entry: EntryOf<'lake_erased'>): void {
    if (this.#entered.has(keyOf(entry.object))) this.#lakeObjects.erase(entry);
    else this.#break(index, 'no entry names the object that this erases from', entry.object);
  }

  /** Checks that need the last object of a cut. */
  async end(): Promise<void> {
    const cut = this.#cut;
    this.#cut = null;
    if (cut === null) return;
    const { index, entry } = cut;
    if (cut.objects !== entry.objects) {
      this.#break(
        index,
        `the cut has ${cut.objects} entries of objects, not ${entry.objects}`,
        entry.object,
      );
    }
    if (!cut.isAsked || cut.isBroken || this.#lakeObjects.isMissing(entry.object)) return;
    if (entry.entries === null || !(await this.#isCompared(cut, entry.entries))) {
      this.#uncompared += entry.events;
    }
  }

  /** False if entries in between are damaged, which is reported there. */
  async #isCompared(cut: OpenCut, entries: readonly [number, number]): Promise<boolean> {
    try {
      return await this.#compare(cut, entries);
    } catch (error) {
      if (error instanceof SyntaxError) return false;
      throw error;
    }
  }

  /** Compares a cut's events with those of its pages; false if the pages are unavailable. */
  async #compare({ index, entry, uids }: OpenCut, [from, to]: readonly [number, number]) {
    const { reader, proven, found } = this.#deps;
    let absent = 0;
    let firstAbsent: Break | null = null;
    let reading: SegmentReading | null = null;
    for await (const { index: at, entry: page } of loggedEntries(proven, to + 1, from)) {
      if (page.t !== 'page') continue;
      const own = eventsWithin(page, entry.numbers);
      if (own.to <= own.from) continue;
      if (!this.#deps.isAsked(page.fetched_at)) return false;
      const { stream, seq, body } = page;
      if (reading?.object !== body.segment)
        reading = new SegmentReading(reader, body.segment, null);
      const kept = await uidsIn(reading, page);
      // A flaw of the page itself is reported where its body is read.
      if (kept === null) return false;
      for (let i = own.from; i < own.to; i += 1) {
        const known = uids.get(kept.toString('hex', i * uidBytes, (i + 1) * uidBytes));
        if (known !== undefined && known.left > 0) known.left -= 1;
        else {
          absent += 1;
          const what = `an event of the page is in no object of the lake's cut ${entry.object}`;
          firstAbsent ??= { index: at, stream, seq, object: null, what };
        }
      }
    }
    const extra = new Map<string, { index: number; rows: number; uid: string }>();
    for (const [uid, { left, index: at, object }] of uids) {
      if (left === 0) continue;
      const known = extra.get(object) ?? { index: at, rows: 0, uid };
      extra.set(object, { ...known, rows: known.rows + left });
    }
    for (const [object, { index: at, rows, uid }] of extra) {
      const what = `${rows} of its rows are of no page between the entries ${from} and ${to}, such as ${uid}`;
      this.#break(at, what, object);
    }
    if (absent !== entry.absent) {
      const what = `${absent} events of the pages ${from} to ${to} are in none of its objects, not ${entry.absent}`;
      this.#break(index, what, entry.object);
      if (firstAbsent !== null) found(firstAbsent);
    }
    return true;
  }

  /** Reports missing objects whose deletion has no entry, and objects that were never entered. */
  async finish(): Promise<readonly string[]> {
    await this.end();
    const undone = await this.#lakeObjects.finish();
    const waiting = await this.#others();
    const reported = (count: number, what: string) => (count === 0 ? [] : [what]);
    return [
      ...reported(
        this.#objects,
        `the lake: ${this.#rows} events in ${this.#objects} objects, as entries say`,
      ),
      ...reported(
        this.#absent,
        `the lake has ${this.#absent} events of pages not: it had them by then, or began later, as entries say`,
      ),
      ...reported(
        this.#unsigned,
        `${this.#unsigned} cuts of the lake were entered by an older version of sluice, which did not prove their files: their events are compared with pages, their columns are not proven`,
      ),
      ...reported(
        this.#uncompared,
        `${this.#uncompared} events of the lake could not be compared with pages: these went, or the events were sent once more`,
      ),
      ...reported(
        this.#pruned,
        `cuts of the lake that went with their objects, as entries say: ${this.#pruned}`,
      ),
      ...reported(
        this.#erased,
        `events of the lake that went with records that were erased, as entries say: ${this.#erased}`,
      ),
      ...undone,
      ...this.uncut.remarks(),
      ...reported(
        waiting.length,
        `${waiting.length} objects of the lake are not entered yet, and not proven: ${waiting.slice(0, 3).join(', ')}${waiting.length > 3 ? ' …' : ''}`,
      ),
    ];
  }

  /** Reports objects without an entry; returns the names of those that wait for theirs. */
  async #others(): Promise<readonly string[]> {
    const { reader } = this.#deps;
    const others: string[] = [];
    const waiting = new Set<string>();
    for await (const { name } of reader.store.list(lakePrefix)) {
      if (this.#entered.has(keyOf(name))) continue;
      if (!name.startsWith(cutsPrefix)) others.push(name);
      else if (name > this.#lastCut && (await this.#isCut(name, waiting))) waiting.add(name);
      else this.#deps.strays.found(name);
    }
    for (const name of others) {
      if (waiting.has(name) || (await this.#isWaiting(name))) waiting.add(name);
      else this.#deps.strays.found(name);
    }
    return others.filter((name) => waiting.has(name));
  }

  /** Adds the objects that a cut lists. */
  async #isCut(name: string, waiting: Set<string>): Promise<boolean> {
    try {
      const body = await this.#deps.reader.named('cut', name);
      for (const { object } of body === null ? [] : parseLakeCut(body).objects) waiting.add(object);
      return true;
    } catch (error) {
      if (error instanceof SyntaxError) return false;
      throw error;
    }
  }

  /** True for an object of a cut that is being written, or was interrupted. */
  async #isWaiting(name: string): Promise<boolean> {
    try {
      const { bytes = 0 } = (await this.#deps.reader.store.facts(name)) ?? {};
      if (bytes === 0 || bytes > lakeBytesMax) return false;
      const read = async (from: number, length: number) =>
        (await this.#deps.reader.named('lake', name, { from, length })) ?? new Uint8Array(0);
      const cut = await (await tables()).cutOf(bytes, read);
      return cut !== null && cut > stemOfCut(this.#lastCut);
    } catch (error) {
      if (error instanceof ExportError) throw error;
      return false;
    }
  }

  #break(index: number | null, what: string, object: string): void {
    this.#deps.found({ index, stream: null, seq: null, object, what });
  }
}

async function uidsIn(reading: SegmentReading, page: EntryOf<'page'>): Promise<Buffer | null> {
  try {
    const frame = Buffer.from(await reading.take(uidsRange(page)));
    return hash('sha256', frame) === page.uids.sha256 ? frame : null;
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}

/** Loaded only if there is a lake: the Parquet reader has a large schema. */
function tables() {
  return import('../../parquet/index.ts');
}

function keyOf(name: string): string {
  return hash('sha256', name).slice(0, nameDigits);
}

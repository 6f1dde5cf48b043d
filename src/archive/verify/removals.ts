// Removals from an archive: pruned segments and lake cuts, erased records, and missing data without an entry that
// explains it. Entries are read in log order, and the entry that explains a removal comes after the removed data.
// Invariants: a removal is judged by the proven entries of the removed pages, not by its own entry; a hold is in force
// from its entry to its release, whatever later entries with its id say; memory is bounded, however much is missing.

import { createHash } from 'node:crypto';
import { uidBytes } from '../../contracts/index.ts';
import { localReadTime } from '../clocks.ts';
import type { EntryOf, PageEntry } from '../entries.ts';
import { type Erasures, readVersion, versionsOf } from '../erasures.ts';
import { isHeld } from '../holds.ts';
import { loggedEntries } from '../logged.ts';
import { cutAt, readSpanOf } from '../proven-cuts.ts';
import type { ProvenReader } from '../proven-reader.ts';
import type { ArchiveReader } from '../reader.ts';
import { segmentAt } from '../retention.ts';
import { keptUids } from '../segments.ts';
import type { Break, Erasure, Removed } from './findings.ts';
import { type CheckedPage, checkedPage, type SegmentFacts } from './page-bodies.ts';

/** Dependencies of the checks. */
interface RemovalDeps {
  readonly reader: ArchiveReader;
  /** Entries as the signed tree has them. */
  readonly proven: ProvenReader;
  /** Index of the lake cut's entry for an object or cut with this name; null: none. */
  readonly cutOf: (object: string) => number | null;
  /** All erasures of the log; read only if something does not match its own entry. */
  readonly erasures: () => Promise<Erasures>;
  /** True: each removed body is a break. */
  readonly nothingGone: boolean;
  /** The log's present signing key, a vkey. */
  readonly keyOfLog: () => string;
  readonly found: (one: Break, at?: string) => Break;
}

/** Reading times of the first and last page, epoch milliseconds. */
interface ReadTimes {
  readonly first: number;
  readonly last: number;
}

/** Pages of a missing segment: the first ones, and their number. */
interface Missing {
  readonly listed: { readonly one: Break; readonly at: string }[];
  pages: number;
}

type HoldSpan = Pick<EntryOf<'hold'>, 'from' | 'to' | 'released_at'>;

/** Limit of remembered missing pages, plus the first of each segment. */
const missingMax = 10_000;
/** Limit of listed erasures. */
const erasuresMax = 10_000;
const windowBytes = 4 * 1024 * 1024;

/** Follows removals. */
export class Removals {
  readonly #deps: RemovalDeps;
  /** By object: pages of a missing segment, until an entry says that it was pruned. */
  readonly #missing = new Map<string, Missing>();
  #missingListed = 0;
  /** By id, as entered; without released ones. */
  readonly #holds = new Map<string, HoldSpan>();
  readonly erasures: Erasure[] = [];
  readonly removed: Removed = {
    ...{ retention: { objects: 0, pages: 0 }, asked: { objects: 0, pages: 0 } },
    ...{ erased: { records: 0, unproven_rest: 0 }, lake_rows: 0 },
  };
  /** By segment: the facts of its last erasure entry. */
  readonly #rewritten = new Map<string, SegmentFacts>();
  /** Keys beside the log's that may sign requests, by the last start; null: any request was accepted. */
  #operators: readonly string[] | null = null;
  /** Uids of erased records, and erased lake rows without an erased record so far, by uid. */
  readonly #erasedUids = new Set<string>();
  readonly #rows = new Map<string, Break>();
  /** Erased records whose uids can no longer be read. */
  #unknownUids = 0;

  constructor(deps: RemovalDeps) {
    this.#deps = deps;
  }

  /** A process starts to write, with its rules for requests. */
  start({ requests, operators = [] }: EntryOf<'start'>): void {
    this.#operators = requests === 'signed' ? operators : null;
  }

  /** The next entry about removals or holds. */
  async take(
    index: number,
    entry: EntryOf<'hold' | 'pruned' | 'erased' | 'lake_erased'>,
  ): Promise<void> {
    if (entry.t === 'hold') this.#hold(index, entry);
    else if (entry.t === 'pruned') await this.#pruned(index, entry);
    else if (entry.t === 'lake_erased') await this.#lakeErased(index, entry);
    else await this.#erased(index, entry);
  }

  /** A page whose segment is missing; `at`: its reading time. */
  miss(one: Break, at: string): void {
    const object = one.object ?? '';
    const missing = this.#missing.getOrInsertComputed(object, () => ({ listed: [], pages: 0 }));
    missing.pages += 1;
    if (missing.listed.length > 0 && this.#missingListed >= missingMax) return;
    missing.listed.push({ one, at });
    this.#missingListed += 1;
  }

  /** A page as archived, or without records erased later. Throws a SyntaxError. */
  async checked(entry: PageEntry, range: Uint8Array): Promise<CheckedPage> {
    try {
      return checkedPage(entry, range);
    } catch (error) {
      const versions = versionsOf(entry, await this.#deps.erasures());
      if (!(error instanceof SyntaxError) || versions.length === 1) throw error;
      return await readVersion(this.#deps.reader, versions, ({ entry, erased }, range) =>
        checkedPage(entry, range, erased),
      );
    }
  }

  /** The ids of the holds in force at the end of the log. */
  get holds(): readonly string[] {
    return [...this.#holds.keys()];
  }

  /** True if a segment matches one of its erasure entries. */
  async isRewritten(object: string): Promise<boolean> {
    const versions = (await this.#deps.erasures()).pages.get(object) ?? [];
    return await this.#isAny(
      object,
      versions.map(({ segment }) => segment),
    );
  }

  /** Reports missing data without an entry that explains it; returns remarks for the reader. */
  async finish(): Promise<readonly string[]> {
    for (const { listed } of this.#missing.values()) {
      for (const { one, at } of listed) this.#deps.found(one, at);
    }
    // If not all uids are known, a row without an erased record may belong to an unknown one.
    if (this.#unknownUids === 0) for (const one of this.#rows.values()) this.#deps.found(one);
    const remarks: string[] = [];
    const { retention, asked, erased } = this.removed;
    const pages = retention.pages + asked.pages;
    if (pages > 0) {
      remarks.push(
        `the bodies of ${pages} pages went, as entries say (by retention ${retention.pages}, on request ${asked.pages}); their hashes still prove them`,
      );
    }
    if (erased.unproven_rest > 0) {
      remarks.push(
        `${erased.unproven_rest} erasures are of an older version of sluice, which did not prove the rest of the body: the records beside the erased ones are proven, other fields of these answers are not`,
      );
    }
    for (const [object, facts] of this.#rewritten) {
      if (await this.#isAny(object, [facts])) continue;
      if ((await this.#deps.reader.store.facts(object)) === null) continue;
      remarks.push(
        `${object} still has a record that an entry erases: the erasure is not complete, or an older copy was restored`,
      );
    }
    return remarks;
  }

  /** A hold keeps the span of its first entry until an entry releases it. */
  #hold(index: number, { id, from, to, released_at, by }: EntryOf<'hold'>): void {
    const known = this.#holds.get(id);
    if (known !== undefined && (known.from !== from || known.to !== to)) {
      const what = `the hold ${id} was entered again with another span before it was released; it is judged by the first`;
      this.#deps.found({ index, stream: null, seq: null, object: null, what });
    }
    if (released_at !== null && known !== undefined) this.#checkAuthority(index, by, null);
    if (released_at !== null) this.#holds.delete(id);
    else if (known === undefined) this.#holds.set(id, { from, to, released_at });
  }

  async #pruned(index: number, entry: EntryOf<'pruned'>): Promise<void> {
    const { object, why } = entry;
    if (why === 'asked') this.#checkAuthority(index, entry.by, object);
    const { listed = [], pages = 0 } = this.#missing.get(object) ?? {};
    const removed = this.removed[why === 'retention' ? 'retention' : 'asked'];
    removed.objects += 1;
    removed.pages += pages;
    this.#missingListed -= listed.length;
    this.#missing.delete(object);
    const times = await this.#timesOf(object);
    if (times === undefined) return;
    if (times === null) this.#break(index, 'it prunes an object that no entry names', object);
    else this.#checkHolds(index, times, object);
    this.#refuseGone(index, object, `it was pruned (${why})`);
  }

  async #erased(index: number, entry: EntryOf<'erased'>): Promise<void> {
    const { at, page, records, reason, segment, rest } = entry;
    this.#checkAuthority(index, entry.by, page.segment);
    this.removed.erased.records += records.length;
    if (rest === undefined) this.removed.erased.unproven_rest += 1;
    if (this.erasures.length < erasuresMax) {
      this.#rewritten.set(page.segment, segment);
      const hashes = records.map(({ sha256 }) => sha256);
      this.erasures.push({ index, at, page: page.index, records: hashes, reason });
    }
    this.#refuseGone(index, page.segment, 'records were erased from it');
    const own = await this.#pageAt(page.index);
    if (own === undefined) return;
    if (own === null || own.body.segment !== page.segment || own.body.at !== page.at) {
      this.#break(index, `it erases from entry ${page.index}, which is no such page`, page.segment);
      return;
    }
    const readAt = Date.parse(own.fetched_at);
    this.#checkHolds(index, { first: readAt, last: readAt }, page.segment);
    await this.#takeUids(own, records);
  }

  async #lakeErased(index: number, { object, uids, by }: EntryOf<'lake_erased'>): Promise<void> {
    this.#checkAuthority(index, by, object);
    this.removed.lake_rows += uids.length;
    const times = await this.#timesOf(object);
    if (times != null) this.#checkHolds(index, times, object);
    this.#refuseGone(index, object, 'rows were erased from it');
    for (const uid of uids) {
      if (this.#erasedUids.has(uid)) continue;
      const what = `its row ${uid} was erased, and no entry erases the record of that event`;
      this.#rows.set(uid, { index, stream: null, seq: null, object, what });
    }
  }

  /** Reads the uids of erased records from the frame after their page's body, which stays. */
  async #takeUids(entry: PageEntry, records: EntryOf<'erased'>['records']): Promise<void> {
    const page = await keptUids(this.#deps.reader, entry).catch((error: unknown) => {
      if (error instanceof SyntaxError) return null;
      throw error;
    });
    if (page === null) {
      this.#unknownUids += 1;
      return;
    }
    for (const { place } of records) {
      const i = page.kept === null ? place : page.kept.indexOf(place);
      if (i < 0) continue;
      const uid = Buffer.from(page.uids).toString('hex', i * uidBytes, (i + 1) * uidBytes);
      this.#erasedUids.add(uid);
      this.#rows.delete(uid);
    }
  }

  /** Null: no object has that name; undefined: its entries are damaged, which is reported there. */
  async #timesOf(object: string): Promise<ReadTimes | null | undefined> {
    const { proven, cutOf } = this.#deps;
    return await unlessDamaged(async () => {
      if (object.startsWith('segments/')) return await segmentAt(object, proven);
      const index = cutOf(object);
      if (index === null) return null;
      const cut = await cutAt(index, proven);
      const { first, last, entries } = cut.entry;
      // For repeated events the pages are unknown: the writer named their times.
      if (entries === null) return { first: Date.parse(first), last: Date.parse(last) };
      return await readSpanOf(cut, proven, localReadTime);
    });
  }

  async #pageAt(index: number): Promise<PageEntry | null | undefined> {
    const { proven } = this.#deps;
    if (index >= proven.head.size) return null;
    return await unlessDamaged(async () => {
      for await (const { entry } of loggedEntries(proven, proven.head.size, index)) {
        return entry.t === 'page' ? entry : null;
      }
      return null;
    });
  }

  #checkHolds(index: number, times: ReadTimes, object: string): void {
    for (const [id, hold] of this.#holds) {
      if (isHeld(hold, times)) this.#break(index, `it went though the hold ${id} keeps it`, object);
    }
  }

  /** Checks the signer, if the archive accepts only signed requests. */
  #checkAuthority(index: number, by: string | undefined, object: string | null): void {
    if (this.#operators === null) return;
    if (by !== undefined && [...this.#operators, this.#deps.keyOfLog()].includes(by)) return;
    const who = by === undefined ? 'no key has signed' : `${by} has signed, which may not,`;
    const what = `${who} the request that it carries out`;
    this.#deps.found({ index, stream: null, seq: null, object, what });
  }

  #refuseGone(index: number, object: string, what: string): void {
    if (this.#deps.nothingGone) this.#break(index, `${what}, and --nothing-gone is given`, object);
  }

  #break(index: number, what: string, object: string): void {
    this.#deps.found({ index, stream: null, seq: null, object, what });
  }

  /** Reads a segment once for all of its versions. */
  async #isAny(object: string, versions: readonly SegmentFacts[]): Promise<boolean> {
    const most = versions.reduce((max, { bytes }) => Math.max(max, bytes), 0);
    const digest = createHash('sha256');
    let bytes = 0;
    while (bytes <= most && versions.length > 0) {
      const range = { from: bytes, length: windowBytes };
      const read = await this.#deps.reader.named('segment', object, range);
      if (read === null) return false;
      if (read.length === 0) break;
      digest.update(read);
      bytes += read.length;
    }
    const sha256 = digest.digest('hex');
    return versions.some((one) => one.bytes === bytes && one.sha256 === sha256);
  }
}

async function unlessDamaged<T>(work: () => Promise<T>): Promise<T | undefined> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

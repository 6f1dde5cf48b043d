// Erases single records on request (`erase/<uid>.json`, written by `archive erase`). Their pages are rewritten at the
// end of the segment with `null` in place of each record, and the old bytes are overwritten. Lake objects with the
// record's event are rewritten without it (lake-erasing.ts). Hash and uid stay, so all other records are proven as
// before.
// Invariants: the rest of a body is made from the proven body, and a store object without an entry is not rewritten;
// nothing is rewritten before the entry about it is under a signed checkpoint; data under a hold or lock stays; an
// interrupted erasure is repeated by the next writer, because the request is deleted last.

import { hash } from 'node:crypto';
import { ExportError, type Log as Lines } from '../contracts/index.ts';
import { lockText, type ObjectStore } from '../objects/index.ts';
import { cutRecords, timeText } from '../tools/index.ts';
import type { Authority } from './authority.ts';
import { readTimes } from './clocks.ts';
import { type Copy, copiesOf, everySpan, pathIn, pathsOf, placesOf, recordOf } from './copies.ts';
import type { ErasedEntry, PageEntry } from './entries.ts';
import {
  type ErasureRequest,
  erasureRequestBytesMax,
  parseRequest,
  requestsPrefix,
} from './erasure-request.ts';
import { erasuresIn, type PageVersion, versionsOf } from './erasures.ts';
import { holdsIn, refuseHeld } from './holds.ts';
import { lakeCopiesOf } from './lake-copies.ts';
import type { LakeEntries } from './lake-entries.ts';
import { type LakeRewriting, rewriteLake, withoutErased } from './lake-erasing.ts';
import type { ArchiveLog } from './log.ts';
import { loggedEntries } from './logged.ts';
import { ProvenCuts } from './proven-cuts.ts';
import type { ProvenReader } from './proven-reader.ts';
import { erasedText } from './records.ts';
import { blankFrame, compressBody, pageRange, readPage } from './segments.ts';

/** A request's object. */
interface RequestObject {
  readonly name: string;
  /** The version that was read; absent: none yet. */
  tag?: string;
}

/** The planned segments, and the request that they complete. */
export interface Rewriting {
  readonly requested: RequestObject;
  readonly authority: Authority;
  readonly segments: readonly {
    readonly object: string;
    readonly tag: string;
    readonly parts: readonly Uint8Array[];
  }[];
  readonly lake: readonly LakeRewriting[];
  /** Objects rewritten before: a process that ended then may have left their older versions. */
  readonly rewritten: readonly string[];
  /** False: these do not complete the request. */
  readonly isAll: boolean;
}

/** Limit of rejected requests that are looked at again with one checkpoint. */
const repeatedMax = 100;

/** Carries out requests, one with each checkpoint. */
export class EraseRequests {
  readonly #store: ObjectStore;
  readonly #lines: Lines;
  readonly #lake: Pick<LakeEntries, 'isBehind'>;
  readonly #cuts = new ProvenCuts();
  /** Tags of requests that cannot be carried out, by name: the next process tries them again. */
  readonly #stuck = new Map<string, string | undefined>();

  constructor(
    { store, log }: { readonly store: ObjectStore; readonly log: Lines },
    lake: Pick<LakeEntries, 'isBehind'>,
  ) {
    this.#store = store;
    this.#lines = log;
    this.#lake = lake;
  }

  /** Adds the erasures of one request to the log; `carryOut` follows after the checkpoint. */
  async enter(log: ArchiveLog, now: number): Promise<Rewriting | null> {
    await this.#releaseRepeated();
    for await (const { name } of this.#store.list(requestsPrefix)) {
      if (this.#stuck.has(name)) continue;
      const requested: RequestObject = { name };
      const entered = await this.#tried(requested, () => this.#enter(requested, log, now));
      if (entered !== null) return entered;
    }
    return null;
  }

  /** Rewrites the segments, and deletes the request. */
  async carryOut(log: ArchiveLog, rewriting: Rewriting | null): Promise<void> {
    if (rewriting === null) return;
    const { requested, authority, segments, lake, rewritten, isAll } = rewriting;
    await this.#tried(requested, async () => {
      for (const { object, parts, tag } of segments) {
        if ((await this.#store.replace(object, parts, tag)) === null) {
          throw new SyntaxError(`${object} was changed at the same moment`);
        }
        await this.#store.removeOlder(object);
      }
      await rewriteLake(this.#store, lake);
      for (const object of rewritten) await this.#store.removeOlder(object);
      if (isAll) {
        await this.#store.remove(requested.name);
        log.done(authority);
      }
      const counts = { segments: segments.length, lake: lake.length };
      // Repeated requests for already erased records change nothing.
      if (counts.segments + counts.lake > 0)
        this.#lines.info('archive_erased', 'record erased from the archive', counts);
      return null;
    });
  }

  /** An operator may request the same again, with another key or after a release. Others may fill the store, so few are read. */
  async #releaseRepeated(): Promise<void> {
    for (const [name, tag] of [...this.#stuck].slice(0, repeatedMax)) {
      const found = await this.#store.facts(name);
      this.#stuck.delete(name);
      if (found !== null && found.tag === tag) this.#stuck.set(name, tag);
    }
  }

  async #tried<T>(requested: RequestObject, work: () => Promise<T | null>): Promise<T | null> {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof ExportError || error instanceof SyntaxError)) throw error;
      const isLasting = !(error instanceof ExportError) || error.code === 'sink_refused';
      if (isLasting) this.#stuck.set(requested.name, requested.tag);
      const next = error instanceof ExportError ? error.next : 'Request it again: archive erase.';
      const facts = { request: requested.name, error: error.message, next };
      this.#lines.warn(
        'archive_erase_failed',
        'a record could not be erased from the archive',
        facts,
      );
      return null;
    }
  }

  async #enter(requested: RequestObject, log: ArchiveLog, now: number): Promise<Rewriting | null> {
    const { name } = requested;
    const found = await this.#store.read(name, { from: 0, length: erasureRequestBytesMax });
    if (found === null) return null;
    requested.tag = found.tag;
    // If one cannot be read, nothing is erased.
    await holdsIn(this.#store);
    const request = parseRequest(found.body);
    const { signed, ...wish } = request;
    const authority = log.authorityOf({ kind: 'erase', wish, at: wish.asked_at, signed }, now);
    const { reader } = log;
    const places = await this.#placesOf(request, reader);
    if (!(await this.#isLakeProven(log, Math.max(-1, ...places.made)))) return null;
    const entries: ErasedEntry[] = [];
    const segments: Rewriting['segments'][number][] = [];
    const of = { request, authority, sha256: places.sha256, log, now };
    for (const [object, pages] of Map.groupBy(places.copies, ({ body }) => body.segment)) {
      const made = await this.#rewritten(object, { pages, ...of });
      if (made === null) continue;
      entries.push(...made.entries);
      segments.push({ object, tag: made.tag, parts: made.parts });
    }
    const { lake, isAll } = await withoutErased(places.lake, {
      ...{ reason: request.reason, authority, store: this.#store, log, now },
    });
    for (const entry of [...entries, ...lake.map(({ entry }) => entry)]) log.append(entry);
    const rewritten = await rewrittenBefore(places, reader);
    return { requested, authority, segments, lake, rewritten, isAll };
  }

  /**
   * False if the lake may have events of pages up to this one in a cut without a signed checkpoint: that cut is not
   * searched, and the record would stay in it.
   */
  async #isLakeProven(log: ArchiveLog, newest: number): Promise<boolean> {
    const last = await this.#cuts.lastPage(log.reader);
    if (last !== null) return newest <= last;
    return log.heads.lake === null && !(await this.#lake.isBehind(log));
  }

  /** The locations of the record, from proven data. Throws a SyntaxError if no page contains it. */
  async #placesOf({ uid, from, to }: ErasureRequest, reader: ProvenReader) {
    const span = {
      from: from == null ? everySpan.from : Date.parse(from),
      to: to == null ? everySpan.to : Date.parse(to),
    };
    const found = await recordOf(reader, uid, span);
    if (found === null) throw new SyntaxError('no page of the archive has the record');
    const { bytes, sha256, index } = found;
    const copies = await copiesOf(reader, { bytes, sha256 }, span);
    const uids = [...new Set([uid, ...copies.flatMap((copy) => copy.uids)])];
    const pages = [index, ...copies.map((copy) => copy.index)];
    const lake = await lakeCopiesOf(reader, this.#cuts, { pages, uids });
    const made = copies.filter((copy) => copy.uids.length > 0).map((copy) => copy.index);
    return { sha256, uids, copies, lake, made };
  }

  /** A segment without the record; null: it does not contain the record any more. */
  async #rewritten(
    object: string,
    asked: {
      readonly pages: readonly Copy[];
      readonly request: ErasureRequest;
      readonly authority: Authority;
      readonly sha256: string;
      readonly log: ArchiveLog;
      readonly now: number;
    },
  ) {
    const { pages, request, authority, sha256, log, now } = asked;
    const found = await provenSegment(object, log.reader);
    const { lock } = (await this.#store.facts(object)) ?? {};
    if (lock !== undefined) throw new SyntaxError(`${object}: ${lockText(lock)}`);
    const whole = Buffer.from(found.body);
    const added: Buffer[] = [];
    let end = whole.length;
    const made: Omit<ErasedEntry, 'segment'>[] = [];
    const all = [...pages, ...(await erasedBefore(object, pages, log.reader))];
    for (const { index, entry } of all) {
      const rewritten = await without(entry, { whole, record: sha256, reader: log.reader });
      if (rewritten === null) continue;
      const read = readTimes(entry);
      const span = { first: Math.min(...read), last: Math.max(...read) };
      refuseHeld(log.heads.holds, span);
      const { text, frame, kept, places, old } = rewritten;
      refuseMany(index, places.length);
      blankFrame(old);
      const page = { index, segment: object, at: entry.body.at, fetched_at: entry.fetched_at };
      made.push({
        ...{ t: 'erased', at: timeText(now), page, reason: request.reason, rest: 'proven' },
        ...authority,
        records: places.map((place) => ({ place, sha256 })),
        body: {
          ...{ sha256: hash('sha256', text, 'hex'), bytes: text.length },
          ...{ segment: object, at: end, length: frame.length },
        },
      });
      added.push(frame, kept);
      end += frame.length + kept.length;
    }
    if (made.length === 0) return null;
    const parts = [whole, ...added];
    const segment = { bytes: end, sha256: hash('sha256', Buffer.concat(parts), 'hex') };
    return { tag: found.tag, parts, entries: made.map((one) => ({ ...one, segment })) };
  }
}

/** The objects from which entries have erased the record. */
async function rewrittenBefore(
  { sha256, uids }: { readonly sha256: string; readonly uids: readonly string[] },
  reader: ProvenReader,
): Promise<readonly string[]> {
  const { pages, lake } = await erasuresIn(reader);
  const segments = [...pages].filter(([, entries]) =>
    entries.some(({ records }) => records.some((one) => one.sha256 === sha256)),
  );
  const objects = [...lake].filter(([, entries]) =>
    entries.some((entry) => entry.uids.some((uid) => uids.includes(uid))),
  );
  return [...segments, ...objects].map(([object]) => object);
}

/** Limit of records per entry. */
const recordsMax = 500;

/** Throws a SyntaxError if one entry cannot name all records to erase; then none is entered. */
function refuseMany(index: number, count: number): void {
  if (count <= recordsMax) return;
  throw new SyntaxError(
    `the page of entry ${index} has the record ${count} times, and one erasure removes ${recordsMax} at most`,
  );
}

/** Pages of a segment from which entries have erased records, without the listed pages. */
async function erasedBefore(
  object: string,
  listed: readonly Pick<Copy, 'index'>[],
  reader: ProvenReader,
): Promise<readonly Pick<Copy, 'index' | 'entry'>[]> {
  const erased = (await erasuresIn(reader)).pages.get(object) ?? [];
  const indexes = new Set(erased.map(({ page }) => page.index));
  for (const { index } of listed) indexes.delete(index);
  const found: Pick<Copy, 'index' | 'entry'>[] = [];
  for (const index of indexes) {
    for await (const { entry } of loggedEntries(reader, reader.head.size, index)) {
      if (entry.t === 'page') found.push({ index, entry });
      break;
    }
  }
  return found;
}

/**
 * A page's frames without the record, and without records of earlier erasures, because an older segment may have been
 * put back. Null if nothing is left to erase.
 */
async function without(
  entry: PageEntry,
  {
    whole,
    record,
    reader,
  }: { readonly whole: Buffer; readonly record: string; readonly reader: ProvenReader },
) {
  const versions = versionsOf(entry, await erasuresIn(reader));
  const { body, old, kept } = existingIn(whole, versions);
  const path = pathIn(body, await pathsOf(reader, entry));
  const { starts, ends } = cutRecords(body, path);
  const places = placesOf(body, path, record);
  const before = [...(versions[0]?.erased.keys() ?? [])];
  const isThere = (place: number) =>
    Buffer.compare(body.subarray(starts[place], ends[place]), erasedText) !== 0;
  const gone = [...new Set([...places, ...before])].filter(isThere).toSorted((a, b) => a - b);
  if (gone.length === 0) return null;
  const pieces: Uint8Array[] = [];
  let at = 0;
  for (const place of gone) {
    pieces.push(body.subarray(at, starts[place]), erasedText);
    at = ends[place] ?? body.length;
  }
  const text = Buffer.concat([...pieces, body.subarray(at)]);
  return { text, kept: Buffer.from(kept), places, old, frame: await compressBody(text) };
}

/**
 * The newest of these versions of a page that is in the segment; `old`: the frame of its body. Throws a SyntaxError.
 */
function existingIn(whole: Buffer, versions: readonly PageVersion[]) {
  for (const [i, { entry }] of versions.entries()) {
    const { from, length } = pageRange(entry);
    const range = whole.subarray(from, from + length);
    const [old, kept] = [range.subarray(0, entry.body.length), range.subarray(entry.body.length)];
    try {
      return { body: readPage(entry, range).body, old, kept };
    } catch (error) {
      if (!(error instanceof SyntaxError) || i === versions.length - 1) throw error;
    }
  }
  throw new SyntaxError('there is no such page');
}

/**
 * A segment that matches its own entry or an erasure. Throws a SyntaxError for any other content, and if it is missing:
 * the record could be put back with it.
 */
async function provenSegment(object: string, reader: ProvenReader) {
  const known: Pick<ErasedEntry['segment'], 'bytes' | 'sha256'>[] = [];
  const index = Number(/(\d{20})\.zst$/.exec(object)?.[1] ?? '0');
  for await (const { entry } of loggedEntries(reader, reader.head.size, index)) {
    if (entry.t === 'segment' && entry.object === object) known.push(entry);
    break;
  }
  const { pages } = await erasuresIn(reader);
  known.push(...(pages.get(object) ?? []).map(({ segment }) => segment));
  const most = known.reduce((max, { bytes }) => Math.max(max, bytes), 0);
  const found = await reader.store.read(object, { from: 0, length: most + 1 });
  if (found === null) throw new SyntaxError(`${object} is missing`);
  const sha256 = hash('sha256', found.body, 'hex');
  if (known.some((one) => one.sha256 === sha256)) return found;
  throw new SyntaxError(`${object} differs from its entry`);
}

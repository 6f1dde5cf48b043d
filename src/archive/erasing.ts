// Erases single records on request (`erase/<uid>.json`, which `archive erase` has written): their
// pages are written anew at the end of the segment with `null` in the place of each, and where their
// bodies stood are bytes that say nothing; objects of the lake that have its event are written anew
// without it (lake-erasing.ts). Hash and uid stay, so all others are proven as before.
// What must stay true: nothing is written anew before the entry that says so is under a signed
// checkpoint; what a hold or a lock keeps stays; and an erasure that was broken off is done again by
// whoever writes next, from the request, which goes last.

import { hash } from 'node:crypto';
import { ExportError } from '../contracts/errors.ts';
import type { Log as Lines } from '../contracts/tools.ts';
import { lockText, type ObjectStore } from '../objects/store.ts';
import { cutRecords } from '../tools/record-list.ts';
import { timeText } from '../tools/time-text.ts';
import { type ErasedEntry, type PageEntry, parseEntry } from './entries.ts';
import { type ErasureRequest, parseRequest, requestsPrefix } from './erasure-request.ts';
import { findErasures, versionsOf } from './erasures.ts';
import { readEntries } from './growing-tree.ts';
import { holdsIn, refuseHeld } from './holds.ts';
import { type LakeRewriting, rewriteLake, withoutErased } from './lake-erasing.ts';
import type { Log } from './log.ts';
import { ArchiveReader } from './reader.ts';
import { erasedText } from './records.ts';
import { blankFrame, compressBody, isBlank, pageRange, readPage } from './segments.ts';

/** Indexes of the body's records whose bytes have this hash. */
export function placesOf(body: Uint8Array, items: string, record: string): readonly number[] {
  const { starts, ends, length } = cutRecords(body, items);
  return Array.from({ length }, (_, i) => i).filter(
    (i) => hash('sha256', body.subarray(starts[i], ends[i]), 'hex') === record,
  );
}

/** Segments as they are to be, and the request that is done then. */
export interface Rewriting {
  readonly path: string;
  readonly segments: readonly {
    readonly object: string;
    readonly tag: string;
    readonly parts: readonly Uint8Array[];
  }[];
  readonly lake: readonly LakeRewriting[];
  /** False: the request is not done with these. */
  readonly isAll: boolean;
}

/** Carries requests out, one with each checkpoint. */
export class Erasing {
  readonly #store: ObjectStore;
  readonly #lines: Lines;
  /** Requests that cannot be carried out: looked at again by the next process. */
  readonly #stuck = new Set<string>();

  constructor({ store, log }: { readonly store: ObjectStore; readonly log: Lines }) {
    this.#store = store;
    this.#lines = log;
  }

  /** Enters what one request erases into the log; `carryOut` follows once that is signed. */
  async enter(log: Log, now: number): Promise<Rewriting | null> {
    for await (const { name } of this.#store.list(requestsPrefix)) {
      if (this.#stuck.has(name)) continue;
      const entered = await this.#tried(name, () => this.#enter(name, log, now));
      if (entered !== null) return entered;
    }
    return null;
  }

  /** Writes the segments anew, and takes the request away. */
  async carryOut(rewriting: Rewriting | null): Promise<void> {
    if (rewriting === null) return;
    const { path, segments, lake, isAll } = rewriting;
    await this.#tried(path, async () => {
      for (const { object, parts, tag } of segments) {
        if ((await this.#store.replace(object, parts, tag)) === null) {
          throw new SyntaxError(`${object} was changed at the same moment`);
        }
        await this.#store.removeOlder(object);
      }
      await rewriteLake(this.#store, lake);
      if (isAll) await this.#store.remove(path);
      const counts = { segments: segments.length, lake: lake.length };
      // Requests of what was erased before change nothing.
      if (counts.segments + counts.lake > 0)
        this.#lines.info('a record was erased from the archive', counts);
      return null;
    });
  }

  async #tried<T>(name: string, work: () => Promise<T | null>): Promise<T | null> {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof ExportError || error instanceof SyntaxError)) throw error;
      this.#stuck.add(name);
      const next = error instanceof ExportError ? error.next : 'Ask for it again: archive erase.';
      const facts = { request: name, error: error.message, next };
      this.#lines.warn('a record that is to be erased from the archive stays', facts);
      return null;
    }
  }

  async #enter(name: string, log: Log, now: number): Promise<Rewriting | null> {
    const found = await this.#store.read(name);
    if (found === null) return null;
    // Where one cannot be read nothing goes.
    await holdsIn(this.#store);
    const request = parseRequest(found.body);
    // What goes is entered behind the entry of what it was.
    if (request.lake.some(({ cut }) => cut > (log.heads.lake?.cut ?? ''))) return null;
    const objects = Map.groupBy(request.pages, ({ body }) => body.segment);
    const entries: ErasedEntry[] = [];
    const segments: Rewriting['segments'][number][] = [];
    for (const [object, pages] of objects) {
      const made = await this.#rewritten(object, { pages, request, log, now });
      if (made === null) continue;
      entries.push(...made.entries);
      segments.push({ object, tag: made.tag, parts: made.parts });
    }
    const { lake, isAll } = await withoutErased(request, { store: this.#store, log, now });
    for (const entry of [...entries, ...lake.map(({ entry }) => entry)]) log.append(entry);
    return { path: name, segments, lake, isAll };
  }

  /** A segment without the record; null where it has it no more. */
  async #rewritten(
    object: string,
    asked: {
      readonly pages: ErasureRequest['pages'];
      readonly request: ErasureRequest;
      readonly log: Log;
      readonly now: number;
    },
  ) {
    const { pages, request, log, now } = asked;
    const found = await this.#store.read(object);
    if (found === null) return null;
    const { lock } = (await this.#store.facts(object)) ?? {};
    if (lock !== undefined) throw new SyntaxError(`${object}: ${lockText(lock)}`);
    const whole = Buffer.from(found.body);
    const added: Buffer[] = [];
    let end = whole.length;
    const made: Omit<ErasedEntry, 'segment'>[] = [];
    for (const { index, body } of pages) {
      const entry = await this.#pageAt(index, log.published?.size ?? 0);
      if (entry?.body.segment !== object) throw new SyntaxError(`entry ${index} is no page of it`);
      const read = Date.parse(entry.fetched_at);
      refuseHeld(log.heads.holds, { first: read, last: read });
      const standing = await this.#bodyNow(entry, { body, whole, size: log.published?.size ?? 0 });
      const rewritten = await this.#without({ ...entry, body: standing }, whole, request.sha256);
      if (rewritten === null) continue;
      const { text, frame, kept, places, range } = rewritten;
      blankFrame(range.subarray(0, standing.length));
      const page = { index, segment: object, at: entry.body.at, fetched_at: entry.fetched_at };
      made.push({
        ...{ t: 'erased', at: timeText(now), page, reason: request.reason },
        records: places.map((place) => ({ place, sha256: request.sha256 })),
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

  /** Where a page's body is: another request may have moved it since this one was written. */
  async #bodyNow(
    entry: PageEntry,
    { body, whole, size }: { body: PageEntry['body']; whole: Buffer; size: number },
  ) {
    const frameOf = ({ at, length }: PageEntry['body']) => whole.subarray(at, at + length);
    if (!isBlank(frameOf(body))) return body;
    const erasures = await findErasures(new ArchiveReader(this.#store), size);
    for (const { entry: version } of versionsOf(entry, erasures)) {
      const { from, length } = pageRange(version);
      try {
        readPage(version, whole.subarray(from, from + length));
        return version.body;
      } catch (error) {
        if (!(error instanceof SyntaxError)) throw error;
      }
    }
    throw new SyntaxError(`the page of ${entry.body.segment} is in none of its versions`);
  }

  async #pageAt(index: number, size: number): Promise<PageEntry | null> {
    for await (const bytes of readEntries(this.#store, index, size)) {
      const entry = parseEntry(bytes);
      return entry.t === 'page' ? entry : null;
    }
    return null;
  }

  /** A page's frames without the record; null where it was erased from there before. */
  async #without(entry: PageEntry, whole: Buffer, record: string) {
    const { from, length } = pageRange(entry);
    const range = whole.subarray(from, from + length);
    if (isBlank(range.subarray(0, entry.body.length))) return null;
    const { body } = readPage(entry, range);
    const places = placesOf(body, entry.items, record);
    if (places.length === 0) return null;
    const { starts, ends } = cutRecords(body, entry.items);
    const pieces: Uint8Array[] = [];
    let at = 0;
    for (const place of places) {
      pieces.push(body.subarray(at, starts[place]), erasedText);
      at = ends[place] ?? body.length;
    }
    const text = Buffer.concat([...pieces, body.subarray(at)]);
    const kept = Buffer.from(range.subarray(entry.body.length));
    return { text, kept, places, range, frame: await compressBody(text) };
  }
}

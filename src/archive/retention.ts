// Deletes from an archive: segments of bodies, and lake cuts with their objects, that are older than their retention,
// or than an operator's request (`prune.json`), and that no hold keeps. The tree and its entries stay, so every
// remaining proof stays valid, and an entry names each deleted segment and the reason. Invariants: nothing is deleted
// before the entry about it is under a signed checkpoint; a segment is deleted as a whole, once its youngest page is
// old enough; holds are entered before anything is checked.

import { z } from 'zod';
import { ExportError, type Log as Lines } from '../contracts/index.ts';
import { lockText, type ObjectLock, type ObjectStore } from '../objects/index.ts';
import { timeText } from '../tools/index.ts';
import type { Authority } from './authority.ts';
import { localReadTime, readTimes } from './clocks.ts';
import { Holds, isHeld } from './holds.ts';
import { cutsPrefix } from './lake-cuts.ts';
import type { ArchiveLog } from './log.ts';
import { loggedEntries, sizeOf } from './logged.ts';
import { dayOfCut, ProvenCuts, readSpanOf } from './proven-cuts.ts';
import type { ArchiveReader } from './reader.ts';
import { jsonIn, readSmall } from './small-objects.ts';

/** A request of `archive prune`. */
export const prunePath = 'prune.json';
const segmentsPrefix = 'segments/';
/** The name of no object. */
const noObject = 'check';

const wishShape = z.object({
  before: z.iso.datetime(),
  asked_at: z.iso.datetime(),
  /** Absent: unsigned (authority.ts). */
  signed: z.string().optional(),
});

/** Dependencies of retention. */
export interface RetentionSettings {
  readonly store: ObjectStore;
  readonly log: Lines;
  /** Retention of bodies, milliseconds; null: forever. */
  readonly bodiesMs: number | null;
}

/** A segment whose pages are all old enough. Times are epoch milliseconds. */
export interface OldSegment {
  readonly object: string;
  readonly bytes: number;
  /** Number of pages with bodies in it. */
  readonly pages: number;
  readonly first: number;
  readonly last: number;
}

/** Interval of the checks. */
const lookEveryMs = 3_600_000;
/** Limit of segments deleted with one checkpoint. */
const segmentsMax = 256;

/** The content of `prune.json`. Epoch milliseconds. */
export function pruneWish(before: number, now: number) {
  return { before: timeText(before), asked_at: timeText(now) };
}

/** The bytes of `prune.json`; `signed`: its signature (authority.ts), if there is one. */
export function encodeWish(before: number, now: number, signed?: string): Buffer {
  const wish = { ...pruneWish(before, now), ...(signed !== undefined && { signed }) };
  return Buffer.from(`${JSON.stringify(wish)}\n`);
}

/** Deletes due objects of one archive while its writer publishes. */
export class Retention {
  readonly #settings: RetentionSettings;
  readonly #cuts = new ProvenCuts();
  readonly #holds: Holds;
  #lookedAt = Number.NEGATIVE_INFINITY;
  /** Objects that the store refused to delete: the next process tries again. */
  readonly #stuck = new Set<string>();
  /** The signer of the request that the next checkpoint completes; null: none. */
  #wish: Authority | null = null;
  /** The last reported reason why nothing is deleted. */
  #failure: string | null = null;

  constructor(settings: RetentionSettings) {
    this.#settings = settings;
    this.#holds = new Holds(settings);
  }

  /**
   * Enters holds and deletions into the log; `remove` follows once they are signed. If holds cannot be read, nothing is
   * deleted, and pages are archived all the same. `upstreamNow`: the present by upstream's clock.
   */
  async enter(log: ArchiveLog, now: number, upstreamNow: number): Promise<readonly Gone[]> {
    try {
      return await this.#enter(log, now, upstreamNow);
    } catch (error) {
      if (!(error instanceof ExportError || error instanceof SyntaxError)) throw error;
      if (this.#failure !== error.message) {
        const next = error instanceof ExportError ? { next: error.next } : {};
        const facts = { error: error.message, ...next };
        this.#settings.log.warn('retention_paused', 'retention: nothing deleted', facts);
      }
      this.#failure = error.message;
      this.#wish = null;
      return [];
    }
  }

  async #enter(log: ArchiveLog, now: number, upstreamNow: number): Promise<readonly Gone[]> {
    const { store, bodiesMs } = this.#settings;
    await this.#holds.enter(log, now);
    const wished = await this.#wished(log, now);
    this.#wish = wished?.authority ?? null;
    // This machine's clock may be years ahead, and a deleted body does not come back: both clocks must agree.
    const age = Math.min(now, upstreamNow);
    const isDue = bodiesMs !== null && Math.abs(now - this.#lookedAt) >= lookEveryMs;
    if (!isDue && wished === null) return [];
    this.#lookedAt = now;
    const kept = bodiesMs === null ? Number.NEGATIVE_INFINITY : age - bodiesMs;
    const before = Math.max(kept, wished?.before ?? Number.NEGATIVE_INFINITY);
    const gone: Gone[] = [];
    let locked = 0;
    for await (const old of this.#oldObjects(before, log)) {
      const { object, pages, first, last, objects } = old;
      const isKept = Object.values(log.heads.holds).some((hold) => isHeld(hold, old));
      if (isKept || this.#stuck.has(object)) continue;
      const { lock } = (await store.facts(object)) ?? {};
      if (lock !== undefined) {
        locked += 1;
        if (locked === 1) this.#reportLocked(object, lock);
        // Later objects have later locks.
        if (locked === segmentsMax) break;
        continue;
      }
      // If the store denies deletes, no entry must claim a deletion.
      if (gone.length === 0) await store.remove(noObject);
      const why = last < kept ? 'retention' : 'asked';
      const times = { first: timeText(Math.max(first, 0)), last: timeText(last) };
      const authority = why === 'asked' ? wished?.authority : {};
      log.append({ t: 'pruned', at: timeText(now), object, pages, ...times, why, ...authority });
      gone.push({ object, objects });
      if (gone.length < segmentsMax) continue;
      // The rest follows with the next checkpoint.
      this.#lookedAt = Number.NEGATIVE_INFINITY;
      this.#wish = null;
      break;
    }
    return gone;
  }

  /** Deletes the entered objects. An object that the store keeps is reported, and stays. */
  async remove(of: ArchiveLog, gone: readonly Gone[]): Promise<void> {
    const { store, log } = this.#settings;
    for (const { object, objects } of gone) {
      try {
        // The cut is deleted last, so no object stays without it.
        for (const one of [...objects, object]) await store.remove(one);
      } catch (error) {
        if (!(error instanceof ExportError)) throw error;
        this.#stuck.add(object);
        const { message, next } = error;
        log.warn(
          'archive_object_not_deleted',
          'archive object is past retention but could not be deleted',
          {
            object,
            message,
            next,
          },
        );
      }
    }
    if (gone.length > 0)
      log.info('archive_bodies_deleted', 'retention: deleted page bodies', {
        objects: gone.length,
      });
    if (this.#wish !== null) await this.#forget();
    if (this.#wish !== null) of.done(this.#wish);
    this.#wish = null;
  }

  /** A request that cannot be deleted is read again with each checkpoint, which changes nothing. */
  async #forget(): Promise<void> {
    const { store, log } = this.#settings;
    try {
      await store.remove(prunePath);
    } catch (error) {
      if (!(error instanceof ExportError)) throw error;
      const { message, next } = error;
      if (this.#failure !== message)
        log.warn('prune_request_not_removed', 'cannot remove a completed request to prune', {
          message,
          next,
        });
      this.#failure = message;
    }
  }

  #reportLocked(object: string, lock: ObjectLock): void {
    const message = lockText(lock);
    if (this.#failure === message) return;
    this.#failure = message;
    const text = 'archive segment is past retention but locked';
    this.#settings.log.warn('archive_segment_locked', text, { object, message });
  }

  /** Objects that are old enough: segments, and lake cuts with entries. */
  async *#oldObjects(before: number, log: ArchiveLog): AsyncGenerator<OldSegment & Gone> {
    // Newly added entries are not in the store yet.
    const { reader } = log;
    for await (const segment of segmentsBefore(before, reader)) yield { ...segment, objects: [] };
    for await (const { name } of this.#settings.store.list(cutsPrefix)) {
      if (dayOfCut(name) > before) return;
      const cut = await this.#cuts.named(name, reader);
      if (cut === null) continue;
      const span = await readSpanOf(cut, reader);
      if (span.last >= before) continue;
      const bytes = cut.objects.reduce((sum, one) => sum + one.bytes, 0);
      const objects = cut.objects.map(({ object }) => object);
      yield { object: name, objects, bytes, pages: 0, ...span };
    }
  }

  async #wished(log: ArchiveLog, now: number) {
    const found = await readSmall(this.#settings.store, prunePath);
    if (found === null) return null;
    try {
      const { signed, ...wish } = readWish(found.body);
      const request = { kind: 'prune', wish, at: wish.asked_at, signed } as const;
      return { before: Date.parse(wish.before), authority: log.authorityOf(request, now) };
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error;
      if (this.#failure !== error.message) {
        const next =
          'Request it again: archive prune. Bodies past their time are deleted as before.';
        const facts = { error: error.message, next };
        this.#settings.log.warn(
          'prune_request_ignored',
          'ignored a request to prune the archive',
          facts,
        );
      }
      this.#failure = error.message;
      return null;
    }
  }
}

/** Parses `prune.json`. Throws a SyntaxError if it is no request. */
export function readWish(bytes: Uint8Array): z.output<typeof wishShape> {
  try {
    return wishShape.parse(jsonIn(bytes));
  } catch {
    throw new SyntaxError(`${prunePath} does not have the form of a request`);
  }
}

/** An object that an entry names as deleted, and a cut's own objects. */
interface Gone {
  readonly object: string;
  readonly objects: readonly string[];
}

/** Segments in the log whose pages were all read before a time, oldest first. */
export async function* segmentsBefore(
  before: number,
  reader: ArchiveReader,
): AsyncGenerator<OldSegment> {
  const size = await sizeOf(reader);
  const { store } = reader;
  for await (const { name, bytes } of store.list(segmentsPrefix)) {
    const [, day = '', digits = ''] =
      /^segments\/(\d{4}\/\d\d\/\d\d)\/(\d{20})\.zst$/.exec(name) ?? [];
    if (Date.parse(day.replaceAll('/', '-')) > before) return;
    const index = Number(digits);
    if (digits === '' || index >= size) continue;
    const segment = await entriesOf(name, index, reader, readTimes);
    if (segment !== null && segment.last < before) yield { object: name, bytes, ...segment };
  }
}

/** The number of a segment's pages and their reading times by the local clock, from its entries; null: no entry names it. */
export async function segmentAt(name: string, reader: ArchiveReader) {
  const index = indexIn(name);
  return index === null || index >= (await sizeOf(reader))
    ? null
    : await entriesOf(name, index, reader, localReadTime);
}

function indexIn(name: string): number | null {
  const [, digits] = /^segments\/\d{4}\/\d\d\/\d\d\/(\d{20})\.zst$/.exec(name) ?? [];
  return digits === undefined ? null : Number(digits);
}

async function entriesOf(
  name: string,
  index: number,
  reader: ArchiveReader,
  timesOf: typeof readTimes,
): Promise<Omit<OldSegment, 'object' | 'bytes'> | null> {
  const times: number[] = [];
  let [pages, requested] = [0, 1];
  for await (const { entry } of loggedEntries(reader, await sizeOf(reader), index)) {
    if (entry.t === 'segment' && entry.object === name) requested += entry.pages;
    if (entry.t === 'page' && entry.body.segment === name) {
      pages += 1;
      times.push(...timesOf(entry));
    }
    requested -= 1;
    if (requested <= 0) break;
  }
  if (times.length === 0) return null;
  return { pages, first: Math.min(...times), last: Math.max(...times) };
}

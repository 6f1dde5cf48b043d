// Forgeries without a key: an entry with another field, the tiles over it, a checkpoint under a signature of another
// text, a body appended to a segment. Everything is right except for the signature, so that only a proof finds it.

import { hash } from 'node:crypto';
import { zstdCompressSync } from 'node:zlib';
import { leafHash, rootOf } from '../../../src/archive/merkle.ts';
import { blankFrame } from '../../../src/archive/segments.ts';
import { decodeBundle, encodeBundle, tilePath } from '../../../src/archive/tiles.ts';
import type { Random } from '../../../src/sandbox/random.ts';
import { timeText } from '../../../src/tools/time-text.ts';
import type { HostileStore } from './hostile-store.ts';

// biome-ignore lint/suspicious/noExplicitAny: an attacker writes whatever he likes
type AnyEntry = any;

/** Objects as they are to be; null: gone. */
export type Forged = ReadonlyMap<string, Buffer | null>;

const day = 86_400_000;

/** The entries of the last bundle under the store's checkpoint, as far as it is partial or the only one. */
function entriesIn(store: HostileStore): { index: number; entries: Buffer[] } | null {
  const size = sizeIn(store.body('checkpoint'));
  if (size === null || size === 0 || size > 255) return null;
  const bundle = store.body(tilePath({ level: 'entries', index: 0, width: size }));
  if (bundle === null) return null;
  try {
    return { index: 0, entries: [...decodeBundle(bundle, size)] };
  } catch {
    return null;
  }
}

/** The size that a checkpoint has. */
export function sizeIn(note: Buffer | null): number | null {
  const size = Number(note?.toString().split('\n', 2)[1]);
  return Number.isSafeInteger(size) ? size : null;
}

/** A log with one entry changed, its tile with it; null: there is nothing to forge. */
export function forgedEntry(store: HostileStore, random: Random, now: number): Forged | null {
  const found = entriesIn(store);
  if (found === null) return null;
  const { entries } = found;
  // What is resumed from is the last page of a stream.
  const last = entries.findLastIndex((one) => one.toString().startsWith('{"t":"page"'));
  const at = last >= 0 && random.chance(0.3) ? last : random.below(entries.length);
  const entry = parsed(entries[at]);
  if (entry === null) return null;
  entries[at] = Buffer.from(JSON.stringify(changed(entry, entries, random, now)));
  return forgedLog(store, entries, random);
}

function forgedLog(store: HostileStore, entries: readonly Buffer[], random: Random): Forged {
  const leaves = entries.map((one) => leafHash(one));
  const width = entries.length;
  const forged = new Map<string, Buffer | null>();
  const which = random.pick([0, 0, 1, 2, 2, 3]);
  if (which !== 1)
    forged.set(tilePath({ level: 'entries', index: 0, width }), encodeBundle(entries));
  if (which !== 2) forged.set(tilePath({ level: 0, index: 0, width }), Buffer.concat(leaves));
  if (which === 3) forged.set('checkpoint', forgedNote(store.body('checkpoint'), leaves));
  return forged;
}

/** The note over another tree, under the signature that it had. */
function forgedNote(note: Buffer | null, leaves: readonly Buffer[]): Buffer {
  const [origin = '', , , ...rest] = (note ?? Buffer.alloc(0)).toString().split('\n');
  const root = rootOf(leaves).toString('base64');
  return Buffer.from([origin, leaves.length, root, ...rest].join('\n'));
}

function changed(
  entry: AnyEntry,
  entries: readonly Buffer[],
  random: Random,
  now: number,
): AnyEntry {
  const time = () => timeText(now + (random.below(400) - 300) * day);
  const some = random.next();
  if (some < 0.1) return removalOf(entries, random, now) ?? entry;
  switch (entry.t) {
    case 'page': {
      const field = random.pick(['fetched_at', 'place', 'kept', 'items', 'at', 'sha256', 'uids']);
      if (field === 'fetched_at') return { ...entry, fetched_at: time() };
      if (field === 'place') return { ...entry, place: [entry.place[0], random.below(60)] };
      if (field === 'kept') return { ...entry, kept: random.below(4) };
      if (field === 'items') return { ...entry, items: '' };
      if (field === 'at') return { ...entry, body: { ...entry.body, at: 0 } };
      if (field === 'uids') return { ...entry, uids: { ...entry.uids, sha256: 'a'.repeat(64) } };
      return { ...entry, body: { ...entry.body, sha256: 'b'.repeat(64) } };
    }
    case 'hold':
      return random.pick([
        { ...entry, from: timeText(0), to: timeText(day) },
        { ...entry, released_at: timeText(now) },
        { ...entry, id: 'case-9' },
      ]);
    case 'start':
      return random.pick([
        { ...entry, requests: 'accepted' },
        { ...entry, archive: hash('sha256', 'x', 'hex') },
        { ...entry, spool: 'spool-1' },
      ]);
    case 'checkpoint': {
      const { done: _, ...rest } = entry;
      return random.pick([rest, { ...entry, root: 'c'.repeat(64) }]);
    }
    case 'segment':
      return random.pick([
        { ...entry, pages: 1 },
        { ...entry, sha256: 'd'.repeat(64) },
        { ...entry, object: entry.object.replace(/\d\.zst/, '0.zst') },
      ]);
    case 'lake_cut':
      return random.pick([
        { ...entry, entries: null },
        { ...entry, numbers: [0, 0], events: 0 },
        { ...entry, first: timeText(0), last: timeText(0) },
      ]);
    case 'lake':
      return { ...entry, sha256: hash('sha256', `${random.below(3)}`, 'hex') };
    default:
      return { ...entry, at: time() };
  }
}

/** An entry that says that something went. */
function removalOf(entries: readonly Buffer[], random: Random, now: number): AnyEntry | null {
  const objects = entries.flatMap((one) => {
    const [, object] = /"object":"((?:segments|lake\/cuts)[^"]+)"/.exec(one.toString()) ?? [];
    return object === undefined ? [] : [object];
  });
  if (objects.length === 0) return null;
  const about = { object: random.pick(objects), pages: 1, first: timeText(0), last: timeText(0) };
  return { t: 'pruned', at: timeText(now), ...about, why: 'retention' };
}

/** A page's body with something invented behind its segment, its own blanked, and perhaps its entry changed to fit. */
export function forgedBody(store: HostileStore, random: Random): Forged | null {
  const found = entriesIn(store);
  if (found === null) return null;
  const pages = pagesIn(found.entries);
  if (pages.length === 0) return null;
  const { index, entry } = random.pick(pages);
  const { segment, at, length } = entry.body;
  const whole = store.body(segment);
  if (whole === null || whole.length < at + length) return null;
  const text = Buffer.from(`{"data":[],"next_cursor":null,"forged":${random.below(9)}}`);
  const frame = zstdCompressSync(text);
  const made = Buffer.from(whole);
  const kept = made.subarray(at + length, at + length + 8 + entry.uids.bytes);
  const body = { sha256: hash('sha256', text, 'hex'), bytes: text.length };
  const place = { segment, at: whole.length, length: frame.length };
  if (length >= 8) blankFrame(made.subarray(at, at + length));
  const forged = new Map<string, Buffer | null>([[segment, Buffer.concat([made, frame, kept])]]);
  if (random.chance(0.4)) {
    const { entries } = found;
    entries[index] = Buffer.from(JSON.stringify({ ...entry, body: { ...body, ...place } }));
    for (const [name, bytes] of forgedLog(store, entries, random)) forged.set(name, bytes);
  }
  return forged;
}

/** The uids of a page in its segment replaced by those of another record. */
export function forgedUids(store: HostileStore, random: Random): Forged | null {
  const found = entriesIn(store);
  const pages = pagesIn(found?.entries ?? [])
    .map(({ entry }) => entry)
    .filter(({ kept }) => kept > 0);
  if (pages.length < 2) return null;
  const [one, other] = [random.pick(pages), random.pick(pages)];
  const frameOf = ({ body }: AnyEntry) => body.at + body.length + 8;
  const [segment, from] = [store.body(one.body.segment), store.body(other.body.segment)];
  if (segment === null || from === null) return null;
  const made = Buffer.from(segment);
  if (frameOf(other) + 32 > from.length || frameOf(one) + 32 > made.length) return null;
  from.copy(made, frameOf(one), frameOf(other), frameOf(other) + 32);
  return new Map([[one.body.segment, made]]);
}

/** A body of this segment replaced by another that takes as many bytes: other records under the same uids. */
export function swappedBody(store: HostileStore, name: string, random: Random): Forged | null {
  const pages = pagesIn(entriesIn(store)?.entries ?? []).map(({ entry }) => entry);
  const pairs = pages.flatMap((one) =>
    pages.flatMap((other) =>
      one !== other && one.body.segment === name && one.body.length === other.body.length
        ? [[one, other]]
        : [],
    ),
  );
  if (pairs.length === 0) return null;
  const [one, other] = random.pick(pairs);
  const [segment, from] = [store.body(name), store.body(other.body.segment)];
  if (segment === null || from === null) return null;
  // The segment may have been cut by an earlier attack.
  const end = ({ body }: AnyEntry) => body.at + body.length;
  if (end(other) > from.length || end(one) > segment.length) return null;
  const made = Buffer.from(segment);
  from.copy(made, one.body.at, other.body.at, other.body.at + other.body.length);
  return new Map([[name, made]]);
}

/** The entries of pages, those aside that are damaged. */
function pagesIn(entries: readonly Buffer[]): readonly { index: number; entry: AnyEntry }[] {
  return entries.flatMap((bytes, index) => {
    const entry = parsed(bytes);
    return entry?.t === 'page' ? [{ index, entry }] : [];
  });
}

function parsed(bytes: Buffer | undefined): AnyEntry {
  try {
    return JSON.parse(bytes?.toString() ?? '');
  } catch {
    return null;
  }
}

// Copies the part of an archive that was read in a time span, for a recipient who must not get more. The copy is an
// archive with the whole tree and all entries, which are small, so every proof works in it too. It contains only the
// segments of that span, and the lake cuts with its events. Invariant: an object is copied only if it is the one that
// its proven entry names; cosignatures and time stamps that no entry names yet are copied as they are.

import { hash } from 'node:crypto';
import type { ObjectStore } from '../objects/index.ts';
import type { EntryOf } from './entries.ts';
import { erasedRows, erasuresIn } from './erasures.ts';
import { lakeBytesMax } from './lake-cuts.ts';
import { checkpointPath, manifestPath } from './layout.ts';
import { isPruned, isSignedFor, loggedEntries, newestCheckpoint } from './logged.ts';
import { rootAt } from './merkle.ts';
import { withoutFence } from './note.ts';
import { ProvenReader } from './proven-reader.ts';
import type { ArchiveReader, NamedObject } from './reader.ts';
import { decodeBundle, encodeBundle, tilePath, tilesBetween } from './tiles.ts';
import { headOf, keptObjects } from './verify/kept-checkpoints.ts';

/** The span and the target of an export. */
export interface ExportWishes {
  /** Pages read in this span, its end excluded; epoch milliseconds. */
  readonly from: number;
  readonly to: number;
  /** An empty store. */
  readonly into: ObjectStore;
}

/** The copied amounts. */
export interface Exported {
  readonly pages: number;
  readonly segments: number;
  readonly bytes: number;
}

const dayMs = 86_400_000;

/**
 * Copies what the reader's checkpoint proves; of a reader without one, what the newest checkpoint does. Throws a
 * SyntaxError if the archive is damaged, or the target is not empty.
 */
export async function exportRange(
  asked: ArchiveReader,
  { from, to, into }: ExportWishes,
): Promise<Exported> {
  const { note, ...head } = await newestCheckpoint(asked);
  const reader = asked instanceof ProvenReader ? asked : new ProvenReader(asked.store, head);
  const { size } = head;
  let bytes = 0;
  const write = async (name: string, body: Uint8Array) => {
    if ((await into.create(name, [body])) === 'exists') {
      throw new SyntaxError(`${name} exists already: an export needs an empty directory`);
    }
    bytes += body.length;
  };
  const copy = async (
    name: string,
    found: Promise<Uint8Array | null>,
    isRight: (sha256: string, body: Uint8Array) => boolean | Promise<boolean>,
  ) => {
    const body = await found;
    if (body === null) throw new SyntaxError(`${name} is missing`);
    if (!(await isRight(hash('sha256', body, 'hex'), body)))
      throw new SyntaxError(`${name} differs from its entry`);
    await write(name, body);
  };
  const named = (
    kind: NamedObject,
    { object, sha256 }: { readonly object: string; readonly sha256: string },
    isRight = (found: string) => found === sha256,
  ) => copy(object, bounded(reader, { kind, name: object, bytesMax: lakeBytesMax }), isRight);
  const archive = await archiveNamedIn(reader, size);
  await copy(manifestPath, reader.small(manifestPath), (found) => found === archive);
  await copyTree(reader, size, write);
  const anchored = new Set<string>();
  const segments = new Set<string>();
  let pages = 0;
  let isCut = false;
  let newest: EntryOf<'segment'> | null = null;
  for await (const { entry } of loggedEntries(reader, size)) {
    if (entry.t === 'checkpoint' || entry.t === 'anchor') {
      await named(entry.t, entry);
      anchored.add(entry.object);
    }
    if (entry.t === 'manifest') {
      const begin = Date.parse(entry.day);
      if (begin < to && begin + dayMs > from) await named(entry.t, entry);
    }
    if (entry.t === 'lake_cut') {
      const isAsked = Date.parse(entry.first) < to && Date.parse(entry.last) >= from;
      isCut = isAsked && !(await isPruned(reader, entry.object));
      if (isCut) await named('cut', entry);
    }
    if (entry.t === 'lake' && isCut) {
      const erasures = await erasuresIn(reader);
      const last = erasures.lake.get(entry.object)?.at(-1);
      const isOne = (found: string) => erasedRows(entry, found, erasures) !== null;
      if (last?.rows !== 0) await named('lake', entry, isOne);
    }
    if (entry.t === 'segment') newest = entry;
    if (entry.t !== 'page') continue;
    const at = Date.parse(entry.fetched_at);
    if (at < from || at >= to) continue;
    pages += 1;
    const { segment } = entry.body;
    if (segments.has(segment)) continue;
    const erased = ((await erasuresIn(reader)).pages.get(segment) ?? []).map((one) => one.segment);
    const facts = newest?.object === segment ? [newest, ...erased] : erased;
    const bytesMax = Math.max(0, ...facts.map((one) => one.bytes));
    const body = await bounded(reader, { kind: 'segment', name: segment, bytesMax });
    if (body === null && (await isPruned(reader, segment))) continue;
    await copy(segment, Promise.resolve(body), (found) =>
      facts.some((one) => one.sha256 === found),
    );
    segments.add(segment);
  }
  // Objects that no entry names yet: the newest checkpoint, and proofs for the last ones.
  for await (const kept of keptObjects(reader)) {
    if (kept.size > size || anchored.has(kept.name)) continue;
    await copy(kept.name, reader.small(kept.name), async (_, body) => {
      if (!kept.isNote) return true;
      if (kept.size === size) return Buffer.compare(withoutFence(body), note) === 0;
      const found = isSignedFor(reader, body) ? headOf(body)?.checkpoint : undefined;
      const isOfTree = found?.origin === head.origin && found.size === kept.size;
      return isOfTree && (await rootAt(kept.size, reader.hashes)).equals(found.root);
    });
  }
  // Written last, so that an interrupted export is no archive.
  await write(checkpointPath, note);
  return { pages, segments: segments.size, bytes };
}

/** An object; null: it does not exist. Throws a SyntaxError if it is longer than its entry says. */
async function bounded(
  reader: ArchiveReader,
  of: { readonly kind: NamedObject; readonly name: string; readonly bytesMax: number },
): Promise<Uint8Array | null> {
  const { kind, name, bytesMax } = of;
  const body = await reader.named(kind, name, { from: 0, length: bytesMax + 1 });
  if (body === null || body.length <= bytesMax) return body;
  throw new SyntaxError(`${name} is longer than its entry says`);
}

/** SHA-256 of `archive.json` from the log's first entry; null: it is no start. */
async function archiveNamedIn(reader: ArchiveReader, size: number): Promise<string | null> {
  for await (const { entry } of loggedEntries(reader, size)) {
    return entry.t === 'start' ? entry.archive : null;
  }
  return null;
}

/** Tiles and bundles, at the right edge in the width of the tree. */
async function copyTree(
  reader: ArchiveReader,
  size: number,
  write: (name: string, body: Uint8Array) => Promise<void>,
): Promise<void> {
  for (const tile of tilesBetween('entries', 0, size)) {
    const found = await reader.bundle(tile.index, tile.width);
    if (found === null) throw new SyntaxError(`${tilePath(tile)} is missing`);
    const entries = decodeBundle(found.bytes, found.width).slice(0, tile.width);
    await write(tilePath(tile), encodeBundle(entries));
  }
  for (let level = 0; ; level += 1) {
    const tiles = tilesBetween(level, 0, size);
    for (const tile of tiles) {
      const hashes = await reader.tile(tile);
      if (hashes === null) throw new SyntaxError(`${tilePath(tile)} is missing`);
      await write(tilePath(tile), Buffer.concat(hashes));
    }
    if (tiles.length === 0) return;
  }
}

// Finds a record in an archive by its uid and creates its proof (proof.ts). Invariant: a returned proof has been
// checked, so a damaged archive yields none.

import { ExportError, uidBytes } from '../contracts/index.ts';
import type { PageEntry } from './entries.ts';
import { erasuresIn, type PageVersion, readVersion, versionsOf } from './erasures.ts';
import { isPruned, isSignedFor, loggedEntries, newestCheckpoint, sizeOf } from './logged.ts';
import {
  inclusionProof,
  leafHash,
  type NodeHashes,
  rootAt,
  rootOf,
  rootOfInclusion,
} from './merkle.ts';
import { parseNote } from './note.ts';
import type { RecordProof } from './proof.ts';
import type { ArchiveReader } from './reader.ts';
import { keptRecords, recordLeaves } from './records.ts';
import { type ArchivedPage, keptUids, readPage } from './segments.ts';
import { tileHashes, tilePath } from './tiles.ts';
import { headOf, keptObjects } from './verify/kept-checkpoints.ts';

/** A record, and the proof that it is in the archive. */
export interface ProvenRecord {
  readonly record: Uint8Array;
  readonly proof: RecordProof;
}

/** A page with a record, and the record's index among its kept ones. */
export interface RecordPosition {
  readonly index: number;
  readonly bytes: Buffer;
  readonly page: PageVersion & ArchivedPage;
  readonly place: number;
}

/**
 * Finds the record with this uid; null if no page has it, except pruned pages. Throws a SyntaxError, also if a page
 * that may have it cannot be read. `from`: index of the first entry to search.
 */
export async function findRecord(
  reader: ArchiveReader,
  uid: string,
  span?: { readonly from: number; readonly to: number },
  from = 0,
): Promise<RecordPosition | null> {
  const size = await sizeOf(reader);
  const requested = Buffer.from(uid, 'hex');
  const erasures = await erasuresIn(reader);
  let unread: string | null = null;
  for await (const { index, bytes, entry } of loggedEntries(reader, size, from)) {
    if (entry.t !== 'page' || entry.kept === 0 || !isWithin(entry, span)) continue;
    const versions = versionsOf(entry, erasures);
    if (versions.length === 1) {
      const uids = await uidsOf(reader, entry);
      const { segment } = entry.body;
      if (uids === null && !(await isPruned(reader, segment))) unread ??= segment;
      if (uids === null || placeIn(uids, requested) === null) continue;
    }
    const page = await readVersion(reader, versions, (version, range) => ({
      ...version,
      ...readPage(version.entry, range),
    }));
    const place = placeIn(page.uids, requested);
    if (place !== null) return { index, bytes, page, place };
  }
  if (unread !== null) {
    throw new SyntaxError(`no page that is whole has it, and ${unread} is missing or damaged`);
  }
  return null;
}

/**
 * Proves the record with this uid; null if no page from the entry `from` on has it. Throws a SyntaxError, and an
 * ExportError for an erased record.
 */
export async function proveRecord(
  reader: ArchiveReader,
  uid: string,
  from = 0,
): Promise<ProvenRecord | null> {
  const found = await findRecord(reader, uid, undefined, from);
  return found === null ? null : await proofOf(reader, found);
}

/**
 * Proves a found record. `given`: its bytes from elsewhere, with which an erased record can be proven too. Throws as
 * `proveRecord` does.
 */
export async function proofOf(
  reader: ArchiveReader,
  found: RecordPosition,
  given?: Uint8Array,
): Promise<ProvenRecord> {
  const { index, bytes, place } = found;
  const { note, size, root } = await checkpointOver(reader, index);
  const { record, path } = await recordAt(found, given);
  const inLog = await inclusionProof(index, size, hashesIn(reader, size));
  const leads = rootOfInclusion({ index, size, leaf: leafHash(bytes) }, inLog);
  if (leads === null || Buffer.compare(leads, root) !== 0) {
    throw new SyntaxError(`entry ${index}, which has the record, does not lead to the signed root`);
  }
  const proof = { index, entry: bytes, path: inLog, record: { index: place, path } };
  return { record, proof: { ...proof, checkpoint: note } };
}

function hashesIn(reader: ArchiveReader, size: number): NodeHashes {
  return tileHashes(size, async (tile) => {
    const read = await reader.tile(tile);
    if (read === null) throw new SyntaxError(`${tilePath(tile)} is missing`);
    return read;
  });
}

/**
 * The checkpoint under which an entry is proven: the newest one with cosignatures, including their lines. If it is not
 * of this tree, the present keys have not signed it, or there is none, the newest checkpoint.
 */
async function checkpointOver(reader: ArchiveReader, index: number) {
  const newest = await newestCheckpoint(reader);
  const keys = keyIdsOf(newest.note);
  let cosigned: string | null = null;
  let most = index;
  for await (const { name, size } of keptObjects(reader)) {
    if (!name.endsWith('.cosig') || size <= most || size > newest.size) continue;
    most = size;
    cosigned = name;
  }
  const note = cosigned === null ? null : await reader.small(cosigned);
  const head = note === null ? null : headOf(note);
  if (note === null || head === null || !keyIdsOf(note).isSupersetOf(keys)) return newest;
  const { size, root } = head.checkpoint;
  const isOfTree =
    size > index &&
    size <= newest.size &&
    (await rootAt(size, hashesIn(reader, size))).equals(root);
  return isOfTree && isSignedFor(reader, note) ? { note, ...head.checkpoint } : newest;
}

function keyIdsOf(note: Uint8Array): Set<string> {
  return new Set(parseNote(note).signatures.map(({ keyId }) => keyId.toString('hex')));
}

/** `span`: reading times, epoch milliseconds; undefined: all. */
function isWithin(
  { fetched_at }: PageEntry,
  span: { readonly from: number; readonly to: number } | undefined,
): boolean {
  const at = Date.parse(fetched_at);
  return span === undefined || (at >= span.from && at < span.to);
}

/** The uids of a page as archived; null: it does not exist, or does not match its entry. */
async function uidsOf(reader: ArchiveReader, entry: PageEntry): Promise<Uint8Array | null> {
  try {
    return (await keptUids(reader, entry)).uids;
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}

/** The index of the uid; null: it is not among them. */
function placeIn(uids: Uint8Array, requested: Buffer): number | null {
  const bytes = Buffer.from(uids.buffer, uids.byteOffset, uids.byteLength);
  for (let at = bytes.indexOf(requested); at >= 0; at = bytes.indexOf(requested, at + 1)) {
    if (at % uidBytes === 0) return at / uidBytes;
  }
  return null;
}

async function recordAt({ page, place }: RecordPosition, given?: Uint8Array) {
  const { entry, erased, kept } = page;
  const records = keptRecords({ ...page, items: entry.items });
  const record = records[place];
  if (record === undefined) throw new SyntaxError('the page has fewer records than uids');
  if (given === undefined && erased.has(kept?.[place] ?? place)) {
    throw new ExportError('sink_refused', 'the record was erased, and proves no more', {
      next: '`npx sluice archive verify` shows the time, the reason and the entry.',
    });
  }
  const leaves = recordLeaves(records, kept, erased);
  const hashes: NodeHashes = async ({ level, index }) =>
    rootOf(leaves.slice(index * 2 ** level, (index + 1) * 2 ** level));
  return { record: given ?? record, path: await inclusionProof(place, leaves.length, hashes) };
}

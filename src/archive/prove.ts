// Finds a record in an archive by its uid and makes the proof that it is there (proof.ts). What must
// stay true: a proof that is handed out has been checked, so that a damaged archive gives none.

import { uidBytes } from '../contracts/spool.ts';
import type { PageEntry } from './entries.ts';
import { loggedEntries, newestCheckpoint } from './logged.ts';
import { inclusionProof, leafHash, type NodeHashes, rootOf, rootOfInclusion } from './merkle.ts';
import type { RecordProof } from './proof.ts';
import type { ArchiveReader } from './reader.ts';
import { keptRecords, recordLeaf } from './records.ts';
import { pageRange, readPage } from './segments.ts';
import { tileHashes, tilePath } from './tiles.ts';

/** A record, and the proof that it is in the archive. */
export interface ProvenRecord {
  readonly record: Uint8Array;
  readonly proof: RecordProof;
}

/** Proves the record with this uid; null where no page has it. Throws a SyntaxError. */
export async function proveRecord(
  reader: ArchiveReader,
  uid: string,
): Promise<ProvenRecord | null> {
  const { note, size, root } = await newestCheckpoint(reader);
  const wanted = Buffer.from(uid, 'hex');
  for await (const { index, bytes, entry } of loggedEntries(reader, size)) {
    const place = entry.t === 'page' ? await placeOf(reader, entry, wanted) : null;
    if (entry.t !== 'page' || place === null) continue;
    const { record, path } = await recordAt(reader, entry, place);
    const hashes = tileHashes(size, async (tile) => {
      const found = await reader.tile(tile);
      if (found === null) throw new SyntaxError(`${tilePath(tile)} is missing`);
      return found;
    });
    const inLog = await inclusionProof(index, size, hashes);
    const found = rootOfInclusion({ index, size, leaf: leafHash(bytes) }, inLog);
    if (found === null || Buffer.compare(found, root) !== 0) {
      throw new SyntaxError(
        `entry ${index}, which has the record, does not lead to the signed root`,
      );
    }
    const proof = { index, entry: bytes, path: inLog, record: { index: place, path } };
    return { record, proof: { ...proof, checkpoint: note } };
  }
  return null;
}

/** Which of a page's kept records has the uid; null: none. */
async function placeOf(
  reader: ArchiveReader,
  { body, uids, kept }: PageEntry,
  wanted: Buffer,
): Promise<number | null> {
  if (kept === 0) return null;
  const { from, length } = pageRange({ body, uids });
  const behind = { from: from + length - uids.bytes, length: kept * uidBytes };
  const found = await reader.named('segment', body.segment, behind);
  const bytes = Buffer.from(found ?? []);
  for (let at = bytes.indexOf(wanted); at >= 0; at = bytes.indexOf(wanted, at + 1)) {
    if (at % uidBytes === 0) return at / uidBytes;
  }
  return null;
}

async function recordAt(reader: ArchiveReader, entry: PageEntry, place: number) {
  const range = await reader.named('segment', entry.body.segment, pageRange(entry));
  const records = keptRecords({
    ...readPage(entry, range ?? new Uint8Array(0)),
    items: entry.items,
  });
  const record = records[place];
  if (record === undefined) throw new SyntaxError('the page has fewer records than uids');
  const leaves = records.map(recordLeaf);
  const hashes: NodeHashes = async ({ level, index }) =>
    rootOf(leaves.slice(index * 2 ** level, (index + 1) * 2 ** level));
  return { record, path: await inclusionProof(place, leaves.length, hashes) };
}

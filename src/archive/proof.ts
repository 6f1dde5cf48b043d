// The proof that one record is in an archive: a C2SP tlog-proof (c2sp.org/tlog-proof) of its page's entry, with the
// entry and the record's path in the page's tree as `extra`. It can be checked without the archive: the record leads to
// the root in the entry, the entry to the root in the checkpoint, and the checkpoint is signed. Invariant: no part of
// the file is trusted before it was checked along this chain.

import { hash } from 'node:crypto';
import { z } from 'zod';
import { type Checkpoint, parseCheckpoint } from './checkpoint.ts';
import { type PageEntry, parseEntry } from './entries.ts';
import { keyOfLog } from './log-name.ts';
import { hashBytes, leafHash, rootOfInclusion } from './merkle.ts';
import { openNote, parseNote, type Verifier } from './note.ts';
import { recordLeaf } from './records.ts';

const firstLine = 'c2sp.org/tlog-proof@v1';

/** The parts of a proof. */
export interface RecordProof {
  /** The entry's index in the log, its bytes, and its path to the tree's root. */
  readonly index: number;
  readonly entry: Uint8Array;
  readonly path: readonly Uint8Array[];
  /** The record's index among the page's kept records, and its path to their root. */
  readonly record: { readonly index: number; readonly path: readonly Uint8Array[] };
  /** A signed note. */
  readonly checkpoint: Uint8Array;
}

const base64 = z.string().transform((text, { addIssue }) => {
  const bytes = Buffer.from(text, 'base64');
  if (bytes.length !== hashBytes || bytes.toString('base64') !== text) addIssue('no hash');
  return bytes;
});
const extraShape = z.object({
  entry: z.string(),
  record: z.object({ index: z.int().min(0), path: z.array(base64) }),
});

const base64Of = (bytes: Uint8Array) => Buffer.from(bytes).toString('base64');

/** The proof as a file, by convention `*.tlog-proof`. */
export function encodeProof({ index, entry, path, record, checkpoint }: RecordProof): string {
  const extra = {
    entry: Buffer.from(entry).toString('utf8'),
    record: { index: record.index, path: record.path.map(base64Of) },
  };
  return [
    firstLine,
    `extra ${base64Of(Buffer.from(JSON.stringify(extra)))}`,
    `index ${index}`,
    ...path.map(base64Of),
    '',
    Buffer.from(checkpoint).toString('utf8'),
  ].join('\n');
}

/** Parses a proof. Throws a SyntaxError. */
function parseProof(text: string): RecordProof {
  const end = text.indexOf('\n\n');
  const [first, extra = '', index = '', ...path] = text.slice(0, Math.max(end, 0)).split('\n');
  const at = /^index (0|[1-9]\d{0,15})$/.exec(index)?.[1];
  const [, encoded] = /^extra (\S+)$/.exec(extra) ?? [];
  if (first !== firstLine || at === undefined || encoded === undefined) {
    throw new SyntaxError('the file is no proof of a record: expected a tlog-proof with an entry');
  }
  const bytes = Buffer.from(encoded, 'base64');
  if (base64Of(bytes) !== encoded) throw new SyntaxError('the proof is damaged');
  const parsed = extraShape.safeParse(JSON.parse(bytes.toString('utf8')));
  const hashes = z.array(base64).safeParse(path);
  if (!parsed.success || !hashes.success) throw new SyntaxError('the proof is damaged');
  return {
    index: Number(at),
    entry: Buffer.from(parsed.data.entry),
    path: hashes.data,
    record: parsed.data.record,
    checkpoint: Buffer.from(text.slice(end + 2)),
  };
}

/** The proven facts. */
export interface Proven {
  /** Of the entry in the log. */
  readonly index: number;
  readonly entry: PageEntry;
  /** Index of the record among the page's kept ones. */
  readonly place: number;
  readonly checkpoint: Checkpoint;
  readonly by: readonly Verifier[];
  /** The witnesses that have cosigned the checkpoint. */
  readonly seenBy: readonly Verifier[];
}

/**
 * Checks that the file proves the record, under a checkpoint cosigned by every one of the witnesses. Throws a
 * SyntaxError with the reason if it does not.
 */
export function checkProof(
  text: string,
  record: Uint8Array,
  trusted: readonly Verifier[],
  witnesses: readonly Verifier[] = [],
): Proven {
  const proof = parseProof(text);
  const { origin } = parseCheckpoint(parseNote(proof.checkpoint).text);
  const keys = trusted.map((key) => keyOfLog(key, origin));
  const { by, text: signed } = openNote(proof.checkpoint, keys);
  const seenBy = witnesses.length === 0 ? [] : openNote(proof.checkpoint, witnesses).by;
  const blind = witnesses.find((one) => !seenBy.includes(one));
  if (blind !== undefined) throw new SyntaxError(`${blind.name} has not cosigned the checkpoint`);
  const checkpoint = parseCheckpoint(signed);
  if (by.every(({ name }) => name !== checkpoint.origin)) {
    throw new SyntaxError(`the key is not one of the log ${checkpoint.origin}`);
  }
  const inLog = { index: proof.index, size: checkpoint.size, leaf: leafHash(proof.entry) };
  if (!leadsTo(inLog, proof.path, checkpoint.root)) {
    throw new SyntaxError('the entry of the proof is not in the signed log');
  }
  const entry = parseEntry(proof.entry);
  if (entry.t !== 'page') throw new SyntaxError('the entry of the proof is that of no page');
  const { root, count } = entry.events;
  const inPage = { index: proof.record.index, size: count, leaf: recordLeaf(record) };
  if (!leadsTo(inPage, proof.record.path, Buffer.from(root, 'hex'))) {
    throw new SyntaxError(
      `the record, of which the SHA-256 is ${hash('sha256', record, 'hex')}, is not the one that the proof is for`,
    );
  }
  return { index: proof.index, entry, place: proof.record.index, checkpoint, by, seenBy };
}

function leadsTo(
  leaf: Parameters<typeof rootOfInclusion>[0],
  path: readonly Uint8Array[],
  root: Uint8Array,
): boolean {
  const found = rootOfInclusion(leaf, path);
  return found !== null && Buffer.compare(found, root) === 0;
}

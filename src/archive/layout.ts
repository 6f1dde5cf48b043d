// What lies where in an archive besides the tree's tiles (tiles.ts):
//
//   archive.json                        what the archive is; written once
//   checkpoint                          the newest signed checkpoint, the only evidence that changes
//   checkpoints/YYYY/MM/DD/<size>.note  each checkpoint, for good; beside it, as <size>.tsr, its time
//                                       stamp, and as <size>.cosig the note with its cosignatures
//   segments/YYYY/MM/DD/<index>.zst     bodies of pages; named by the index of the segment's entry
//   manifests/<stream>/YYYY-MM-DD.json   what a day of a stream comes to (manifests.ts)
//   holds/<id>.json                     legal holds, which entries tell of as well
//   erase/<uid>.json                    records that an operator has asked to be erased; no evidence
//   prune.json                          what an operator has asked to go; no evidence of anything
//   writer                              who writes at present; no evidence of anything
//
// What must stay true: an object of evidence is named by what it holds, and is never written anew
// once a checkpoint covers it.

import { z } from 'zod';
import { parseVkey, type Verifier } from './note.ts';
import { jsonIn } from './small-objects.ts';

/** Name of the object that says what the archive is. */
export const manifestPath = 'archive.json';
/** Name of the newest checkpoint, as C2SP tlog-tiles has it. */
export const checkpointPath = 'checkpoint';
/** Name of the object that says who writes. */
export const writerPath = 'writer';

const formatName = 'sluice-archive';
/** Readers of a version read all before it. */
const formatVersion = 1;

/** `archive.json`. */
export interface Manifest {
  readonly format: string;
  readonly version: number;
  /** The log's name: that of its keys, and the first line of its checkpoints. */
  readonly origin: string;
  /** The first key, a vkey; others follow by entries. */
  readonly key: string;
  /** Key of the hashes by which entries name cursors, 32 bytes in hex. */
  readonly salt: string;
  /** RFC 3339. */
  readonly created_at: string;
  /** Requests to remove something have to be signed unless the config says otherwise; absent in older archives. */
  readonly requests?: 'signed' | undefined;
  /** Each cut of the lake is signed before it is entered; absent in older archives. */
  readonly cuts?: 'signed' | undefined;
}

const manifestShape = z.looseObject({
  format: z.literal(formatName),
  version: z.int().min(1),
  origin: z.string().min(1),
  key: z.string(),
  salt: z.string().regex(/^[0-9a-f]{64}$/),
  created_at: z.iso.datetime(),
  requests: z.literal('signed').optional(),
  cuts: z.literal('signed').optional(),
});

/**
 * Whether unsigned requests are carried out where the config does not say: only in archives that older versions began.
 * An archive that began with `accept_requests: true` has no `requests`, and needs signatures when that line is removed.
 */
export function acceptsByDefault({ requests, cuts }: Pick<Manifest, 'requests' | 'cuts'>): boolean {
  return requests !== 'signed' && cuts !== 'signed';
}

/** The bytes of `archive.json`. */
export function encodeManifest(about: Omit<Manifest, 'format' | 'version'>): Buffer {
  const manifest: Manifest = { format: formatName, version: formatVersion, ...about };
  return Buffer.from(`${JSON.stringify(manifest, null, 2)}\n`);
}

/** An archive that only a newer version of sluice can read. */
export class NewerFormatError extends SyntaxError {
  override readonly name = 'NewerFormatError';
}

/** Parses it, and its key. Throws a SyntaxError, of a format that is newer than this a NewerFormatError. */
export function parseManifest(bytes: Uint8Array): Manifest & { readonly verifier: Verifier } {
  const manifest = manifestShape.safeParse(jsonOrNull(bytes));
  if (!manifest.success) throw new SyntaxError('archive.json is not that of an archive of sluice');
  if (manifest.data.version > formatVersion) {
    throw new NewerFormatError(
      `the archive has format ${manifest.data.version}, and this version reads up to ${formatVersion}`,
    );
  }
  return { ...manifest.data, verifier: parseVkey(manifest.data.key) };
}

function jsonOrNull(bytes: Uint8Array): unknown {
  try {
    return jsonIn(bytes);
  } catch {
    return null;
  }
}

/** Name of the segment whose entry has this index. `at`: epoch milliseconds. */
export function segmentPath(index: number, at: number): string {
  return `segments/${dayOf(at)}/${digits(index)}.zst`;
}

/** Name under which a checkpoint of this size stays. `at`: epoch milliseconds. */
export function keptCheckpointPath(size: number, at: number): string {
  return `${keptCheckpointsPrefix}${dayOf(at)}/${digits(size)}.note`;
}

/** Name of what somebody outside has said of that checkpoint. */
export function anchorPath(size: number, at: number, kind: 'tsr' | 'cosig'): string {
  return `${keptCheckpointsPrefix}${dayOf(at)}/${digits(size)}.${kind}`;
}

/** Where those are. */
export const keptCheckpointsPrefix = 'checkpoints/';

/** The size of the checkpoint that an object of `checkpoints/` is, or is about; null: of none. */
export function checkpointSizeOf(name: string): number | null {
  const [, size] = /\/(\d{20})\.(?:note|tsr|cosig)$/.exec(name) ?? [];
  return size === undefined ? null : Number(size);
}

/** `YYYY/MM/DD`, UTC. */
function dayOf(at: number): string {
  return new Date(at).toISOString().slice(0, 10).replaceAll('-', '/');
}

function digits(number: number): string {
  return String(number).padStart(20, '0');
}

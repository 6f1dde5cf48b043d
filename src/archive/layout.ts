// The objects of an archive apart from the tree's tiles (tiles.ts):
//
//   archive.json                        the archive's description; written once
//   checkpoint                          the newest signed checkpoint, the only evidence that changes
//   checkpoints/YYYY/MM/DD/<size>.note  each checkpoint, permanently; beside it, as <size>.tsr, its time
//                                       stamp, and as <size>.cosig the note with its cosignatures
//   segments/YYYY/MM/DD/<index>.zst     bodies of pages; named by the index of the segment's entry
//   manifests/<stream>/YYYY-MM-DD.json  the totals of a stream's day (manifests.ts)
//   holds/<id>.json                     legal holds, which entries contain as well
//   erase/<uid>.json                    requests to erase a record; no evidence
//   prune.json                          a request to prune; no evidence
//   writer                              the claim of the present writer; no evidence
//
// Invariant: an object of evidence has a name derived from its content or position, and is never
// rewritten once a checkpoint covers it.

import { z } from 'zod';
import { parseVkey, type Verifier } from './note.ts';
import { jsonIn } from './small-objects.ts';

/** Name of the archive's description. */
export const manifestPath = 'archive.json';
/** Name of the newest checkpoint, by C2SP tlog-tiles. */
export const checkpointPath = 'checkpoint';
/** Name of the writer's claim. */
export const writerPath = 'writer';

const formatName = 'sluice-archive';
/** Each version reads all earlier ones. */
const formatVersion = 1;

/** `archive.json`. */
export interface Manifest {
  readonly format: string;
  readonly version: number;
  /** The log's name: the name of its keys, and the first line of its checkpoints. */
  readonly origin: string;
  /** The first key, a vkey; entries name later ones. */
  readonly key: string;
  /** Key of the hashes that replace cursors in entries, 32 bytes in hex. */
  readonly salt: string;
  /** RFC 3339. */
  readonly created_at: string;
  /** Requests for removal must be signed unless the config allows unsigned ones; absent in older archives. */
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
 * Whether unsigned requests are accepted without a setting in the config: only in archives of older versions. An
 * archive created with `accept_requests: true` has no `requests`, and requires signatures once that line is removed.
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

/** Parses it, including its key. Throws a SyntaxError, and a NewerFormatError for a newer format. */
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

/** Name of the segment with this entry index. `at`: epoch milliseconds. */
export function segmentPath(index: number, at: number): string {
  return `segments/${dayOf(at)}/${digits(index)}.zst`;
}

/** Permanent name of a checkpoint of this size. `at`: epoch milliseconds. */
export function keptCheckpointPath(size: number, at: number): string {
  return `${keptCheckpointsPrefix}${dayOf(at)}/${digits(size)}.note`;
}

/** Name of an external proof for that checkpoint. */
export function anchorPath(size: number, at: number, kind: 'tsr' | 'cosig'): string {
  return `${keptCheckpointsPrefix}${dayOf(at)}/${digits(size)}.${kind}`;
}

/** Prefix of these names. */
export const keptCheckpointsPrefix = 'checkpoints/';

/** The size of the checkpoint that an object of `checkpoints/` is or proves; null: another object. */
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

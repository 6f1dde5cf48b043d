// The signature of a lake cut. The lake writes its objects and the cut that lists them before the log names them, and
// others can change the store in between. So the process that makes a cut signs it with the archive's key. Invariants:
// a signature is for one cut of one log and covers all bytes of its file, including the SHA-256 of each object; no cut
// is entered without a signature by a key of the log.

import { createHash } from 'node:crypto';
import { isObject } from '../contracts/index.ts';
import { openNote, type Signer, signNote, type Verifier } from './note.ts';
import { jsonIn } from './small-objects.ts';

/** Limit of a cut's file: 16 bytes for each of its events, and a list of its objects. */
export const cutBytesMax: number = 32 * 1024 * 1024;

/** The key of the signature among the facts in a cut's first line. */
const factName = 'sluice-signed';
const lineEnd = 0x0a;

/** The identity of a signed cut. */
interface NamedCut {
  /** The log's name. */
  readonly origin: string;
  /** SHA-256 of the log's `archive.json`, in hex: two archives may have one key, and so one name. */
  readonly archive: string;
  /** The cut's name in the archive. */
  readonly object: string;
}

/** The first line of a signed cut with these facts; `rest`: the following bytes. */
export async function signedFacts(
  facts: Readonly<Record<string, string>>,
  rest: readonly Uint8Array[],
  { signer, archive, object }: { readonly signer: Signer } & Omit<NamedCut, 'origin'>,
): Promise<Buffer> {
  const cut = { origin: signer.verifier.name, archive, object };
  const note = await signNote(textOf(cut, [lineOf(facts), ...rest]), [signer]);
  return lineOf({ ...facts, [factName]: note });
}

/** The key that has signed a cut; null: it is unsigned. Throws a SyntaxError if it differs from the signed cut. */
export function signerOfCut(
  bytes: Uint8Array,
  cut: NamedCut,
  keys: readonly Verifier[],
): Verifier | null {
  const end = bytes.indexOf(lineEnd) + 1;
  const line = Buffer.from(bytes.subarray(0, end));
  const facts = jsonIn(line);
  if (!isObject(facts) || !lineOf(facts).equals(line)) {
    throw new SyntaxError('it is no cut of a lake');
  }
  const { [factName]: note, ...others } = facts;
  if (note === undefined) return null;
  if (typeof note !== 'string') throw new SyntaxError('its signature is no signed note');
  const { text, by } = openNote(Buffer.from(note), keys);
  const rest = bytes.subarray(end);
  if (text !== textOf(cut, [lineOf(others), rest])) {
    throw new SyntaxError('it is not the one that was signed');
  }
  return by[0] ?? null;
}

function lineOf(facts: object): Buffer {
  return Buffer.from(`${JSON.stringify(facts)}\n`);
}

function textOf({ origin, archive, object }: NamedCut, parts: readonly Uint8Array[]): string {
  const digest = createHash('sha256');
  for (const part of parts) digest.update(part);
  return `sluice lake cut\n${origin}\n${archive}\n${object}\n${digest.digest('hex')}\n`;
}

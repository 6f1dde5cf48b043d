// Signed notes (c2sp.org/signed-note) as checkpoints are: a text, a blank line, and signature lines
// that each name a key. Keys are Ed25519, those of witnesses as c2sp.org/tlog-cosignature has them,
// with the time at which they have seen the text; signatures of other kinds and of keys that are not asked
// for are passed over, as the standard says, while one wrong signature of a known key rejects the
// note. What must stay true: text is believed only where `openNote` has given it back.

import {
  createPrivateKey,
  createPublicKey,
  hash,
  type KeyObject,
  randomBytes,
  sign,
  verify,
} from 'node:crypto';

const ed25519 = 1;
const cosignature = 4;
/** Before a cosignature: when it was made, seconds as a big-endian number. */
const timeBytes = 8;
const keyIdBytes = 4;
const rawKeyBytes = 32;
const signatureBytes = 64;
/** Lines beyond that are no note that anybody meant to be read. */
const signaturesMax = 100;
/** What stands before a raw Ed25519 key in DER (RFC 8410): SPKI's, and that of PKCS #8. */
const publicPrefix = Buffer.from('302a300506032b6570032100', 'hex');
const privatePrefix = Buffer.from('302e020100300506032b657004220420', 'hex');

/** A key by which notes are checked. */
export interface Verifier {
  readonly name: string;
  readonly keyId: Buffer;
  /** Text form: `name+hex key id+base64(type || key)`. */
  readonly vkey: string;
  /** True where the signature is the key's, over the text. */
  check(text: Uint8Array, signature: Uint8Array): boolean;
}

/** Makes signatures under a key. */
export interface Signer {
  readonly verifier: Verifier;
  sign(text: Uint8Array): Promise<Uint8Array>;
}

/** One signature line. */
export interface NoteSignature {
  readonly name: string;
  readonly keyId: Buffer;
  readonly signature: Buffer;
}

/** A note's text and its signatures, none of them checked. */
export interface Note {
  /** With its last line end. */
  readonly text: string;
  readonly signatures: readonly NoteSignature[];
}

function isName(name: string): boolean {
  return name !== '' && !/[\s+\p{Cc}]/u.test(name);
}

function keyIdOf(name: string, typed: Uint8Array): Buffer {
  return hash('sha256', Buffer.concat([Buffer.from(`${name}\n`), typed]), 'buffer').subarray(
    0,
    keyIdBytes,
  );
}

function verifierOf(name: string, raw: Uint8Array): Verifier {
  const key = publicKey(raw);
  return {
    ...named(name, ed25519, raw),
    check: (text, signature) =>
      signature.length === signatureBytes && verify(null, text, key, signature),
  };
}

function publicKey(raw: Uint8Array): KeyObject {
  const der = Buffer.concat([publicPrefix, raw]);
  return createPublicKey({ key: der, format: 'der', type: 'spki' });
}

function named(name: string, type: number, raw: Uint8Array): Omit<Verifier, 'check'> {
  const typed = Buffer.concat([Buffer.of(type), raw]);
  const keyId = keyIdOf(name, typed);
  return { name, keyId, vkey: `${name}+${keyId.toString('hex')}+${typed.toString('base64')}` };
}

/** Parses a vkey. Throws a SyntaxError that says what is wrong with it. */
export function parseVkey(vkey: string): Verifier {
  const { name, raw } = vkeyParts(vkey, [ed25519]);
  return verifierOf(name, raw);
}

/** Parses the vkey of a witness, of which either type of Ed25519 key is in use. Throws a SyntaxError. */
export function parseWitnessKey(vkey: string): Verifier {
  const { name, raw } = vkeyParts(vkey, [ed25519, cosignature]);
  const key = publicKey(raw);
  return {
    ...named(name, cosignature, raw),
    check(text, signature) {
      if (signature.length !== timeBytes + signatureBytes) return false;
      const head = `cosignature/v1\ntime ${secondsOf(signature)}\n`;
      const signed = Buffer.concat([Buffer.from(head), text]);
      return verify(null, signed, key, signature.subarray(timeBytes));
    },
  };
}

function secondsOf(signature: Uint8Array): bigint {
  return Buffer.from(signature.subarray(0, timeBytes)).readBigUInt64BE();
}

/** When a cosignature was made, as it says; epoch milliseconds. */
export function cosignedAt(signature: Uint8Array): number {
  return Number(secondsOf(signature)) * 1_000;
}

/** The same key under another name, which makes another key of it to whoever checks notes. */
export function renamedKey({ vkey }: Verifier, name: string): Verifier {
  return verifierOf(name, vkeyParts(vkey, [ed25519]).raw);
}

function vkeyParts(vkey: string, types: readonly number[]) {
  const [, name = '', id = '', data = ''] = /^([^+]*)\+([0-9a-f]{8})\+(.*)$/.exec(vkey) ?? [];
  const typed = base64(data);
  if (!isName(name) || typed === null) {
    throw new SyntaxError('not a public key of a note: expected NAME+8 hex digits+base64');
  }
  const [type = 0] = typed;
  if (!types.includes(type) || typed.length !== 1 + rawKeyBytes) {
    throw new SyntaxError(`the key ${name}+${id} is no Ed25519 key`);
  }
  if (keyIdOf(name, typed).toString('hex') !== id) {
    throw new SyntaxError(`the key ${name}+${id} is damaged: its id does not fit`);
  }
  return { name, raw: typed.subarray(1) };
}

/**
 * Parses a private key's text form, `PRIVATE+KEY+name+hex key id+base64(type || seed)`, as Go's
 * golang.org/x/mod/sumdb/note has it. Throws a SyntaxError, which does not show the key.
 */
export function parseSigningKey(text: string): Signer {
  const pattern = /^PRIVATE\+KEY\+([^+]*)\+([0-9a-f]{8})\+(.*)$/;
  const [, name = '', id = '', data = ''] = pattern.exec(text.trim()) ?? [];
  const typed = base64(data);
  if (!isName(name) || typed === null || typed[0] !== ed25519 || typed.length !== 1 + rawKeyBytes) {
    throw new SyntaxError('not a signing key: expected PRIVATE+KEY+NAME+8 hex digits+base64');
  }
  const signer = signerOf(name, typed.subarray(1));
  if (signer.verifier.keyId.toString('hex') !== id) {
    throw new SyntaxError(`the signing key ${name}+${id} is damaged: its id does not fit`);
  }
  return signer;
}

/** The key of which this is the public half, an Ed25519 key in PEM. Throws a SyntaxError. */
export function verifierOfPem(name: string, pem: string): Verifier {
  if (!isName(name)) throw new SyntaxError('a key’s name has no blanks and no +');
  const key = createPublicKey(pem);
  if (key.asymmetricKeyType !== 'ed25519') throw new SyntaxError('it is no Ed25519 key');
  return verifierOf(name, rawOf(key));
}

/** The text form of the key with this seed, 32 secret bytes. */
export function signingKeyText(name: string, seed: Uint8Array): string {
  if (!isName(name)) throw new SyntaxError('a key’s name has no blanks and no +');
  const id = signerOf(name, seed).verifier.keyId.toString('hex');
  const typed = Buffer.concat([Buffer.of(ed25519), seed]).toString('base64');
  return `PRIVATE+KEY+${name}+${id}+${typed}`;
}

function signerOf(name: string, seed: Uint8Array): Signer {
  const der = Buffer.concat([privatePrefix, seed]);
  const key: KeyObject = createPrivateKey({ key: der, format: 'der', type: 'pkcs8' });
  const verifier = verifierOf(name, rawOf(createPublicKey(key)));
  return { verifier, sign: async (text) => sign(null, text, key) };
}

function rawOf(key: KeyObject): Buffer {
  return key.export({ format: 'der', type: 'spki' }).subarray(-rawKeyBytes);
}

/** The note: the text, which ends with a line end, and a signature of each signer. */
export async function signNote(text: string, signers: readonly Signer[]): Promise<string> {
  const lines: string[] = [];
  for (const { verifier, sign } of signers) {
    const signature = await sign(Buffer.from(text));
    const signed = Buffer.concat([verifier.keyId, signature]);
    lines.push(`— ${verifier.name} ${signed.toString('base64')}\n`);
  }
  return `${text}\n${lines.join('')}`;
}

/** Takes a note apart. Throws a SyntaxError where it is none. */
export function parseNote(bytes: Uint8Array): Note {
  const note = utf8(bytes);
  const split = note?.lastIndexOf('\n\n') ?? -1;
  if (note === null || split < 0 || !note.endsWith('\n'))
    throw new SyntaxError('not a signed note');
  const lines = note.slice(split + 2, -1).split('\n');
  if (lines.length > signaturesMax) throw new SyntaxError('the note has too many signatures');
  const signatures = lines.map((line) => {
    const [, name = '', data = ''] = /^— (\S+) (\S+)$/.exec(line) ?? [];
    const signed = base64(data);
    if (!isName(name) || signed === null || signed.length <= keyIdBytes) {
      throw new SyntaxError('a signature line of the note is damaged');
    }
    const keyId = signed.subarray(0, keyIdBytes);
    return { name, keyId, signature: signed.subarray(keyIdBytes) };
  });
  return { text: note.slice(0, split + 1), signatures };
}

/** Of nobody's key. */
const fenceName = 'sluice/fence';

/**
 * A signature line by nobody, which readers of notes ignore as they do any whose key they do not
 * know. It makes of the same note other bytes: a bucket tells two versions apart by nothing else.
 */
export function fenceLine(): Buffer {
  const signed = randomBytes(keyIdBytes + signatureBytes);
  return Buffer.from(`— ${fenceName} ${signed.toString('base64')}\n`);
}

/** The note without such a line. */
export function withoutFence(note: Uint8Array): Buffer {
  const lines = Buffer.from(note).toString('utf8').split('\n');
  return Buffer.from(lines.filter((line) => !line.startsWith(`— ${fenceName} `)).join('\n'));
}

/** A note of which at least one known key has signed the text. */
export interface OpenedNote extends Note {
  /** The known keys that have signed it. */
  readonly by: readonly Verifier[];
}

/**
 * Checks a note. Throws a SyntaxError where it is none, where a signature of a known key is wrong,
 * or where none is of a known key.
 */
export function openNote(bytes: Uint8Array, known: readonly Verifier[]): OpenedNote {
  const note = parseNote(bytes);
  const text = Buffer.from(note.text);
  const by = new Set<Verifier>();
  for (const { name, keyId, signature } of note.signatures) {
    const verifier = known.find((key) => key.name === name && key.keyId.equals(keyId));
    if (verifier === undefined) continue;
    if (!verifier.check(text, signature)) {
      throw new SyntaxError(`the signature of ${name}+${keyId.toString('hex')} is wrong`);
    }
    by.add(verifier);
  }
  if (by.size === 0) throw new SyntaxError('no known key has signed the note');
  return { ...note, by: [...by] };
}

/** Null where the text is not exactly what its bytes would be written as. */
function base64(text: string): Buffer | null {
  const bytes = Buffer.from(text, 'base64');
  return text !== '' && bytes.toString('base64') === text ? bytes : null;
}

function utf8(bytes: Uint8Array): string | null {
  try {
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
    return /[\0-\x09\x0b-\x1f]/.test(text) ? null : text;
  } catch {
    return null;
  }
}

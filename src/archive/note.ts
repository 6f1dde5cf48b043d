// Signed notes (c2sp.org/signed-note), the form of checkpoints: a text, a blank line, and signature lines that each
// name a key. Keys are Ed25519; those of witnesses follow c2sp.org/tlog-cosignature and sign the time with the text.
// Signatures of other kinds or of unknown keys are ignored, as the standard requires; one wrong signature of a known
// key rejects the note. Invariant: a text is trusted only if `openNote` returned it.

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
/** Before a cosignature: its time, seconds as a big-endian number. */
const timeBytes = 8;
const keyIdBytes = 4;
const rawKeyBytes = 32;
const signatureBytes = 64;
/** Limit of signature lines in a note. */
const signaturesMax = 100;
/** DER prefixes of a raw Ed25519 key (RFC 8410): SPKI, and PKCS #8. */
const publicPrefix = Buffer.from('302a300506032b6570032100', 'hex');
const privatePrefix = Buffer.from('302e020100300506032b657004220420', 'hex');

/** A key that checks notes. */
export interface Verifier {
  readonly name: string;
  readonly keyId: Buffer;
  /** Text form: `name+hex key id+base64(type || key)`. */
  readonly vkey: string;
  /** True if the signature is the key's, over the text. */
  check(text: Uint8Array, signature: Uint8Array): boolean;
}

/** Signs with a key. */
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

/** A note's text and its unchecked signatures. */
export interface Note {
  /** Including its last line feed. */
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

/** Parses a vkey. Throws a SyntaxError with the reason. */
export function parseVkey(vkey: string): Verifier {
  const { name, raw } = vkeyParts(vkey, [ed25519]);
  return verifierOf(name, raw);
}

/** Parses a witness's vkey; both types of Ed25519 keys are accepted. Throws a SyntaxError. */
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

/** The time inside a cosignature, epoch milliseconds. */
export function cosignedAt(signature: Uint8Array): number {
  return Number(secondsOf(signature)) * 1_000;
}

/** The same key under another name; readers of notes treat it as another key. */
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
 * Parses a private key's text form, `PRIVATE+KEY+name+hex key id+base64(type || seed)`, as in Go's
 * golang.org/x/mod/sumdb/note. Throws a SyntaxError that does not contain the key.
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

/** The key with this public half, an Ed25519 key in PEM. Throws a SyntaxError. */
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

/** The note: the text, which ends with a line feed, and a signature of each signer. */
export async function signNote(text: string, signers: readonly Signer[]): Promise<string> {
  const lines: string[] = [];
  for (const { verifier, sign } of signers) {
    const signature = await sign(Buffer.from(text));
    const signed = Buffer.concat([verifier.keyId, signature]);
    lines.push(`— ${verifier.name} ${signed.toString('base64')}\n`);
  }
  return `${text}\n${lines.join('')}`;
}

/** Parses a note. Throws a SyntaxError if it is none. */
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

/** The name of no real key. */
const fenceName = 'sluice/fence';

/**
 * A signature line of no real key, which readers ignore like any unknown key. It changes the bytes of an otherwise
 * equal note, because a bucket distinguishes versions only by bytes.
 */
export function fenceLine(): Buffer {
  const signed = randomBytes(keyIdBytes + signatureBytes);
  return Buffer.from(`— ${fenceName} ${signed.toString('base64')}\n`);
}

/** The note without these lines. */
export function withoutFence(note: Uint8Array): Buffer {
  const lines = Buffer.from(note).toString('utf8').split('\n');
  return Buffer.from(lines.filter((line) => !line.startsWith(`— ${fenceName} `)).join('\n'));
}

/** A note with a valid signature of at least one known key. */
export interface OpenedNote extends Note {
  /** The known keys that have signed it. */
  readonly by: readonly Verifier[];
}

/**
 * Checks a note. Throws a SyntaxError if it is none, if a signature of a known key is wrong, or if no known key has
 * signed it.
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

/** Null if the text is not the canonical base64 of its bytes. */
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

// The part of ASN.1 DER (X.690) that time stamps need: parses values in place, so that the hashed or checked bytes are
// the received bytes, and encodes the few values of a request. Anything except plain DER of definite length is a
// SyntaxError.

import { invariant } from '../../contracts/index.ts';

/** One value. */
export interface Der {
  readonly tag: number;
  readonly content: Buffer;
  /** Including tag and length. */
  readonly raw: Buffer;
}

/** Tags of the supported values; a context tag is 0xa0 plus its number. */
export const tags = {
  integer: 0x02,
  octets: 0x04,
  null: 0x05,
  oid: 0x06,
  generalizedTime: 0x18,
  sequence: 0x30,
  set: 0x31,
} as const;

const longForm = 0x80;
/** Limit of length bytes: no value is longer than 16 MiB. */
const lengthBytesMax = 3;

/** The consecutive values. */
export function readAll(bytes: Uint8Array): readonly Der[] {
  const all = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  const found: Der[] = [];
  for (let at = 0; at < all.length; ) {
    const tag = all[at] ?? 0;
    const [length, from] = lengthAt(all, at + 1);
    const to = from + length;
    // Tag numbers from 31 on have several bytes; time stamps do not use them.
    if ((tag & 0x1f) === 0x1f || to > all.length) throw damaged();
    found.push({ tag, content: all.subarray(from, to), raw: all.subarray(at, to) });
    at = to;
  }
  return found;
}

function lengthAt(bytes: Buffer, at: number): readonly [length: number, from: number] {
  const first = bytes[at] ?? longForm;
  if (first < longForm) return [first, at + 1];
  const count = first - longForm;
  const from = at + 1 + count;
  if (count === 0 || count > lengthBytesMax || from > bytes.length) throw damaged();
  const length = bytes.readUIntBE(at + 1, count);
  if (length < longForm || length < 2 ** (8 * (count - 1))) throw damaged();
  return [length, from];
}

/** The only value. */
export function readOne(bytes: Uint8Array, tag: number): Der {
  const [one, more] = readAll(bytes);
  if (more !== undefined) throw damaged();
  return expected(one, tag);
}

/** The values within one. */
export function within(one: Der | undefined, tag: number = tags.sequence): readonly Der[] {
  return readAll(expected(one, tag).content);
}

/** The value, which must have this tag. */
export function expected(one: Der | undefined, tag: number): Der {
  if (one?.tag !== tag) throw damaged();
  return one;
}

/** An object identifier in dotted form. */
export function oidText(one: Der | undefined): string {
  const parts: number[] = [];
  let part = 0;
  for (const byte of expected(one, tags.oid).content) {
    part = part * 128 + (byte & 0x7f);
    if (byte >= longForm) continue;
    if (parts.length === 0) parts.push(Math.min(2, Math.floor(part / 40)));
    parts.push(parts.length === 1 ? part - 40 * (parts[0] ?? 0) : part);
    part = 0;
  }
  return parts.join('.');
}

/** A GeneralizedTime in the form of RFC 3161, as epoch milliseconds. */
export function generalizedTimeMs(one: Der | undefined): number {
  const text = expected(one, tags.generalizedTime).content.toString('latin1');
  const [, year, month, day, hour, minute, second, fraction = ''] =
    /^(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)(\.\d+)?Z$/.exec(text) ?? [];
  const at = Date.parse(`${year}-${month}-${day}T${hour}:${minute}:${second}${fraction}Z`);
  if (!Number.isFinite(at)) throw damaged();
  return at;
}

/** Encodes a value with this content. */
export function derValue(tag: number, ...parts: readonly Uint8Array[]): Buffer {
  const content = Buffer.concat(parts);
  invariant(content.length < longForm, 'an encoded value is short');
  return Buffer.concat([Buffer.of(tag, content.length), content]);
}

function damaged(): SyntaxError {
  return new SyntaxError('it is no answer of a time-stamp authority, or a damaged one');
}

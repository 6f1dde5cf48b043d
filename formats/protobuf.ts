// Writes Protocol Buffers (https://protobuf.dev/programming-guides/encoding/) in one pass into a
// growing buffer. A nested message has its length in front, which is known only at its end: one
// byte is reserved for it, and the message is moved if the length needs more. Nothing is measured
// in advance and no tree is built.

import type { NumberTags } from '../src/contracts/index.ts';

/** Maximum UTF-8 bytes of a string's UTF-16 unit. */
const bytesPerUnitMax = 3;
/** Shorter strings are encoded here; for longer ones the engine's call is worth its cost. */
const shortMax = 40;
const varintBytesMax = 10;
const oneByteMax = 0x7f;
const keptBytesMax = 1024 * 1024;

/** A writer of consecutive fields: into a buffer, or as pieces (protobuf-pieces.ts). */
export interface FieldWriter {
  /** A raw byte: a field's tag below 16, or a value below 128. */
  byte(value: number): void;
  /** Raw bytes. */
  raw(bytes: Uint8Array): void;
  /** An int64 or uint64 that a number holds exactly. */
  varint(value: number): void;
  /** A number that is whole and exact, or has a fraction, under the corresponding tag. */
  number(value: number, tags: NumberTags): void;
  /** Epoch milliseconds as a fixed64 of nanoseconds, which exceed the precision of a number. */
  nanos(ms: number): void;
  /** A string with its length, as UTF-8; half a surrogate pair becomes U+FFFD. */
  string(text: string): void;
  /** A string of JSON. */
  json(text: string): void;
  /** Begins a message (or string) with its length in front. Returns the argument of `end`. */
  begin(): number;
  /** Ends the open message. */
  end(start: number): void;
}

/** Bytes of a varint. */
export function varintBytes(value: number): number {
  let bytes = 1;
  for (let rest = value; rest > oneByteMax; rest = Math.floor(rest / 128)) bytes += 1;
  return bytes;
}

/** Writes fields one after the other. */
export class ProtobufWriter implements FieldWriter {
  #bytes: Buffer;
  #at = 0;

  /** `bytes`: the expected size. */
  constructor(bytes: number) {
    this.#bytes = Buffer.allocUnsafeSlow(Math.max(bytes, 64));
  }

  /** Restarts in the same buffer, unless that has become too large to keep. */
  clear(): void {
    this.#at = 0;
    if (this.#bytes.length > keptBytesMax) this.#bytes = Buffer.allocUnsafeSlow(keptBytesMax);
  }

  /** The written bytes; shares the writer's buffer. */
  written(): Uint8Array {
    return this.#bytes.subarray(0, this.#at);
  }

  byte(value: number): void {
    if (this.#at === this.#bytes.length) this.#grow(1);
    this.#bytes[this.#at] = value;
    this.#at += 1;
  }

  raw(bytes: Uint8Array): void {
    if (this.#at + bytes.length > this.#bytes.length) this.#grow(bytes.length);
    this.#bytes.set(bytes, this.#at);
    this.#at += bytes.length;
  }

  /** Copies bytes of a larger piece; a view of them would cost more than copying. */
  part(source: Buffer, start: number, end: number): void {
    if (this.#at + end - start > this.#bytes.length) this.#grow(end - start);
    this.#at += source.copy(this.#bytes, this.#at, start, end);
  }

  varint(value: number): void {
    if (this.#at + varintBytesMax > this.#bytes.length) this.#grow(varintBytesMax);
    if (value < 0) {
      let rest = BigInt.asUintN(64, BigInt(value));
      for (; rest > 0x7fn; rest >>= 7n) this.byte(Number(rest & 0x7fn) | 0x80);
      this.byte(Number(rest));
      return;
    }
    let rest = value;
    while (rest > oneByteMax) {
      this.#bytes[this.#at] = (rest % 128) | 0x80;
      this.#at += 1;
      rest = Math.floor(rest / 128);
    }
    this.#bytes[this.#at] = rest;
    this.#at += 1;
  }

  number(value: number, tags: NumberTags): void {
    if (Number.isInteger(value)) {
      this.byte(tags.int);
      this.varint(value);
      return;
    }
    this.byte(tags.double);
    if (this.#at + 8 > this.#bytes.length) this.#grow(8);
    this.#at = this.#bytes.writeDoubleLE(value, this.#at);
  }

  nanos(ms: number): void {
    const low = (ms % 2 ** 32) * 1e6;
    const high = Math.floor(ms / 2 ** 32) * 1e6 + Math.floor(low / 2 ** 32);
    if (this.#at + 8 > this.#bytes.length) this.#grow(8);
    this.#at = this.#bytes.writeUInt32LE(low % 2 ** 32, this.#at);
    this.#at = this.#bytes.writeUInt32LE(high, this.#at);
  }

  json(text: string): void {
    this.string(text);
  }

  string(text: string): void {
    const room = text.length * bytesPerUnitMax + varintBytesMax;
    if (this.#at + room > this.#bytes.length) this.#grow(room);
    if (text.length <= shortMax && this.#short(text)) return;
    const start = this.begin();
    this.#at += this.#bytes.write(text, this.#at, 'utf8');
    this.end(start);
  }

  begin(): number {
    this.byte(0);
    return this.#at;
  }

  end(start: number): void {
    const length = this.#at - start;
    if (length <= oneByteMax) {
      this.#bytes[start - 1] = length;
      return;
    }
    const more = varintBytes(length) - 1;
    if (this.#at + more > this.#bytes.length) this.#grow(more);
    this.#bytes.copyWithin(start + more, start, this.#at);
    this.#at = start - 1;
    this.varint(length);
    this.#at += length;
  }

  /** Writes ASCII; false, with nothing written, for any other text. */
  #short(text: string): boolean {
    const bytes = this.#bytes;
    const { length } = text;
    const start = this.#at + 1;
    for (let i = 0; i < length; i += 1) {
      const unit = text.charCodeAt(i);
      if (unit > 0x7f) return false;
      bytes[start + i] = unit;
    }
    bytes[start - 1] = length;
    this.#at = start + length;
    return true;
  }

  #grow(bytes: number): void {
    const larger = Buffer.allocUnsafeSlow((this.#at + bytes) * 2);
    this.#bytes.copy(larger, 0, 0, this.#at);
    this.#bytes = larger;
  }
}

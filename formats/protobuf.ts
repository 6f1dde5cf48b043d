// Protocol buffers (https://protobuf.dev/programming-guides/encoding/) written in one pass into
// memory that grows. A message within a message has its length in front, which is known only behind
// it: a byte is left for it, and the message moves up where it turns out to need more. Nothing is
// measured first and no tree is built.

import type { NumberTags } from '../src/contracts/copying.ts';

/** Bytes that a string's UTF-16 unit takes at most. */
const bytesPerUnitMax = 3;
/** Shorter strings are written here; for longer ones the engine's call is worth its cost. */
const shortMax = 40;
const varintBytesMax = 10;
const oneByteMax = 0x7f;
const keptBytesMax = 1024 * 1024;

/** What writes fields one after the other: into memory, or as pieces (protobuf-pieces.ts). */
export interface FieldWriter {
  /** A byte as it is: a field's tag below 16, or a value below 128. */
  byte(value: number): void;
  /** Bytes as they are. */
  raw(bytes: Uint8Array): void;
  /** An int64 or uint64 that a number holds exactly. */
  varint(value: number): void;
  /** A number that is whole and held exactly, or has a fraction, under the tag that it has then. */
  number(value: number, tags: NumberTags): void;
  /** Epoch milliseconds as a fixed64 of nanoseconds, which one number cannot hold. */
  nanos(ms: number): void;
  /** A string with its length, as UTF-8; half a surrogate pair becomes U+FFFD. */
  string(text: string): void;
  /** A string of JSON. */
  json(text: string): void;
  /** Begins a message (or string) whose length comes in front. Returns what `end` wants to know. */
  begin(): number;
  /** Ends the message that was begun. */
  end(start: number): void;
}

/** How many bytes a varint takes. */
export function varintBytes(value: number): number {
  let bytes = 1;
  for (let rest = value; rest > oneByteMax; rest = Math.floor(rest / 128)) bytes += 1;
  return bytes;
}

/** Writes fields one after the other. */
export class ProtobufWriter implements FieldWriter {
  #bytes: Buffer;
  #at = 0;

  /** `bytes`: the size to expect. */
  constructor(bytes: number) {
    this.#bytes = Buffer.allocUnsafeSlow(Math.max(bytes, 64));
  }

  /** Begins anew in the same memory, unless that has become larger than is worth keeping. */
  clear(): void {
    this.#at = 0;
    if (this.#bytes.length > keptBytesMax) this.#bytes = Buffer.allocUnsafeSlow(keptBytesMax);
  }

  /** What was written; shares the writer's memory. */
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

  /** Bytes of a larger piece as they are; a view of them would cost more than copying. */
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

  /** Writes ASCII; false, with nothing written, where the text is more than that. */
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

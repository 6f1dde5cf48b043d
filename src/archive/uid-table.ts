// A set of uids with a few flags each, in a fixed number of bytes per uid: 32 for the uid, 1 for its flags and at most
// 16 for its slot. A Set of strings needs about five times as much. Invariants: memory is bounded by `uidsMax`; uids
// chosen by an attacker cannot make the table slow, because each table hashes with random numbers.

import { randomBytes } from 'node:crypto';
import { uidBytes } from '../contracts/index.ts';

/** Limit of uids in a table, about 200 MB. */
export const uidsMax = 4_000_000;

const wordBytes = 4;
const words = uidBytes / wordBytes;
/** Uids of one chunk: 2 MiB. */
const chunkUids = 65_536;
const firstBits = 12;

/** More uids than a table can store. */
export class TooManyUids extends RangeError {
  override readonly name = 'TooManyUids';
}

/** Uids with flags. */
export class UidTable {
  readonly #uidsMax: number;
  readonly #chunks: Uint32Array[] = [];
  readonly #flags: Uint8Array[] = [];
  #bits = firstBits;
  /** Index of a uid plus one; 0: the slot is free. At most half of the slots are used. */
  #slots = new Int32Array(2 ** firstBits);
  #size = 0;
  readonly #key = new Uint32Array(new Uint8Array(randomBytes(uidBytes)).buffer).map((k) => k | 1);
  readonly #uid = new Uint32Array(words);

  /** `max`: limit of uids. */
  constructor(max = uidsMax) {
    this.#uidsMax = max;
  }

  /**
   * Adds the flag to the uid of `uidBytes` bytes that starts at `at`. Returns its earlier flags, 0 for a new uid.
   * Throws TooManyUids.
   */
  mark(bytes: Uint8Array, at: number, flag: number): number {
    const uid = this.#uid;
    for (let i = 0, from = at; i < words; i += 1, from += wordBytes) {
      uid[i] =
        (bytes[from] ?? 0) |
        ((bytes[from + 1] ?? 0) << 8) |
        ((bytes[from + 2] ?? 0) << 16) |
        ((bytes[from + 3] ?? 0) << 24);
    }
    let slot = this.#slotOf(uid, 0);
    for (let place = this.#slots[slot] ?? 0; place > 0; place = this.#slots[slot] ?? 0) {
      if (this.#is(uid, place - 1)) return this.#setFlag(place - 1, flag);
      slot = (slot + 1) & (this.#slots.length - 1);
    }
    this.#add(slot, flag);
    return 0;
  }

  /** Each uid in hex with its flags, in the order of insertion. */
  *entries(): Generator<readonly [uid: string, flags: number]> {
    for (let place = 0; place < this.#size; place += 1) {
      const flags = this.#flags[Math.floor(place / chunkUids)]?.[place % chunkUids] ?? 0;
      yield [this.#hex(place), flags];
    }
  }

  /** Number of uids whose flags satisfy `isSo`. */
  count(isSo: (flags: number) => boolean): number {
    let count = 0;
    for (let place = 0; place < this.#size; place += 1) {
      if (isSo(this.#flags[Math.floor(place / chunkUids)]?.[place % chunkUids] ?? 0)) count += 1;
    }
    return count;
  }

  #setFlag(place: number, flag: number): number {
    const flags = this.#flags[Math.floor(place / chunkUids)];
    const before = flags?.[place % chunkUids] ?? 0;
    if (flags !== undefined) flags[place % chunkUids] = before | flag;
    return before;
  }

  #add(slot: number, flag: number): void {
    const place = this.#size;
    if (place >= this.#uidsMax) throw new TooManyUids(`there are more than ${this.#uidsMax} uids`);
    const within = place % chunkUids;
    if (within === 0) {
      this.#chunks.push(new Uint32Array(chunkUids * words));
      this.#flags.push(new Uint8Array(chunkUids));
    }
    this.#chunks.at(-1)?.set(this.#uid, within * words);
    this.#setFlag(place, flag);
    this.#slots[slot] = place + 1;
    this.#size += 1;
    if (this.#size * 2 > this.#slots.length) this.#grow();
  }

  #grow(): void {
    this.#bits += 1;
    this.#slots = new Int32Array(2 ** this.#bits);
    for (let place = 0; place < this.#size; place += 1) {
      const chunk = this.#chunks[Math.floor(place / chunkUids)] ?? this.#uid;
      let slot = this.#slotOf(chunk, (place % chunkUids) * words);
      while (this.#slots[slot] !== 0) slot = (slot + 1) & (this.#slots.length - 1);
      this.#slots[slot] = place + 1;
    }
  }

  /** The first slot of the uid whose words start at `at`. */
  #slotOf(uid: Uint32Array, at: number): number {
    let sum = 0;
    for (let i = 0; i < words; i += 1) {
      sum =
        (Math.imul((sum >>> 15) ^ sum, 0x2c1b3c6d) +
          Math.imul(uid[at + i] ?? 0, this.#key[i] ?? 1)) |
        0;
    }
    return sum >>> (32 - this.#bits);
  }

  #is(uid: Uint32Array, place: number): boolean {
    const chunk = this.#chunks[Math.floor(place / chunkUids)] ?? this.#uid;
    const at = (place % chunkUids) * words;
    for (let i = 0; i < words; i += 1) if (chunk[at + i] !== uid[i]) return false;
    return true;
  }

  #hex(place: number): string {
    const chunk = this.#chunks[Math.floor(place / chunkUids)] ?? this.#uid;
    const at = (place % chunkUids) * words;
    const bytes = Buffer.alloc(uidBytes);
    for (let i = 0; i < words; i += 1) bytes.writeUInt32LE(chunk[at + i] ?? 0, i * wordBytes);
    return bytes.toString('hex');
  }
}

// Who a record is. With an id: SHA-256 over source, company, stream and the record's key, which is
// 8 bytes of digest of the id, so that versions of a record are found together, and 8 of the
// content, since upstream's word that an id stands for one content is no more than that
// (tools/json-scan.ts). `"00123"`, `123` and an integer beyond 2^53 stay apart. Without one (none
// at its path, or an empty one): over the record's bytes, or its content where some of it is
// ignored, and how many records like it came before, so that true twins stay two. What must stay
// true: the same content has the same uid, in whatever order and however often it is read, and
// nothing that upstream or the config says makes two contents share one. Identities were made
// otherwise before: see `older`.

import { hash } from 'node:crypto';
import type { RecordList } from '../../tools/record-list.ts';
import { identityWords, keyBytes } from './repeats.ts';

const quote = 0x22;

/** What identities are made from, for one stream. */
export interface IdentitySettings {
  readonly source: string;
  readonly company: string;
  readonly stream: string;
}

/** The records of one page with their keys. */
export interface Identified {
  readonly count: number;
  /** `identityWords` each: the key, and nothing in the last word. */
  readonly words: Uint32Array;
  /** 1 where the record has an id. */
  readonly named: Uint8Array;
  /** For a record without id, the digest that its uid is made from. */
  readonly digests: readonly (Buffer | undefined)[];
  readonly records: RecordList;
}

/** Makes identities for one stream. */
export class Identifier {
  /** As JSON: names joined by a separator could be parted otherwise by one that holds it. */
  readonly #prefix: string;
  /** What is hashed of a record with an id: its key goes to the end. */
  readonly #named: Buffer;
  /** What the bytes of a record without id are hashed behind. */
  readonly #unnamed: Buffer;

  constructor({ source, company, stream }: IdentitySettings) {
    this.#prefix = JSON.stringify([source, company, stream]);
    this.#named = Buffer.from(`${this.#prefix}c\0${'k'.repeat(keyBytes)}`);
    this.#unnamed = Buffer.from(`${this.#prefix}r\0`);
  }

  /** Identifies a page's records. */
  identify(records: RecordList): Identified {
    const count = records.length;
    const words = new Uint32Array(count * identityWords);
    const named = new Uint8Array(count);
    const digests: (Buffer | undefined)[] = [];
    for (let i = 0; i < count; i += 1) {
      const at = i * identityWords;
      if (records.digestId(i, words, at)) {
        named[i] = 1;
        words[at + 2] = records.contents[i * 2] ?? 0;
        words[at + 3] = records.contents[i * 2 + 1] ?? 0;
      } else {
        const digest = this.#unnamedDigest(records, i);
        digests[i] = digest;
        words.set(keyOf(digest), at);
      }
    }
    return { count, words, named, digests, records };
  }

  /** The uid of a record with an id, a character for each byte: the form that costs least. */
  uid({ words }: Identified, index: number): string {
    const hashed = this.#named;
    const at = index * identityWords;
    for (let word = 0; word < keyBytes / 4; word += 1) {
      hashed.writeUInt32LE(words[at + word] ?? 0, hashed.length - keyBytes + word * 4);
    }
    return hash('sha256', hashed, 'latin1');
  }

  /** The uid of the n-th record like this one, where records have no id; as `uid` has it. */
  twinUid({ digests }: Identified, index: number, n: number): string {
    const digest = digests[index] ?? Buffer.alloc(0);
    return hash('sha256', Buffer.concat([digest, Buffer.from(`twin\0${n}`)]), 'latin1');
  }

  /**
   * The key by which this record can be known from before: with an id the one that version 0.1.0
   * gave it, by the id alone; without one that of its bytes, where something is ignored now. Null
   * where there is no other.
   */
  older({ records, named }: Identified, index: number): Uint32Array | null {
    if (named[index] === 1) {
      return keyOf(hash('sha256', `${this.#prefix}${idOf(records.idText(index))}`, 'buffer'));
    }
    return records.reduced[index] === 1 ? keyOf(this.#bytesDigest(records, index)) : null;
  }

  /** The uid of a condition or change of this stream, from what makes it one of its kind. */
  ownUid(parts: readonly (string | number)[]): Buffer {
    return hash('sha256', `${this.#prefix}o\0${JSON.stringify(parts)}`, 'buffer');
  }

  #unnamedDigest(records: RecordList, index: number): Buffer {
    if (records.reduced[index] !== 1) return this.#bytesDigest(records, index);
    const content = `${records.contents[index * 2]}.${records.contents[index * 2 + 1]}.`;
    return hash('sha256', `${this.#prefix}d\0${content}`, 'buffer');
  }

  #bytesDigest(records: RecordList, index: number): Buffer {
    return hash('sha256', Buffer.concat([this.#unnamed, records.raw(index)]), 'buffer');
  }
}

/** The first 16 bytes of a digest. */
function keyOf(digest: Buffer): Uint32Array {
  return new Uint32Array(digest.buffer.slice(digest.byteOffset, digest.byteOffset + keyBytes));
}

/**
 * The id from its source text, marked as a string's own text or as JSON. A number keeps its source
 * text, where it has all its digits, and so does a string that is not well-formed, since encoding
 * would make different ones alike.
 */
function idOf(source: string | null): string {
  if (source === null || source.charCodeAt(0) !== quote) return `j\0${source}`;
  if (!source.includes('\\')) return `i\0${source.slice(1, -1)}`;
  const text = JSON.parse(source) as string;
  return text.isWellFormed() ? `i\0${text}` : `j\0${JSON.stringify(text)}`;
}

// Who a record is. With an id: SHA-256 over source, company, stream and the id's own text, so that `"00123"`, `123` and
// an integer beyond 2^53 stay apart. Without one: over the record's bytes and how many records with the same bytes
// came before it, so that true twins stay two. The first 16 bytes are the key by which repeats are known; the whole
// digest is the uid that every sink sees. What must stay true: reading a record again gives the same uid.

import { hash } from 'node:crypto';
import type { ParsedRecord } from '../contracts/event.ts';
import { identityBytes, uidBytes } from '../contracts/spool.ts';
import { cutRecords, type Slices, sourceTextAt, valueAt } from '../tools/records.ts';
import { contentCheck } from './content-check.ts';
import { identityWords } from './repeats.ts';

/** What identities are made from, for one stream. */
export interface IdentitySettings {
  readonly source: string;
  readonly company: string;
  readonly stream: string;
  /** Dotted path of the id; null: none. */
  readonly id: string | null;
  /** Also note a check over the content, to notice a record that changed. */
  readonly checkContent: boolean;
}

/** The records of one page with their keys. */
export interface Identified {
  readonly count: number;
  /** `identityWords` each: the key, then the content check. For a record without id the check is 0. */
  readonly words: Uint32Array;
  /** 1 where the record has an id. */
  readonly named: Uint8Array;
  /** `uidBytes` each; for a record without id a digest of its bytes, from which `twinUid` makes the uid. */
  readonly digests: Buffer;
}

/** Makes identities for one stream. */
export class Identifier {
  readonly #settings: IdentitySettings;
  readonly #prefix: string;

  constructor(settings: IdentitySettings) {
    this.#settings = settings;
    this.#prefix = `${settings.source}\0${settings.company}\0${settings.stream}\0`;
  }

  /** Identifies a page's records. */
  identify(records: readonly ParsedRecord[], body: Uint8Array, items: string): Identified {
    const { id: idPath, checkContent } = this.#settings;
    const count = records.length;
    const words = new Uint32Array(count * identityWords);
    const bytes = new Uint8Array(words.buffer);
    const digests = Buffer.allocUnsafeSlow(count * uidBytes);
    const named = new Uint8Array(count);
    let slices: Slices | null = checkContent ? cutRecords(body, items) : null;
    for (let i = 0; i < count; i += 1) {
      const raw = () => {
        slices ??= cutRecords(body, items);
        return body.subarray(slices.starts[i], slices.ends[i]);
      };
      const id = idPath === null ? null : idText(records[i] ?? null, idPath, raw);
      const digest =
        id === null
          ? hash('sha256', Buffer.concat([Buffer.from(`${this.#prefix}r\0`), raw()]), 'binary')
          : hash('sha256', `${this.#prefix}i\0${id}`, 'binary');
      digests.write(digest, i * uidBytes, 'binary');
      bytes.set(digests.subarray(i * uidBytes, i * uidBytes + 16), i * identityBytes);
      if (id !== null) {
        named[i] = 1;
        if (slices !== null) {
          const check = contentCheck(body, slices.starts[i] ?? 0, slices.ends[i] ?? 0);
          words[i * identityWords + identityWords - 1] = check;
        }
      }
    }
    return { count, words, named, digests };
  }

  /** The uid of the n-th record with the same bytes, where records have no id. */
  twinUid(digest: Uint8Array, n: number): Buffer {
    return hash('sha256', Buffer.concat([digest, Buffer.from(`twin\0${n}`)]), 'buffer');
  }

  /** The uid of a record that came again with other content: it is told beside the first, not instead of it. */
  changedUid(digest: Uint8Array, check: number): Buffer {
    return hash('sha256', Buffer.concat([digest, Buffer.from(`changed\0${check}`)]), 'buffer');
  }

  /** The uid of a condition or change of this stream, from what makes it one of its kind. */
  ownUid(parts: readonly (string | number)[]): Buffer {
    return hash('sha256', `${this.#prefix}o\0${parts.join('\0')}`, 'buffer');
  }
}

/**
 * The id as text. A number is taken from the record's own bytes, where it has all its digits, and so is a string that
 * is not well-formed, since encoding would make different ones alike.
 */
function idText(record: ParsedRecord, path: string, raw: () => Uint8Array): string | null {
  const value = valueAt(record, path);
  if (typeof value === 'string') {
    if (value.isWellFormed()) return value;
    return `\0${sourceTextAt(raw(), path)}`;
  }
  if (typeof value === 'number') return `\0${sourceTextAt(raw(), path)}`;
  return null;
}

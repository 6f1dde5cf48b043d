// Who a record is. With an id: SHA-256 over source, company, stream and the id's own text, so that `"00123"`, `123` and
// an integer beyond 2^53 stay apart. Without one (none at its path, or an empty one): over the record's bytes and how
// many records with the same bytes came before it, so that true twins stay two. The first 16 bytes are the key by which
// repeats are known; the whole digest is the uid that every sink sees. What must stay true: reading a record again
// gives the same uid, and nothing that upstream or the config says makes two different records share one.

import { hash } from 'node:crypto';
import { uidBytes } from '../contracts/spool.ts';
import type { RecordList } from '../tools/record-list.ts';
import { identityWords } from './repeats.ts';

const quote = 0x22;
const minus = 0x2d;
const zero = 0x30;
const nine = 0x39;

/** What identities are made from, for one stream. */
export interface IdentitySettings {
  readonly source: string;
  readonly company: string;
  readonly stream: string;
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
  /** What the bytes of a record without id are hashed behind. */
  readonly #unnamed: Buffer;

  constructor(settings: IdentitySettings) {
    this.#settings = settings;
    // As JSON, since names joined by a separator could be parted otherwise by a name that holds it.
    this.#prefix = JSON.stringify([settings.source, settings.company, settings.stream]);
    this.#unnamed = Buffer.from(`${this.#prefix}r\0`);
  }

  /** Identifies a page's records. */
  identify(records: RecordList): Identified {
    const { checkContent } = this.#settings;
    const count = records.length;
    const words = new Uint32Array(count * identityWords);
    const digests = Buffer.allocUnsafeSlow(count * uidBytes);
    const named = new Uint8Array(count);
    for (let i = 0; i < count; i += 1) {
      const id = idOf(records.idText(i));
      const digest =
        id === null
          ? hash('sha256', Buffer.concat([this.#unnamed, records.raw(i)]), 'latin1')
          : hash('sha256', this.#prefix + id, 'latin1');
      digests.write(digest, i * uidBytes, 'latin1');
      if (id === null) continue;
      named[i] = 1;
      if (checkContent) words[i * identityWords + identityWords - 1] = records.checks[i] ?? 0;
    }
    const digestWords = new Uint32Array(digests.buffer);
    for (let i = 0; i < count; i += 1) {
      for (let word = 0; word < identityWords - 1; word += 1) {
        words[i * identityWords + word] = digestWords[(i * uidBytes) / 4 + word] ?? 0;
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
    return hash('sha256', `${this.#prefix}o\0${JSON.stringify(parts)}`, 'buffer');
  }
}

/**
 * The id from its source text, marked as a string's own text or as JSON. A number keeps its source text, where it has
 * all its digits, and so does a string that is not well-formed, since encoding would make different ones alike.
 */
function idOf(source: string | null): string | null {
  const first = source?.charCodeAt(0) ?? 0;
  if (source === null || source === '""') return null;
  if (first === minus || (first >= zero && first <= nine)) return `j\0${source}`;
  if (first !== quote) return null;
  if (!source.includes('\\')) return `i\0${source.slice(1, -1)}`;
  const text = JSON.parse(source) as string;
  return text.isWellFormed() ? `i\0${text}` : `j\0${source}`;
}

// Checks the lake's stored objects against their entries: each cut and object as in its own entry, or in a later entry
// that erases from it. Invariants: a missing object is no break if a later entry says that it was deleted; content to
// which no chain of entries leads is a break.

import { hash } from 'node:crypto';
import type { EntryOf } from '../entries.ts';
import { type Erasures, erasedRows } from '../erasures.ts';
import { lakeBytesMax } from '../lake-cuts.ts';
import type { ArchiveReader } from '../reader.ts';
import type { Break } from './findings.ts';

/** Dependencies of the checks. */
export interface LakeObjectDeps {
  readonly reader: ArchiveReader;
  readonly found: (one: Break) => unknown;
  /** All erasures of the log; read only if an object does not match its own entry. */
  readonly erasures: () => Promise<Erasures>;
}

/** A stored object: its body, null if everything was erased, and the erased uids. */
export interface ExistingObject {
  readonly body: Uint8Array | null;
  readonly erased: readonly string[];
}

/** `broken`: already reported. */
type Found<T> = T | 'missing' | 'broken';
type Facts = Pick<EntryOf<'lake'>, 'object' | 'bytes' | 'sha256'>;

const listedMax = 1_000;
/** Limit of objects reported as still containing erased data. */
const erasedMax = 10_000;

/** Checks the objects of one lake. */
export class LakeObjects {
  readonly #deps: LakeObjectDeps;
  /** By the cut's name: its missing parts, until an entry says that it was deleted. */
  readonly #missing = new Map<string, readonly Break[]>();
  /** By object: the facts of the last entry that erases from it. */
  readonly #erased = new Map<string, Pick<EntryOf<'lake_erased'>, 'bytes' | 'sha256'>>();

  constructor(deps: LakeObjectDeps) {
    this.#deps = deps;
  }

  /** Checks the cut of an entry. */
  async cut(index: number, entry: EntryOf<'lake_cut'>): Promise<Found<'whole'>> {
    try {
      const body = await this.#read('cut', entry.object, entry.bytes);
      if (body === null) return this.#miss(entry.object, index, { ...entry, what: 'the cut' });
      if (isAs(entry, body)) return 'whole';
      return this.#break(index, 'the cut of the lake differs from its entry', entry.object);
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error;
      return this.#break(index, error.message, entry.object);
    }
  }

  /** Checks the object of an entry, which belongs to this cut. */
  async object(cut: string, index: number, entry: EntryOf<'lake'>): Promise<Found<ExistingObject>> {
    const { object } = entry;
    try {
      const body = await this.#read('lake', object, entry.bytes);
      if (body !== null && isAs(entry, body)) return { body, erased: [] };
      const erasures = await this.#deps.erasures();
      const versions = erasures.lake.get(object) ?? [];
      const most = Math.max(entry.bytes, ...versions.map(({ bytes }) => bytes));
      const now = versions.length > 0 ? await this.#read('lake', object, most) : body;
      const erased = erasedRows(entry, hash('sha256', now ?? new Uint8Array(0)), erasures);
      if (erased !== null) return { body: now, erased };
      if (now === null) return this.#miss(cut, index, { object, what: 'the object' });
      return this.#break(index, 'the object of the lake differs from its entry', object);
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error;
      return this.#break(index, error.message, object);
    }
  }

  /** An entry that erases from an object. */
  erase({ object, bytes, sha256 }: EntryOf<'lake_erased'>): void {
    if (this.#erased.has(object) || this.#erased.size < erasedMax)
      this.#erased.set(object, { bytes, sha256 });
  }

  /** A cut that was deleted with its objects; true if parts are missing. */
  prune(cut: string): boolean {
    return this.#missing.delete(cut);
  }

  isMissing(cut: string): boolean {
    return this.#missing.has(cut);
  }

  /** Reports missing objects whose deletion has no entry; returns remarks for the reader. */
  async finish(): Promise<readonly string[]> {
    for (const one of [...this.#missing.values()].flat()) this.#deps.found(one);
    const undone: string[] = [];
    for (const [object, facts] of this.#erased) {
      const body = await this.#read('lake', object, facts.bytes).catch(() => null);
      if (body === null || isAs(facts, body)) continue;
      undone.push(
        `${object} still has a record that an entry erases: the erasure is not complete, or an older copy was restored`,
      );
    }
    return undone;
  }

  async #read(kind: 'cut' | 'lake', object: string, bytes: number): Promise<Uint8Array | null> {
    const length = Math.min(bytes, lakeBytesMax) + 1;
    return await this.#deps.reader.named(kind, object, { from: 0, length });
  }

  #miss(cut: string, index: number, about: { readonly object: string; readonly what: string }) {
    const { object, what } = about;
    const one = { index, stream: null, seq: null, object, what: `${what} of the lake is missing` };
    const missing = this.#missing.get(cut) ?? [];
    if (missing.length < listedMax) this.#missing.set(cut, [...missing, one]);
    return 'missing' as const;
  }

  #break(index: number, what: string, object: string): 'broken' {
    this.#deps.found({ index, stream: null, seq: null, object, what });
    return 'broken';
  }
}

function isAs({ bytes, sha256 }: Pick<Facts, 'bytes' | 'sha256'>, body: Uint8Array): boolean {
  return body.length === bytes && hash('sha256', body) === sha256;
}

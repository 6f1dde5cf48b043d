// What entries say stands in the lake, against what does: each cut and object as its entry has it, or
// as a later entry that erases from it. What must stay true: what is missing is no break where an
// entry behind says that it went, and what no chain of entries leads to is one.

import { hash } from 'node:crypto';
import type { EntryOf } from '../entries.ts';
import { type Erasures, erasedRows } from '../erasures.ts';
import { lakeBytesMax } from '../lake-cuts.ts';
import type { ArchiveReader } from '../reader.ts';
import type { Break } from './findings.ts';

/** What they are looked at with. */
export interface LakeObjectDeps {
  readonly reader: ArchiveReader;
  readonly found: (one: Break) => unknown;
  /** All of the log's; looked up where an object is not as its own entry has it. */
  readonly erasures: () => Promise<Erasures>;
}

/** An object as it stands: null where all that it had was erased; and the uids that were. */
export interface ExistingObject {
  readonly body: Uint8Array | null;
  readonly erased: readonly string[];
}

/** `broken`: it was told. */
type Found<T> = T | 'missing' | 'broken';
type Facts = Pick<EntryOf<'lake'>, 'object' | 'bytes' | 'sha256'>;

const listedMax = 1_000;
/** Objects of which it is told that they have what was erased. */
const erasedMax = 10_000;

/** Looks at the objects of one lake. */
export class LakeObjects {
  readonly #deps: LakeObjectDeps;
  /** By the cut's name: what is missing of it until an entry says that it went. */
  readonly #missing = new Map<string, readonly Break[]>();
  /** By object: as the last entry that erases from it has it. */
  readonly #erased = new Map<string, Pick<EntryOf<'lake_erased'>, 'bytes' | 'sha256'>>();

  constructor(deps: LakeObjectDeps) {
    this.#deps = deps;
  }

  /** The cut of an entry. */
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

  /** The object of an entry, which is of this cut. */
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

  /** A cut that went with its objects; true where some of it is missing. */
  prune(cut: string): boolean {
    return this.#missing.delete(cut);
  }

  isMissing(cut: string): boolean {
    return this.#missing.has(cut);
  }

  /** Tells of what is missing though no entry says that it went; what is to be said besides. */
  async tell(): Promise<readonly string[]> {
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

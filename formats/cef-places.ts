// The CEF key of each attribute of an event, and of each name in its unmapped part: a key of the
// table (cef-keys.ts) or its own, named after its path. It is derived when a name is first seen,
// then cached, so that writing an event costs one comparison per value. Invariants: names come from
// upstream, so the cache is bounded; the output for an event never depends on earlier events.

import { cefKeys, reservedKeys, standIns, writtenInKeys } from './cef-keys.ts';

/**
 * A key outside the table: the start of its pair, and the number of the event last written with it.
 */
export interface OwnKey {
  readonly pair: string;
  /** A key may occur once in an event, whatever paths lead to it. */
  writtenIn: number;
  /** False if there are too many keys to cache this one: it is a new object each time. */
  readonly remembered: boolean;
}

const placesMax = 16_384;
const orderMax = 128;
const keyLengthMax = 64;
// Members of these count as members of the level above.
const wrappers: ReadonlySet<string> = new Set(['event', 'attributes', 'log', 'data', 'network']);

/** One path in events: an attribute, or a name in the unmapped part. */
export class CefPath {
  readonly name: string;
  /** Names from the top, joined by dots; in the unmapped part, from the record's top. */
  readonly path: string;
  /** Row of the table, or -1. */
  slot = -1;
  /** Rank of this path among the row's sources; less is better. */
  rank = 0;
  /** The table has an entry below this path. */
  inTable = false;
  /** The value is contained in another key. */
  isElsewhere = false;
  /** The attribute that this one replaces: if that is present, this has no key. */
  insteadOf = '';
  /**
   * The children in the order of the last object: most objects at this path have the same names.
   */
  readonly order: CefPath[] = [];
  readonly children = new Map<string, CefPath>();
  readonly own: OwnKey | null;
  readonly #tree: CefPaths;
  readonly #vocabulary: ReadonlyMap<string, readonly [slot: number, rank: number]>;
  readonly #canonical: string;
  #plain: CefPath | null = null;

  constructor(tree: CefPaths, above: CefPath | null, name: string, vocabulary: Vocabulary) {
    this.#tree = tree;
    this.#vocabulary = vocabulary;
    this.name = name;
    this.path = above === null || above.path === '' ? name : `${above.path}.${name}`;
    this.#canonical = above === null ? '' : canonicalBelow(above.#canonical, name);
    this.own = above === null ? null : tree.ownKey(this.path);
    const known = this.#canonical === '' ? undefined : vocabulary.get(this.#canonical);
    if (known !== undefined) [this.slot, this.rank] = known;
  }

  /** The child with a name that differs from the one at this index in the previous object. */
  find(name: string, position: number): CefPath {
    let child = this.children.get(name);
    if (child === undefined) {
      child = new CefPath(this.#tree, this, name, this.#vocabulary);
      if (name.length <= keyLengthMax && this.#tree.remembers()) this.children.set(name, child);
      else return child;
    }
    if (position < orderMax) this.order[position] = child;
    return child;
  }

  /** The same path without the table's entries, here and below. */
  get plain(): CefPath {
    this.#plain ??= this.#tree.plain(this.path);
    return this.#plain;
  }
}

/** Table rows by canonical name. */
type Vocabulary = ReadonlyMap<string, readonly [slot: number, rank: number]>;

const noVocabulary: Vocabulary = new Map();

/** All paths of one writer. */
export class CefPaths {
  readonly #separator: string;
  /** The event itself. */
  readonly event: CefPath;
  /** The unmapped part of a log. */
  readonly ofLog: CefPath;
  /** The unmapped part of any other record. */
  readonly ofOther: CefPath;
  readonly #ownKeys = new Map<string, OwnKey>();
  #count = 0;

  /** `separator`: the text before a pair. */
  constructor(separator: string) {
    this.#separator = separator;
    this.event = new CefPath(this, null, '', noVocabulary);
    this.ofLog = new CefPath(
      this,
      null,
      '',
      vocabularyOf(() => true),
    );
    this.ofOther = new CefPath(
      this,
      null,
      '',
      vocabularyOf(({ anywhere }) => anywhere),
    );
    cefKeys.forEach(({ from }, slot) => {
      for (const [rank, path] of from.entries()) Object.assign(this.#known(path), { slot, rank });
    });
    for (const path of writtenInKeys) this.#known(path).isElsewhere = true;
    for (const [path, other] of Object.entries(standIns)) this.#known(path).insteadOf = other;
  }

  /** Whether one more path may be cached. */
  remembers(): boolean {
    this.#count += 1;
    return this.#count <= placesMax;
  }

  /** A path without an entry in the table. */
  plain(path: string): CefPath {
    return new CefPath(this, new CefPath(this, null, '', noVocabulary), path, noVocabulary);
  }

  /** The own key of a path, the same object for the same key; null if the path makes none. */
  ownKey(path: string): OwnKey | null {
    const key = ownKeyOf(path);
    if (key === null) return null;
    let own = this.#ownKeys.get(key);
    if (own === undefined) {
      const remembered = this.#ownKeys.size < placesMax;
      own = { pair: `${this.#separator}${key}=`, writtenIn: -1, remembered };
      if (remembered) this.#ownKeys.set(key, own);
    }
    return own;
  }

  #known(path: string): CefPath {
    let place = this.event;
    for (const name of path.split('.')) {
      place.inTable = true;
      place = place.find(name, orderMax);
    }
    return place;
  }
}

function vocabularyOf(counts: (row: (typeof cefKeys)[number]) => boolean): Vocabulary {
  const vocabulary = new Map<string, readonly [number, number]>();
  cefKeys.forEach((row, slot) => {
    if (!counts(row)) return;
    for (const [index, name] of row.names.entries()) {
      vocabulary.set(name, [slot, row.from.length + index]);
    }
  });
  return vocabulary;
}

function canonicalBelow(above: string, name: string): string {
  if (above === '' && wrappers.has(name)) return '';
  return name.length > keyLengthMax ? '?' : above + name.toLowerCase().replace(/[^a-z0-9]/g, '');
}

/**
 * `sluiceFlowBytesToserver` for `flow.bytes_toserver`: only [A-Za-z0-9], as the standard
 * requires, with the vendor in front. Null if nothing readable is left of the path, or if the key
 * is in the table.
 */
function ownKeyOf(path: string): string | null {
  if (path.length > 2 * keyLengthMax || /[^\x21-\x7e]/.test(path)) return null;
  const words = path.split(/[^A-Za-z0-9]+/).filter((word) => word !== '');
  const key = `sluice${words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join('')}`;
  const usable = words.length > 0 && key.length <= keyLengthMax && !reservedKeys.has(key);
  return usable ? key : null;
}

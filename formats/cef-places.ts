// What each attribute of an event, and each name of what was not mapped, leads to in CEF: a key of
// the table (cef-keys.ts) or a key of its own, named after its path. It is worked out when a name
// is first seen, then remembered, so that writing an event costs one comparison a value. Names are
// upstream's: what is remembered is bounded, and what an event is written as never depends on the
// events before it.

import { cefKeys, reservedKeys, standIns, writtenInKeys } from './cef-keys.ts';

/** A key of sluice's own: how its pair begins, and the event that was last written with it. */
export interface OwnKey {
  readonly pair: string;
  /** A key may stand once in an event, whatever paths lead to it. */
  writtenIn: number;
  /** False where there are too many keys to remember this one: it is another object each time. */
  readonly remembered: boolean;
}

const placesMax = 16_384;
const orderMax = 128;
const keyLengthMax = 64;
// What stands in these counts as if it were not in them.
const wrappers: ReadonlySet<string> = new Set(['event', 'attributes', 'log', 'data', 'network']);

/** One place in events: an attribute, or a name within what was not mapped. */
export class CefPath {
  readonly name: string;
  /** Names from the top, with dots; of what was not mapped those of the record. */
  readonly path: string;
  /** Row of the table, or -1. */
  slot = -1;
  /** How good a source of that row's value this is; less is better. */
  rank = 0;
  /** The table knows something below this place. */
  inTable = false;
  /** What stands here is told elsewhere. */
  told = false;
  /** An attribute in whose stead this one is read: where that is there, this has no key. */
  insteadOf = '';
  /** The places of the object read last, in its order: most objects here have the same names. */
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

  /** The place of a name that is not the one that stood at this position in the object before. */
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

  /** The same place without what the table says of it and of all below. */
  get plain(): CefPath {
    this.#plain ??= this.#tree.plain(this.path);
    return this.#plain;
  }
}

/** Table rows by canonical name. */
type Vocabulary = ReadonlyMap<string, readonly [slot: number, rank: number]>;

const noVocabulary: Vocabulary = new Map();

/** All places of one writer. */
export class CefPaths {
  readonly #separator: string;
  /** The event itself. */
  readonly event: CefPath;
  /** What was not mapped of a log. */
  readonly ofLog: CefPath;
  /** What was not mapped of any other record. */
  readonly ofOther: CefPath;
  readonly #ownKeys = new Map<string, OwnKey>();
  #count = 0;

  /** `separator`: what stands before a pair. */
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
    for (const path of writtenInKeys) this.#known(path).told = true;
    for (const [path, other] of Object.entries(standIns)) this.#known(path).insteadOf = other;
  }

  /** Whether one more place may be remembered. */
  remembers(): boolean {
    this.#count += 1;
    return this.#count <= placesMax;
  }

  /** A place that the table says nothing of. */
  plain(path: string): CefPath {
    return new CefPath(this, new CefPath(this, null, '', noVocabulary), path, noVocabulary);
  }

  /** The key of a path's own, the same object for the same key; null where it makes none. */
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
 * `sluiceFlowBytesToserver` for `flow.bytes_toserver`: letters and digits only, as the standard has
 * it, the vendor in front. Null where nothing readable would be left of the path, or where the key
 * is one of the table's.
 */
function ownKeyOf(path: string): string | null {
  if (path.length > 2 * keyLengthMax || /[^\x21-\x7e]/.test(path)) return null;
  const words = path.split(/[^A-Za-z0-9]+/).filter((word) => word !== '');
  const key = `sluice${words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join('')}`;
  const usable = words.length > 0 && key.length <= keyLengthMax && !reservedKeys.has(key);
  return usable ? key : null;
}

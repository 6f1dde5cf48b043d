// A config as written: YAML 1.2 parsed into plain values, each with its location in the file and its references. Only
// this file knows the YAML library; later checks use values and offsets. Invariant: every text yields a tree or flaws,
// never an exception.

import {
  type Document,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  type Pair,
  parseDocument,
  type YAMLMap,
  type YAMLSeq,
} from 'yaml';
import type { Flaws, Path } from './flaws.ts';
import { firstPlaceholder, type Unset } from './placeholders.ts';
import {
  fillPartly,
  parseTemplate,
  type ReferenceText,
  type Rereading,
  rereadingOf,
  type Surroundings,
} from './references.ts';
import { reportSyntax, shield, unshield } from './yaml-syntax.ts';

/** One value as written. */
export interface WrittenValue {
  /** The plain value, with references filled in; lists and mappings have their children's values. */
  value: unknown;
  /** Offset in the text at which the value begins; for an empty value, at which its key begins. */
  readonly at: number;
  /** Offset of its key; null in lists and at the top. */
  readonly keyAt: number | null;
  /** Its parts, if the text has references. */
  readonly template: ReferenceText | null;
  /** How its text is read again; null: it has no references, or one has no value. */
  readonly rereading: Rereading | null;
  /** Its references have no value, and the value is a placeholder; null: the value is known. */
  readonly unset: Unset | null;
  /** Children by key or index; null for scalars. */
  readonly children: ReadonlyMap<string | number, WrittenValue> | null;
  /** Set once the value turns out to be a secret. */
  isSecret: boolean;
  /** True if it could not be parsed; a flaw gives the reason, and the value is undefined. */
  readonly broken: boolean;
}

const textLengthMax = 4 * 1024 * 1024;
const depthMax = 40;
const valuesMax = 200_000;

/** The file's values, or null if it is no YAML; flaws give the errors in both cases. */
export function readWritten(
  text: string,
  configEnv: Surroundings,
  flaws: Flaws,
): WrittenValue | null {
  if (text.length > textLengthMax) {
    flaws.add(null, [], 'the file is larger than a config can be (4 MiB)');
    return null;
  }
  if (!text.isWellFormed()) {
    flaws.add(null, [], 'the file is not well-formed Unicode text');
    return null;
  }
  const document = parse(text, flaws);
  if (document === null) {
    flaws.add(null, [], 'the file cannot be read as YAML: it is nested too deeply');
    return null;
  }
  if (!reportSyntax(document, text, flaws)) return null;
  return new Walk(flaws, configEnv).top(document);
}

function parse(text: string, { lines }: Flaws): Document.Parsed | null {
  try {
    return parseDocument(shield(text), {
      version: '1.2',
      schema: 'core',
      lineCounter: lines,
      prettyErrors: false,
      // The walk reports them: the library compares each key with all earlier ones.
      uniqueKeys: false,
    });
  } catch {
    // The parser is recursive and signals excessive depth only by an exception.
    return null;
  }
}

/** The location of a value. */
interface Place {
  readonly path: Path;
  readonly keyAt: number | null;
}

type Collection = YAMLMap | YAMLSeq;

/** One pass over the document, in its order, with aliases followed. */
class Walk {
  readonly #flaws: Flaws;
  readonly #configEnv: Surroundings;
  readonly #anchors = new Map<string, unknown>();
  /** Open collections of the walk, to detect one that contains itself. */
  readonly #open = new Set<unknown>();
  #aliases = 0;
  #values = 0;

  constructor(flaws: Flaws, configEnv: Surroundings) {
    this.#flaws = flaws;
    this.#configEnv = configEnv;
  }

  top(document: Document.Parsed): WrittenValue | null {
    const written = this.#visit(document.contents, { path: [], keyAt: null });
    if (this.#values > valuesMax) {
      this.#flaws.add(null, [], `the file holds more than ${valuesMax} values, aliases counted`);
      return null;
    }
    return written;
  }

  #visit(node: unknown, place: Place): WrittenValue {
    this.#values += 1;
    if (this.#values > valuesMax) return broken(place);
    if (isAlias(node)) return this.#alias(node, place);
    // An alias inside an aliased value has the meaning of its original location.
    if (this.#aliases === 0) this.#remember(node);
    if (isMap(node) || isSeq(node)) return this.#collection(node, place);
    if (isScalar(node)) return this.#scalar(node.value, startOf(node, place), place);
    return leaf(null, place.keyAt ?? 0, place);
  }

  #remember(node: unknown): void {
    if ((isMap(node) || isSeq(node) || isScalar(node)) && node.anchor !== undefined) {
      this.#anchors.set(node.anchor, node);
    }
  }

  #alias(node: { source: string; range?: unknown }, place: Place): WrittenValue {
    const at = startOf(node, place);
    if (!this.#anchors.has(node.source)) {
      this.#flaws.add(at, place.path, 'this alias (*name) has no anchor (&name) before it');
      return broken(place);
    }
    const target = this.#anchors.get(node.source);
    if (this.#open.has(target)) {
      this.#flaws.add(at, place.path, 'this alias (*name) is inside its own anchor');
      return broken(place);
    }
    this.#aliases += 1;
    const written = this.#visit(target, place);
    this.#aliases -= 1;
    return written;
  }

  #collection(node: Collection, place: Place): WrittenValue {
    const at = startOf(node, place);
    if (place.path.length >= depthMax) {
      this.#flaws.add(at, place.path, 'it is nested too deeply');
      return broken(place);
    }
    this.#open.add(node);
    const written = isMap(node) ? this.#map(node, at, place) : this.#list(node, at, place);
    this.#open.delete(node);
    return written;
  }

  #map(node: YAMLMap, at: number, place: Place): WrittenValue {
    const value: Record<string, unknown> = {};
    const children = new Map<string, WrittenValue>();
    for (const pair of node.items) {
      const key = this.#key(pair, at, place);
      if (key === null) continue;
      const path = [...place.path, key.name];
      if (children.has(key.name)) {
        this.#flaws.add(key.at, path, 'this key is here a second time');
        continue;
      }
      const child = this.#visit(pair.value, { path, keyAt: key.at });
      value[key.name] = child.value;
      children.set(key.name, child);
    }
    return { ...leaf(value, at, place), children };
  }

  #list(node: YAMLSeq, at: number, place: Place): WrittenValue {
    const value: unknown[] = [];
    const children = new Map<number, WrittenValue>();
    for (const item of node.items) {
      const path = [...place.path, value.length];
      const child = this.#visit(item, { path, keyAt: null });
      children.set(value.length, child);
      value.push(child.value);
    }
    return { ...leaf(value, at, place), children };
  }

  #key(pair: Pair, at: number, place: Place): { name: string; at: number } | null {
    const node: unknown = isAlias(pair.key) ? this.#anchors.get(pair.key.source) : pair.key;
    const keyAt = startOf(pair.key, { path: place.path, keyAt: at });
    this.#remember(node);
    const text = isScalar(node) ? (node.source ?? node.value) : null;
    if (typeof text !== 'string' || text === '') {
      this.#flaws.add(keyAt, place.path, 'a key must be text');
      return null;
    }
    const name = unshield(text);
    if (name === '<<') {
      const next = 'write the keys out, or use an alias for the whole block';
      this.#flaws.add(keyAt, place.path, `merge keys (<<) are no part of YAML 1.2; ${next}`);
      return null;
    }
    // Assigning this name would set the prototype instead of a key.
    if (name === '__proto__') {
      this.#flaws.add(keyAt, place.path, 'a key cannot be called __proto__');
      return null;
    }
    return { name, at: keyAt };
  }

  #scalar(value: unknown, at: number, place: Place): WrittenValue {
    if (typeof value !== 'string') return leaf(value, at, place);
    const template = parseTemplate(unshield(value));
    if (typeof template === 'string') return leaf(template, at, place);
    if ('message' in template) {
      this.#flaws.add(at, place.path, template.message);
      return broken(place);
    }
    const { textWith, unset: missing } = fillPartly(template, this.#configEnv);
    if (missing.length === 0) {
      const rereading = rereadingOf(template, this.#configEnv);
      return { ...leaf(textWith(''), at, place), template, rereading };
    }
    if (this.#configEnv.placeholders === undefined) {
      for (const { why } of missing) this.#flaws.add(at, place.path, why ?? '');
    }
    const references = missing.map(({ reference }) => reference);
    this.#flaws.markUnset(at, references);
    const unset = { references, textWith, tried: 0 };
    return { ...leaf(firstPlaceholder(unset), at, place), template, unset };
  }
}

function leaf(value: unknown, at: number, { keyAt }: Place): WrittenValue {
  return {
    ...{ value, at, keyAt, template: null, rereading: null, unset: null },
    ...{ children: null, isSecret: false, broken: false },
  };
}

function broken(place: Place): WrittenValue {
  return { ...leaf(undefined, place.keyAt ?? 0, place), broken: true };
}

/** The start of a node; an empty one starts at its key. */
function startOf(node: unknown, place: Place): number {
  const range = typeof node === 'object' && node !== null && 'range' in node ? node.range : null;
  if (!Array.isArray(range) || typeof range[0] !== 'number') return place.keyAt ?? 0;
  return range[0] === range[1] ? (place.keyAt ?? range[0]) : range[0];
}

// The meaning of each key of a record: the slots that its value may fill, and the level below.
// Derived from the config's paths and the common names when a key is first seen, then cached, so
// that reading a record (reading.ts) costs one comparison or one look-up per key. Invariant: keys
// come from upstream, so the cache is bounded.

import {
  type Accepts,
  canonicalName,
  groupOf,
  type Meaning,
  type Slot,
  type Vocabulary,
  wrapperRank,
} from './slots.ts';

/** A path of the config, which precedes all common names: `rank` orders the paths of one slot. */
export interface ConfiguredPath {
  readonly path: string;
  readonly slot: Slot;
  readonly accepts: Accepts;
  readonly rank: number;
}

/** The config of a source's records: paths, and the time parser. */
export interface SourcePaths {
  readonly configured: readonly ConfiguredPath[];
  /** Epoch milliseconds of a value, NaN if it is not a time. */
  readonly parseTime: (value: unknown) => number;
}

/** One slot that a key's value may fill, and the key's path, which allows to put the value back. */
export interface Take extends Meaning {
  readonly path: readonly string[];
  /** Names of different groups may be different people or things. */
  readonly group: number;
  /** Further slots that the value may fill. */
  readonly next: Take | null;
}

/** The meaning of a key. */
export interface BranchStep {
  readonly key: string;
  readonly take: Take | null;
  readonly child: Branch | null;
}

/** Common names rank after all names in the config. */
export const commonRank = wrapperRank * 16;

const keysMax = 4096;
const orderMax = 128;
const keyLengthMax = 128;

/** One level of the record. */
export class Branch {
  /** The steps of the last object in its key order: most records of a source have the same keys. */
  readonly order: BranchStep[] = [];
  readonly #steps = new Map<string, BranchStep>();
  readonly #path: readonly string[];
  readonly #name: string;
  readonly #vocabulary: Vocabulary;
  readonly #penalty: number;

  constructor(vocabulary: Vocabulary, path: readonly string[], name: string, penalty: number) {
    this.#vocabulary = vocabulary;
    this.#path = path;
    this.#name = name;
    this.#penalty = penalty;
  }

  /** The step of a key that differs from the key at this index in the previous object. */
  find(key: string, place: number): BranchStep {
    const step = this.#steps.get(key) ?? this.#learn(key);
    if (place < orderMax) this.order[place] = step;
    return step;
  }

  /** Adds a path of the config: the whole as one key, then key by key. */
  want(requested: ConfiguredPath): void {
    const keys = requested.path.split('.');
    if (keys.length > 1) {
      let branch: Branch = this;
      for (const key of keys.slice(0, -1)) branch = branch.#enter(key);
      branch.#wantKey(keys[keys.length - 1] ?? '', requested, 1);
    }
    this.#wantKey(requested.path, requested, 0);
  }

  #wantKey(key: string, { slot, accepts, rank }: ConfiguredPath, later: number): void {
    const { take, child } = this.#known(key);
    const meaning = { slot, accepts, rank: rank * 2 + later };
    this.#steps.set(key, { key, take: takeOf(meaning, this.#pathTo(key), -1, take), child });
  }

  #enter(key: string): Branch {
    const { take, child } = this.#known(key);
    const below = child ?? this.#descend(key, this.#name + canonicalName(key), this.#penalty);
    this.#steps.set(key, { key, take, child: below });
    return below;
  }

  #known(key: string): BranchStep {
    return this.#steps.get(key) ?? this.#work(key);
  }

  #learn(key: string): BranchStep {
    if (key.length > keyLengthMax) return { key, take: null, child: null };
    const step = this.#work(key);
    if (this.#steps.size < keysMax) this.#steps.set(key, step);
    return step;
  }

  #work(key: string): BranchStep {
    const own = canonicalName(key);
    if (own === '') return { key, take: null, child: null };
    const { meanings, containers, wrappers } = this.#vocabulary;
    const name = this.#name + own;
    const penalty = this.#penalty;
    let child: Branch | null = null;
    if (penalty === 0 && wrappers.has(name)) child = this.#descend(key, '', wrapperRank);
    else if (containers.has(name)) child = this.#descend(key, name, penalty);
    const path = this.#pathTo(key);
    const take = (meanings.get(name) ?? []).reduceRight<Take | null>((next, meaning) => {
      const { slot, accepts, rank } = meaning;
      const behind = { slot, accepts, rank: rank + penalty + commonRank };
      return takeOf(behind, path, groupOf(rank), next);
    }, null);
    return { key, take, child };
  }

  #descend(key: string, name: string, penalty: number): Branch {
    return new Branch(this.#vocabulary, this.#pathTo(key), name, penalty);
  }

  #pathTo(key: string): readonly string[] {
    return [...this.#path, key];
  }
}

/** All takes are created here, so that they share their hidden class. */
function takeOf(meaning: Meaning, path: readonly string[], group: number, next: Take | null): Take {
  const { slot, accepts, rank } = meaning;
  return { slot, accepts, rank, path, group, next };
}

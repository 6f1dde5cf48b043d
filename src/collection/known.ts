// The last reported entities of a collection. Their rows are in the database. Memory holds only the key and a digest of
// each, so a hundred thousand entities are small, and a reading without changes needs no database query. Invariant:
// entries put here and not committed disappear with this object, which the poller then rebuilds.

import type { EntityChange, Spool } from '../contracts/index.ts';
import { contentGroup } from './content-keys.ts';
import { keyParts } from './entities.ts';
import { type EntityState, isOfOldText, readEntityState } from './state.ts';

/**
 * Memory per entity, in four words: the digest of its list element at the last look (two words), the last reading that
 * showed it, and flags.
 */
const wordsEach = 4;
/** A change or absence waits for confirmation, or the digest of its list element is unknown. */
const waits = 1;
const denied = 2;
/** It was missing from the last readings. */
const absent = 4;
/** It has a value that differs at each reading. */
const unstable = 8;

/** Rows per database query. */
const rowsMax = 200;
/** Full states in memory at a time during an iteration. */
const statesMax = 1_000;

/** The last reported entities, by key. */
export class KnownEntities {
  readonly #spool: Pick<Spool, 'entities'>;
  readonly #stream: string;
  /** Index of each key's words. */
  readonly #places = new Map<string, number>();
  readonly #free: number[] = [];
  #words = new Int32Array(64 * wordsEach);
  readonly #kinds = new Map<string, number>();
  readonly #put = new Map<string, EntityState>();
  readonly #drop = new Set<string>();
  /** Keys made from content, by list. */
  readonly #unnamed = new Map<string, Set<string>>();
  /** These keys by their list element's digest, as of the start of this reading. */
  #listed: ReadonlyMap<string, readonly string[]> | null = null;
  /** Unknown keys seen in this reading. */
  readonly #strangers = new Set<string>();
  #reading = 1;
  #bytes = 0;

  private constructor(spool: Pick<Spool, 'entities'>, stream: string) {
    this.#spool = spool;
    this.#stream = stream;
  }

  /**
   * Loads the rows of a stream. `isRestarted`: the rows belong to an earlier beginning and are dropped with the first
   * commit.
   */
  static async load(
    spool: Pick<Spool, 'entities'>,
    stream: string,
    isRestarted: boolean,
  ): Promise<KnownEntities> {
    const known = new KnownEntities(spool, stream);
    for (let after = ''; ; ) {
      const rows = await spool.entities(stream, { after, max: rowsMax });
      for (const [key, body] of rows) {
        if (isRestarted) known.#drop.add(key);
        else known.#mark(key, readEntityState(stream, body));
        after = key;
      }
      if (rows.size < rowsMax) return known;
    }
  }

  get size(): number {
    return this.#places.size;
  }

  /** Number of entities of each kind. */
  get kinds(): ReadonlyMap<string, number> {
    return this.#kinds;
  }

  keysOf(kind: string): readonly string[] {
    return [...this.#places.keys()].filter((key) => keyParts(key).kind === kind);
  }

  /** Number of entities with a value that differs at each reading. */
  get unstable(): number {
    let count = 0;
    for (const place of this.#places.values()) if (this.#hasFlag(place, unstable)) count += 1;
    return count;
  }

  /** Approximate size of uncommitted text. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Starts a reading: nothing is seen. */
  begin(): void {
    this.#reading += 1;
    this.#listed = null;
    this.#strangers.clear();
  }

  /** Marks a key as seen; false if it was seen before. */
  see(key: string): boolean {
    const place = this.#places.get(key);
    if (this.#isSeenAt(place, key)) return false;
    if (place === undefined) this.#strangers.add(key);
    else this.#words[place + 2] = this.#reading;
    return true;
  }

  isSeen(key: string): boolean {
    return this.#isSeenAt(this.#places.get(key), key);
  }

  /** Undoes `see`. */
  unsee(key: string): void {
    const place = this.#places.get(key);
    if (place !== undefined) this.#words[place + 2] = 0;
    this.#strangers.delete(key);
  }

  /** Keys that this reading has not shown. */
  get unseen(): readonly string[] {
    const unseen: string[] = [];
    for (const [key, place] of this.#places) if (!this.#isSeenAt(place, key)) unseen.push(key);
    return unseen;
  }

  /** Keys that this reading has shown and that still have a recorded absence. */
  get returned(): readonly string[] {
    const returned: string[] = [];
    for (const [key, place] of this.#places) {
      if (this.#hasFlag(place, absent) && this.#isSeenAt(place, key)) returned.push(key);
    }
    return returned;
  }

  /** True if nothing of the entity waits, and its list element has the digest of the last report. */
  isAsListed(key: string, listed1: number, listed2: number): boolean {
    const place = this.#places.get(key);
    if (place === undefined || this.#hasFlag(place, waits)) return false;
    return this.#words[place] === listed1 && this.#words[place + 1] === listed2;
  }

  has(key: string): boolean {
    return this.#places.has(key);
  }

  /** Keys made from content, of one list (`contentGroup`). */
  unnamed(group: string): ReadonlySet<string> {
    return this.#unnamed.get(group) ?? new Set();
  }

  /** One of these keys with this digest, with nothing waiting and not seen yet. */
  unnamedAsListed(group: string, listed1: number, listed2: number): string | null {
    this.#listed ??= Map.groupBy(this.unnamed(group), (key) => {
      const place = this.#places.get(key) ?? 0;
      return digestText(this.#words[place] ?? 0, this.#words[place + 1] ?? 0);
    });
    const keys = this.#listed.get(digestText(listed1, listed2)) ?? [];
    return keys.find((key) => !this.isSeen(key) && this.isAsListed(key, listed1, listed2)) ?? null;
  }

  isDenied(key: string): boolean {
    const place = this.#places.get(key);
    return place !== undefined && this.#hasFlag(place, denied);
  }

  /** The full states of the known ones among these keys. */
  async states(keys: readonly string[]): Promise<ReadonlyMap<string, EntityState>> {
    const stored = keys.filter((key) => this.#places.has(key) && !this.#put.has(key));
    const rows = stored.length === 0 ? null : await this.#spool.entities(this.#stream, stored);
    const states = new Map<string, EntityState>();
    for (const key of keys) {
      const body = rows?.get(key);
      const state =
        this.#put.get(key) ?? (body === undefined ? null : readEntityState(this.#stream, body));
      if (state !== null) states.set(key, state);
    }
    return states;
  }

  /** The same one by one, with few of them in memory at a time. */
  async *each(keys: readonly string[]): AsyncIterable<readonly [key: string, state: EntityState]> {
    for (let from = 0; from < keys.length; from += statesMax) {
      yield* await this.states(keys.slice(from, from + statesMax));
    }
  }

  put(key: string, state: EntityState): void {
    this.#bytes += state.text.length - (this.#put.get(key)?.text.length ?? 0);
    this.#put.set(key, state);
    this.#drop.delete(key);
    this.#mark(key, state);
  }

  drop(key: string): void {
    const place = this.#places.get(key);
    if (place === undefined) return;
    this.#places.delete(key);
    this.#free.push(place);
    this.#unnamed.get(contentGroup(key) ?? '')?.delete(key);
    const { kind } = keyParts(key);
    this.#kinds.set(kind, (this.#kinds.get(kind) ?? 0) - 1);
    this.#bytes -= this.#put.get(key)?.text.length ?? 0;
    this.#put.delete(key);
    this.#drop.add(key);
  }

  /** The changes to commit. */
  get change(): EntityChange {
    const put = Array.from(this.#put, ([key, state]) => [key, JSON.stringify(state)] as const);
    return { put, drop: [...this.#drop] };
  }

  /** The changes are committed. */
  settle(): void {
    this.#put.clear();
    this.#drop.clear();
    this.#bytes = 0;
  }

  #mark(key: string, state: EntityState): void {
    const { kind, listed, pending, absent: missed, deniedAt } = state;
    const isSeen = this.isSeen(key);
    const place = this.#places.get(key) ?? this.#take(key, kind);
    const [listed1 = 0, listed2 = 0] = listed === undefined ? [] : digestWords(listed);
    const isChecked = listed !== undefined && !isOfOldText(state);
    const isWaiting = !isChecked || pending !== null || missed !== null;
    const isDenied = deniedAt !== undefined;
    const paths = pending !== null && 'paths' in pending ? pending.paths : [];
    const isUnstable = paths.some((one) => one.unstable === true);
    const flags =
      (isWaiting ? waits : 0) |
      (isDenied ? denied : 0) |
      (missed === null ? 0 : absent) |
      (isUnstable ? unstable : 0);
    this.#words.set([listed1, listed2, isSeen ? this.#reading : 0, flags], place);
    this.#strangers.delete(key);
  }

  /** Assigns words to a new key. */
  #take(key: string, kind: string): number {
    const place = this.#free.pop() ?? this.#places.size * wordsEach;
    if (place >= this.#words.length) {
      const words = new Int32Array(this.#words.length * 2);
      words.set(this.#words);
      this.#words = words;
    }
    this.#places.set(key, place);
    this.#kinds.set(kind, (this.#kinds.get(kind) ?? 0) + 1);
    const group = contentGroup(key);
    if (group !== null) {
      const unnamed = this.#unnamed.get(group) ?? new Set();
      this.#unnamed.set(group, unnamed.add(key));
    }
    return place;
  }

  #isSeenAt(place: number | undefined, key: string): boolean {
    return place === undefined
      ? this.#strangers.has(key)
      : this.#words[place + 2] === this.#reading;
  }

  #hasFlag(place: number, flag: number): boolean {
    return ((this.#words[place + 3] ?? 0) & flag) !== 0;
  }
}

/** A digest of two words in the form of its row. */
export function digestText(word1: number, word2: number): string {
  return `${(word1 >>> 0).toString(16)}.${(word2 >>> 0).toString(16)}`;
}

function digestWords(text: string): readonly number[] {
  return text.split('.').map((word) => Number.parseInt(word, 16) | 0);
}

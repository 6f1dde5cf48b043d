// A log open for writing: entries are added to its tree and published under one signed checkpoint, in this order:
//
// 1. the segment with bodies, and the new bundles and tiles of the tree
// 2. the mark: the tree to sign, and the log's state
// 3. the checkpoint, replacing the previous one, and its permanent copy
//
// Objects beyond the store's checkpoint have no effect and are overwritten. Invariants: there are never two roots for
// one size, and nothing under a checkpoint is changed. After a failure the progress of publishing is unknown: the log
// is opened again (recovery.ts).

import { hash } from 'node:crypto';
import type { Json } from '../contracts/index.ts';
import type { ObjectStore } from '../objects/index.ts';
import { timeText } from '../tools/index.ts';
import { type Authority, authorityOf, type ReadRequest, type RequestRules } from './authority.ts';
import { checkpointText } from './checkpoint.ts';
import { type Claim, takenOver } from './claim.ts';
import { type Entry, encodeEntry, type PageEntry } from './entries.ts';
import type { GrowingTree, TreeEdge } from './growing-tree.ts';
import { addToHeads, type EarlierLog, type Heads, isLate, type SigningMark } from './heads.ts';
import { checkpointPath, keptCheckpointPath } from './layout.ts';
import { type Signer, signNote } from './note.ts';
import type { PreparedPage } from './page-entry.ts';
import { ProvenReader } from './proven-reader.ts';
import type { Sibling } from './siblings.ts';
import { readSmall } from './small-objects.ts';

/** A checkpoint in the store. */
export interface Published {
  readonly size: number;
  /** In hex. */
  readonly root: string;
  /** Epoch milliseconds. */
  readonly at: number;
  readonly note: Uint8Array;
}

/** Dependencies of a writable log. */
export interface LogDeps {
  readonly store: ObjectStore;
  readonly claim: Claim;
  readonly origin: string;
  /** SHA-256 of `archive.json`, in hex. */
  readonly archive: string;
  /** Key of the hashes that replace cursors. */
  readonly salt: Buffer;
  /** The rules for accepting requests. */
  readonly rules: RequestRules;
  /** True: every cut of its lake must be signed. */
  readonly hasSignedCuts: boolean;
  /** True if the store's checkpoint was accepted as the newest, because the state knew no newer one. */
  readonly isResumedFromStore: boolean;
  /** The location as the config names it. */
  readonly configured?: string | undefined;
  /** Earlier logs of the same state, as far as known. */
  readonly earlier: readonly EarlierLog[];
  /** All of them sign. */
  readonly signers: readonly Signer[];
  /** Stores the mark; durable when it resolves. */
  remember(mark: Json): Promise<void>;
}

/** An object to be written. */
export interface NewObject {
  readonly name: string;
  readonly parts: readonly Uint8Array[];
}

/** Limit of concurrent writes. */
const writesMax = 8;

/** A log, open for writing. */
export class ArchiveLog {
  readonly deps: LogDeps;
  readonly heads: Heads;
  readonly #tree: GrowingTree;
  /** Tag of the checkpoint in the store; null: there is none. */
  #tag: string | null;
  #published: Published | null;
  /** Of the published tree. */
  #edge: TreeEdge | undefined;
  #reader: ProvenReader | null = null;
  #isReported = false;
  readonly #done: string[] = [];
  #earlier: readonly EarlierLog[];

  constructor(
    deps: LogDeps,
    state: {
      readonly tree: GrowingTree;
      readonly heads: Heads;
      readonly tag: string | null;
      readonly published: Published | null;
    },
  ) {
    this.deps = deps;
    this.#earlier = deps.earlier;
    this.heads = state.heads;
    this.#tree = state.tree;
    this.#tag = state.tag;
    this.#published = state.published;
    if (this.#tree.size === this.#published?.size) this.#edge = this.#tree.edge;
  }

  /** The index of the next entry. */
  get size(): number {
    return this.#tree.size;
  }

  get root(): string {
    return this.#tree.root.toString('hex');
  }

  /** The checkpoint in the store; null: there is none. */
  get published(): Published | null {
    return this.#published;
  }

  /** Reads the entries under the store's checkpoint, each proven against the root that this log has signed. */
  get reader(): ProvenReader {
    const { size = 0, root = '' } = this.#published ?? {};
    if (this.#reader?.head.size !== size) {
      const head = { size, root: Buffer.from(root, 'hex') };
      this.#reader = new ProvenReader(this.deps.store, head, this.#edge);
    }
    return this.#reader;
  }

  /** The signer of a request. Throws a SyntaxError if the request is not authorised. */
  authorityOf(request: ReadRequest, now: number): Authority {
    const { origin, archive, rules } = this.deps;
    return authorityOf(request, { of: { origin, archive }, rules, heads: this.heads, now });
  }

  /** Marks a request as carried out: the next checkpoint entry names it, and it is rejected from then on. */
  done({ request }: Authority): void {
    if (request !== undefined) this.#done.push(request);
  }

  /** True if the next entry must name the checkpoint in the store. */
  get isDue(): boolean {
    return !this.#isReported && this.#published !== null;
  }

  append(entry: Entry): void {
    addToHeads(this.heads, entry, this.#tree.append(encodeEntry(entry)));
  }

  /** The chain fields of a stream's next entry; a first entry also names where the stream was before. */
  chainOf(page: PreparedPage['entry']): Pick<PageEntry, 'seq' | 'prev' | 'continues'> {
    const [seq, prev] = this.heads.streams[page.stream] ?? [0, null];
    return prev === null ? { seq, prev, continues: this.#continues(page) } : { seq, prev };
  }

  /** Claims only what the state knows: of two earlier logs with pages of a stream, either may be the last. */
  #continues(page: PreparedPage['entry']): NonNullable<PageEntry['continues']> {
    const { stream, answer } = page;
    const found = this.#earlier.flatMap(({ archive, origin, streams }) => {
      const [seq, prev] = streams[stream] ?? [];
      return seq === undefined || prev === undefined ? [] : [{ archive, origin, seq, prev }];
    });
    this.#earlier = this.#earlier.map((one) => {
      const { [stream]: _, ...streams } = one.streams;
      return { ...one, streams };
    });
    const [only, ...others] = found;
    if (only !== undefined) return others.length === 0 ? only : 'unknown';
    // A list read from a cursor began elsewhere.
    const isAsked = answer?.asked != null;
    const isKnown = this.#earlier.length > 0 || !(this.heads.isLate ?? isLate(page));
    return isKnown && !isAsked ? 'beginning' : 'unknown';
  }

  /**
   * Adds the entry about the checkpoint in the store, unless one names it already. `siblings`: trees signed by the logs
   * of other shards.
   */
  enterCheckpoint(siblings: readonly Sibling[] = []): void {
    if (!this.isDue || this.#published === null) return;
    this.#isReported = true;
    const { size, root, at, note } = this.#published;
    const object = keptCheckpointPath(size, at);
    const sha256 = hash('sha256', note, 'hex');
    const done = this.#done.splice(0);
    this.append({
      ...{ t: 'checkpoint', at: timeText(at), size, root, object, sha256 },
      ...(done.length > 0 && { done }),
      ...(siblings.length > 0 && { siblings: [...siblings] }),
    });
  }

  /** Makes all additions durable and signs them. `at`: epoch milliseconds. */
  async publish(objects: readonly NewObject[], at: number): Promise<Published> {
    const { archive, claim, configured, store } = this.deps;
    const grown = this.#tree.take().map(({ name, bytes }) => ({ name, parts: [bytes] }));
    const todo = [...objects, ...grown].values();
    const writing = Array.from({ length: writesMax }, async () => {
      for (const object of todo) await this.#settle(object);
    });
    await Promise.all([claim.renew(), ...writing]);
    const { size, root } = this;
    // A copy: the mark may be kept by its receiver, and the heads change later.
    const heads = structuredClone(this.heads);
    const [earlier = null, ...others] = this.#earlier;
    const mark: SigningMark = {
      ...{ archive, location: store.location, size, root, at, heads, earlier, earlier_too: others },
      ...(configured !== undefined && { configured }),
    };
    await this.deps.remember(mark as unknown as Json);
    return await this.sign(at);
  }

  /** Signs the present tree, which is durable and in the mark. */
  async sign(at: number): Promise<Published> {
    const { origin, signers, store } = this.deps;
    const { size, root } = this;
    const text = checkpointText({ origin, size, root: Buffer.from(root, 'hex') });
    const note = Buffer.from(await signNote(text, signers));
    const tag = await store.replace(checkpointPath, [note], this.#tag);
    if (tag === null) throw takenOver(store);
    this.#tag = tag;
    const published: Published = { size, root, at, note };
    this.#published = published;
    this.#edge = this.#tree.edge;
    this.#isReported = false;
    await this.keep(published);
    return published;
  }

  /** Stores the permanent copy of a checkpoint. */
  async keep({ size, at, note }: Published): Promise<void> {
    await this.#settle({ name: keptCheckpointPath(size, at), parts: [note] });
  }

  /** Writes an object; one left by a crash that no checkpoint covers is replaced. */
  async #settle({ name, parts }: NewObject): Promise<void> {
    const { store } = this.deps;
    if ((await store.create(name, parts)) === 'created') return;
    const bytes = parts.reduce((sum, { length }) => sum + length, 0);
    const found = await readSmall(store, name, bytes);
    if (found !== null && Buffer.concat(parts).equals(found.body)) return;
    // Another process may have signed a checkpoint over it meanwhile.
    const checkpoint = await readSmall(store, checkpointPath);
    const isOurs = (checkpoint?.tag ?? null) === this.#tag;
    if (!isOurs || (await store.replace(name, parts, found?.tag ?? null)) === null) {
      throw takenOver(store);
    }
  }
}

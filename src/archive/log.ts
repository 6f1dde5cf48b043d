// A log that is written: entries are added to its tree, and published under one signed checkpoint,
// in this order:
//
//   1. the segment with bodies, and the bundles and tiles that the tree has grown by
//   2. the mark: which tree is about to be signed, and what the log comes to with it
//   3. the checkpoint, in the place of the one that was there before, and its copy for good
//
// What lies beyond the store's checkpoint counts for nothing, and is written over. What must stay
// true: there are never two roots for one size, and nothing that a checkpoint covers is changed.
// After a failure nobody knows how far publishing has come: the log is opened anew (recovery.ts).

import { hash } from 'node:crypto';
import type { Json } from '../contracts/json.ts';
import type { ObjectStore } from '../objects/store.ts';
import { timeText } from '../tools/time-text.ts';
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

/** A checkpoint that stands in the store. */
export interface Published {
  readonly size: number;
  /** In hex. */
  readonly root: string;
  /** Epoch milliseconds. */
  readonly at: number;
  readonly note: Uint8Array;
}

/** What a log is written with. */
export interface LogDeps {
  readonly store: ObjectStore;
  readonly claim: Claim;
  readonly origin: string;
  /** SHA-256 of `archive.json`, in hex. */
  readonly archive: string;
  /** Key of the hashes that stand for cursors. */
  readonly salt: Buffer;
  /** Whose requests are carried out. */
  readonly rules: RequestRules;
  /** True: every cut of its lake has to be signed. */
  readonly hasSignedCuts: boolean;
  /** True where the store's checkpoint was taken for the newest, since the state knew no newer one. */
  readonly isResumedFromStore: boolean;
  /** The location as the config has it. */
  readonly configured?: string | undefined;
  /** The logs that the state wrote before this one, as far as it knows. */
  readonly earlier: readonly EarlierLog[];
  /** All of them sign. */
  readonly signers: readonly Signer[];
  /** Keeps the mark; durable when it resolves. */
  remember(mark: Json): Promise<void>;
}

/** An object on its way into the store. */
export interface NewObject {
  readonly name: string;
  readonly parts: readonly Uint8Array[];
}

/** So many objects are written at once. */
const writesMax = 8;

/** A log, open for writing. */
export class ArchiveLog {
  readonly deps: LogDeps;
  readonly heads: Heads;
  readonly #tree: GrowingTree;
  /** Of the checkpoint in the store; null: there is none. */
  #tag: string | null;
  #published: Published | null;
  /** Of the tree as it was published. */
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

  /** Reads what the checkpoint in the store covers, each entry proven against the root that this log has signed. */
  get reader(): ProvenReader {
    const { size = 0, root = '' } = this.#published ?? {};
    if (this.#reader?.head.size !== size) {
      const head = { size, root: Buffer.from(root, 'hex') };
      this.#reader = new ProvenReader(this.deps.store, head, this.#edge);
    }
    return this.#reader;
  }

  /** Who has signed a request. Throws a SyntaxError where it may not be carried out. */
  authorityOf(request: ReadRequest, now: number): Authority {
    const { origin, archive, rules } = this.deps;
    return authorityOf(request, { of: { origin, archive }, rules, heads: this.heads, now });
  }

  /** A request was carried out: the next entry about a checkpoint says so, and it is refused from then on. */
  done({ request }: Authority): void {
    if (request !== undefined) this.#done.push(request);
  }

  /** True where the next entry is to name the checkpoint in the store. */
  get isDue(): boolean {
    return !this.#isReported && this.#published !== null;
  }

  append(entry: Entry): void {
    addToHeads(this.heads, entry, this.#tree.append(encodeEntry(entry)));
  }

  /** What the next entry of a stream says of its place: of a first one, where the stream was before. */
  chainOf(page: PreparedPage['entry']): Pick<PageEntry, 'seq' | 'prev' | 'continues'> {
    const [seq, prev] = this.heads.streams[page.stream] ?? [0, null];
    return prev === null ? { seq, prev, continues: this.#continues(page) } : { seq, prev };
  }

  /** Nothing is claimed that the state does not know: of two logs with pages of a stream either may be the last. */
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
    // A list that is read from a cursor has begun elsewhere.
    const isAsked = answer?.asked != null;
    const isKnown = this.#earlier.length > 0 || !(this.heads.isLate ?? isLate(page));
    return isKnown && !isAsked ? 'beginning' : 'unknown';
  }

  /**
   * Adds the entry about the checkpoint in the store, where none names it yet. `siblings`: what the logs of other
   * shards have signed.
   */
  tell(siblings: readonly Sibling[] = []): void {
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

  /** Makes all that was added durable and signs it. `at`: epoch milliseconds. */
  async publish(objects: readonly NewObject[], at: number): Promise<Published> {
    const { archive, claim, configured, store } = this.deps;
    const grown = this.#tree.take().map(({ name, bytes }) => ({ name, parts: [bytes] }));
    const todo = [...objects, ...grown].values();
    const writing = Array.from({ length: writesMax }, async () => {
      for (const object of todo) await this.#settle(object);
    });
    await Promise.all([claim.renew(), ...writing]);
    const { size, root } = this;
    // Of this moment: who remembers it may keep the object, and heads go on.
    const heads = structuredClone(this.heads);
    const [earlier = null, ...others] = this.#earlier;
    const mark: SigningMark = {
      ...{ archive, location: store.place, size, root, at, heads, earlier, earlier_too: others },
      ...(configured !== undefined && { configured }),
    };
    await this.deps.remember(mark as unknown as Json);
    return await this.sign(at);
  }

  /** Signs the tree as it is, all of which is durable and remembered. */
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

  /** Keeps a checkpoint for good. */
  async keep({ size, at, note }: Published): Promise<void> {
    await this.#settle({ name: keptCheckpointPath(size, at), parts: [note] });
  }

  /** Writes an object; one of a crash that no checkpoint covers makes way. */
  async #settle({ name, parts }: NewObject): Promise<void> {
    const { store } = this.deps;
    if ((await store.create(name, parts)) === 'created') return;
    const bytes = parts.reduce((sum, { length }) => sum + length, 0);
    const found = await readSmall(store, name, bytes);
    if (found !== null && Buffer.concat(parts).equals(found.body)) return;
    // It may be covered by a checkpoint that another process has signed meanwhile.
    const checkpoint = await readSmall(store, checkpointPath);
    const isOurs = (checkpoint?.tag ?? null) === this.#tag;
    if (!isOurs || (await store.replace(name, parts, found?.tag ?? null)) === null) {
      throw takenOver(store);
    }
  }
}

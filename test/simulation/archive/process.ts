// The process under test: the archive's real writer over a hostile store, from one opening to the next, and its
// signatures. Whatever it writes is followed as it writes it, so that nothing has to be read back from the store.

import { parseCheckpoint } from '../../../src/archive/checkpoint.ts';
import { parseNote, type Signer, type Verifier, withoutFence } from '../../../src/archive/note.ts';
import { decodeBundle, parseTilePath, tileWidth } from '../../../src/archive/tiles.ts';
import { type ArchiveWriter, openWriter } from '../../../src/archive/writer.ts';
import type { Json } from '../../../src/contracts/json.ts';
import { silent } from '../../support/silent-log.ts';
import { type HostileStore, isRefusal, type Life, type StoreCall } from './hostile-store.ts';
import { statusOf } from './stored-bodies.ts';
import { uidsIn } from './tables.ts';
import { Branch, type Rules } from './truth.ts';
import type { TruePage, Upstream } from './upstream.ts';

/** A checkpoint that the process has signed. */
export interface Head {
  readonly size: number;
  readonly root: string;
  readonly note: Buffer;
  readonly branch: Branch;
}

/** What a process is started with. */
export interface ProcessMeans {
  readonly store: HostileStore;
  readonly signer: Signer;
  readonly operators: readonly Verifier[];
  readonly rules: Rules;
  readonly shard: number | undefined;
  /** The attacker's turn. */
  before(call: StoreCall): void;
  after(call: StoreCall): void;
}

/** One archive and the processes that write it, one after another. */
export class Process {
  readonly #deps: ProcessMeans;
  readonly heads: Head[] = [];
  /** States as they were kept: a mark, and the spool that it is of. */
  readonly states: { readonly mark: Json; readonly spool: string; readonly next: number }[] = [];
  mark: Json | null = null;
  spool = 'spool-1';
  /** Of the present spool. */
  epoch = 1;
  /** Pages of the present spool, each until it is archived. */
  held: TruePage[] = [];
  next = 0;
  branch: Branch;
  crashes = 0;
  #writer: ArchiveWriter | null = null;
  #life: Life = { changesLeft: Number.POSITIVE_INFINITY, isDead: false };
  /** Size of the newest true checkpoint that was in checkpoints/ when it looked. */
  #keptMost = 0;
  readonly #bundles = new Map<number, readonly Buffer[]>();

  constructor(deps: ProcessMeans) {
    this.#deps = deps;
    this.branch = new Branch(deps.rules);
  }

  get upstream(): Upstream {
    return this.#deps.rules.upstream;
  }

  /** Has upstream send pages, and archives what is held. `changes`: the process ends after so many changes of the store. */
  async archive(count: number, changes = Number.POSITIVE_INFINITY): Promise<void> {
    const { rules } = this.#deps;
    for (let i = 0; i < count; i += 1) {
      const page = rules.upstream.send(this.spool, this.next, rules.now() - 1_000);
      this.held.push(page);
      this.next += page.held.count;
    }
    this.#life.changesLeft = changes;
    await this.#tried(async () => {
      const writer = await this.#opened();
      const { place } = writer;
      const reached = place?.spool === this.spool ? place.next : 0;
      const waiting = this.held.filter(({ held }) => held.first + held.count > reached);
      if (waiting.length === 0) return;
      const added = writer.add(waiting.map(({ held }) => held));
      await Promise.all([writer.flush(), added]);
      this.held = [];
    });
    this.#life.changesLeft = Number.POSITIVE_INFINITY;
  }

  /** Ends the process in order. */
  async stop(): Promise<void> {
    const writer = this.#writer;
    if (writer !== null) await this.#tried(() => writer.close());
    this.#writer = null;
  }

  /** The process ended, whether or not in order; its state is there. */
  restart(): void {
    this.#writer = null;
  }

  /** The state is lost, or one that was kept is put back. */
  loseState(kept: Process['states'][number] | null): void {
    this.#writer = null;
    this.mark = kept?.mark ?? null;
    this.epoch += 1;
    // What is not archived is read from upstream once more, and comes again.
    this.spool = `spool-${this.epoch}`;
    this.next = 0;
    this.held = [];
  }

  /** Why it did not do something; null: it did. */
  refusal: string | null = null;

  async #tried(work: () => Promise<void>): Promise<void> {
    try {
      await work();
      this.refusal = null;
    } catch (error) {
      if (!isRefusal(error)) throw error;
      this.refusal = (error as Error).message;
      this.crashes += 1;
      this.#writer = null;
      this.#life = { changesLeft: Number.POSITIVE_INFINITY, isDead: false };
    }
  }

  async #opened(): Promise<ArchiveWriter> {
    if (this.#writer?.isBroken === false) return this.#writer;
    const { store, signer, operators, rules, shard } = this.#deps;
    const watcher = {
      before: this.#deps.before,
      after: (call: StoreCall) => {
        if (call.kind === 'list' && call.name === 'checkpoints/') this.#lookAtKept();
        this.#deps.after(call);
      },
      wrote: (name: string, body: Buffer) => this.#wrote(name, body),
      removed: (name: string) => this.#removed(name),
    };
    const asleep = (_: number, signal?: AbortSignal) =>
      new Promise<void>((_resolve, reject) => {
        if (signal?.aborted) reject(signal.reason);
        else signal?.addEventListener('abort', () => reject(signal.reason), { once: true });
      });
    this.#writer = await openWriter({
      store: store.view(watcher, this.#life),
      clock: { now: rules.now, monotonic: () => 0, sleep: asleep },
      signer,
      shard,
      numbering: { spool: this.spool, epochs: [{ id: this.epoch, until: null }] },
      config: () => null,
      checkpointEveryMs: 60_000,
      mark: this.mark,
      signed: async () => undefined,
      bodiesMs: rules.bodiesMs,
      accept_requests: rules.accepts ? true : undefined,
      operators,
      log: silent,
      remember: async (mark) => {
        this.mark = structuredClone(mark);
        this.states.push({ mark: this.mark, spool: this.spool, next: this.next });
      },
    });
    return this.#writer;
  }

  #wrote(name: string, body: Buffer): void {
    const tile = parseTilePath(name);
    if (tile?.level === 'entries') {
      this.#bundles.set(tile.index, decodeBundle(body, tile.width));
    } else if (name === 'checkpoint') this.#signed(body);
    // Nothing was signed that it knows of: another archive begins.
    else if (name === 'archive.json') this.branch = new Branch(this.#deps.rules);
    else if (name.startsWith('segments/')) this.#rewrote(name, body);
    else if (name.startsWith('lake/')) this.#rewroteRows(name, body);
  }

  #lookAtKept(): void {
    const { store } = this.#deps;
    const stands = ({ note, size }: Head) =>
      store.names.some((name) => name.endsWith(`${size}.note`) && store.body(name)?.equals(note));
    this.#keptMost = this.heads.reduce(
      (most, one) => (stands(one) ? Math.max(most, one.size) : most),
      0,
    );
  }

  /** A segment that is written once more, without some records. */
  #rewrote(name: string, body: Buffer): void {
    for (const index of this.branch.segments.get(name) ?? []) {
      const current = statusOf(this.branch, index, body);
      if (current === 'right') continue;
      this.#deps.rules.finding(`it writes ${name}, in which the body of ${index} is ${current}`);
    }
  }

  #rewroteRows(name: string, body: Buffer): void {
    const first = this.#deps.store.honest.get(name)?.[0];
    const gone = this.branch.lakeGone.get(name) ?? new Set<string>();
    const left = (first ? uidsIn(first) : []).filter((uid) => !gone.has(uid));
    if (left.join() === uidsIn(body).join()) return;
    this.#deps.rules.finding(`it writes ${name} with other rows than it had`);
  }

  #signed(body: Buffer): void {
    const { finding } = this.#deps.rules;
    const note = withoutFence(body);
    const checkpoint = parseCheckpoint(parseNote(note).text);
    const { size } = checkpoint;
    const root = Buffer.from(checkpoint.root).toString('hex');
    const known = this.heads.findLast((one) => one.size === size && one.root === root);
    if (known !== undefined) {
      this.branch = known.branch.upTo(size);
      if (this.mark === null && this.#keptMost > size) {
        finding(
          `it resumes from ${size} entries, and ${this.#keptMost} were signed by checkpoints/`,
        );
      }
      return;
    }
    if (body.length !== note.length) {
      finding(`it resumes from a checkpoint of ${size} entries that was never signed`);
      return;
    }
    this.branch = this.branch.entries.length > size ? this.branch.upTo(size) : this.branch;
    const { entries } = this.branch;
    const from = entries.length;
    for (let index = Math.max(0, from - (from % tileWidth)); index < size; index += 1) {
      const entry = this.#bundles.get(Math.floor(index / tileWidth))?.[index % tileWidth];
      if (entry === undefined) {
        finding(`it signs entry ${index}, which it has not written`);
        return;
      }
      if (index >= from) this.branch.take(entry);
      else if (entries[index]?.equals(entry) === false) {
        finding(`it signs entry ${index} once more, as another`);
      }
    }
    this.heads.push({ size, root, note, branch: this.branch });
  }

  #removed(name: string): void {
    const isRequest = name === 'prune.json' || name === 'check' || name.startsWith('erase/');
    const { pruned, cutOf, lakeGone } = this.branch;
    const isOfCut = name.startsWith('lake/') && pruned.has(cutOf.get(name) ?? '');
    const isGone = pruned.has(name) || isOfCut || lakeGone.has(name);
    if (!isRequest && !isGone) this.#deps.rules.finding(`it removes ${name}, and no entry says so`);
  }
}

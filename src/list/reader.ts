// The state of one list stream, below the strategies of poller.ts: requests a page, decides which of its records are
// new, and commits page, identities and checkpoint together, several small pages at once. Invariants: the checkpoint in
// memory is the stored one plus the staged steps, in their order; after a failed commit, memory and checkpoint are
// reloaded before the next poll.

import { randomUUID } from 'node:crypto';
import {
  type Answer,
  type Clock,
  type InFlight,
  invariant,
  type ListStream,
  type Log,
  type NewPage,
  type Order,
  type Spool,
} from '../contracts/index.ts';
import {
  conditionRecord,
  type Finding,
  type FindingRecord,
  type OnFinding,
  ownPage,
  pageContext,
} from '../poll/index.ts';
import {
  type CheckpointChange,
  freshCheckpoint,
  joinedChange,
  type ListCheckpoint,
  parseListCheckpoint,
  readCheckpoint,
  remember,
  scanRequested,
} from './checkpoint.ts';
import type { Identified } from './identity.ts';
import { closed, type FetchedPage, type ListPosition, type Page, samePosition } from './page.ts';
import { PageAsker } from './page-asker.ts';
import { type HowRead, RecordMemory, underIgnore } from './record-memory.ts';
import { latestOn, newPageOf, StepGroup, type Taken, violationsOn } from './stage.ts';

/** Dependencies of a list stream's reader. */
export interface ListDeps {
  readonly stream: ListStream;
  readonly spool: Pick<Spool, 'append' | 'groupBytes' | 'recall' | 'room' | 'trail'>;
  readonly clock: Clock;
  readonly log: Log;
  /** Pinned order, or `auto` to learn the order. */
  readonly order: Order | 'auto';
  /** Where to begin: the whole history, from now, or from a time (epoch milliseconds). */
  readonly start: 'beginning' | 'now' | number;
  /**
   * For a new successor: from when its records are compared, epoch milliseconds. Records of its first walk from before
   * that time were delivered by its predecessor.
   */
  readonly comparedFrom?: (() => Promise<number>) | undefined;
  /** How long records that changed all at once must stay unchanged before the changes are reported, milliseconds. */
  readonly patienceMs: number;
  /** How late a record may appear in the list, milliseconds. */
  readonly lookbackMs: number;
  /** Counts the bodies of its pages until they are stored. */
  readonly inFlight?: InFlight | undefined;
  readonly found?: OnFinding | undefined;
  /** True once its successor delivers: a list that is gone is the end of the API. */
  readonly isMoved?: (() => boolean) | undefined;
}

/** Reads one list stream. */
export class ListReader {
  readonly deps: ListDeps;
  readonly memory: RecordMemory;
  /** When held-back versions were last released. */
  #letGoAt = Number.NEGATIVE_INFINITY;
  readonly #asker: PageAsker;
  #checkpoint: ListCheckpoint | null = null;
  /** A record was judged new and is neither staged nor stored. */
  #unsaved = false;
  readonly #group: StepGroup;
  /** Conditions staged with the group, reported once they are stored. */
  #found: FindingRecord[] = [];
  #block = 0;
  #steps = 0;
  #aheadMs: number | null = null;

  constructor(deps: ListDeps) {
    this.deps = deps;
    this.memory = new RecordMemory(deps);
    this.#asker = new PageAsker(deps);
    this.#group = new StepGroup(deps.clock, () => this.#asker.askedAt, deps.spool.groupBytes);
  }

  get checkpoint(): ListCheckpoint {
    invariant(this.#checkpoint !== null, 'a checkpoint is loaded before it is used');
    return this.#checkpoint;
  }

  /** The checkpoint; null: not loaded. */
  get loaded(): ListCheckpoint | null {
    return this.#checkpoint;
  }

  /**
   * How far the latest record of the last page with new records was ahead of this machine's clock, milliseconds; 0: it
   * was not. Null: no new record with a time was read so far.
   */
  get aheadMs(): number | null {
    return this.#aheadMs;
  }

  /** Number of commits that stored something unknown. */
  get steps(): number {
    return this.#steps;
  }

  /** Loads checkpoint and memory, again after a failed commit. Throws `checkpoint_mismatch`. */
  async load(): Promise<ListCheckpoint> {
    if (this.#checkpoint !== null) return this.#checkpoint;
    const { stream, spool, log, order, lookbackMs } = this.deps;
    const memory = await spool.recall(stream.name);
    const ignore = (stream.ignore ?? []).toSorted();
    const newest = memory.identities.at(-1)?.block ?? 0;
    const held =
      memory.checkpoint === null
        ? await this.#fresh(ignore, newest)
        : readCheckpoint(stream.name, memory.checkpoint, stream.fingerprint);
    const checkpoint = underIgnore(held, ignore, { newest, lookbackMs });
    if (parseListCheckpoint(memory.checkpoint)?.whole.swept === true && !checkpoint.whole.swept) {
      log.info(
        'paging_changed',
        'paging changed; reading the list again from its start, without repeats',
      );
    }
    this.#block = newest;
    this.memory.load(memory.identities, checkpoint);
    this.#unsaved = false;
    const { limitMax, hasNext, endsWithNull } = checkpoint.server;
    this.#asker.traits = { limitMax, hasNext, endsWithNull };
    // A pinned order wins over a learned one; after unpinning, learning continues from it.
    const { growth } = checkpoint;
    const pinned = order === 'auto' ? growth.order : order;
    this.#checkpoint = { ...checkpoint, growth: { ...growth, order: pinned } };
    return this.#checkpoint;
  }

  async #fresh(ignore: string[], olderUpTo: number): Promise<ListCheckpoint> {
    const { stream, clock, order, start, comparedFrom } = this.deps;
    const { fingerprint } = stream;
    const since = start === 'beginning' ? null : start === 'now' ? clock.now() : start;
    const fresh = freshCheckpoint({
      ...{ fingerprint, epoch: randomUUID(), since, ignore, olderUpTo },
      order: order === 'auto' ? 'unknown' : order,
    });
    if (comparedFrom === undefined) return fresh;
    const standingBefore = since ?? (await comparedFrom());
    return joinedChange(fresh, { wanted: { since: null, standingBefore } });
  }

  /** Drops everything judged and not committed: the next poll starts from the stored state. */
  discard(): void {
    if (this.#unsaved || !this.#group.isEmpty) this.#checkpoint = null;
    this.#group.clear();
    this.#found = [];
  }

  /** Lowest possible number of the next block of identities. */
  get nextBlock(): number {
    invariant(this.#group.isEmpty, 'a walk ends with all that it found held');
    return this.#block + 1;
  }

  /**
   * The page at a position, of which `overlap` rows were read before. For a window without an end, the part that is
   * over is requested.
   */
  ask(at: ListPosition, overlap: number, signal: AbortSignal): Promise<Answer<FetchedPage>> {
    const { end, server } = this.checkpoint;
    const { clock, stream } = this.deps;
    const isEnd = end.atEnd && samePosition(at, end.resume);
    const position = closed(at, stream.pagination.window, clock.now());
    return this.#asker.ask({ position, overlap, isEnd, unsorted: server.unsorted }, signal);
  }

  /** Records per page that are requested; null: the parameter is omitted. */
  get limit(): number | null {
    return this.#asker.limit;
  }

  /** The keys of a page's records. */
  identify(page: Page): Identified {
    return this.memory.identifier.identify(page.records);
  }

  /** Decides which records of a page are new. */
  take(page: Page, identified: Identified, how: HowRead): Taken {
    const taken = this.memory.take(page, identified, { ...how, checkpoint: this.checkpoint });
    this.#unsaved ||= taken.judged.identities.length > 0;
    return taken;
  }

  /** True if a step would change the checkpoint. */
  differs(change: CheckpointChange): boolean {
    const now = this.checkpoint;
    if (this.memory.drift.isClear || this.memory.drift.state !== now.memory.drift) return true;
    const next = joinedChange(now, change);
    const concerns = Object.keys(change) as (keyof CheckpointChange)[];
    if (concerns.every((concern) => next[concern] === now[concern])) return false;
    // The order of fields is stable under changes.
    return JSON.stringify(next) !== JSON.stringify(now);
  }

  /** Commits conditions and checkpoint changes, in one transaction with the staged steps. */
  async commit(change: CheckpointChange, findings: readonly Finding[] = []): Promise<void> {
    this.stage(null, change, { trail: null, findings });
    await this.flush();
  }

  /** Stages a page, conditions and checkpoint changes for one transaction. */
  stage(
    taken: Taken | null,
    change: CheckpointChange,
    { trail, findings: reported }: { trail: string | null; findings: readonly Finding[] },
  ): void {
    const { stream, clock } = this.deps;
    const fresh = taken?.judged.fresh.length ?? 0;
    const known = fresh + (taken?.judged.alreadyKnown ?? 0);
    const span = fresh > 0 ? (taken?.span ?? null) : null;
    if (taken !== null && span !== null) {
      this.#aheadMs = Math.max(0, Math.round(span.latest - taken.at));
    }
    const findings = [...reported, ...this.#findingsOf(taken)];
    const { memory } = this.checkpoint;
    const latest = latestOn(taken);
    if (memory.drift?.isHeld === true && !this.memory.drift.isHeld) this.#letGoAt = clock.now();
    const learned = joinedChange(this.checkpoint, {
      server: this.#asker.traits,
      memory: {
        drift: this.memory.drift.state,
        watermark:
          latest === null ? memory.watermark : Math.max(memory.watermark ?? latest, latest),
        ...(known === 0 ? {} : remember(memory, known, latest)),
      },
    });
    const next = joinedChange(learned, change);
    // A scan that began before has already passed the versions held back then.
    const isScanRequested = next.looked.sweptAt <= this.#letGoAt;
    const checkpoint = isScanRequested
      ? joinedChange(next, { looked: { sweptAt: scanRequested } })
      : next;
    const identities = taken?.judged.identities;
    this.#group.add({
      stream: stream.name,
      pages: this.#pagesOf(taken, findings),
      checkpoint,
      ...(identities === undefined || identities.length === 0
        ? {}
        : { identities: new Uint8Array(identities.buffer, 0, identities.byteLength) }),
      ...(trail === null ? {} : { trail: [{ cursor: trail, at: latest ?? clock.now() }] }),
    });
    this.#checkpoint = checkpoint;
    this.#unsaved = false;
  }

  /** The staged steps are large enough to be committed. */
  get isWhole(): boolean {
    return this.#group.isWhole;
  }

  /** Resolves when `coming` has settled, or with true once the staged steps have waited long enough. */
  isLate(coming: Promise<unknown>): Promise<boolean> {
    return this.#group.isLate(coming);
  }

  /** Commits the staged steps, in one transaction. One call at a time. */
  async flush(): Promise<void> {
    const entry = this.#group.take();
    if (entry === null) return;
    const found = this.#found.splice(0);
    const landed = this.deps.inFlight?.landing();
    try {
      const block = await this.deps.spool.append(entry);
      if (block > 0) this.#block = block;
      if ((entry.identities?.length ?? 0) > 0) this.#steps += 1;
      for (const record of found) this.deps.found?.(record);
    } catch (error) {
      this.#checkpoint = null;
      throw error;
    } finally {
      landed?.();
    }
  }

  /** Conditions still to be reported at the end of a poll. */
  unreported(): readonly Finding[] {
    const { stream, clock } = this.deps;
    return this.memory.drift.isUnreported
      ? [this.memory.drift.report(stream.name, clock.now())]
      : [];
  }

  /** The conditions of a step and its page. */
  #findingsOf(taken: Taken | null): readonly Finding[] {
    const { stream, clock } = this.deps;
    const { drift } = this.memory;
    return [
      ...(drift.isClear ? [drift.report(stream.name, clock.now())] : []),
      ...(taken !== null && stream.immutable ? violationsOn(taken) : []),
    ];
  }

  #pagesOf(taken: Taken | null, findings: readonly Finding[]): NewPage[] {
    const { stream, clock } = this.deps;
    const pages =
      taken === null || taken.judged.fresh.length === 0 ? [] : [newPageOf(stream, taken)];
    if (findings.length === 0) return pages;
    const now = clock.now();
    const records = findings.map((finding) => conditionRecord(stream, finding, now));
    this.#found.push(...records);
    const { epoch } = this.checkpoint;
    const uids = findings.map(({ condition, message, about }, index) =>
      this.memory.identifier.ownUid([
        condition,
        ...(about ? [about] : [epoch, now, index, message]),
      ]),
    );
    return [...pages, ownPage(pageContext(stream, 'condition', now), records, uids)];
  }
}

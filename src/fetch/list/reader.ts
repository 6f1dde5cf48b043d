// One list stream's remembering, under the strategies of poller.ts: it has a page asked for, tells what on it is
// new, and commits page, identities and checkpoint together, those of several pages where they are small. What must stay
// true: the checkpoint in memory is the one on disk with the staged steps, which nothing overtakes, and when a commit
// fails both memory and checkpoint are loaded anew before the next poll.

import { randomUUID } from 'node:crypto';
import type { Answer } from '../../contracts/answer.ts';
import { invariant } from '../../contracts/errors.ts';
import type { PageContext } from '../../contracts/event.ts';
import type { ListStream, Order } from '../../contracts/source.ts';
import { type NewPage, type Spool, uidBytes } from '../../contracts/spool.ts';
import type { Clock, InFlight, Log } from '../../contracts/tools.ts';
import {
  conditionRecord,
  type Finding,
  type Found,
  type FoundRecord,
  ownPage,
  violation,
} from '../own-pages.ts';
import {
  byOldVersion,
  type CheckpointChange,
  freshCheckpoint,
  joined,
  type ListCheckpoint,
  parseCheckpoint,
  readCheckpoint,
  roundWanted,
} from './checkpoint.ts';
import { Drift } from './drift.ts';
import { Group } from './group.ts';
import { remember } from './horizon.ts';
import { type Identified, Identifier } from './identity.ts';
import { judge, type Question, type WalkCounts } from './judge.ts';
import { KeyTable } from './key-table.ts';
import type { Page, Place } from './page.ts';
import { samePlace } from './page.ts';
import { type Asked, PageAsker } from './page-asker.ts';
import { timeSpan } from './record-time.ts';
import { asWords, identityWords, Repeats } from './repeats.ts';
import type { Taken } from './stage.ts';

/** What a list stream is read with. */
export interface ListMeans {
  readonly stream: ListStream;
  readonly spool: Pick<Spool, 'append' | 'recall' | 'room' | 'trail'>;
  readonly clock: Clock;
  readonly log: Log;
  /** Pinned order, or `auto` to learn it. */
  readonly order: Order | 'auto';
  /** Where to begin: the whole history, from now on, or from a time (epoch milliseconds). */
  readonly start: 'beginning' | 'now' | number;
  /** How long records that have changed at once have to stay as they are, before they are told. */
  readonly patienceMs: number;
  /** Where the bodies of its pages are counted until they are held. */
  readonly inFlight?: InFlight | undefined;
  readonly found?: Found | undefined;
}

/** Reads one list stream. */
export class ListReader {
  readonly means: ListMeans;
  readonly #asker: PageAsker;
  readonly #identifier: Identifier;
  #repeats = new Repeats();
  #drift: Drift;
  /** Latest event time met, also where it is one to come. */
  #latest = Number.NEGATIVE_INFINITY;
  /** What is known of each walk, by what it counts. */
  #walks = new WeakMap<WalkCounts, { readonly readUpTo: number; readonly met: KeyTable }>();
  #checkpoint: ListCheckpoint | null = null;
  /** Something was judged as new and is neither staged nor held. */
  #unsaved = false;
  readonly #group: Group;
  /** Staged with it, to be told once it is held. */
  #found: FoundRecord[] = [];
  #block = 0;
  #steps = 0;

  constructor(means: ListMeans) {
    this.means = means;
    const { stream } = means;
    this.#asker = new PageAsker(means);
    this.#group = new Group(means.clock);
    const { source, company = '', name } = stream;
    this.#identifier = new Identifier({ source, company, stream: name });
    this.#drift = this.#driftFrom(null);
  }

  get checkpoint(): ListCheckpoint {
    invariant(this.#checkpoint !== null, 'a checkpoint is loaded before it is used');
    return this.#checkpoint;
  }

  /** The checkpoint, where it is loaded. */
  get loaded(): ListCheckpoint | null {
    return this.#checkpoint;
  }

  /** Commits that held what was not known. */
  get steps(): number {
    return this.#steps;
  }

  /** Loads checkpoint and memory, once, and again after a failed commit. Throws `checkpoint_mismatch`. */
  async load(): Promise<ListCheckpoint> {
    if (this.#checkpoint !== null) return this.#checkpoint;
    const { stream, spool, clock, log, order, start } = this.means;
    const memory = await spool.recall(stream.name);
    const newest = memory.identities.at(-1)?.block ?? 0;
    const held =
      memory.checkpoint === null
        ? freshCheckpoint({
            fingerprint: stream.fingerprint,
            epoch: randomUUID(),
            order: order === 'auto' ? 'unknown' : order,
            since: start === 'beginning' ? null : start === 'now' ? clock.now() : start,
            ignore: this.#ignore,
            olderUpTo: newest,
          })
        : readCheckpoint(stream.name, memory.checkpoint, stream.fingerprint);
    const checkpoint = underIgnore(held, this.#ignore, newest);
    if (parseCheckpoint(memory.checkpoint)?.whole.swept === true && !checkpoint.whole.swept) {
      log.info('the paging has changed: reading the list again from its start, repeats left out');
    }
    const {
      start: { openWalk },
      memory: { olderUpTo, drift },
    } = checkpoint;
    const repeats = new Repeats();
    for (const { block, bytes } of memory.identities) {
      const isAnchored = openWalk === null || block < openWalk.block;
      if (block <= olderUpTo) repeats.addOlder(asWords(bytes), isAnchored);
      else repeats.addAll(asWords(bytes), isAnchored);
    }
    this.#block = newest;
    this.#repeats = repeats;
    this.#drift = this.#driftFrom(drift);
    this.#walks = new WeakMap();
    this.#unsaved = false;
    const { limitMax, hasNext, endsWithNull } = checkpoint.server;
    this.#asker.traits = { limitMax, hasNext, endsWithNull };
    // A pinned order wins over a learned one, and unpinning starts learning again from what is known.
    const { growth } = checkpoint;
    const pinned = order === 'auto' ? growth.order : order;
    this.#checkpoint = { ...checkpoint, growth: { ...growth, order: pinned } };
    return this.#checkpoint;
  }

  #driftFrom(state: ListCheckpoint['memory']['drift']): Drift {
    return new Drift(state, this.means.patienceMs, this.#ignore);
  }

  get #ignore(): string[] {
    return (this.means.stream.ignore ?? []).toSorted();
  }

  /** Forgets what was judged and not committed, so that the next poll starts from what is durable. */
  discard(): void {
    if (this.#unsaved || !this.#group.isEmpty) this.#checkpoint = null;
    this.#group.clear();
    this.#found = [];
  }

  /** The number that the next block of identities will at least have. */
  get nextBlock(): number {
    invariant(this.#group.isEmpty, 'a walk ends with all that it found held');
    return this.#block + 1;
  }

  /** The page at a place, of which `overlap` rows were read before. */
  ask(place: Place, overlap: number, signal: AbortSignal): Promise<Answer<Asked>> {
    const { end, server } = this.checkpoint;
    const { unsorted } = server;
    const isEnd = end.atEnd && samePlace(place, end.resume);
    return this.#asker.ask({ place, overlap, isEnd, unsorted }, signal);
  }

  /** Records a page that are asked for; null: upstream is not told. */
  get limit(): number | null {
    return this.#asker.limit;
  }

  /** The keys of a page's records. */
  identify(page: Page): Identified {
    return this.#identifier.identify(page.records);
  }

  /** How many of a page's records look like ones that are held. */
  countKnown({ count, words }: Identified): number {
    let known = 0;
    for (let i = 0; i < count; i += 1) {
      if (this.#repeats.value(words, i * identityWords) >= 0) known += 1;
    }
    return known;
  }

  /** Tells what on a page is new. */
  take(
    page: Page,
    identified: Identified,
    how: Pick<Question, 'reading' | 'counts' | 'overlap' | 'anchored' | 'resumePage'> & {
      /** Records up to this event time count as known. */
      readonly horizon: number | null;
    },
  ): Taken {
    const { since, standingBefore } = this.checkpoint.wanted;
    const { time } = this.means.stream;
    const now = this.means.clock.now();
    const readBefore = this.#readBefore(how);
    const question: Question = {
      page,
      identified,
      time,
      since,
      standingBefore,
      readBefore,
      now,
      ...how,
    };
    const judged = judge(question, {
      identifier: this.#identifier,
      repeats: this.#repeats,
      drift: this.#drift,
    });
    this.#unsaved ||= judged.identities.length > 0;
    const span = timeSpan(page.records, time);
    this.#latest = Math.max(this.#latest, span?.latest ?? this.#latest);
    return { page, judged, at: now, span };
  }

  /** What of a page was read before; null: nothing was. */
  #readBefore({ reading, counts }: Pick<Question, 'reading' | 'counts'>): Question['readBefore'] {
    const { whole, end, memory } = this.checkpoint;
    const { watermark } = memory;
    const latest = Math.max(this.#latest, watermark ?? this.#latest);
    const readUpTo = latest === Number.NEGATIVE_INFINITY ? Number.POSITIVE_INFINITY : latest;
    const walk = this.#walks.get(counts) ?? { readUpTo, met: new KeyTable() };
    this.#walks.set(counts, walk);
    const isUnread = reading === 'onward' || (reading === 'resume' && !end.atEnd);
    return whole.swept && !isUnread ? walk : null;
  }

  /** True where a step would change the checkpoint. */
  differs(change: CheckpointChange): boolean {
    const now = this.checkpoint;
    if (this.#drift.isClear || this.#drift.state !== now.memory.drift) return true;
    // Fields keep their places when they are changed.
    return JSON.stringify(joined(now, change)) !== JSON.stringify(now);
  }

  /** A walk has joined up with what was known. */
  anchorAll(): void {
    this.#repeats.anchorAll();
  }

  /** Commits findings and changed parts of the checkpoint, in one transaction with what is staged. */
  async commit(change: CheckpointChange, findings: readonly Finding[] = []): Promise<void> {
    this.stage(null, change, { trail: null, findings });
    await this.flush();
  }

  /** Stages what was taken, findings, and the changed parts of the checkpoint, all for one transaction. */
  stage(
    taken: Taken | null,
    change: CheckpointChange,
    { trail, findings: told }: { trail: string | null; findings: readonly Finding[] },
  ): void {
    const { stream, clock } = this.means;
    const fresh = taken?.judged.fresh.length ?? 0;
    const known = fresh + (taken?.judged.standing ?? 0);
    const findings = [...told, ...this.#findingsOf(taken)];
    const { memory } = this.checkpoint;
    const isLetGo = memory.drift?.isHeld === true && !this.#drift.isHeld;
    const learned = joined(this.checkpoint, {
      server: this.#asker.traits,
      memory: {
        drift: this.#drift.state,
        watermark: this.#watermark(taken),
        ...(known === 0 ? {} : remember(memory, known, this.#latestOn(taken))),
      },
    });
    const wish = isLetGo ? { looked: { sweptAt: roundWanted } } : {};
    const checkpoint = joined(joined(learned, change), wish);
    const pages: NewPage[] = [];
    if (taken !== null && fresh > 0) pages.push(this.#newPage(taken));
    if (findings.length > 0) pages.push(this.#findingsPage(findings, clock.now()));
    const identities = taken?.judged.identities;
    this.#group.add({
      stream: stream.name,
      pages,
      checkpoint,
      ...(identities === undefined || identities.length === 0
        ? {}
        : { identities: new Uint8Array(identities.buffer, 0, identities.byteLength) }),
      ...(trail === null
        ? {}
        : { trail: [{ cursor: trail, at: this.#latestOn(taken) ?? clock.now() }] }),
    });
    this.#checkpoint = checkpoint;
    this.#unsaved = false;
  }

  /** Staged steps are many enough to be committed. */
  get isWhole(): boolean {
    return this.#group.isWhole;
  }

  /** Resolves when `coming` has settled, or with true when staged steps have waited for it long enough. */
  isLate(coming: Promise<unknown>): Promise<boolean> {
    return this.#group.isLate(coming);
  }

  /** Commits what is staged, in one transaction. One at a time. */
  async flush(): Promise<void> {
    const entry = this.#group.take();
    if (entry === null) return;
    const found = this.#found.splice(0);
    const landed = this.means.inFlight?.landing();
    try {
      const block = await this.means.spool.append(entry);
      if (block > 0) this.#block = block;
      if ((entry.identities?.length ?? 0) > 0) this.#steps += 1;
      for (const record of found) this.means.found?.(record);
    } catch (error) {
      this.#checkpoint = null;
      throw error;
    } finally {
      landed?.();
    }
  }

  /** What is still to be told at the end of a poll. */
  untold(): readonly Finding[] {
    const { stream, clock } = this.means;
    return this.#drift.isUntold ? [this.#drift.tell(stream.name, clock.now())] : [];
  }

  /** What the sinks are to be told with a step, and of its page. */
  #findingsOf(taken: Taken | null): readonly Finding[] {
    const { stream, clock } = this.means;
    const findings: Finding[] = [];
    if (this.#drift.isClear) findings.push(this.#drift.tell(stream.name, clock.now()));
    if (taken !== null && stream.immutable) {
      const { changed, uids } = taken.judged;
      const uidOf = (at: number) => uids.toString('hex', at * uidBytes, (at + 1) * uidBytes);
      for (const at of changed) findings.push(violation(uidOf(at)));
    }
    return findings;
  }

  #watermark(taken: Taken | null): number | null {
    const { watermark } = this.checkpoint.memory;
    const latest = this.#latestOn(taken);
    return latest === null ? watermark : Math.max(watermark ?? latest, latest);
  }

  /** Time of a page's latest record, never in the future: how far a walk has come in the time of events. */
  #latestOn(taken: Taken | null): number | null {
    const span = taken?.span ?? null;
    return taken === null || span === null ? null : Math.min(span.latest, taken.at);
  }

  #newPage({ page, judged, at }: Taken): NewPage {
    const all = judged.fresh.length === page.records.length;
    return {
      context: this.#context(at, false),
      body: page.body,
      items: page.records.items,
      kept: all ? null : Uint32Array.from(judged.fresh),
      uids: judged.uids,
      slices: page.records.slices,
    };
  }

  #findingsPage(findings: readonly Finding[], now: number): NewPage {
    const records = findings.map((finding) => conditionRecord(this.means.stream, finding, now));
    this.#found.push(...records);
    const { epoch } = this.checkpoint;
    const uids = findings.map(({ condition, message, about }, index) =>
      this.#identifier.ownUid([condition, ...(about ? [about] : [epoch, now, index, message])]),
    );
    return ownPage(this.#context(now, true), records, uids);
  }

  #context(fetchedAt: number, own: boolean): PageContext {
    const { stream } = this.means;
    return {
      source: stream.source,
      stream: stream.name,
      kind: own ? 'condition' : stream.records,
      ...(stream.company === undefined ? {} : { company: stream.company }),
      fetchedAt,
    };
  }
}

/** The checkpoint where records are known by what is not ignored now. */
function underIgnore(held: ListCheckpoint, ignore: string[], newest: number): ListCheckpoint {
  const { memory } = held;
  if (JSON.stringify(memory.ignore) === JSON.stringify(ignore)) {
    const isOld = memory.olderUpTo === byOldVersion && newest > 0;
    // Read in its order, the first content met under an id is the one that was delivered; but what may be forgotten
    // is not read as if it were new.
    const anew = isOld && memory.horizon === null ? { whole: { swept: false, round: null } } : {};
    return joined(held, { memory: { olderUpTo: Math.min(memory.olderUpTo, newest) }, ...anew });
  }
  // Those without ids were counted by what was not ignored then.
  const anew = memory.nameless ? { end: { countAnew: true, resumePage: null } } : {};
  return joined(held, { memory: { ignore, olderUpTo: newest, drift: null }, ...anew });
}

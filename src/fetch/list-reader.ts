// One list stream's reading and remembering, under the strategies of list-poller.ts: it fetches a page at a place, tells
// what on it is new, and commits page, identities and checkpoint together. What must stay true: the checkpoint in
// memory is the one on disk, and when a commit fails both memory and checkpoint are loaded anew before the next poll.

import { randomUUID } from 'node:crypto';
import { ExportError, invariant } from '../contracts/errors.ts';
import type { PageContext } from '../contracts/event.ts';
import type { ListStream, Order, Page, Place } from '../contracts/source.ts';
import type { Append, NewPage, Spool } from '../contracts/spool.ts';
import type { Clock, Log } from '../contracts/tools.ts';
import { RecordList, scanBody } from '../tools/record-list.ts';
import { freshCheckpoint, type ListCheckpoint, readCheckpoint } from './checkpoint.ts';
import { type Identified, Identifier } from './identity.ts';
import { type Judged, judge, type Question } from './judge.ts';
import { NoPage } from './outcome.ts';
import { conditionRecord, type Finding, ownPage } from './own-pages.ts';
import { timeSpan } from './record-time.ts';
import { asWords, Repeats } from './repeats.ts';

/** What a list stream is read with. */
export interface ListMeans {
  readonly stream: ListStream;
  readonly spool: Spool;
  readonly clock: Clock;
  readonly log: Log;
  /** Pinned order, or `auto` to learn it. */
  readonly order: Order | 'auto';
  /** Where to begin: the whole history, from now on, or from a time (epoch milliseconds). */
  readonly start: 'beginning' | 'now' | number;
}

/** A page and what is new on it. */
export interface Taken {
  readonly page: Page;
  readonly judged: Judged;
  /** Epoch milliseconds at which it was read. */
  readonly at: number;
}

/** What was learned of the server, which answers of one walk may teach while an earlier page is being committed. */
type ServerTraits = Pick<ListCheckpoint, 'limitMax' | 'hasNext' | 'endsWithNull'>;

const unknownServer: ServerTraits = { limitMax: null, hasNext: false, endsWithNull: false };

/** Page limits tried one after the other when upstream refuses one; 0 leaves the parameter out. */
const limitSteps = [100, 50, 25, 0];
/** Taken for the size of a blocked page that was asked for without a limit. */
const blockedLimit = 100;

/** Reads one list stream. */
export class ListReader {
  readonly means: ListMeans;
  readonly #identifier: Identifier;
  #repeats = new Repeats();
  #checkpoint: ListCheckpoint | null = null;
  #server: ServerTraits = unknownServer;
  /** Answers without a next cursor have been found to be how this server ends a list. */
  #endsWithout = false;
  /** Something was judged as new and is not held yet. */
  #unsaved = false;
  #block = 0;

  constructor(means: ListMeans) {
    this.means = means;
    const { stream } = means;
    this.#identifier = new Identifier({
      source: stream.source,
      company: stream.company ?? '',
      stream: stream.name,
      checkContent: stream.immutable,
    });
  }

  get checkpoint(): ListCheckpoint {
    invariant(this.#checkpoint !== null, 'a checkpoint is loaded before it is used');
    return this.#checkpoint;
  }

  /** The checkpoint, where it is loaded. */
  get loaded(): ListCheckpoint | null {
    return this.#checkpoint;
  }

  /** Loads checkpoint and memory, once, and again after a failed commit. Throws `checkpoint_mismatch`. */
  async load(): Promise<ListCheckpoint> {
    if (this.#checkpoint !== null) return this.#checkpoint;
    const { stream, spool, clock, order, start } = this.means;
    const memory = await spool.recall(stream.name);
    const checkpoint =
      memory.checkpoint === null
        ? freshCheckpoint({
            fingerprint: stream.fingerprint,
            epoch: randomUUID(),
            order: order === 'auto' ? 'unknown' : order,
            since: start === 'beginning' ? null : start === 'now' ? clock.now() : start,
          })
        : readCheckpoint(stream.name, memory.checkpoint, stream.fingerprint);
    const repeats = new Repeats();
    for (const { block, bytes } of memory.identities) {
      repeats.addAll(
        asWords(bytes),
        checkpoint.openWalk === null || block < checkpoint.openWalk.block,
      );
      this.#block = block;
    }
    this.#repeats = repeats;
    this.#unsaved = false;
    const { limitMax, hasNext, endsWithNull } = checkpoint;
    this.#server = { limitMax, hasNext, endsWithNull };
    // A pinned order wins over a learned one, and unpinning starts learning again from what is known.
    const pinned = order === 'auto' ? checkpoint.order : order;
    this.#checkpoint = { ...checkpoint, order: pinned };
    return this.#checkpoint;
  }

  /** Forgets what was judged and not committed, so that the next poll starts from what is durable. */
  discard(): void {
    if (this.#unsaved) this.#checkpoint = null;
  }

  /** The number that the next block of identities will at least have. */
  get nextBlock(): number {
    return this.#block + 1;
  }

  /** The page at a place. Waits for room in the spool. Throws NoPage for any other answer. */
  async fetch(place: Place, signal: AbortSignal): Promise<Page> {
    const { stream, spool } = this.means;
    let askedAgain = false;
    let lower: number | null = null;
    for (;;) {
      await spool.room(signal);
      const limit = lower ?? this.#limit();
      const fetched = await stream.fetchPage({ place, limit }, signal);
      if (fetched.outcome === 'refused' && fetched.about === 'limit' && this.#stepDown(limit))
        continue;
      if (fetched.outcome === 'blocked' && stream.paging === 'cursor' && limit !== 1) {
        // One record can block a page: what stands before it is read in smaller ones.
        lower = Math.floor((limit ?? blockedLimit) / 2);
        continue;
      }
      if (fetched.outcome !== 'page') throw new NoPage(fetched);
      if (this.#isWhole(fetched.page, askedAgain)) return fetched.page;
      askedAgain = true;
    }
  }

  #limit(): number | null {
    const asked = this.means.stream.pageLimit;
    const { limitMax } = this.#server;
    if (asked === null || limitMax === 0) return null;
    return limitMax === null ? asked : Math.min(asked, limitMax);
  }

  #stepDown(limit: number | null): boolean {
    const lower = limitSteps.find((step) => limit !== null && step < limit);
    if (lower === undefined) return false;
    this.means.log.warn('upstream refuses the page limit; asking for less', {
      limit,
      instead: lower,
    });
    this.#server = { ...this.#server, limitMax: lower };
    return true;
  }

  /**
   * Once a list has shown a next cursor, an answer without that key is doubtful. Where the list was seen to end with null
   * it is a fault; else it may be how this server ends a list, which a second answer has to confirm.
   */
  #isWhole(page: Page, askedAgain: boolean): boolean {
    if (this.means.stream.paging !== 'cursor') return true;
    if (page.next !== undefined) {
      const endsWithNull = this.#server.endsWithNull || page.next === null;
      this.#server = { ...this.#server, hasNext: true, endsWithNull };
      return true;
    }
    if (!this.#server.hasNext) return true;
    if (!this.#server.endsWithNull) {
      this.#endsWithout ||= askedAgain;
      return this.#endsWithout;
    }
    throw new NoPage({
      outcome: 'retry',
      cause: new ExportError(
        'upstream_nonsense',
        `reading ${this.means.stream.name}: the answer has no next cursor, which it had before`,
        { next: 'It is asked again by itself; the checkpoint stays where it is.' },
      ),
    });
  }

  /** The keys of a page's records. */
  identify(page: Page): Identified {
    return this.#identifier.identify(listOf(page, this.means.stream.id));
  }

  /** Tells what on a page is new. */
  take(
    page: Page,
    identified: Identified,
    how: Pick<Question, 'reading' | 'counts' | 'overlap' | 'anchored'>,
  ): Taken {
    const { resumePage, since } = this.checkpoint;
    const question: Question = {
      page,
      identified,
      time: this.means.stream.time,
      since,
      resumePage: resumePage === null ? null : Buffer.from(resumePage, 'base64'),
      ...how,
    };
    const judged = judge(question, this.#identifier, this.#repeats);
    this.#unsaved ||= judged.fresh.length > 0;
    return { page, judged, at: this.means.clock.now() };
  }

  /** True where a step would change the checkpoint. */
  differs(change: Partial<ListCheckpoint>): boolean {
    const now = this.checkpoint;
    return Object.entries(change).some(
      ([key, value]) => JSON.stringify(value) !== JSON.stringify(now[key as keyof ListCheckpoint]),
    );
  }

  /** A walk has joined up with what was known. */
  anchorAll(): void {
    this.#repeats.anchorAll();
  }

  /** Commits what was taken, findings, and the changed parts of the checkpoint, in one transaction. */
  async commit(
    taken: Taken | null,
    change: Partial<ListCheckpoint>,
    more: { trail?: string | null; findings?: readonly Finding[] } = {},
  ): Promise<void> {
    const { stream, spool, clock } = this.means;
    const checkpoint: ListCheckpoint = {
      ...this.checkpoint,
      ...this.#server,
      watermark: this.#watermark(taken),
      ...change,
    };
    const pages: NewPage[] = [];
    if (taken !== null && taken.judged.fresh.length > 0) pages.push(this.#newPage(taken));
    const findings = [...(more.findings ?? []), ...changedFindings(taken)];
    if (findings.length > 0) pages.push(this.#findingsPage(findings, clock.now()));
    const identities = taken?.judged.identities;
    const entry: Append = {
      stream: stream.name,
      pages,
      checkpoint,
      ...(identities === undefined || identities.length === 0
        ? {}
        : { identities: new Uint8Array(identities.buffer, 0, identities.byteLength) }),
      ...(typeof more.trail === 'string'
        ? { trail: { cursor: more.trail, at: this.#latestOn(taken) ?? clock.now() } }
        : {}),
    };
    try {
      const block = await spool.append(entry);
      if (block > 0) this.#block = block;
      this.#checkpoint = checkpoint;
      this.#unsaved = false;
    } catch (error) {
      this.#checkpoint = null;
      throw error;
    }
  }

  #watermark(taken: Taken | null): number | null {
    const { watermark } = this.checkpoint;
    const latest = this.#latestOn(taken);
    return latest === null ? watermark : Math.max(watermark ?? latest, latest);
  }

  /** Time of a page's latest record, never in the future: how far a walk has come in the time of events. */
  #latestOn(taken: Taken | null): number | null {
    const span = taken === null ? null : timeSpan(taken.page.records, this.means.stream.time);
    return taken === null || span === null ? null : Math.min(span.latest, taken.at);
  }

  #newPage({ page, judged, at }: Taken): NewPage {
    const all = judged.fresh.length === page.records.length;
    return {
      context: this.#context(at, false),
      body: page.body,
      items: page.items,
      kept: all ? null : Uint32Array.from(judged.fresh),
      uids: judged.uids,
      ...(page.records instanceof RecordList ? { slices: page.records.slices } : {}),
    };
  }

  #findingsPage(findings: readonly Finding[], now: number): NewPage {
    const records = findings.map((finding) => conditionRecord(this.means.stream, finding, now));
    const uids = records.map((record, index) =>
      this.#identifier.ownUid([
        record.condition,
        this.checkpoint.epoch,
        now,
        index,
        record.message,
      ]),
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

/** The records as found in the body, also where the source handed them over parsed. */
function listOf({ records, body, items }: Page, id: string | null): RecordList {
  if (records instanceof RecordList) return records;
  const found = scanBody(body, items, id).records;
  invariant(found?.length === records.length, 'a page holds the records that its source read');
  return found;
}

function changedFindings(taken: Taken | null): readonly Finding[] {
  if (taken === null || taken.judged.changed.length === 0) return [];
  const count = taken.judged.changed.length;
  return [
    {
      condition: 'integrity_violation',
      message: `${count} record${count === 1 ? '' : 's'} came again with other content, though upstream calls them immutable; both versions were delivered`,
      details: { records: count },
    },
  ];
}

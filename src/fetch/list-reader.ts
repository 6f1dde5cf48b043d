// One list stream's reading and remembering, under the strategies of list-poller.ts: it fetches a page at a place, tells
// what on it is new, and commits page, identities and checkpoint together. What must stay true: the checkpoint in
// memory is the one on disk, and when a commit fails both memory and checkpoint are loaded anew before the next poll.

import { randomUUID } from 'node:crypto';
import { ExportError, invariant } from '../contracts/errors.ts';
import type { PageContext } from '../contracts/event.ts';
import type { ListStream, Order, Page, Place } from '../contracts/source.ts';
import type { Append, NewPage, Spool } from '../contracts/spool.ts';
import type { Clock, Log } from '../contracts/tools.ts';
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

/** Page limits tried one after the other when upstream refuses one; 0 leaves the parameter out. */
const limitSteps = [100, 50, 25, 0];

/** Reads one list stream. */
export class ListReader {
  readonly means: ListMeans;
  readonly #identifier: Identifier;
  #repeats = new Repeats();
  #checkpoint: ListCheckpoint | null = null;
  #block = 0;

  constructor(means: ListMeans) {
    this.means = means;
    const { stream } = means;
    this.#identifier = new Identifier({
      source: stream.source,
      company: stream.company ?? '',
      stream: stream.name,
      id: stream.id,
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
      repeats.add(
        asWords(bytes),
        checkpoint.openWalk === null || block < checkpoint.openWalk.block,
      );
      this.#block = block;
    }
    this.#repeats = repeats;
    // A pinned order wins over a learned one, and unpinning starts learning again from what is known.
    const pinned = order === 'auto' ? checkpoint.order : order;
    this.#checkpoint = { ...checkpoint, order: pinned };
    return this.#checkpoint;
  }

  /** Forgets what is in memory, so that the next poll starts from what is durable. */
  unload(): void {
    this.#checkpoint = null;
  }

  /** The number that the next block of identities will at least have. */
  get nextBlock(): number {
    return this.#block + 1;
  }

  /** The page at a place. Waits for room in the spool. Throws NoPage for any other answer. */
  async fetch(place: Place, signal: AbortSignal): Promise<Page> {
    const { stream, spool } = this.means;
    for (;;) {
      await spool.room(signal);
      const limit = this.#limit();
      const fetched = await stream.fetchPage({ place, limit }, signal);
      if (fetched.outcome === 'refused' && fetched.about === 'limit' && this.#stepDown(limit))
        continue;
      if (fetched.outcome !== 'page') throw new NoPage(fetched);
      this.#checkShape(fetched.page);
      return fetched.page;
    }
  }

  #limit(): number | null {
    const asked = this.means.stream.pageLimit;
    const { limitMax } = this.checkpoint;
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
    this.#checkpoint = { ...this.checkpoint, limitMax: lower };
    return true;
  }

  /** Once a list has shown a next cursor, an answer without that key is no end of the list but a fault. */
  #checkShape(page: Page): void {
    if (this.means.stream.paging !== 'cursor' || page.next !== undefined) return;
    if (!this.checkpoint.hasNext) return;
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
    return this.#identifier.identify(page.records, page.body, page.items);
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
    const checkpoint: ListCheckpoint = { ...this.checkpoint, ...this.#learned(taken), ...change };
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
      ...(more.trail ? { trail: { cursor: more.trail, at: clock.now() } } : {}),
    };
    try {
      const block = await spool.append(entry);
      if (block > 0) this.#block = block;
      this.#checkpoint = checkpoint;
    } catch (error) {
      this.unload();
      throw error;
    }
  }

  #learned(taken: Taken | null): Partial<ListCheckpoint> {
    if (taken === null) return {};
    const { page, at } = taken;
    const span = timeSpan(page.records, this.means.stream.time);
    const latest = span === null ? null : Math.min(span.latest, at);
    const { watermark, hasNext } = this.checkpoint;
    return {
      hasNext: hasNext || page.next !== undefined,
      watermark: latest === null ? watermark : Math.max(watermark ?? latest, latest),
    };
  }

  #newPage({ page, judged, at }: Taken): NewPage {
    const all = judged.fresh.length === page.records.length;
    return {
      context: this.#context(at, false),
      body: page.body,
      items: page.items,
      kept: all ? null : Uint32Array.from(judged.fresh),
      uids: judged.uids,
      parsed: all ? page.records : judged.fresh.map((index) => page.records[index] ?? null),
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

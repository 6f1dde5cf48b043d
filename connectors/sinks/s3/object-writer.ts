// Collects batches into objects and writes each once. A batch is acknowledged when the objects with
// its events are in the bucket:
//
//   collecting  batches are added; it is full by bytes, by age, or because nothing more comes
//   writing     the cut is stored with the position, then its objects are created; one cut at a time,
//               while the next collects
//   failed      waiting batches get the failure, and the cut keeps its bytes; later collected events
//               are dropped, because they are sent again. The next batch retries the same objects
//
// Invariants: once a cut is stored its objects contain these events and no others, also in the next
// process; an existing object under the name counts only if it has these events.

import {
  asExportError,
  type Batch,
  type Delivery,
  ExportError,
  epochBegin,
  invariant,
  type Offset,
  type PositionReach,
  presentEpoch,
  type SinkOpening,
} from '../../../src/contracts/index.ts';
import { forget, onlyEvents, withoutKnown } from '../../shared/known-events.ts';
import {
  type Cut,
  type CutMark,
  type CutPart,
  dayOf,
  digestOfUids,
  firstOffsetOf,
  metadataOf,
  readMark,
  stemOf,
  writtenOf,
} from './cut.ts';
import type { CutBody } from './lines-body.ts';
import { type CutStore, lookAtBucket } from './stored-object.ts';

/** Dependencies of the writer. */
export interface ObjectWriterSettings {
  readonly store: CutStore;
  readonly opening: SinkOpening;
  readonly rotate: { readonly bytes: number; readonly every: number };
  /** True if the store shows only signed cuts: no other writer can forge their positions. */
  readonly isSigned?: boolean;
  /** A body for the next cut. */
  body(): CutBody;
}

interface Collected {
  readonly cut: Omit<Cut, 'end'>;
  /** Offset after the last event in it, so far. */
  end: Offset;
  /** Offset at which it must be cut: the cut of a previous process. */
  readonly bound: Offset;
  readonly body: CutBody;
  /** Callers that wait for it, because their events are in it or end in it. */
  readonly waiting: ((answer: Delivery) => void)[];
  /** When it is cut in any case; monotonic. A repeated cut is due later after each new event. */
  due: number;
  /** Aborts once it is cut. */
  readonly over: AbortController;
  /** Once it is cut. */
  parts: readonly CutPart[] | null;
}

const delivered: Delivery = { outcome: 'delivered' };
const closedFailure: Delivery = {
  outcome: 'retry',
  cause: new ExportError('sink_unreachable', 'the sink was closed before its object was complete', {
    next: 'Nothing was lost: the next start writes the object.',
  }),
};
/**
 * Minimum time without a new event after which a repeated cut is finished early. Its events are in
 * the spool, and a smaller cut would have the names of objects that may exist.
 */
const againMs = 30_000;

/** Opened with the sink. */
export class ObjectWriter {
  readonly #settings: ObjectWriterSettings;
  #reach: PositionReach = { position: 0, ahead: false };
  #known: Set<string> = new Set();
  #looked: Promise<void> | null = null;
  #after: string;
  /** The last cut of a previous process, until it is repeated. */
  #unfinished: Cut | null;
  /**
   * First event of that cut. Earlier events were delivered, and the position may not show it: it
   * is noted after the mark.
   */
  readonly #unfinishedFirst: Offset;
  #open: Collected | null = null;
  #failed: Collected | null = null;
  /** The last failure, and the number of failures. */
  #failure: Delivery = delivered;
  #failures = 0;
  #writing: Promise<void> | null = null;
  /** Batches are added one after the other. */
  #turn: Promise<void> = Promise.resolve();

  constructor(settings: ObjectWriterSettings) {
    this.#settings = settings;
    const { after, cut } = readMark(settings.opening.mark);
    this.#after = after;
    this.#unfinished = cut;
    this.#unfinishedFirst = cut === null ? 0 : firstOffsetOf(cut.stem);
  }

  /** The bucket's position; rejects if it cannot be read. */
  async reach(): Promise<PositionReach> {
    await this.#look();
    return this.#reach;
  }

  /** Resolves when sent batches have been added: at most two objects are in memory. */
  async settled(): Promise<void> {
    await this.#turn;
  }

  /** Milliseconds until the collected events are cut; null if nothing waits for that. */
  get dueInMs(): number | null {
    if (this.#open === null || this.#failed !== null || this.#writing !== null) return null;
    return Math.max(0, this.#leftMs(this.#open));
  }

  /** Resolves when all events of the batch are in the bucket, or have failed. */
  add(batch: Batch): Promise<Delivery> {
    const failures = this.#failures;
    return new Promise((answer) => {
      this.#turn = this.#turn.then(async () => {
        try {
          // Sent before the failure that dropped the events before it.
          if (failures !== this.#failures) answer(this.#failure);
          else await this.#take(batch, answer);
        } catch (error) {
          answer(this.#meaningOf(error));
        }
      });
    });
  }

  /** Completes the collected object with everything sent before; a repeated cut waits for its other events. */
  flush(): void {
    this.#turn = this.#turn.then(async () => {
      if (!isIncomplete(this.#open)) await this.#finish();
    });
  }

  /** Writes the collected object, once; resolves when nothing is in flight. The next process repeats an incomplete cut. */
  async close(): Promise<void> {
    this.flush();
    await this.#turn;
    await this.#writing;
    if (this.#open !== null) this.#drop(closedFailure);
  }

  async #take(batch: Batch, answer: (answer: Delivery) => void): Promise<void> {
    await this.#look();
    if (this.#failed !== null) {
      await this.#write(this.#failed);
      this.#failed = null;
    }
    const position = Math.max(this.#reach.position, this.#unfinishedFirst);
    const fresh = withoutKnown(batch, this.#known);
    let rest = onlyEvents(fresh, ({ offset }) => offset >= position);
    const done = this.#known.size === 0 ? answer : this.#forgetting(batch, answer);
    if (rest.events.length === 0) done(delivered);
    while (rest.events.length > 0) {
      const open = this.#opened(rest.events[0]?.offset ?? rest.start);
      await open.body.add(onlyEvents(rest, ({ offset }) => offset < open.bound));
      rest = onlyEvents(rest, ({ offset }) => offset >= open.bound);
      open.end = Math.min(batch.end, open.bound);
      if (isIncomplete(open)) open.due = this.#dueAt(true);
      if (rest.events.length === 0) open.waiting.push(done);
      if (this.#isFull(open)) await this.#finish();
    }
  }

  /** A repeated cut ends where it ended before, whatever its size: some of its objects may exist. */
  #isFull({ body, bound, end }: Collected): boolean {
    if (bound !== Number.POSITIVE_INFINITY) return end === bound;
    return body.bytes >= this.#settings.rotate.bytes;
  }

  #opened(first: Offset): Collected {
    if (this.#open !== null) return this.#open;
    const { opening, isSigned = false } = this.#settings;
    const { clock } = opening.tools;
    const epoch = presentEpoch(opening.numbering);
    const again = this.#unfinished !== null && first < this.#unfinished.end;
    const { end: bound, ...cut } =
      again && this.#unfinished !== null
        ? this.#unfinished
        : {
            // The log enters signed cuts in the order of their names.
            day: dayOf(clock.now(), this.#after, isSigned ? Number.POSITIVE_INFINITY : epoch),
            stem: stemOf(epoch, first),
            end: Number.POSITIVE_INFINITY,
          };
    this.#unfinished = null;
    const over = new AbortController();
    const body = this.#settings.body();
    const due = this.#dueAt(again);
    const open: Collected = { cut, end: first, bound, body, waiting: [], due, over, parts: null };
    this.#open = open;
    void this.#finishWhenDue(open).catch(() => undefined);
    return open;
  }

  #dueAt(isRepeated: boolean): number {
    const { opening, rotate } = this.#settings;
    const waitMs = isRepeated ? Math.max(rotate.every, againMs) : rotate.every;
    return opening.tools.clock.monotonic() + waitMs;
  }

  async #finishWhenDue(open: Collected): Promise<void> {
    const { clock } = this.#settings.opening.tools;
    for (let leftMs = this.#leftMs(open); leftMs > 0; leftMs = this.#leftMs(open)) {
      await clock.sleep(leftMs, open.over.signal);
    }
    this.#turn = this.#turn.then(() => this.#finish());
  }

  #leftMs({ due }: Collected): number {
    return due - this.#settings.opening.tools.clock.monotonic();
  }

  async #finish(): Promise<void> {
    const open = this.#open;
    open?.over.abort();
    await this.#writing;
    // Dropped if the write before it failed.
    if (open === null || this.#open !== open) return;
    this.#open = null;
    this.#writing = this.#write(open)
      .catch((error) => this.#reportFailed(open, error))
      .finally(() => {
        this.#writing = null;
      });
  }

  #reportFailed(failed: Collected, error: unknown): void {
    this.#failed = failed;
    this.#failure = this.#meaningOf(error);
    this.#failures += 1;
    for (const report of failed.waiting.splice(0)) report(this.#failure);
    this.#drop(this.#failure);
  }

  /** Drops the collected events, which are sent again. */
  #drop(answer: Delivery): void {
    const dropped = this.#open;
    this.#open = null;
    dropped?.over.abort();
    for (const report of dropped?.waiting ?? []) report(answer);
  }

  async #write(collected: Collected): Promise<void> {
    const { opening } = this.#settings;
    const cut: Cut = { ...collected.cut, end: collected.end };
    collected.parts ??= await collected.body.finish(cut);
    const names = new Set(collected.parts.map(({ name }) => name));
    invariant(names.size === collected.parts.length, 'each object of a cut has its own name');
    await opening.remember({ after: this.#after, cut } satisfies CutMark);
    for (const part of collected.parts) await this.#create(part, cut);
    this.#reach = { ...this.#reach, position: Math.max(this.#reach.position, cut.end) };
    // Objects that the state does not know are found again by the next process.
    if (this.#known.size === 0) this.#after = collected.parts.at(-1)?.name ?? this.#after;
    for (const report of collected.waiting.splice(0)) report(delivered);
  }

  async #create(part: CutPart, { stem, end }: Cut): Promise<void> {
    const { store, opening } = this.#settings;
    const { spool } = opening.numbering;
    const place = { spool, epoch: Number(stem.slice(0, stem.indexOf('-'))), next: end };
    const { contentType } = part;
    const about = { contentType, metadata: metadataOf(part, place) };
    if ((await store.create(part.name, part.body, about)) === 'created') return;
    const there = writtenOf(part.name, await store.facts(part.name));
    if (there?.uidsDigest === digestOfUids(part.uids)) return;
    const what = 'an object with other events has this name';
    throw new ExportError('sink_refused', `writing ${part.name} to ${store.location}: ${what}`, {
      next: 'Another sink or deployment writes under this prefix: set a prefix that only this sink uses. No event was lost; delivery resumes then.',
    });
  }

  /** The state has stored no cut with a later end. */
  get #knownEnd(): Offset {
    const { opening, isSigned = false } = this.#settings;
    if (isSigned) return Number.POSITIVE_INFINITY;
    return Math.max(opening.position, readMark(opening.mark).cut?.end ?? 0);
  }

  #look(): Promise<void> {
    this.#looked ??= this.#lookNow().catch((error) => {
      this.#looked = null;
      throw error;
    });
    return this.#looked;
  }

  async #lookNow(): Promise<void> {
    const { store, opening } = this.#settings;
    try {
      const found = await lookAtBucket(store, {
        numbering: opening.numbering,
        after: this.#after,
        end: this.#knownEnd,
        nowMs: opening.tools.clock.now(),
      });
      this.#reach = found.reach;
      this.#known = found.known;
      if (found.known.size === 0) this.#after = found.last;
    } catch (error) {
      // A writer without read permission cannot list the existing objects.
      if (!(error instanceof ExportError) || error.details.status !== 403) throw error;
      opening.tools.log.warn(
        'bucket_not_readable',
        'objects in the bucket cannot be listed; after a restore of an older state events may be delivered twice',
        { code: error.code, next: error.next },
      );
    }
  }

  #forgetting(batch: Batch, answer: (answer: Delivery) => void): (answer: Delivery) => void {
    return (given) => {
      if (given === delivered) {
        forget(batch, this.#known, epochBegin(this.#settings.opening.numbering));
      }
      answer(given);
    };
  }

  #meaningOf(error: unknown): Delivery {
    const cause = asExportError(error, `sending to ${this.#settings.opening.name}`);
    return cause.code === 'sink_refused'
      ? { outcome: 'refused', scope: 'sink', cause }
      : { outcome: 'retry', cause };
  }
}

/** True for a repeated cut without all of its events. */
function isIncomplete(open: Collected | null): boolean {
  return open !== null && open.bound !== Number.POSITIVE_INFINITY && open.end < open.bound;
}

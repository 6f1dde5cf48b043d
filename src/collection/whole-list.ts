// A list read whole, from start to end, by the same walk as a list stream (list/follow.ts), with the same rules for its
// end and for partial pages. Each page is passed on when it arrives, and none is kept. Invariant: a list is whole only
// if each request succeeded and no row was hidden. Otherwise it is valid only for the elements it showed.

import {
  type Answer,
  type Clock,
  type CollectionStream,
  ExportError,
  type Failure,
  type Log,
  type Spool,
} from '../contracts/index.ts';
import {
  type CheckpointChange,
  type FetchedPage,
  firstPosition,
  follow,
  freshCheckpoint,
  type Identified,
  Identifier,
  identityWords,
  isFirst,
  joinedChange,
  keyBytes,
  type ListPosition,
  nonePassed,
  nonsense,
  type Page,
  PageAsker,
  type Resume,
  type Stage,
  type Taken,
  type Walked,
  type WalkReader,
} from '../list/index.ts';

import type { Finding } from '../poll/index.ts';
import type { RecordList } from '../tools/index.ts';

/** Dependencies of a collection's reader. */
export interface ReaderDeps {
  readonly stream: CollectionStream;
  /** Each request waits for room in it. */
  readonly spool: Pick<Spool, 'room'>;
  readonly clock: Clock;
  readonly log: Log;
}

/** The receiver of the pages of a list. */
interface PageTaker {
  /** The list begins, or begins again because rows have moved. */
  begin(): void;
  /** The records at these indices were not on the previous page. */
  page(records: RecordList, fresh: readonly number[]): Promise<void>;
}

/** How the list ended. */
interface Listing {
  /** Why it may not be whole; null: it is whole. */
  readonly flaw: Failure | null;
  /** It was longer than any list can be. */
  readonly isEndless: boolean;
}

/** A list with more pages is a cursor loop. */
const pagesMax = 10_000;

/** Reads the list of a collection. A record is new if it was not on the previous page. */
export class WholeList implements WalkReader {
  readonly deps: WalkReader['deps'];
  /** Each page is passed on before the next one. */
  readonly isWhole = true;
  /** Facts learned about the server; never saved. Empty pages are skipped. */
  checkpoint = joinedChange(
    freshCheckpoint({
      ...{ fingerprint: '', epoch: '', order: 'unknown', since: null, ignore: [], olderUpTo: 0 },
    }),
    { memory: { remembered: [{ count: 1, latest: 0 }] } },
  );
  readonly #stream: CollectionStream;
  readonly #asker: PageAsker;
  readonly #identifier: Identifier;
  #taker: PageTaker | null = null;
  #waiting: Taken | null = null;
  #pages = 0;
  /** Rows shown so far, and the lowest length that upstream has reported. */
  #rows = 0;
  #least = 0;
  /** A row that upstream hides. */
  #hidden: Finding | null = null;

  constructor({ stream, spool, clock, log }: ReaderDeps) {
    const { list, source, company = '', name } = stream;
    this.deps = { stream: list, start: 'beginning', clock, log };
    this.#stream = stream;
    this.#asker = new PageAsker({ stream: list, spool, clock, log });
    this.#identifier = new Identifier({ source, company, stream: name });
  }

  /** One reading. A failure is a failure of its first page. */
  async read(taker: PageTaker, signal: AbortSignal): Promise<Answer<Listing>> {
    this.#taker = taker;
    const empties = { count: 0 };
    const first = firstPosition(this.#stream.list.pagination);
    let from: Resume = { resume: first, overlap: null };
    let passed = nonePassed;
    this.#begin();
    for (;;) {
      const walked = await follow(
        this,
        {
          ...{ from, reading: 'known', anchored: false, trail: false, empties, passed },
          stopAt: () => this.#pages + 1 >= pagesMax,
          check: (identified) => this.#check(identified),
          step: (stage) => {
            this.#add(stage);
            ({ passed } = stage);
            return {};
          },
        },
        signal,
      );
      if (walked.outcome !== 'ok' && this.#pages === 0) return walked;
      const isOver = walked.outcome !== 'ok' || walked.paused === null;
      if (isOver) return { outcome: 'ok', ...this.#listing(walked) };
      from = { resume: walked.next ?? first, overlap: null };
    }
  }

  #begin(): void {
    this.#waiting = null;
    this.#pages = 0;
    this.#rows = 0;
    this.#least = 0;
    this.#hidden = null;
    this.#taker?.begin();
  }

  #check({ records, count }: Identified): Failure | null {
    for (let at = 0; at < count; at += 1) {
      if (String.fromCharCode(records.raw(at)[0] ?? 0) === '{') continue;
      return this.#nonsense(`element ${at} of a page is no object`);
    }
    return null;
  }

  #add({ position, taken }: Stage): void {
    // Rows have moved, and the list is read again.
    if (isFirst(position)) this.#begin();
    this.#pages += 1;
    this.#waiting = taken;
    const { page, judged } = taken;
    this.#rows += judged.fresh.length;
    // Rows come and go during the reading.
    this.#least = Math.min(page.total ?? 0, this.#pages === 1 ? (page.total ?? 0) : this.#least);
  }

  #listing(walked: Answer<Walked>): Listing {
    const isEndless = walked.outcome === 'ok' && walked.next !== null;
    return { flaw: this.#flawOf(walked), isEndless };
  }

  #flawOf(walked: Answer<Walked>): Failure | null {
    if (walked.outcome !== 'ok') return walked;
    const { next, verdicts } = walked;
    if (next !== null) return this.#nonsense(`the list has no end after ${pagesMax} pages`);
    if (this.#hidden !== null) return this.#nonsense(this.#hidden.message);
    const doubt = verdicts.page ?? verdicts.whole ?? null;
    if (doubt === null && this.#rows < this.#least) {
      return this.#nonsense(`of ${this.#least} rows ${this.#rows} were shown`);
    }
    if (doubt === null) return null;
    const doing = `reading ${this.#stream.name}`;
    const cause = new ExportError('paging_suspected', `${doing}: ${doubt.said}`, {
      next: 'sluice reads it again. Nothing is reported as deleted meanwhile.',
      details: { sign: doubt.sign },
    });
    return { outcome: 'retry', cause };
  }

  #nonsense(what: string): Failure {
    return { outcome: 'retry', cause: nonsense(`reading ${this.#stream.name}`, what) };
  }

  get limit(): number | null {
    return this.#asker.limit;
  }

  ask(position: ListPosition, overlap: number, signal: AbortSignal): Promise<Answer<FetchedPage>> {
    return this.#asker.ask({ position, overlap, isEnd: false, unsorted: false }, signal);
  }

  /** A row with an id is the same row with any content, which may differ in each response. */
  identify({ records }: Page): Identified {
    const identified = this.#identifier.identify(records);
    const { words, named, count } = identified;
    for (let at = 0; at < count; at += 1) {
      const content = at * identityWords + keyBytes / 8;
      if (named[at] === 1) words.fill(0, content, content + keyBytes / 8);
    }
    return identified;
  }

  take(page: Page, identified: Identified, { overlap }: { readonly overlap: number }): Taken {
    const fresh = Array.from({ length: identified.count }, (_, index) => index).slice(overlap);
    const none = { uids: Buffer.alloc(0), identities: new Uint32Array(), changed: [] };
    const judged = { identified, fresh, alreadyKnown: 0, joined: false, ...none };
    return { page, judged, at: this.deps.clock.now(), span: null };
  }

  differs(): boolean {
    return true;
  }

  /** A hidden row is reported with each reading. */
  stage(
    _taken: Taken | null,
    { told: _told, ...change }: CheckpointChange,
    { findings }: { readonly findings: readonly Finding[] },
  ): void {
    this.checkpoint = joinedChange(this.checkpoint, change);
    this.#hidden ??= findings[0] ?? null;
  }

  isLate(): Promise<boolean> {
    return Promise.resolve(false);
  }

  async flush(): Promise<void> {
    const taken = this.#waiting;
    this.#waiting = null;
    if (taken !== null) await this.#taker?.page(taken.page.records, taken.judged.fresh);
  }
}

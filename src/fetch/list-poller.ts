// How a list is read so that nothing is lost under any server that the upstream documents allow. They show no order, no
// time filter and no lifetime of cursors, so the strategy is learned:
//
//   sweep    the first walk through the whole list, from `resume` on; after a crash it goes on where it was
//   tail     asks the last cursor that worked again, and follows on: finds what is new in a list that grows at its end
//   top      walks from the first page down to what is known: finds what is new in a list that grows at its start
//   rewalk   the whole list again, through what is known: finds what neither end showed
//   rewind   from a cursor of some minutes ago to the tail: finds records that came late
//
// While the order is unknown each poll reads both ends, and where new records arrive teaches it. What must stay true:
// every step forward is committed with the page that justifies it; an error is never taken for the end of a list.

import { ExportError } from '../contracts/errors.ts';
import type { Place } from '../contracts/source.ts';
import { type ListCheckpoint, samePlace } from './checkpoint.ts';
import { headOf, keyBytes, keysOf } from './judge.ts';
import type { ListReader, Taken } from './list-reader.ts';
import { haltedWaitMs, NoPage, type PollResult, resultOf } from './outcome.ts';
import type { Finding } from './own-pages.ts';
import { firstPlace } from './pager.ts';
import { timeSpan } from './record-time.ts';
import { ignoredCursor, Reach, recover } from './recover.ts';
import { follow, type Stage, trailStart, type Walk, type Walked } from './walk.ts';

/** The times that a list is read by, and what to do when its cursor has died. */
export interface ListSettings {
  readonly lookbackMs: number;
  readonly rewindEveryMs: number;
  readonly reconcileEveryMs: number;
  readonly onCursorInvalid: 'rewalk' | 'halt' | 'from_now';
}

/** After this long without a record at the tail, it counts as unproven again. */
const provenForMs = 24 * 3_600_000;
const deepRewindEveryMs = 24 * 3_600_000;
/** Trail cursors tried when the one wanted is refused. */
const stepsBackMax = 5;

/** Reads one list stream, a poll at a time. */
export class ListPoller {
  readonly #reader: ListReader;
  readonly #settings: ListSettings;

  constructor(reader: ListReader, settings: ListSettings) {
    this.#reader = reader;
    this.#settings = settings;
  }

  /** The checkpoint as committed last; null before the first poll. */
  get checkpoint(): ListCheckpoint | null {
    return this.#reader.loaded;
  }

  /** One poll: up to the tail, or until others should have their turn. Never throws for what upstream did. */
  async poll(signal: AbortSignal): Promise<PollResult> {
    const poll = new Poll(this.#reader, this.#settings, signal);
    try {
      await this.#reader.load();
      await poll.run();
      return { outcome: 'done', fresh: poll.fresh, more: poll.more };
    } catch (error) {
      // What was judged but not committed is not known after all.
      this.#reader.discard();
      if (signal.aborted) throw error;
      if (error instanceof NoPage) return this.#failed(error);
      if (!(error instanceof ExportError)) throw error;
      const halted = error.code === 'checkpoint_mismatch';
      return halted
        ? { outcome: 'halted', waitMs: haltedWaitMs, cause: error }
        : { outcome: 'retry', cause: error };
    }
  }

  /** A cursor that dies in the middle of a walk costs no more than another walk. */
  #failed({ fetched }: NoPage): PollResult {
    const dead = fetched.outcome === 'refused' && fetched.about === 'cursor';
    const again = dead && this.#settings.onCursorInvalid !== 'halt';
    return again ? { outcome: 'retry', cause: fetched.cause } : resultOf(fetched);
  }
}

/** One poll and what it has found. */
class Poll {
  fresh = 0;
  more = false;
  /** Rows were found to have come in before those already read. */
  #inserted = false;
  /** The list's very first record was new. One further down may have come late, and says nothing of the order. */
  #grewAtStart = false;
  readonly #reader: ListReader;
  readonly #settings: ListSettings;
  readonly #signal: AbortSignal;
  readonly #first: Place;

  constructor(reader: ListReader, settings: ListSettings, signal: AbortSignal) {
    this.#reader = reader;
    this.#settings = settings;
    this.#signal = signal;
    this.#first = firstPlace(reader.means.stream.paging);
  }

  get #checkpoint(): ListCheckpoint {
    return this.#reader.checkpoint;
  }

  get #now(): number {
    return this.#reader.means.clock.now();
  }

  async run(): Promise<void> {
    if (!this.#checkpoint.swept) return await this.#sweep();
    const { rewindEveryMs, reconcileEveryMs } = this.#settings;
    switch (this.#checkpoint.order) {
      case 'oldest_first':
        await this.#tail();
        if (this.#inserted && !this.more) await this.#rewalk();
        if (this.#due('rewoundAt', rewindEveryMs)) await this.#rewind();
        if (!this.#proven() && this.#due('sweptAt', reconcileEveryMs)) await this.#rewalk();
        if (this.#due('probedAt', reconcileEveryMs)) await this.#probe(() => this.#top());
        return;
      case 'newest_first':
        await this.#top();
        if (this.#due('probedAt', reconcileEveryMs)) await this.#probe(() => this.#tail());
        return;
      case 'mixed':
      case 'unknown':
        await this.#bothEnds();
        if (this.#due('sweptAt', reconcileEveryMs)) await this.#rewalk();
        return;
    }
  }

  #due(last: 'rewoundAt' | 'sweptAt' | 'probedAt' | 'deepRewoundAt', everyMs: number): boolean {
    return !this.more && this.#now - this.#checkpoint[last] >= everyMs;
  }

  /** A server may bind cursors to the list as it was: only a record that came through the tail proves it. */
  #proven(): boolean {
    const { provenAt } = this.#checkpoint;
    return provenAt !== null && this.#now - provenAt < provenForMs;
  }

  async #follow(walk: Walk): Promise<Walked> {
    const walked = await follow(this.#reader, walk, this.#signal);
    this.fresh += walked.fresh;
    this.more ||= walked.more;
    return walked;
  }

  async #sweep(): Promise<void> {
    await this.#tail();
    if (this.more) return;
    if (this.#inserted) return await this.#rewalk();
    const now = this.#now;
    this.#reader.anchorAll();
    const done = { swept: true, sweptAt: now, rewoundAt: now, deepRewoundAt: now, probedAt: now };
    await this.#reader.commit(null, done);
  }

  /** What is new at the end of the list; returns how many records. */
  async #tail(onPage?: (taken: Taken) => void): Promise<number> {
    const { resume, overlap, swept, countAnew } = this.#checkpoint;
    if (countAnew) {
      await this.#rewalk();
      return 0;
    }
    const from = resume ?? this.#first;
    const isFirst = samePlace(from, this.#first);
    const walk: Walk = {
      from,
      overlap,
      // Counting from the list's start is exact wherever new records turn up.
      reading: isFirst ? 'known' : 'resume',
      anchored: true,
      step: (stage) => {
        if (!isFirst && stage.place === from) this.#checkHeeded(stage);
        onPage?.(stage.taken);
        // What was the only page may have been pushed on to the next one: until the end nothing behind it is unread.
        return isFirst && swept && stage.next !== null ? {} : this.#tailStep(stage);
      },
    };
    try {
      const { fresh, restarted } = await this.#follow(walk);
      return restarted ? 0 : fresh;
    } catch (error) {
      const refused = error instanceof NoPage && error.fetched.outcome === 'refused';
      if (!refused || this.#checkpoint.resume === null) throw error;
      if (samePlace(this.#checkpoint.resume, this.#first)) throw error;
      const findings = await recover(this.#reader, error, {
        first: this.#first,
        onCursorInvalid: this.#settings.onCursorInvalid,
        signal: this.#signal,
      });
      if (findings !== null) await this.#rewalk(findings);
      return 0;
    }
  }

  #tailStep(stage: Stage): Partial<ListCheckpoint> {
    const { taken, pager } = stage;
    this.#inserted ||= pager.inserted;
    const proven = this.#checkpoint.swept && taken.judged.fresh.length > 0;
    return { ...resumeAfter(stage), ...(proven ? { provenAt: taken.at } : {}) };
  }

  /** A server may take any cursor and begin at the start: its answer then is the first page of a list of several. */
  #checkHeeded({ next, taken }: Stage): void {
    const { firstPage } = this.#checkpoint;
    if (firstPage === null || next === null) return;
    const count = Buffer.byteLength(firstPage, 'base64') / keyBytes;
    if (headOf(taken.judged.identified, count) !== firstPage) return;
    throw ignoredCursor(this.#reader.means.stream.name);
  }

  /** What is new at the start of the list; a walk that died is first continued down to what is known. */
  async #top(): Promise<number> {
    let found = 0;
    const { openWalk } = this.#checkpoint;
    if (openWalk !== null) {
      try {
        const walk = this.#topWalk(openWalk.next, openWalk.block, null);
        found += (await this.#follow(walk)).fresh;
      } catch (error) {
        // The dead walk's cursor is gone: the new walk passes through its records and beyond.
        if (!(error instanceof NoPage) || error.fetched.outcome !== 'refused') throw error;
      }
      if (this.more) return found;
    }
    const { watermark, rewoundAt, openWalk: open } = this.#checkpoint;
    const deep = this.#due('rewoundAt', this.#settings.rewindEveryMs);
    const lookedUpTo = Math.min(watermark ?? rewoundAt, rewoundAt);
    const horizon = deep && watermark !== null ? lookedUpTo - this.#settings.lookbackMs : null;
    const block = open?.block ?? this.#reader.nextBlock;
    const { countAnew } = this.#checkpoint;
    const reach = new Reach();
    let atEnd: Partial<ListCheckpoint> = { countAnew };
    const walk = this.#topWalk(this.#first, block, horizon, (stage) => {
      reach.add(stage.taken, this.#reader.means.stream.time);
      this.#grewAtStart ||= stage.place === this.#first && stage.taken.judged.fresh[0] === 0;
      if (stage.next === null) atEnd = resumeAfter(stage);
    });
    found += (await this.#follow(walk)).fresh;
    if (this.more) return found;
    this.#reader.anchorAll();
    const done = { ...atEnd, openWalk: null, ...(deep ? { rewoundAt: this.#now } : {}) };
    const findings = reach.gap(this.#reader.means.stream.name, watermark);
    if (findings.length > 0 || this.#reader.differs(done)) {
      await this.#reader.commit(null, done, { findings });
    }
    return found;
  }

  /** Ends on a page whose records are all anchored and, where late ones are looked for, old enough. */
  #topWalk(
    from: Place,
    block: number,
    horizon: number | null,
    onStage?: (stage: Stage) => void,
  ): Walk {
    const { time } = this.#reader.means.stream;
    return {
      from,
      overlap: null,
      reading: 'known',
      anchored: false,
      stopAt: ({ page, judged }) => {
        if (!judged.joined || page.records.length === 0) return false;
        const span = horizon === null ? null : timeSpan(page.records, time);
        return span === null || horizon === null || span.latest < horizon;
      },
      step: (stage) => {
        onStage?.(stage);
        const { next, taken } = stage;
        return next === null || taken.judged.fresh.length === 0
          ? {}
          : { openWalk: { next, block } };
      },
    };
  }

  async #bothEnds(): Promise<void> {
    const { resume } = this.#checkpoint;
    if (resume === null || samePlace(resume, this.#first)) return await this.#onlyPage();
    const atTail = await this.#tail();
    if (!this.more) await this.#top();
    if (atTail > 0 && this.#grewAtStart) await this.#learn('mixed');
    else if (atTail > 0) await this.#learn('oldest_first');
    else if (this.#grewAtStart) await this.#learn('newest_first');
  }

  /** The whole list was one page so far: where on it the new records stand tells the order. */
  async #onlyPage(): Promise<void> {
    let first: Taken | null = null;
    await this.#tail((taken) => {
      first ??= taken;
    });
    const order = orderWithin(first);
    if (order !== null) await this.#learn(order);
  }

  async #learn(order: ListCheckpoint['order']): Promise<void> {
    const { means } = this.#reader;
    const before = this.#checkpoint.order;
    if (before === order || means.order !== 'auto') return;
    // One end at a time may well be idle.
    if (before === 'mixed') return;
    means.log.info('learned the order of the list', { before, order });
    await this.#reader.commit(null, { order });
  }

  /** The end that was idle so far may have begun to grow. */
  async #probe(otherEnd: () => Promise<number>): Promise<void> {
    if ((await otherEnd()) > 0) await this.#learn('unknown');
    await this.#reader.commit(null, { probedAt: this.#now });
  }

  async #rewalk(found: { readonly findings?: readonly Finding[] } = {}): Promise<void> {
    const { name, time } = this.#reader.means.stream;
    const { watermark, swept } = this.#checkpoint;
    const reach = new Reach();
    let resume: Partial<ListCheckpoint> = {};
    await this.#follow({
      from: this.#first,
      overlap: null,
      reading: 'known',
      anchored: true,
      step: (stage) => {
        reach.add(stage.taken, time);
        resume = resumeAfter(stage);
        return {};
      },
    });
    if (this.more) return;
    this.#reader.anchorAll();
    const now = this.#now;
    const first = swept ? {} : { rewoundAt: now, deepRewoundAt: now, probedAt: now };
    await this.#reader.commit(
      null,
      { ...resume, ...first, openWalk: null, swept: true, sweptAt: now },
      { findings: [...(found.findings ?? []), ...reach.gap(name, watermark)] },
    );
  }

  /**
   * From a cursor of some minutes ago to the tail; once a day from the oldest one that is still kept. What came late since
   * the rewind before is at most `lookback` older than that, so it begins there and not at `lookback` before now.
   */
  async #rewind(): Promise<void> {
    const { stream, spool } = this.#reader.means;
    const deep = this.#due('deepRewoundAt', deepRewindEveryMs);
    const horizon = this.#checkpoint.rewoundAt - this.#settings.lookbackMs;
    const trail = await spool.trail(stream.name);
    const past = trail.filter((entry) => entry.at <= horizon).reverse();
    const starts = deep || past.length === 0 ? trail : past;
    for (const { cursor } of starts.slice(0, stepsBackMax)) {
      try {
        await this.#follow({
          from: { by: 'cursor', cursor: cursor === trailStart ? null : cursor },
          overlap: null,
          reading: 'known',
          anchored: true,
          step: (stage) => (stage.next === null ? resumeAfter(stage) : {}),
        });
        break;
      } catch (error) {
        if (!(error instanceof NoPage) || error.fetched.outcome !== 'refused') throw error;
      }
    }
    await this.#reader.commit(null, {
      rewoundAt: this.#now,
      ...(deep ? { deepRewoundAt: this.#now } : {}),
    });
  }
}

/** Where the next poll goes on after a page. */
function resumeAfter({ place, next, taken, pager }: Stage): Partial<ListCheckpoint> {
  const { identified } = taken.judged;
  // Only records without ids need to know what was on the page that is asked again; by offset the overlap says it.
  const wanted = next === null && pager.overlap === null && identified.named.includes(0);
  return {
    resume: next ?? place,
    overlap: pager.overlap,
    countAnew: false,
    resumePage: wanted ? keysOf(identified, 0, identified.count) : null,
  };
}

/** The order that a page shows whose records were partly known. */
function orderWithin(taken: Taken | null): 'oldest_first' | 'newest_first' | 'mixed' | null {
  if (taken === null) return null;
  const { fresh } = taken.judged;
  const known = taken.page.records.length - fresh.length;
  if (fresh.length === 0 || known === 0) return null;
  if (fresh.at(-1) === fresh.length - 1) return 'newest_first';
  return fresh[0] === known ? 'oldest_first' : 'mixed';
}

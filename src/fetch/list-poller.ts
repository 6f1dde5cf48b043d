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
import { keysOf } from './judge.ts';
import type { ListReader, Taken } from './list-reader.ts';
import { haltedWaitMs, NoPage, type PollResult, resultOf } from './outcome.ts';
import { firstPlace } from './pager.ts';
import { timeSpan } from './record-time.ts';
import { recover } from './recover.ts';
import { follow, type Stage, type Walk } from './walk.ts';

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
/** How often the idle end is looked at once the order is known. */
const probeEveryMs = 3_600_000;
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
      this.#reader.unload();
      if (signal.aborted) throw error;
      if (error instanceof NoPage) return resultOf(error.fetched);
      if (!(error instanceof ExportError)) throw error;
      const halted = error.code === 'checkpoint_mismatch';
      return halted
        ? { outcome: 'halted', waitMs: haltedWaitMs, cause: error }
        : { outcome: 'retry', cause: error };
    }
  }
}

/** One poll and what it has found. */
class Poll {
  fresh = 0;
  more = false;
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
        if (this.#due('rewoundAt', rewindEveryMs)) await this.#rewind();
        if (!this.#proven() && this.#due('sweptAt', reconcileEveryMs)) await this.#rewalk();
        if (this.#due('probedAt', probeEveryMs)) await this.#probe(() => this.#top());
        return;
      case 'newest_first':
        await this.#top();
        if (this.#due('probedAt', probeEveryMs)) await this.#probe(() => this.#tail());
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

  async #follow(walk: Walk): Promise<{ fresh: number; end: Place }> {
    const walked = await follow(this.#reader, walk, this.#signal);
    this.fresh += walked.fresh;
    this.more ||= walked.more;
    return walked;
  }

  async #sweep(): Promise<void> {
    await this.#tail();
    if (this.more) return;
    const now = this.#now;
    this.#reader.anchorAll();
    const done = { swept: true, sweptAt: now, rewoundAt: now, deepRewoundAt: now, probedAt: now };
    await this.#reader.commit(null, done);
  }

  /** What is new at the end of the list; returns how many records. */
  async #tail(onPage?: (taken: Taken) => void): Promise<number> {
    const { resume, overlap } = this.#checkpoint;
    const walk: Walk = {
      from: resume ?? this.#first,
      overlap,
      reading: 'resume',
      anchored: true,
      step: (stage) => {
        onPage?.(stage.taken);
        return this.#tailStep(stage);
      },
    };
    try {
      return (await this.#follow(walk)).fresh;
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

  #tailStep({ place, next, taken, pager }: Stage): Partial<ListCheckpoint> {
    const { identified, fresh } = taken.judged;
    const unnamed = identified.named.includes(0);
    const proven = this.#checkpoint.swept && fresh.length > 0;
    return {
      resume: next ?? place,
      overlap: pager.overlap,
      // Only records without ids need to know what was on the page that is asked again.
      resumePage: next === null && unnamed ? keysOf(identified, 0, identified.count) : null,
      ...(proven ? { provenAt: taken.at } : {}),
    };
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
    const { watermark, openWalk: open } = this.#checkpoint;
    const deep = this.#due('rewoundAt', this.#settings.rewindEveryMs);
    const horizon = deep && watermark !== null ? watermark - this.#settings.lookbackMs : null;
    const block = open?.block ?? this.#reader.nextBlock;
    found += (await this.#follow(this.#topWalk(this.#first, block, horizon))).fresh;
    if (this.more) return found;
    this.#reader.anchorAll();
    const done = { openWalk: null, ...(deep ? { rewoundAt: this.#now } : {}) };
    if (this.#reader.differs(done)) await this.#reader.commit(null, done);
    return found;
  }

  /** Ends on a page whose records are all anchored and, where late ones are looked for, old enough. */
  #topWalk(from: Place, block: number, horizon: number | null): Walk {
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
      step: ({ next, taken }) =>
        next === null || taken.judged.fresh.length === 0 ? {} : { openWalk: { next, block } },
    };
  }

  async #bothEnds(): Promise<void> {
    const { resume } = this.#checkpoint;
    if (resume === null || samePlace(resume, this.#first)) return await this.#onlyPage();
    const atTail = await this.#tail();
    const atTop = this.more ? 0 : await this.#top();
    if (atTail > 0 && atTop > 0) await this.#learn('mixed');
    else if (atTail > 0) await this.#learn('oldest_first');
    else if (atTop > 0) await this.#learn('newest_first');
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
    means.log.info('learned the order of the list', { before, order });
    await this.#reader.commit(null, { order });
  }

  /** The end that was idle so far may have begun to grow. */
  async #probe(otherEnd: () => Promise<number>): Promise<void> {
    if ((await otherEnd()) > 0) await this.#learn('unknown');
    await this.#reader.commit(null, { probedAt: this.#now });
  }

  async #rewalk(findings: Parameters<ListReader['commit']>[2] = {}): Promise<void> {
    let overlap: string | null = null;
    const { end } = await this.#follow({
      from: this.#first,
      overlap: null,
      reading: 'known',
      anchored: true,
      step: ({ pager }) => {
        overlap = pager.overlap;
        return {};
      },
    });
    if (this.more) return;
    this.#reader.anchorAll();
    const resume = { resume: end, resumePage: null, overlap, openWalk: null };
    await this.#reader.commit(null, { ...resume, swept: true, sweptAt: this.#now }, findings);
  }

  /** From a cursor of some minutes ago to the tail; once a day from the oldest one that is still kept. */
  async #rewind(): Promise<void> {
    const { stream, spool } = this.#reader.means;
    const deep = this.#due('deepRewoundAt', deepRewindEveryMs);
    const horizon = this.#now - this.#settings.lookbackMs;
    const past = (await spool.trail(stream.name)).filter((entry) => entry.at <= horizon);
    if (!deep) past.reverse();
    for (const { cursor } of past.slice(0, stepsBackMax)) {
      try {
        await this.#follow({
          from: { by: 'cursor', cursor },
          overlap: null,
          reading: 'known',
          anchored: true,
          step: ({ place, next }) => (next === null ? { resume: place, resumePage: null } : {}),
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

/** The order that a page shows whose records were partly known. */
function orderWithin(taken: Taken | null): 'oldest_first' | 'newest_first' | 'mixed' | null {
  if (taken === null) return null;
  const { fresh } = taken.judged;
  const known = taken.page.records.length - fresh.length;
  if (fresh.length === 0 || known === 0) return null;
  if (fresh.at(-1) === fresh.length - 1) return 'newest_first';
  return fresh[0] === known ? 'oldest_first' : 'mixed';
}

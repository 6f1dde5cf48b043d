// Sinks that the state knows and that leave the config or return to it. Log, attention items and events report the
// events kept, those released, and those that a returning sink does not get. Invariant: no event that was kept for a
// sink is deleted without a report with the count.

import type { Append, Clock, ConditionRecord, Log, Stream } from '../contracts/index.ts';
import type { Finding } from '../fetch/index.ts';
import type { Released, SinkGap } from '../hold/index.ts';
import type { OwnSpool } from '../hold/open.ts';
import type { Plan } from '../pipeline.ts';
import { leadsTo } from '../send/index.ts';
import { conditionPage } from './condition-page.ts';

/** The dependencies of the reports. */
export interface RemovedSinkDeps {
  readonly spool: OwnSpool;
  readonly clock: Clock;
  readonly log: Log;
  readonly found: (condition: ConditionRecord) => void;
  /** Other processes may have the state, with other sinks in their configs. */
  readonly isShared: boolean;
}

/** While a full spool releases pages all the time, one report in this time has the sum. */
const reportEveryMs = 10 * 60_000;

/** Keeps the register of sinks up to date with the plan that runs, and reports. */
export class RemovedSinks {
  readonly #deps: RemovedSinkDeps;
  #plan: Plan;
  #others: readonly string[] = [];
  #isAll: boolean;
  #isWaiting = false;
  readonly #over = new AbortController();
  #reportedAt = Number.NEGATIVE_INFINITY;

  constructor(plan: Plan, deps: RemovedSinkDeps) {
    this.#plan = plan;
    this.#deps = deps;
    this.#isAll = !deps.isShared;
    deps.spool.onReleased(() => void this.report());
  }

  /** Called before the sinks of a plan are opened: the deleted events of sinks that return. */
  async gaps({ sinks }: Plan): Promise<readonly SinkGap[]> {
    return await this.#deps.spool.sinkGaps(sinks.map(({ name }) => name));
  }

  /** Once a plan runs: registers its sinks, and reports the gaps that were found before. */
  async runs(plan: Plan, gaps: readonly SinkGap[]): Promise<void> {
    const { spool } = this.#deps;
    this.#plan = plan;
    await this.#settle();
    await Promise.all(gaps.flatMap((gap) => this.#gapPages(gap)).map((page) => spool.append(page)));
    void this.report();
  }

  /** Notes the sinks that other processes have; `isAll`: no other process has another one. */
  async others(names: readonly string[], isAll: boolean): Promise<void> {
    if (isAll === this.#isAll && names.join('\n') === this.#others.join('\n')) return;
    this.#others = names;
    this.#isAll = isAll;
    await this.#settle();
  }

  async #settle(): Promise<void> {
    const own = this.#plan.sinks.map(({ name }) => name);
    await this.#deps.spool.settleSinks({ own, others: this.#others, isAll: this.#isAll });
  }

  /** A page for each source that the sink gets events of, for that sink alone. */
  #gapPages({ sink, from, until }: SinkGap): readonly Append[] {
    const events = until - from;
    const message = `sink ${sink} was not in the config, and ${events} events are no longer kept for it: numbers ${from} to ${until - 1}`;
    this.#deps.log.warn('sink_returned_with_gap', 'a sink returns and does not get all events', {
      ...{ sink, events, first: from, last: until - 1 },
      next: 'The sink resumes at the oldest page held. Read the missing time again with sluice backfill if upstream still has it. A longer state.removed_sinks keeps more.',
    });
    const details = { sink, events, first: from, last: until - 1 };
    const finding = { condition: 'sink.gap', message, details } as const;
    return this.#streamsTo(sink).map((stream) => this.#page(stream, finding, sink));
  }

  /** The next start reports the rest. */
  close(): void {
    this.#over.abort(new Error('the journey is closed'));
  }

  /** Reports the releases since the last report, some time after it. */
  async report(): Promise<void> {
    const { spool, clock, log } = this.#deps;
    if (this.#isWaiting) return;
    const dueInMs = this.#reportedAt + reportEveryMs - clock.monotonic();
    if (dueInMs > 0) {
      this.#isWaiting = true;
      const { signal } = this.#over;
      await clock.sleep(dueInMs, signal).catch(() => undefined);
      this.#isWaiting = false;
      if (signal.aborted) return;
    }
    this.#reportedAt = clock.monotonic();
    try {
      const released = await spool.unreported();
      if (released.length === 0) this.#reportedAt = Number.NEGATIVE_INFINITY;
      for (const one of released) await this.#reportRelease(one);
    } catch (error) {
      // The state has the numbers: the next report names them.
      log.debug('release_not_reported', 'reporting a release failed', { error: String(error) });
    }
  }

  async #reportRelease(released: Released): Promise<void> {
    const { spool, log } = this.#deps;
    const { sink, events, why } = released;
    const reason = why === 'full' ? 'the spool or its disk is full' : 'state.removed_sinks is over';
    const message = `${events} events that were kept for the removed sink ${sink} were released: ${reason}`;
    log.warn('removed_sink_released', 'events kept for a removed sink were released', {
      ...{ sink, events, why: reason },
      next:
        why === 'full'
          ? 'Put the sink back into the config, raise state.max_bytes, make room in state.dir, or give its events up with sluice sinks remove.'
          : 'Put the sink back into the config if it still needs events: it resumes at the oldest page held.',
    });
    const [stream] = this.#plan.sources.flatMap((source) => source.streams);
    const details = { sink, events, reason: why };
    const finding = { condition: 'sink.events_released', message, details } as const;
    if (stream !== undefined) await spool.append(this.#page(stream, finding));
    await spool.reported(released);
  }

  /** The first stream of each source that is routed to a sink. */
  #streamsTo(sink: string): readonly Stream[] {
    const { sources, routes } = this.#plan;
    return sources.flatMap(({ name, streams: [first] }) => {
      return first !== undefined && leadsTo(routes, { source: name, sink }) ? [first] : [];
    });
  }

  #page(
    stream: Stream,
    finding: Finding & { condition: ConditionRecord['condition'] },
    onlySink?: string,
  ): Append {
    const { clock, found } = this.#deps;
    const now = clock.now();
    const about = [JSON.stringify(finding.details ?? {}), now];
    const page = conditionPage(stream, { finding, about, now, found });
    return { stream: stream.name, pages: [onlySink === undefined ? page : { ...page, onlySink }] };
  }
}

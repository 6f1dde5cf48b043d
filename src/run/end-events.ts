// Emits `upstream.ends` at 90, 30, 7 and 1 days before an upstream ends, and stores the dates that its responses
// announce. Invariants:
// - an event and the record that it was emitted are one transaction, so each is emitted once for an
//   upstream and date, also if the process is killed;
// - each sink that gets events of the upstream's sources gets the event once;
// - a date that is new emits only the nearest event that is due;
// - headers are text that others write: the events of their dates are bounded.

import type { Clock, Log, NewPage, Spool, Stream } from '../contracts/index.ts';
import {
  conditionRecord,
  Identifier,
  type OnFinding,
  ownPage,
  pageContext,
} from '../fetch/index.ts';
import type { Plan } from '../pipeline.ts';
import { leadsTo } from '../send/index.ts';
import { timeText } from '../tools/index.ts';
import {
  type DateOfEnd,
  endsKey,
  eventDays,
  heldJson,
  parseEndsHeld,
  type UpstreamClient,
  type UpstreamEnd,
} from '../upstream/index.ts';
import { endFacts, endText, originText } from '../watch/index.ts';

/** The dependencies for reports of ends. */
export interface EndEventsDeps {
  readonly spool: Pick<Spool, 'append' | 'recall'>;
  readonly clock: Clock;
  readonly log: Log;
  readonly found: OnFinding;
  /** True where the successor of a source delivers and is read. */
  readonly hasMoved: (source: string) => boolean;
}

/** The parts of a plan that an end concerns. */
export type EndsPlan = Pick<Plan, 'sources' | 'sinks' | 'routes'> & {
  readonly upstreams: ReadonlyMap<string, UpstreamClient>;
};

const dayMs = 86_400_000;
const lookEveryMs = 1_000;
/** A date that is not of the config is reported once it was unchanged for so long after a response. */
const settleMs = 5_000;
/** Without a response, the default date is reported after so long. */
const noAnswerMs = 60_000;
/** Dates whose events are remembered, per upstream. */
const datesMax = 32;
/** Dates from headers that emit events within a day, per upstream. */
const datesPerDayMax = 8;

interface Tracked {
  dates: readonly DateOfEnd[];
  /** The changes of announcements that are stored. */
  stored: number;
  endsMs: number | null;
  /** When `endsMs` last changed, and when there was first a response; monotonic milliseconds. */
  changedMs: number;
  answeredMs: number | null;
}

/** The ends of all upstreams of the plan that runs. */
export class EndEvents {
  readonly #deps: EndEventsDeps;
  readonly #begunMs: number;
  readonly #tracked = new Map<string, Tracked>();
  #plan: EndsPlan | null = null;
  #turn: Promise<void> = Promise.resolve();

  constructor(deps: EndEventsDeps) {
    this.#deps = deps;
    this.#begunMs = deps.clock.monotonic();
  }

  /** Uses this plan from now on: reads the stored facts about its new upstreams. */
  async runs(plan: EndsPlan): Promise<void> {
    const { spool, clock, log } = this.#deps;
    for (const client of plan.upstreams.values()) {
      const { name, baseUrl, announced } = client;
      if (this.#tracked.has(keyOf(client))) continue;
      const held = parseEndsHeld((await spool.recall(endsKey(name))).checkpoint);
      if (held?.base === baseUrl) announced.resume(held.announced);
      this.#tracked.set(keyOf(client), {
        ...{ dates: held?.dates ?? [], stored: announced.changes, answeredMs: null },
        ...{ endsMs: client.end.endsMs, changedMs: clock.monotonic() },
      });
    }
    for (const client of plan.upstreams.values()) {
      const { endsMs, from } = client.end;
      if (from !== 'config' || endsMs === null || endsMs > clock.now()) continue;
      log.warn('upstream_end_passed', 'the end of an upstream is in the past', {
        ...{ upstream: client.name, ends: timeText(endsMs) },
        next: `Polling continues. Correct upstreams.${client.name}.ends, or move its sources: sluice succession plan proposes successors (docs/moving.md).`,
      });
    }
    this.#plan = plan;
  }

  /** When an upstream ends, epoch milliseconds; null: never. */
  endOf(upstream: string): number | null {
    return this.#plan?.upstreams.get(upstream)?.end.endsMs ?? null;
  }

  /** Looks until aborted. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.#deps.clock.sleep(lookEveryMs, signal).catch(() => undefined);
      await this.look();
    }
  }

  /** Stores and emits due events; `isFinal`: no response follows, so no further date is expected. */
  look(isFinal = false): Promise<void> {
    this.#turn = this.#turn.then(async () => {
      for (const client of this.#plan?.upstreams.values() ?? []) {
        // After a failure, of a full disk for example, the next look tries again.
        await this.#lookAt(client, isFinal).catch((error) =>
          this.#deps.log.debug('upstream_end_not_stored', 'cannot store the end of an upstream', {
            error: String(error),
          }),
        );
      }
    });
    return this.#turn;
  }

  async #lookAt(client: UpstreamClient, isFinal: boolean): Promise<void> {
    const { spool, clock, found, log } = this.#deps;
    const tracked = this.#tracked.get(keyOf(client));
    if (tracked === undefined) return;
    const { end } = client.state();
    const { changes, all: announced } = client.announced;
    this.#note(tracked, client, end);
    const now = clock.now();
    const isReady = isFinal || this.#isSettled(tracked, end);
    const due = isReady ? dueOf(tracked.dates, end, now) : { days: [], dates: tracked.dates };
    const reports = due.days.map((days) => this.#report(client, end, { days, now }));
    const isReported = reports.every(({ pages }) => pages.length > 0);
    // An upstream that no sink gets events of reports its end once one does.
    const dates = isReported ? due.dates : tracked.dates;
    if (changes === tracked.stored && dates === tracked.dates) return;
    const checkpoint = heldJson({ base: client.baseUrl, announced, dates });
    const pages = reports.flatMap((report) => report.pages);
    await spool.append({ stream: endsKey(client.name), pages, checkpoint });
    tracked.stored = changes;
    tracked.dates = dates;
    for (const { record, pages: sent } of reports) {
      if (sent.length === 0) continue;
      const fields = { upstream: client.name, ends: timeText(end.endsMs), ...record.details };
      if (record.details?.moved === true)
        log.info('upstream_ends_moved', 'an upstream ends; its sources have moved', fields);
      else {
        const next = `Move its sources: sluice succession plan proposes successors, docs/moving.md has the steps. If the date is wrong, set upstreams.${client.name}.ends.`;
        log.warn('upstream_ends', 'an upstream ends', { ...fields, next });
      }
      found(record);
    }
  }

  #note(tracked: Tracked, { announced }: UpstreamClient, { endsMs }: UpstreamEnd): void {
    const nowMs = this.#deps.clock.monotonic();
    if (endsMs !== tracked.endsMs) tracked.changedMs = nowMs;
    tracked.endsMs = endsMs;
    if (announced.hasAnswered) tracked.answeredMs ??= nowMs;
  }

  /** Other endpoints may name an earlier date, or any date in place of the default. */
  #isSettled({ changedMs, answeredMs }: Tracked, { from }: UpstreamEnd): boolean {
    if (from === 'config') return true;
    const nowMs = this.#deps.clock.monotonic();
    if (answeredMs === null) return nowMs - this.#begunMs >= noAnswerMs;
    return nowMs - Math.max(changedMs, answeredMs) >= settleMs;
  }

  /** The event for each sink that gets events of the upstream's sources. */
  #report(
    client: UpstreamClient,
    end: UpstreamEnd,
    { days, now }: { readonly days: number; readonly now: number },
  ) {
    const { name } = client;
    const moved = this.#hasMoved(name);
    const facts = endFacts(name, end, { now, moved });
    const stream = this.#streamsOf(name)[0] ?? { name, source: name };
    const finding = {
      condition: 'upstream.ends',
      message: `upstream ${name} ${endText(facts)}; the date is ${originText(facts)}${moved ? '; all of its sources have moved to successors' : ''}`,
      details: {
        ...{ upstream: name, ends_at: facts.ends_at, days, days_left: facts.days_left },
        ...{ from: end.from, moved },
        ...(end.endpoint !== null && { endpoint: end.endpoint }),
      },
    } as const;
    const of = { source: '', company: '', stream: endsKey(name) };
    const uid = new Identifier(of).ownUid([finding.condition, String(dateOf(end)), days]);
    const pages = this.#ways(name).map(({ way, onlySink }): NewPage => {
      const page = ownPage(
        pageContext(way, 'condition', now),
        [conditionRecord(way, finding, now)],
        [uid],
      );
      return onlySink === undefined ? page : { ...page, onlySink };
    });
    return { record: conditionRecord(stream, finding, now), pages };
  }

  /**
   * The streams whose pages lead once to each sink that gets events of an upstream. A page is for one sink only where a
   * page for all would repeat the event elsewhere: an archive and its lake then have pages of their own.
   */
  #ways(upstream: string): readonly { readonly way: Stream; readonly onlySink?: string }[] {
    const sinks = (this.#plan?.sinks ?? []).map(({ name }) => name);
    const streams = this.#streamsOf(upstream).map((way) => ({
      ...{ way, to: sinks.filter((sink) => this.#leads(way.source, sink)) },
    }));
    const left = new Set(sinks);
    return streams
      .toSorted((a, b) => b.to.length - a.to.length)
      .flatMap(({ way, to }) => {
        const open = to.filter((sink) => left.delete(sink));
        if (open.length === to.length) return open.length === 0 ? [] : [{ way }];
        return open.map((onlySink) => ({ way, onlySink }));
      });
  }

  #sourcesOf(upstream: string): EndsPlan['sources'] {
    return this.#plan?.sources.filter((source) => source.upstream === upstream) ?? [];
  }

  /** True where each of its sources has a successor that delivers and is read. */
  #hasMoved(upstream: string): boolean {
    return this.#sourcesOf(upstream).every(({ name }) => this.#deps.hasMoved(name));
  }

  /** The first stream of each source of an upstream. */
  #streamsOf(upstream: string): readonly Stream[] {
    return this.#sourcesOf(upstream).flatMap(({ streams: [first] }) => first ?? []);
  }

  #leads(source: string, sink: string): boolean {
    return leadsTo(this.#plan?.routes ?? [], { source, sink });
  }
}

/** Another address is another API, whose responses announce its own dates. */
function keyOf({ name, baseUrl }: UpstreamClient): string {
  return JSON.stringify([name, baseUrl]);
}

interface Due {
  /** Events to emit now, the farthest first. */
  readonly days: readonly number[];
  /** The dates once they are emitted. */
  readonly dates: readonly DateOfEnd[];
}

/** The events that are due for a date: the nearest of a date that is new, else each that was not emitted. */
function dueOf(dates: readonly DateOfEnd[], end: UpstreamEnd, now: number): Due {
  const date = dateOf(end);
  if (date === null || end.endsMs === null) return { days: [], dates };
  const endsMs = end.endsMs;
  const passed = eventDays.filter((days) => endsMs - now <= days * dayMs);
  const known = dates.find((one) => one.date === date);
  const days = known ? passed.filter((one) => !known.days.includes(one)) : passed.slice(-1);
  if (known !== undefined && days.length === 0) return { days, dates };
  const isHeader = end.from === 'sunset' || end.from === 'deprecation';
  const ofToday = dates.filter(({ emittedAt }) => Math.abs(now - (emittedAt ?? 0)) < dayMs);
  if (isHeader && known === undefined && ofToday.length >= datesPerDayMax)
    return { days: [], dates };
  const one = {
    date,
    days: [...new Set([...(known?.days ?? []), ...passed])],
    emittedAt: days.length > 0 ? now : (known?.emittedAt ?? null),
  };
  return { days, dates: [...dates.filter((other) => other !== known), one].slice(-datesMax) };
}

/** The day of an end in UTC: a time that moves within a day is no new date. */
function dateOf({ endsMs }: UpstreamEnd): string | null {
  return timeText(endsMs)?.slice(0, 10) ?? null;
}

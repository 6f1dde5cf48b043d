// The latest view of the running export with its history and health, and the readers that receive it each second.
// Invariant: viewing and reporting use a bounded share of the time, for any number of streams and readers.

import { type Clock, type Log, usualReadyShare } from '../contracts/index.ts';
import { type EventStream, eventText } from './event-stream.ts';
import { Health, type Patience } from './health.ts';
import { type ChartSample, History, stepMs } from './history.ts';
import type { StatusMoment } from './live.ts';
import { type Family, metricFamilies } from './metrics.ts';
import { reportedTo, type StreamFilter, statusOf } from './report.ts';
import type { LiveStatus } from './status-facts.ts';
import type { EventTap } from './tail.ts';

/** Dependencies of a board. */
export interface BoardSettings {
  /** Returns the present state of the export. */
  readonly look: () => StatusMoment;
  readonly clock: Clock;
  readonly log: Log;
  readonly patience?: Patience;
  /** The share of the streams that must advance for the export to be ready, from 0 to 1; default: a half. */
  readonly readyShare?: number;
  /** The live tail, whose forms may change with a reload; null: there is none. */
  readonly tap: Pick<EventTap, 'forms'> | null;
}

/** The query of one reader of `/events`. */
export interface EventQuery extends Pick<StreamFilter, 'find'> {
  /** Time of the latest sample that the reader has; 0: none. */
  readonly since: number;
}

const reportMs = 1_000;
/** Limit for the share of time used by viewing and reporting. */
const shareMax = 0.1;
/** A cheaper view is taken at every request; a more expensive one is reused for a while. */
const dearLookMs = 5;
/** Limit of readers of `/events`; each receives a report per second. */
const readersMax = 16;
/** Limit of streams in a report; readers find others by search. */
const streamsReportedMax = 100;

/** The observed export. */
export class StatusBoard {
  readonly #settings: BoardSettings;
  readonly #history = new History();
  readonly #health: Health;
  readonly #readers = new Map<EventStream, EventQuery>();
  /** Epoch milliseconds. */
  readonly startedAt: number;
  #lookedAt = Number.NEGATIVE_INFINITY;
  /** Duration of the last two views, and of a report to all readers. */
  #lookMs = [0, 0];
  #reportMs = 0;
  #moment: StatusMoment;
  /** The status of the last view, once it was requested. */
  #status: LiveStatus | null = null;
  /** The latest sample that readers have. */
  #reported: ChartSample | undefined;

  constructor(settings: BoardSettings) {
    this.#settings = settings;
    this.#health = new Health(settings.patience);
    this.startedAt = settings.clock.now();
    this.#moment = this.#look();
  }

  /** Updates each second while there are readers, else each chart step, until the end. */
  async follow(over: AbortSignal): Promise<void> {
    const { clock, log } = this.#settings;
    while (!over.aborted) {
      await clock.sleep(Math.max(reportMs, this.#reportMs / shareMax), over).catch(() => undefined);
      const idleMs = clock.monotonic() - this.#lookedAt;
      if (over.aborted || (this.#readers.size === 0 && idleMs < stepMs)) continue;
      try {
        const begunAt = clock.monotonic();
        this.#reportAll();
        this.#reportMs = clock.monotonic() - begunAt;
      } catch (error) {
        // An error here must not affect the export.
        log.warn('status_update_failed', 'updating the status page failed', {
          error: String(error),
        });
      }
    }
  }

  #reportAll(): void {
    this.#look();
    const sample = this.#history.samples.at(-1);
    if (sample !== undefined && sample !== this.#reported) {
      const text = eventText('sample', sample, sample.at);
      for (const reader of this.#readers.keys()) reader.write(text);
    }
    this.#reported = sample;
    const texts = new Map<string, string>();
    for (const [reader, { find }] of this.#readers) {
      if (reader.isBehind) continue;
      const text = texts.getOrInsertComputed(find, () =>
        eventText('state', this.#reportedTo(find)),
      );
      reader.write(text);
    }
  }

  get ready(): boolean {
    return this.#stands.ready;
  }

  /** The body of /readyz. */
  readiness(): object {
    this.#look();
    const { ready, reasons } = this.#stands;
    return { ready, reasons };
  }

  /** The status, with all streams that match. */
  status(find: string): LiveStatus {
    this.#look();
    return reportedTo(this.#stands, { find, streamsMax: Number.POSITIVE_INFINITY });
  }

  /** The metrics for Prometheus. */
  families(): readonly Family[] {
    const moment = this.#look();
    const { user, system } = process.cpuUsage();
    const residentBytes = process.memoryUsage.rss();
    const stalled = new Set(
      this.#health.ailments.flatMap(({ part, name }) => (part === 'stream' ? [name] : [])),
    );
    const facts = { ...moment, residentBytes, cpuSeconds: (user + system) / 1e6, stalled };
    return metricFamilies(this.#stands, facts);
  }

  get isFull(): boolean {
    return this.#readers.size >= readersMax;
  }

  /** Sends the past and the present at once, and every later report. */
  add(reader: EventStream, hearing: EventQuery): void {
    this.#look();
    const samples = this.#history.samples.filter(({ at }) => at > hearing.since);
    reader.write(eventText('history', { step_ms: stepMs, samples }, samples.at(-1)?.at));
    reader.write(eventText('state', this.#reportedTo(hearing.find)));
    this.#readers.set(reader, hearing);
    reader.gone.addEventListener('abort', () => this.#readers.delete(reader));
  }

  #look(): StatusMoment {
    const { look, clock } = this.#settings;
    const now = clock.monotonic();
    // The smaller of two, because one view may be slow by chance.
    const lookMs = Math.min(...this.#lookMs);
    if (lookMs > dearLookMs && now - this.#lookedAt < lookMs / shareMax) return this.#moment;
    this.#moment = look();
    this.#status = null;
    this.#lookedAt = now;
    this.#history.observe(this.#moment, clock.now(), now);
    this.#health.observe(this.#moment, now);
    this.#lookMs = [clock.monotonic() - now, ...this.#lookMs.slice(0, 1)];
    return this.#moment;
  }

  get #stands(): LiveStatus {
    this.#status ??= statusOf({
      moment: this.#moment,
      history: this.#history,
      ailments: this.#health.ailments,
      now: this.#settings.clock.now(),
      startedAt: this.startedAt,
      readyShare: this.#settings.readyShare ?? usualReadyShare,
      forms: this.#settings.tap?.forms ?? null,
    });
    return this.#status;
  }

  #reportedTo(find: string): LiveStatus {
    return reportedTo(this.#stands, { find, streamsMax: streamsReportedMax });
  }
}

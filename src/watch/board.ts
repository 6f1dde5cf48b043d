// The journey as it was last looked at, with its history and health, and the readers who hear of it
// each second. What must stay true: looking and telling take a bounded share of the time, however
// many streams there are and whoever asks.

import type { Clock, Log } from '../contracts/tools.ts';
import { type EventStream, eventText } from './event-stream.ts';
import { Health, type Patience } from './health.ts';
import { type ChartSample, History, stepMs } from './history.ts';
import type { StatusMoment } from './live.ts';
import { type Family, metricFamilies } from './metrics.ts';
import { reportedTo, type StreamFilter, statusOf } from './report.ts';
import type { LiveStatus } from './status-facts.ts';
import type { EventTap } from './tail.ts';

/** What a board is made with. */
export interface BoardSettings {
  /** The journey as it is now. */
  readonly look: () => StatusMoment;
  readonly clock: Clock;
  readonly log: Log;
  readonly patience?: Patience;
  /** The live tail, which may offer something else after a reload; null: there is none. */
  readonly tap: Pick<EventTap, 'forms'> | null;
}

/** What one reader of `/events` asks for. */
export interface EventQuery extends Pick<StreamFilter, 'find'> {
  /** The latest sample that the reader has, by its time; 0: none. */
  readonly since: number;
}

const reportMs = 1_000;
/** Looking and telling take no more than this share of the time. */
const shareMax = 0.1;
/** Cheaper looks are taken whenever someone asks; a dearer one serves for a while. */
const dearLookMs = 5;
/** Readers of `/events`; each gets a report a second. */
const readersMax = 16;
/** As many as a person looks through; who wants another one searches. */
const streamsReportedMax = 100;

/** The journey, observed. */
export class StatusBoard {
  readonly #settings: BoardSettings;
  readonly #history = new History();
  readonly #health: Health;
  readonly #readers = new Map<EventStream, EventQuery>();
  /** Epoch milliseconds. */
  readonly startedAt: number;
  #lookedAt = Number.NEGATIVE_INFINITY;
  /** What the last two looks took, and telling all readers. */
  #lookMs = [0, 0];
  #reportMs = 0;
  #moment: StatusMoment;
  /** Of the last look, once someone has asked for it. */
  #standing: LiveStatus | null = null;
  /** The latest sample that readers have. */
  #told: ChartSample | undefined;

  constructor(settings: BoardSettings) {
    this.#settings = settings;
    this.#health = new Health(settings.patience);
    this.startedAt = settings.clock.now();
    this.#moment = this.#look();
  }

  /** Looks each second while someone listens, each step while no one does, until the end. */
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
        // Whatever is wrong with watching, the journey goes on.
        log.warn('status_update_failed', 'updating the status page failed', {
          error: String(error),
        });
      }
    }
  }

  #reportAll(): void {
    this.#look();
    const sample = this.#history.samples.at(-1);
    if (sample !== undefined && sample !== this.#told) {
      const text = eventText('sample', sample, sample.at);
      for (const reader of this.#readers.keys()) reader.write(text);
    }
    this.#told = sample;
    const texts = new Map<string, string>();
    for (const [reader, { find }] of this.#readers) {
      if (reader.isBehind) continue;
      const text = texts.get(find) ?? eventText('state', this.#reportedTo(find));
      texts.set(find, text);
      reader.write(text);
    }
  }

  get ready(): boolean {
    return this.#health.ailments.length === 0;
  }

  /** The body of /readyz. */
  readiness(): object {
    this.#look();
    const { ready, reasons } = this.#stands;
    return { ready, reasons };
  }

  /** How everything stands, with all streams that are found. */
  standing(find: string): LiveStatus {
    this.#look();
    return reportedTo(this.#stands, { find, streamsMax: Number.POSITIVE_INFINITY });
  }

  /** The numbers for Prometheus. */
  families(): readonly Family[] {
    const moment = this.#look();
    const { user, system } = process.cpuUsage();
    const residentBytes = process.memoryUsage.rss();
    const facts = { ...moment, residentBytes, cpuSeconds: (user + system) / 1e6 };
    return metricFamilies(this.#stands, facts);
  }

  get isFull(): boolean {
    return this.#readers.size >= readersMax;
  }

  /** Tells the past and the present at once, and from then on what comes. */
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
    // One that was slow by chance does not count.
    const lookMs = Math.min(...this.#lookMs);
    if (lookMs > dearLookMs && now - this.#lookedAt < lookMs / shareMax) return this.#moment;
    this.#moment = look();
    this.#standing = null;
    this.#lookedAt = now;
    this.#history.observe(this.#moment, clock.now(), now);
    this.#health.observe(this.#moment, now);
    this.#lookMs = [clock.monotonic() - now, ...this.#lookMs.slice(0, 1)];
    return this.#moment;
  }

  get #stands(): LiveStatus {
    this.#standing ??= statusOf({
      moment: this.#moment,
      history: this.#history,
      ailments: this.#health.ailments,
      now: this.#settings.clock.now(),
      startedAt: this.startedAt,
      forms: this.#settings.tap?.forms ?? null,
    });
    return this.#standing;
  }

  #reportedTo(find: string): LiveStatus {
    return reportedTo(this.#stands, { find, streamsMax: streamsReportedMax });
  }
}

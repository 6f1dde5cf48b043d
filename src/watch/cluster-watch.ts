// The whole of a state in Kafka for whoever has the page of one of its processes open. What must
// stay true: Kafka is asked only while somebody looks, seldom, and in a small share of the time;
// and that it does not answer holds up nothing else, here or at the end.

import { hostname } from 'node:os';
import { asExportError } from '../contracts/errors.ts';
import type { Clock, Log } from '../contracts/tools.ts';
import { urgentFirst } from '../terminal/table.ts';
import type { ClusterSight, ClusterStatus } from './cluster-status.ts';
import { type EventStream, eventText } from './event-stream.ts';

/** What a watch is made with. */
export interface ClusterWatchDeps {
  readonly sight: ClusterSight;
  readonly clock: Clock;
  readonly log: Log;
}

/** What readers are told as `cluster`. */
interface ReportedCluster {
  /** When it was so, epoch milliseconds; null: it was not seen yet. */
  readonly at: number | null;
  /** Which of the processes tells it. */
  readonly self: { readonly host: string; readonly pid: number };
  /** With as many of them as a person looks through. */
  readonly standing: ClusterStatus | null;
  readonly processes_total: number;
  readonly streams_total: number;
  /** Why the last look failed; what was seen before stands. */
  readonly error: { readonly message: string; readonly next: string } | null;
}

const tickMs = 500;
const lookEveryMs = 5_000;
const lookShareMax = 0.2;
/** Whoever comes back within this time finds what was read of Kafka. */
const keptMs = 60_000;
const processesToldMax = 100;
const streamsReportedMax = 50;

/** Looks while there are readers. */
export class ClusterWatch {
  readonly #deps: ClusterWatchDeps;
  readonly #readers = new Set<EventStream>();
  #told: ReportedCluster = {
    at: null,
    self: { host: hostname(), pid: process.pid },
    standing: null,
    ...{ processes_total: 0, streams_total: 0, error: null },
  };
  #nextAt = Number.NEGATIVE_INFINITY;
  /** When there was a reader last; null: nothing is kept. */
  #readAt: number | null = null;

  constructor(deps: ClusterWatchDeps) {
    this.#deps = deps;
  }

  /** Tells what was seen last at once, where that is not long ago, and from then on what comes. */
  add(reader: EventStream): void {
    this.#readers.add(reader);
    reader.gone.addEventListener('abort', () => this.#readers.delete(reader));
    if (this.#readAt !== null) reader.write(eventText('cluster', this.#told));
  }

  /** Follows it until the end. */
  async follow(over: AbortSignal): Promise<void> {
    const { clock, sight } = this.#deps;
    while (!over.aborted) {
      await clock.sleep(tickMs, over).catch(() => undefined);
      if (over.aborted) break;
      const now = clock.monotonic();
      if (this.#readers.size > 0) {
        this.#readAt = now;
        if (now >= this.#nextAt) void this.#look();
      } else if (this.#readAt !== null && now - this.#readAt > keptMs) {
        this.#readAt = null;
        sight.close();
      }
    }
    sight.close();
  }

  async #look(): Promise<void> {
    const { sight, clock, log } = this.#deps;
    const begunAt = clock.monotonic();
    // One at a time.
    this.#nextAt = Number.POSITIVE_INFINITY;
    try {
      this.#told = { ...this.#told, ...tellable(await sight.look()), at: clock.now(), error: null };
    } catch (error) {
      const { message, next } = asExportError(error, 'looking at the state in Kafka');
      this.#told = { ...this.#told, error: { message, next } };
      log.debug('cluster_status_failed', 'reading the cluster status failed', {
        error: message,
      });
    }
    const now = clock.monotonic();
    this.#nextAt = Math.max(begunAt + lookEveryMs, now + (now - begunAt) / lookShareMax);
    const text = eventText('cluster', this.#told);
    for (const reader of this.#readers) if (!reader.isBehind) reader.write(text);
  }
}

function tellable(statusView: ClusterStatus) {
  const { processes, streams } = statusView;
  return {
    processes_total: processes.length,
    streams_total: streams.length,
    standing: {
      ...statusView,
      processes: processes.slice(0, processesToldMax),
      streams: urgentFirst(streams).slice(0, streamsReportedMax),
    },
  };
}

// The cluster as a whole, for readers of one process's page. Invariants: Kafka is queried only while there are readers,
// rarely, and in a small share of the time; a slow Kafka delays nothing else, here or at shutdown.

import { hostname } from 'node:os';
import { asExportError, type Clock, type Log } from '../contracts/index.ts';
import { urgentFirst } from '../terminal/index.ts';
import type { ClusterSight, ClusterStatus } from './cluster-status.ts';
import { type EventStream, eventText } from './event-stream.ts';

/** Dependencies of a watch. */
export interface ClusterWatchDeps {
  readonly sight: ClusterSight;
  readonly clock: Clock;
  readonly log: Log;
}

/** The body of a `cluster` event. */
interface ReportedCluster {
  /** When it was seen, epoch milliseconds; null: not yet. */
  readonly at: number | null;
  /** The process that reports it. */
  readonly self: { readonly host: string; readonly pid: number };
  /** The status, cut to a readable number of processes and streams. */
  readonly status: ClusterStatus | null;
  readonly processes_total: number;
  readonly streams_total: number;
  /** Why the last look failed; the earlier status stays. */
  readonly error: { readonly message: string; readonly next: string } | null;
}

const tickMs = 500;
const lookEveryMs = 5_000;
const lookShareMax = 0.2;
/** A reader that returns within this time finds the data read from Kafka. */
const keptMs = 60_000;
const processesReportedMax = 100;
const streamsReportedMax = 50;

/** Looks while there are readers. */
export class ClusterWatch {
  readonly #deps: ClusterWatchDeps;
  readonly #readers = new Set<EventStream>();
  #reported: ReportedCluster = {
    at: null,
    self: { host: hostname(), pid: process.pid },
    status: null,
    ...{ processes_total: 0, streams_total: 0, error: null },
  };
  #nextAt = Number.NEGATIVE_INFINITY;
  /** When there last was a reader; null: no data is kept. */
  #readAt: number | null = null;

  constructor(deps: ClusterWatchDeps) {
    this.#deps = deps;
  }

  /** Sends the last status at once if it is recent, and every later one. */
  add(reader: EventStream): void {
    this.#readers.add(reader);
    reader.gone.addEventListener('abort', () => this.#readers.delete(reader));
    if (this.#readAt !== null) reader.write(eventText('cluster', this.#reported));
  }

  /** Runs until the end. */
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
    // One look at a time.
    this.#nextAt = Number.POSITIVE_INFINITY;
    try {
      this.#reported = {
        ...this.#reported,
        ...reportable(await sight.look()),
        at: clock.now(),
        error: null,
      };
    } catch (error) {
      const { message, next } = asExportError(error, 'looking at the state in Kafka');
      this.#reported = { ...this.#reported, error: { message, next } };
      log.debug('cluster_status_failed', 'reading the cluster status failed', {
        error: message,
      });
    }
    const now = clock.monotonic();
    this.#nextAt = Math.max(begunAt + lookEveryMs, now + (now - begunAt) / lookShareMax);
    const text = eventText('cluster', this.#reported);
    for (const reader of this.#readers) if (!reader.isBehind) reader.write(text);
  }
}

function reportable(statusView: ClusterStatus) {
  const { processes, streams } = statusView;
  return {
    processes_total: processes.length,
    streams_total: streams.length,
    status: {
      ...statusView,
      processes: processes.slice(0, processesReportedMax),
      streams: urgentFirst(streams).slice(0, streamsReportedMax),
    },
  };
}

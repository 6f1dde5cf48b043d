// Sends sluice's own log lines to an OpenTelemetry collector, in addition to stderr, through OpenTelemetry's
// LoggerProvider, BatchLogRecordProcessor and OTLP exporter. These drop lines that an unreachable collector does not
// accept, which is right for lines that are on stderr too, and wrong for events, which never use this path. Invariants:
// a slow, unreachable or rejecting collector costs the export nothing; lost lines are counted; errors of this file are
// logged to stderr only, and rarely, so no line about a failure can fail in turn.

import { Agent as HttpAgent } from 'node:http';
import type { LogRecordExporter } from '@opentelemetry/sdk-logs';
import type { ErrorDetails, Log, LogLevel, OtlpCollector } from '../contracts/index.ts';
import { refreshSecrets, tlsAgent } from '../tools/index.ts';
import { type LineHead, LinesLog, passOn, printable, reaches } from './log.ts';

/** Dependencies of the log. */
export interface CollectorLogSettings {
  readonly collector: OtlpCollector;
  /** Receives every line too, and alone the errors of this file. */
  readonly beside: Log;
  readonly level: LogLevel;
  readonly version: string;
  /** Identifies this process. */
  readonly instance: string;
}

/** An open log. */
export interface CollectorLog {
  readonly log: Log;
  /** Number of lines that the collector never received. */
  readonly lost: () => number;
  /** Sends the waiting lines within this time, and closes. Never rejects. */
  close(withinMs: number): Promise<void>;
}

/** Limit of waiting lines; a busy process writes some per second. */
const queueMax = 2_048;
const exportTimeoutMs = 10_000;
const reportEveryMs = 60_000;
/** OpenTelemetry's number for the first level of each range (logs data model, SeverityNumber). */
const severities = { debug: 5, info: 9, warn: 13, error: 17 } as const;

/** Opens the log; the packages are loaded only here. Sends nothing yet. */
export async function openCollectorLog(settings: CollectorLogSettings): Promise<CollectorLog> {
  const { collector, level, beside, version, instance } = settings;
  const [sdk, { OTLPLogExporter }, { resourceFromAttributes }] = await Promise.all([
    import('@opentelemetry/sdk-logs'),
    import('@opentelemetry/exporter-logs-otlp-http'),
    import('@opentelemetry/resources'),
  ]);
  const ledger = new Ledger(collector, beside);
  const exporter = new OTLPLogExporter({
    url: collector.url,
    timeoutMillis: exportTimeoutMs,
    // Read at each request, so a rotated secret takes effect.
    headers: async () =>
      Object.fromEntries(
        Object.entries(collector.headers).map(([name, secret]) => [name, secret.reveal()]),
      ),
    httpAgentOptions: () => agentFor(collector),
  });
  const processor = new sdk.BatchLogRecordProcessor({
    exporter: ledger.watching(exporter),
    maxQueueSize: queueMax,
    exportTimeoutMillis: exportTimeoutMs * 2,
  });
  const provider = new sdk.LoggerProvider({
    resource: resourceFromAttributes({
      'service.name': 'sluice',
      'service.version': version,
      'service.instance.id': instance,
    }),
    processors: [processor],
  });
  const logger = provider.getLogger('sluice', version);
  const emit = ({ level: at, event, text }: LineHead, fields: ErrorDetails) => {
    if (!reaches(at, level) || !ledger.takes()) return;
    const severity = { severityNumber: severities[at], severityText: at.toUpperCase() };
    const attributes = { event, ...printable(fields) };
    logger.emit({ ...severity, timestamp: Date.now(), eventName: event, body: text, attributes });
  };
  return {
    log: new LinesLog((head, fields) => {
      const whole = fields();
      passOn(beside, head, whole);
      emit(head, whole);
    }),
    lost: () => ledger.lost,
    async close(withinMs) {
      const late = Promise.withResolvers<void>();
      const timer = setTimeout(late.resolve, withinMs);
      await Promise.race([provider.shutdown().catch(() => undefined), late.promise]);
      clearTimeout(timer);
      ledger.end();
    },
  };
}

/** Counts lines accepted, sent and lost, and logs losses. */
class Ledger {
  readonly #origin: string;
  readonly #headers: OtlpCollector['headers'];
  readonly #beside: Log;
  /** Lines in the queue of the processor, and with the exporter. */
  #waiting = 0;
  #underWay = 0;
  #failing = false;
  #reportedMs = Number.NEGATIVE_INFINITY;
  lost = 0;

  constructor({ url, headers }: OtlpCollector, beside: Log) {
    this.#origin = new URL(url).origin;
    this.#headers = headers;
    this.#beside = beside;
  }

  /** Whether the queue has room for one more; the processor would drop it silently. */
  takes(): boolean {
    if (this.#waiting >= queueMax) {
      this.lost += 1;
      this.#report('more lines wait than are kept');
      return false;
    }
    this.#waiting += 1;
    return true;
  }

  watching(to: LogRecordExporter): LogRecordExporter {
    return {
      export: (records, done) => {
        this.#waiting -= records.length;
        this.#underWay += records.length;
        to.export(records, (result) => {
          this.#underWay -= records.length;
          if (result.code === 0) this.#went();
          else this.#failed(records.length, result.error?.message ?? 'it was refused');
          done(result);
        });
      },
      forceFlush: () => to.forceFlush?.() ?? Promise.resolve(),
      shutdown: () => to.shutdown(),
    };
  }

  /** Lines that have not arrived by now are lost. */
  end(): void {
    const left = this.#waiting + this.#underWay;
    if (left === 0) return;
    this.lost += left;
    this.#reportedMs = Number.NEGATIVE_INFINITY;
    this.#report('sluice ended before the collector accepted them');
  }

  #went(): void {
    if (!this.#failing) return;
    this.#failing = false;
    this.#beside.info('log_export_recovered', 'log lines reach the collector again', {
      collector: this.#origin,
      lost: this.lost,
    });
  }

  #failed(count: number, error: string): void {
    this.#failing = true;
    this.lost += count;
    // The collector may have refused a credential that a command prints.
    void refreshSecrets(this.#headers);
    this.#report(error);
  }

  #report(error: string): void {
    const nowMs = performance.now();
    if (nowMs - this.#reportedMs < reportEveryMs) return;
    this.#reportedMs = nowMs;
    this.#beside.warn(
      'log_export_failed',
      'log lines do not reach the collector; they are on stderr only',
      {
        collector: this.#origin,
        error,
        lost: this.lost,
      },
    );
  }
}

function agentFor({ url, tls }: OtlpCollector): HttpAgent {
  return url.startsWith('http:')
    ? new HttpAgent({ keepAlive: true })
    : tlsAgent({ min_version: 'TLSv1.2', ...tls }, { keepAlive: true });
}

// Pushes the metrics to an OpenTelemetry collector, as an alternative to scraping: OTLP/HTTP in JSON, POST /v1/metrics
// (https://opentelemetry.io/docs/specs/otlp/). Names and attributes are those of metrics.ts. Counters are cumulative
// since the start, so a failed push loses no count and is not repeated: the next one contains it. Invariant: a slow,
// unreachable or rejecting collector costs the export nothing.

import type { Clock, HttpClient, Log, OtlpCollector } from '../contracts/index.ts';
import { refreshSecrets } from '../tools/index.ts';
import type { Family } from './metrics.ts';

/** The collector of metrics. */
export interface Telemetry extends OtlpCollector {
  readonly everyMs: number;
  /** Identifies this process. */
  readonly instance: string;
  readonly http: HttpClient;
}

/** The source of the metrics. */
interface Numbers {
  /** Epoch milliseconds. */
  readonly startedAt: number;
  families(): readonly Family[];
}

const timeoutMs = 10_000;
const answerBytesMax = 64 * 1024;

/** Pushes until `over` aborts. Never rejects: a failure is logged once, and so is its end. */
export async function pushMetrics(
  { url, headers, tls, everyMs, http, instance }: Telemetry,
  { board, clock, log }: { readonly board: Numbers; readonly clock: Clock; readonly log: Log },
  over: AbortSignal,
): Promise<void> {
  let failing = false;
  const push = async () => {
    const body = JSON.stringify(requestOf(board, { instance, now: clock.now() }));
    const sent = Object.entries(headers).map(([name, secret]) => [name, secret.reveal()]);
    const { status } = await http.request(
      {
        ...{ method: 'POST', url, body, timeoutMs, bodyBytesMax: answerBytesMax },
        headers: { 'content-type': 'application/json', ...Object.fromEntries(sent) },
        ...(tls === undefined ? {} : { tls }),
      },
      over,
    );
    if (status < 200 || status > 299) throw new Error(`it answered ${status}`);
  };
  while (!over.aborted) {
    await clock.sleep(everyMs, over).catch(() => undefined);
    if (over.aborted) return;
    try {
      await push();
      if (failing) log.info('metrics_push_recovered', 'metrics are pushed again');
      failing = false;
    } catch (error) {
      if (over.aborted) return;
      // The collector may have refused a credential that a command prints.
      void refreshSecrets(headers);
      const reported = { url: new URL(url).origin, error: String(error) };
      if (!failing) log.warn('metrics_push_failed', 'metrics push failed; retrying', reported);
      failing = true;
    }
  }
}

/** An ExportMetricsServiceRequest in OTLP/JSON (opentelemetry-proto, collector/metrics/v1). */
function requestOf(board: Numbers, { instance, now }: { instance: string; now: number }) {
  const resource = { 'service.name': 'sluice', 'service.instance.id': instance };
  const families = board.families().filter(({ points }) => points.length > 0);
  const metrics = families.map(({ name, kind, help, points }) => {
    const dataPoints = points.map(({ labels, value }) => ({
      attributes: attributesOf(labels),
      startTimeUnixNano: nanoseconds(board.startedAt),
      timeUnixNano: nanoseconds(now),
      asDouble: value,
    }));
    return {
      ...{ name, description: help, unit: '' },
      ...(kind === 'gauge'
        ? { gauge: { dataPoints } }
        : { sum: { dataPoints, aggregationTemporality: cumulative, isMonotonic: true } }),
    };
  });
  return {
    resourceMetrics: [
      {
        resource: { attributes: attributesOf(resource) },
        scopeMetrics: [{ scope: { name: 'sluice' }, metrics }],
      },
    ],
  };
}

/** AGGREGATION_TEMPORALITY_CUMULATIVE. */
const cumulative = 2;

function attributesOf(labels: Readonly<Record<string, string>>) {
  return Object.entries(labels).map(([key, value]) => ({
    key,
    value: { stringValue: value.toWellFormed() },
  }));
}

/** OTLP/JSON writes 64-bit integers as text. */
function nanoseconds(ms: number): string {
  return `${Math.trunc(ms)}000000`;
}

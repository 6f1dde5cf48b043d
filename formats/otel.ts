// The `otel` format: OpenTelemetry log records in OTLP. Many events become one ExportLogsServiceRequest, which is what the
// OTLP sink sends; one event alone becomes a request with one record, which as JSON is a line of an OTLP file. Protobuf
// is written in one pass (otel-protobuf.ts), JSON by the OpenTelemetry packages, which take a tenth of a second to load
// and are of no use to others, so they are loaded when such a format is made.

import { createRequire } from 'node:module';
import type { HrTime } from '@opentelemetry/api';
import type { Resource } from '@opentelemetry/resources';
import type { ReadableLogRecord } from '@opentelemetry/sdk-logs';
import { z } from 'zod';
import { defineFormat } from '../src/contracts/definition.ts';
import type { Event } from '../src/contracts/event.ts';
import { jsonText } from './json-text.ts';
import { requestWriter } from './otel-protobuf.ts';
import {
  attributesOf,
  eventNames,
  happenedMs,
  observedMs,
  severityNumberOf,
} from './otel-record.ts';
import { anyValue } from './otel-value.ts';
import { textOf } from './parts.ts';

/** The settings of `otel`. */
const otelFields = {
  encoding: z
    .enum(['protobuf', 'json'])
    .default('protobuf')
    .describe('OTLP in protobuf, or in JSON at twice the size'),
  body: z
    .enum(['map', 'json'])
    .default('map')
    .describe('the OCSF event in the body as a map of values, or as one JSON text'),
  raw_data: z
    .boolean()
    .default(false)
    .describe('adds the record as upstream sent it, as `log.record.original`'),
  resource: z
    .record(z.string().min(1), z.string())
    .default({})
    .describe('resource attributes besides `service.name: sluice`'),
};

/** What `otelFields` gives once parsed. */
type OtelSettings = z.output<z.ZodObject<typeof otelFields>>;

/** The `otel` format. */
export const otel = defineFormat({
  type: 'otel',
  summary:
    'OpenTelemetry log records in OTLP: one export request for a batch, or one record a line.',
  fields: otelFields,
  make(settings) {
    const binary = settings.encoding === 'protobuf';
    const resource = { 'service.name': 'sluice', ...settings.resource };
    const whole = { ...settings, resource };
    const serialise = binary ? requestWriter(whole) : jsonWriter(whole);
    const contentType = binary ? 'application/x-protobuf' : 'application/json';
    return {
      name: 'otel',
      contentType,
      binary,
      encode: (event: Event) => serialise([event]),
      document: { contentType, encode: serialise },
    };
  },
});

function jsonWriter(settings: OtelSettings): (events: readonly Event[]) => Uint8Array {
  const require = createRequire(import.meta.url);
  // What require returns has no type of its own; the packages' declarations are the type.
  const transformer: typeof import('@opentelemetry/otlp-transformer') = require('@opentelemetry/otlp-transformer');
  const resources: typeof import('@opentelemetry/resources') = require('@opentelemetry/resources');
  const resource = resources.resourceFromAttributes(settings.resource);
  const recordOf = recordMaker(settings, resource);
  const empty = new Uint8Array(0);
  return (events) => transformer.JsonLogsSerializer.serializeRequest(events.map(recordOf)) ?? empty;
}

/** Makes records that share one resource and one scope, since serialisers group records by the objects' identity. */
function recordMaker(
  settings: OtelSettings,
  resource: Resource,
): (event: Event) => ReadableLogRecord {
  const instrumentationScope = { name: 'sluice' };
  const bodyOf =
    settings.body === 'map'
      ? (event: Event) => anyValue(event.ocsf)
      : (event: Event) => anyValue(jsonText(event.ocsf));
  const eventNameOf = eventNames();
  return (event) => {
    const { ocsf } = event;
    return {
      hrTime: hrTime(happenedMs(event)),
      hrTimeObserved: hrTime(observedMs(event)),
      severityNumber: severityNumberOf(event),
      severityText: textOf(ocsf.severity)?.toWellFormed() ?? '',
      eventName: eventNameOf(ocsf),
      body: bodyOf(event),
      attributes: attributesOf(event, settings.raw_data),
      droppedAttributesCount: 0,
      resource,
      instrumentationScope,
    };
  };
}

/** Seconds and nanoseconds, each exact: nanoseconds since 1970 are beyond what one number holds. */
function hrTime(timeMs: number): HrTime {
  const seconds = Math.floor(timeMs / 1000);
  return [seconds, (timeMs - seconds * 1000) * 1_000_000];
}

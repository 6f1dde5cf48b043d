// The `otel` format: OpenTelemetry log records in OTLP, made and serialised by the OpenTelemetry packages. Many events
// become one ExportLogsServiceRequest, which is what the OTLP sink sends; one event alone becomes a request with one
// record, which as JSON is a line of an OTLP file. The packages take a tenth of a second to load and are of no use to
// who sends no OTLP, so they are loaded when such a format is made.

import { createRequire } from 'node:module';
import type { Resource } from '@opentelemetry/resources';
import type { ReadableLogRecord } from '@opentelemetry/sdk-logs';
import { z } from 'zod';
import { defineFormat } from '../src/contracts/definition.ts';
import type { Event } from '../src/contracts/event.ts';
import { jsonText } from './json-text.ts';
import { attributesOf, happenedAt, observedAt, severityNumberOf } from './otel-record.ts';
import { anyValue } from './otel-value.ts';
import { classNameOf, textOf } from './parts.ts';

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
    const serialise = serialiserOf(settings);
    const binary = settings.encoding === 'protobuf';
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

function serialiserOf(settings: OtelSettings): (events: readonly Event[]) => Uint8Array {
  const require = createRequire(import.meta.url);
  // What require returns has no type of its own; the packages' declarations are the type.
  const transformer: typeof import('@opentelemetry/otlp-transformer') = require('@opentelemetry/otlp-transformer');
  const resources: typeof import('@opentelemetry/resources') = require('@opentelemetry/resources');
  const serializer =
    settings.encoding === 'protobuf'
      ? transformer.ProtobufLogsSerializer
      : transformer.JsonLogsSerializer;
  const resource = resources.resourceFromAttributes({
    'service.name': 'sluice',
    ...settings.resource,
  });
  const recordOf = recordMaker(settings, resource);
  const empty = new Uint8Array(0);
  return (events) => serializer.serializeRequest(events.map(recordOf)) ?? empty;
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
  let className: unknown;
  let eventName = 'ocsf.event';
  return (event) => {
    const { ocsf } = event;
    if (ocsf.class_name !== className) {
      className = ocsf.class_name;
      eventName = `ocsf.${classNameOf(className) ?? 'event'}`;
    }
    return {
      hrTime: happenedAt(event),
      hrTimeObserved: observedAt(event),
      severityNumber: severityNumberOf(event),
      severityText: textOf(ocsf.severity)?.toWellFormed() ?? '',
      eventName,
      body: bodyOf(event),
      attributes: attributesOf(event, settings.raw_data),
      droppedAttributesCount: 0,
      resource,
      instrumentationScope,
    };
  };
}

// The `otel` format: OpenTelemetry log records in OTLP. Many events become one
// ExportLogsServiceRequest, which the OTLP sink sends; one event alone becomes a request with one
// record, which as JSON is a line of an OTLP file. otel-record.ts has a record's content,
// otel-protobuf.ts and otel-json.ts its encoding.

import { z } from 'zod';
import { defineFormat } from '../src/contracts/config.ts';
import type { DocumentForm, Event } from '../src/contracts/index.ts';
import { jsonDocument } from './otel-json.ts';
import { protobufDocument } from './otel-protobuf.ts';

/** The settings of `otel`. */
const otelFields = {
  encoding: z
    .enum(['protobuf', 'json'])
    .default('protobuf')
    .describe('OTLP in protobuf, or in JSON at twice the size'),
  body: z
    .enum(['map', 'json', 'message'])
    .default('map')
    .describe(
      'the OCSF event as a map of values, or as one JSON text; `message`: a sentence about the event, for back ends that do not show a map, and the event in the attribute `ocsf`',
    ),
  raw_data: z
    .boolean()
    .default(false)
    .describe('adds the original record of upstream, as `log.record.original`'),
  resource: z
    .record(z.string().min(1), z.string())
    .default({})
    .describe('resource attributes in addition to `service.name: sluice`'),
};

/** The `otel` format. */
export const otel = defineFormat({
  type: 'otel',
  shape: 'otlp',
  summary:
    'OpenTelemetry log records in OTLP: one export request for a batch, or one record a line.',
  fields: otelFields,
  make(settings) {
    const resource = { 'service.name': 'sluice', ...settings.resource };
    const whole = { ...settings, resource };
    const document =
      settings.encoding === 'protobuf' ? protobufDocument(whole) : jsonDocument(whole);
    return {
      name: 'otel',
      contentType: document.contentType,
      encode: (event: Event) => alone(document, event),
      document,
    };
  },
});

function alone(document: DocumentForm, event: Event): Uint8Array {
  const record = document.encode(event);
  const bytes = typeof record === 'string' ? Buffer.from(record) : record;
  const records = {
    bytes,
    starts: Uint32Array.of(0),
    ends: Uint32Array.of(bytes.length),
    length: 1,
  };
  return document.join(records, { from: 0, to: 1 });
}

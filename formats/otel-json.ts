// Log records as an ExportLogsServiceRequest in JSON (OTLP specification, "JSON Protobuf
// Encoding"), by the OpenTelemetry packages. They need a tenth of a second to load, so they are
// loaded only when this format is created. They write whole requests only, so a record is cut out
// of a request of its own: the surrounding bytes are the same for all records, because all have one
// resource and one scope.

import { createRequire } from 'node:module';
import type { HrTime } from '@opentelemetry/api';
import type { Resource } from '@opentelemetry/resources';
import type { ReadableLogRecord } from '@opentelemetry/sdk-logs';
import type { DocumentForm, Event } from '../src/contracts/index.ts';
import { jsonText } from './json-text.ts';
import type { OtlpRequestSettings } from './otel-protobuf.ts';
import {
  attributesOf,
  eventNames,
  happenedMs,
  type OtelBodyForm,
  observedMs,
  severityNumberOf,
} from './otel-record.ts';
import { anyValue } from './otel-value.ts';
import { textOf } from './parts.ts';
import { wholeSentence } from './sentence.ts';

const comma = 0x2c;

/** Creates the writer of records and of the requests around them. */
export function jsonDocument(settings: OtlpRequestSettings): DocumentForm {
  const require = createRequire(import.meta.url);
  // The result of require has no type of its own; the packages' declarations are the type.
  const transformer: typeof import('@opentelemetry/otlp-transformer') = require('@opentelemetry/otlp-transformer');
  const resources: typeof import('@opentelemetry/resources') = require('@opentelemetry/resources');
  const resource = resources.resourceFromAttributes(settings.resource);
  const recordOf = recordMaker(settings, resource);
  const requestOf = (records: ReadableLogRecord[]) =>
    transformer.JsonLogsSerializer.serializeRequest(records) ?? new Uint8Array(0);
  const { before, after } = aroundRecords(requestOf, resource);

  return {
    contentType: 'application/json',
    encode(event) {
      const whole = requestOf([recordOf(event)]);
      return whole.subarray(before.length, whole.length - after.length);
    },
    join({ bytes, starts, ends }, { from, to }) {
      if (to <= from) return requestOf([]);
      const parts: Uint8Array[] = [before];
      for (let i = from; i < to; i += 1) {
        if (i > from) parts.push(Buffer.of(comma));
        parts.push(bytes.subarray(starts[i], ends[i]));
      }
      return Buffer.concat([...parts, after]);
    },
  };
}

/** The bytes before and after the records, derived from requests of one and of two records. */
function aroundRecords(
  requestOf: (records: ReadableLogRecord[]) => Uint8Array,
  resource: Resource,
): { readonly before: Uint8Array; readonly after: Uint8Array } {
  const record: ReadableLogRecord = {
    hrTime: [0, 0],
    hrTimeObserved: [0, 0],
    attributes: {},
    droppedAttributesCount: 0,
    resource,
    instrumentationScope,
  };
  const one = Buffer.from(requestOf([record]));
  const opening = '"logRecords":[';
  const start = one.indexOf(opening) + opening.length;
  const length = requestOf([record, record]).length - one.length - 1;
  return { before: one.subarray(0, start), after: one.subarray(start + length) };
}

function bodyOf(event: Event, body: OtelBodyForm): unknown {
  if (body === 'message') return wholeSentence(event);
  return body === 'json' ? jsonText(event.ocsf) : event.ocsf;
}

const instrumentationScope = { name: 'sluice' };

/** Creates records that share one resource and one scope: serialisers group by identity. */
function recordMaker(
  settings: OtlpRequestSettings,
  resource: Resource,
): (event: Event) => ReadableLogRecord {
  const eventNameOf = eventNames();
  return (event) => {
    const { ocsf } = event;
    const attributes = attributesOf(event, settings.raw_data);
    if (settings.body === 'message') attributes.ocsf = anyValue(ocsf);
    return {
      hrTime: hrTime(happenedMs(event)),
      hrTimeObserved: hrTime(observedMs(event)),
      severityNumber: severityNumberOf(event),
      severityText: textOf(ocsf.severity)?.toWellFormed() ?? '',
      eventName: eventNameOf(ocsf),
      body: anyValue(bodyOf(event, settings.body)),
      attributes,
      droppedAttributesCount: 0,
      resource,
      instrumentationScope,
    };
  };
}

/** Seconds and nanoseconds, each exact: nanoseconds since 1970 exceed the precision of a number. */
function hrTime(timeMs: number): HrTime {
  const seconds = Math.floor(timeMs / 1000);
  return [seconds, (timeMs - seconds * 1000) * 1_000_000];
}

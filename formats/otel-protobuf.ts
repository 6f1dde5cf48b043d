// Log records as an ExportLogsServiceRequest in protobuf (opentelemetry-proto 1.x,
// collector/logs/v1 and logs/v1). Each record is written in one pass, with its tag and length
// within a request; a request adds the bytes around these records, which all have the same resource
// and scope. The OpenTelemetry packages, which build a tree of every value first, took nine times
// as long for the events of `npm run bench` (53 against 6 us an event). Values that an AnyValue
// cannot hold become text, as in otel-value.ts.

import type { DocumentForm, EncodedLines, Event, PieceCopying } from '../src/contracts/index.ts';
import { jsonText } from './json-text.ts';
import {
  attributesOf,
  eventNames,
  happenedMs,
  looksOf,
  type OtelBodyForm,
  observedMs,
  severityNumberOf,
} from './otel-record.ts';
import { textOf } from './parts.ts';
import { type FieldWriter, ProtobufWriter, varintBytes } from './protobuf.ts';
import { ProtobufPieces } from './protobuf-pieces.ts';
import { wholeSentence } from './sentence.ts';

/** The parts of a request other than its records. */
export interface OtlpRequestSettings {
  readonly resource: Readonly<Record<string, string>>;
  readonly body: OtelBodyForm;
  readonly raw_data: boolean;
}

// Tags: the field's number times eight, plus the wire type (0 varint, 1 fixed64, 2
// length-delimited).
const request = { resourceLogs: 0x0a };
const resourceLogs = { resource: 0x0a, scopeLogs: 0x12 };
const resource = { attributes: 0x0a };
const scopeLogs = { scope: 0x0a, logRecords: 0x12 };
const scope = { name: 0x0a };
const record = {
  time: 0x09,
  severityNumber: 0x10,
  severityText: 0x1a,
  body: 0x2a,
  attributes: 0x32,
  observed: 0x59,
  eventName: 0x62,
};
const keyValue = { key: 0x0a, value: 0x12 };
const any = {
  text: 0x0a,
  bool: 0x10,
  int: 0x18,
  double: 0x21,
  array: 0x2a,
  map: 0x32,
  bytes: 0x3a,
};
const list = { values: 0x0a };

// Readers recurse; a value below this depth is written as its JSON text, so that nothing is lost.
const depthMax = 32;
const firstBytes = 4096;

/** Creates the writer of records and of the requests around them. */
export function protobufDocument(settings: OtlpRequestSettings): DocumentForm {
  const writer = new ProtobufWriter(firstBytes);
  const before = resourceOf(settings.resource);
  const writeRecord = recordWriter(settings);
  return {
    contentType: 'application/x-protobuf',
    encode(event) {
      writer.clear();
      writeRecord(writer, event);
      return writer.written();
    },
    copying: copyingOf(settings),
    join: (records, range) => requestOf(before, records, range),
  };
}

function copyingOf(settings: OtlpRequestSettings): PieceCopying {
  const writeRecord = recordWriter(settings);
  return {
    form: 'protobuf',
    lineBytesMax: Number.POSITIVE_INFINITY,
    looks: (event) => looksOf(event, settings.body),
    write(event) {
      const fields = new ProtobufPieces();
      writeRecord(fields, event);
      return fields.pieces;
    },
  };
}

/** Creates the writer of a record within a request. */
function recordWriter({
  body,
  raw_data,
}: OtlpRequestSettings): (to: FieldWriter, event: Event) => void {
  const eventNameOf = eventNames();
  return (to, event) => {
    const { ocsf } = event;
    to.byte(scopeLogs.logRecords);
    const start = to.begin();
    to.byte(record.time);
    to.nanos(happenedMs(event));
    const severity = severityNumberOf(event);
    if (severity !== 0) {
      to.byte(record.severityNumber);
      to.varint(severity);
    }
    writeText(to, record.severityText, textOf(ocsf.severity) ?? '');
    to.byte(record.body);
    if (body === 'json') writeJson(to, ocsf);
    else writeAny(to, body === 'map' ? ocsf : wholeSentence(event), 0);
    writeMembers(to, record.attributes, attributesOf(event, raw_data), 0);
    if (body === 'message') writeMembers(to, record.attributes, { ocsf }, 0);
    to.byte(record.observed);
    to.nanos(observedMs(event));
    writeText(to, record.eventName, eventNameOf(ocsf));
    to.end(start);
  };
}

/** The request with these records; without records it is empty. */
function requestOf(
  before: Uint8Array,
  { bytes, starts, ends }: EncodedLines,
  { from, to }: { readonly from: number; readonly to: number },
): Uint8Array {
  if (to <= from) return new Uint8Array(0);
  let scoped = sluiceScope.length;
  for (let i = from; i < to; i += 1) scoped += (ends[i] ?? 0) - (starts[i] ?? 0);
  const logs = before.length + 1 + varintBytes(scoped) + scoped;
  const writer = new ProtobufWriter(1 + varintBytes(logs) + logs);
  writer.byte(request.resourceLogs);
  writer.varint(logs);
  writer.raw(before);
  writer.byte(resourceLogs.scopeLogs);
  writer.varint(scoped);
  writer.raw(sluiceScope);
  const source = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  for (let i = from; i < to; i += 1) writer.part(source, starts[i] ?? 0, ends[i] ?? 0);
  return writer.written();
}

function resourceOf(attributes: Readonly<Record<string, string>>): Uint8Array {
  const writer = new ProtobufWriter(0);
  writer.byte(resourceLogs.resource);
  const start = writer.begin();
  writeMembers(writer, resource.attributes, attributes, 0);
  writer.end(start);
  return writer.written();
}

const sluiceScope = (() => {
  const writer = new ProtobufWriter(0);
  writer.byte(scopeLogs.scope);
  const start = writer.begin();
  writeText(writer, scope.name, 'sluice');
  writer.end(start);
  return writer.written();
})();

/** Readers treat an empty string as a missing one. */
function writeText(writer: FieldWriter, tag: number, text: string): void {
  if (text === '') return;
  writer.byte(tag);
  writer.string(text);
}

/** The members of an object as KeyValues, each under this tag. */
function writeMembers(writer: FieldWriter, tag: number, members: object, depth: number): void {
  const object = members as Readonly<Record<string, unknown>>;
  for (const key in object) {
    const value = object[key];
    if (value === undefined) continue;
    writer.byte(tag);
    const start = writer.begin();
    writer.byte(keyValue.key);
    writer.string(key);
    writer.byte(keyValue.value);
    writeAny(writer, value, depth);
    writer.end(start);
  }
}

/** An AnyValue with its length. */
function writeAny(writer: FieldWriter, value: unknown, depth: number): void {
  const start = writer.begin();
  switch (typeof value) {
    case 'string':
      writer.byte(any.text);
      writer.string(value);
      break;
    case 'number':
      writeNumber(writer, value);
      break;
    case 'boolean':
      writer.byte(any.bool);
      writer.byte(value ? 1 : 0);
      break;
    case 'bigint':
      writer.byte(any.text);
      writer.string(value.toString());
      break;
    case 'object':
      if (value !== null) writeObject(writer, value, depth);
      break;
    case 'undefined':
    case 'function':
    case 'symbol':
      break;
  }
  writer.end(start);
}

/** Integers beyond 2^53 have lost digits already, and OTLP cannot hold those beyond 2^63. */
function writeNumber(writer: FieldWriter, value: number): void {
  if (Number.isSafeInteger(value) || (Number.isFinite(value) && !Number.isInteger(value))) {
    writer.number(value, any);
  } else {
    writer.byte(any.text);
    writer.string(String(value));
  }
}

/** An AnyValue of JSON text, with its length. */
function writeJson(writer: FieldWriter, value: unknown): void {
  const start = writer.begin();
  writer.byte(any.text);
  writer.json(jsonText(value));
  writer.end(start);
}

function writeObject(writer: FieldWriter, value: object, depth: number): void {
  if (value instanceof Uint8Array) {
    writer.byte(any.bytes);
    const start = writer.begin();
    writer.raw(value);
    writer.end(start);
    return;
  }
  if (value instanceof Date || depth >= depthMax) {
    writer.byte(any.text);
    if (value instanceof Date) writer.string(dateText(value));
    else writer.json(jsonText(value));
    return;
  }
  writer.byte(Array.isArray(value) ? any.array : any.map);
  const start = writer.begin();
  if (Array.isArray(value)) {
    for (const item of value) {
      writer.byte(list.values);
      writeAny(writer, item, depth + 1);
    }
  } else writeMembers(writer, list.values, value, depth + 1);
  writer.end(start);
}

function dateText(date: Date): string {
  return Number.isNaN(date.getTime()) ? '' : date.toISOString();
}

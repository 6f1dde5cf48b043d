// The OTLP receiver's own decoder reads the output of another implementation, its tables are those of the standard, and
// it responds as scripted.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { SeverityNumber } from '@opentelemetry/api';
import { JsonLogsSerializer, ProtobufLogsSerializer } from '@opentelemetry/otlp-transformer';
import { resourceFromAttributes } from '@opentelemetry/resources';
import type { ReadableLogRecord } from '@opentelemetry/sdk-logs';
import { request } from 'undici';
import { describe, expect, test } from 'vitest';
import { decodeOtlpJson } from './otlp-json.ts';
import { decodeProtobuf } from './otlp-protobuf.ts';
import { type OtlpReceiver, startOtlpReceiver } from './otlp-receiver.ts';
import { recordsOf } from './otlp-records.ts';
import { type Field, isMessageName, type MessageName, otlpMessages } from './otlp-schema.ts';
import { describeWithShared } from './shared.ts';

const record: ReadableLogRecord = {
  hrTime: [1_767_323_045, 123_456_789],
  hrTimeObserved: [1_767_323_046, 1],
  severityNumber: SeverityNumber.WARN,
  severityText: 'warning',
  eventName: 'rule.changed',
  body: { text: 'ü\n', list: [1, 1.5, true, 'x'], nothing: null, bytes: new Uint8Array([1, 2]) },
  attributes: { 'log.record.uid': 'u-1', negative: -5 },
  resource: resourceFromAttributes({ 'service.name': 'sluice' }),
  instrumentationScope: { name: 'audit', version: '1.0' },
  droppedAttributesCount: 3,
};

const expected = {
  resource: { 'service.name': 'sluice' },
  scope: { name: 'audit', version: '1.0', attributes: {} },
  timeUnixNano: 1_767_323_045_123_456_789n,
  observedTimeUnixNano: 1_767_323_046_000_000_001n,
  severityNumber: 13,
  severityText: 'warning',
  body: {
    text: 'ü\n',
    list: [1n, 1.5, true, 'x'],
    nothing: null,
    bytes: new Uint8Array([1, 2]),
  },
  attributes: { 'log.record.uid': 'u-1', negative: -5n },
  droppedAttributesCount: 3,
  flags: 0,
  traceId: '',
  spanId: '',
  eventName: 'rule.changed',
};

const formats = [
  { type: 'application/x-protobuf', serializer: ProtobufLogsSerializer },
  { type: 'application/json', serializer: JsonLogsSerializer },
];

function post(receiver: OtlpReceiver, body: Uint8Array | string, type = 'application/x-protobuf') {
  return request(receiver.url, { method: 'POST', headers: { 'content-type': type }, body });
}

function serialised(): Uint8Array {
  return ProtobufLogsSerializer.serializeRequest([record]) ?? new Uint8Array();
}

describe('startOtlpReceiver', () => {
  test.for(formats)('decodes the output of the OpenTelemetry exporter as $type', async (format) => {
    const receiver = await startOtlpReceiver();
    const body = format.serializer.serializeRequest([record, record]) ?? '';
    const headers = { 'content-type': format.type, 'content-encoding': 'gzip' };

    const response = await request(receiver.url, { method: 'POST', headers, body: gzipSync(body) });

    expect(response.statusCode).toBe(200);
    expect(receiver.faults).toEqual([]);
    const plain = receiver.records().map((it) => withPlainBytes(it));
    expect(plain).toEqual([expected, expected]);
  });

  test.for(formats)('reports a partial success as $type', async ({ type, serializer }) => {
    const receiver = await startOtlpReceiver();
    receiver.answer({ answer: 'partly', rejected: 300, message: 'too old: ü' });

    const response = await post(receiver, serializer.serializeRequest([record]) ?? '', type);

    const answer = serializer.deserializeResponse(
      new Uint8Array(await response.body.arrayBuffer()),
    );
    expect(Number(answer.partialSuccess?.rejectedLogRecords)).toBe(300);
    expect(answer.partialSuccess?.errorMessage).toBe('too old: ü');
  });

  test('lists records of accepted requests only, and every request', async () => {
    const receiver = await startOtlpReceiver();
    const headers = { 'retry-after': '1' };
    receiver.answer(({ number }) =>
      number === 1 ? { answer: 'reply', status: 429, headers } : { answer: 'accept' },
    );

    const statuses = [await post(receiver, serialised()), await post(receiver, serialised())];

    expect(statuses.map((it) => it.statusCode)).toEqual([429, 200]);
    expect(receiver.records()).toHaveLength(1);
    expect(receiver.requests.map((it) => it.records.length)).toEqual([1, 1]);
  });

  const wrong = [
    { why: 'an unknown field', body: '{"resource_logs":[]}', fault: 'has no field resource_logs' },
    {
      why: 'an attribute that occurs twice',
      body: '{"resourceLogs":[{"resource":{"attributes":[{"key":"a"},{"key":"a"}]}}]}',
      fault: 'the attribute a occurs twice',
    },
    {
      why: 'a time that is no integer',
      body: '{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"timeUnixNano":"now"}]}]}]}',
      fault: 'time_unix_nano is no fixed64',
    },
  ];
  test.for(wrong)('refuses $why with 400 and says so', async ({ body, fault }) => {
    const receiver = await startOtlpReceiver();

    const response = await post(receiver, body, 'application/json');

    expect(response.statusCode).toBe(400);
    expect(receiver.faults).toEqual([expect.stringContaining(fault)]);
    expect(receiver.records()).toEqual([]);
  });

  test('refuses protobuf that ends in the middle', async () => {
    const receiver = await startOtlpReceiver();

    const response = await post(receiver, serialised().subarray(0, 40));

    expect(response.statusCode).toBe(400);
    expect(receiver.faults).toEqual(['the message ends inside a field']);
  });
});

// Buffers are Uint8Arrays, which `toEqual` treats as different from plain ones.
function withPlainBytes(value: unknown): unknown {
  if (value instanceof Uint8Array) return new Uint8Array(value);
  if (Array.isArray(value)) return value.map(withPlainBytes);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, it]) => [key, withPlainBytes(it)]));
}

describeWithShared('OTLP decoding', ['data', 'vectors', 'otlp'], (folder) => {
  test('has the fields of the .proto files, all of them', () => {
    const protos = ['collector/logs/v1/logs_service', 'logs/v1/logs'].concat(
      'common/v1/common',
      'resource/v1/resource',
    );
    const text = protos
      .map((name) => readFileSync(join(folder, `opentelemetry/proto/${name}.proto`), 'utf8'))
      .join('\n');

    const names = Object.keys(otlpMessages).filter((name) => isMessageName(name as MessageName));
    for (const name of names) {
      expect({ [name]: fieldsOf(text, name) }).toEqual({
        [name]: byNumber(otlpMessages[name as MessageName]),
      });
    }
  });

  test("reads the standard's example of a request", () => {
    const json: unknown = JSON.parse(readFileSync(join(folder, 'logs.json'), 'utf8'));

    const records = recordsOf(decodeOtlpJson('ExportLogsServiceRequest', json));

    expect(records[0]).toMatchObject({
      timeUnixNano: 1_544_712_660_300_000_000n,
      traceId: '5b8efff798038103d269b633813fc60c',
      spanId: 'eee19b7ec3c1b174',
      body: 'Example log record',
      resource: { 'service.name': 'my.service' },
    });
  });
});

function byNumber(fields: readonly Field[]): readonly Field[] {
  return fields.toSorted((a, b) => a.number - b.number);
}

function fieldsOf(proto: string, message: string): readonly Field[] {
  const withoutComments = proto.replace(/\/\/.*|\/\*[\s\S]*?\*\//g, '');
  const start = withoutComments.indexOf(`message ${message} {`);
  const end = withoutComments.indexOf('\n}', start);
  const fields = withoutComments
    .slice(start, end)
    .matchAll(/^\s*(repeated )?([\w.]+) (\w+) = (\d+)(?: \[.*\])?;/gm);
  return byNumber(
    [...fields].map(([, repeated, type = '', name = '', number]) => ({
      number: Number(number),
      name,
      type: (type.split('.').at(-1) ?? '') as Field['type'], // compared with the tables, as text
      repeated: repeated !== undefined,
    })),
  );
}

test('decodeProtobuf refuses a field with the wrong wire type', () => {
  const resourceLogsAsNumber = Buffer.from([0x08, 0x01]);

  expect(() => decodeProtobuf('ExportLogsServiceRequest', resourceLogsAsNumber)).toThrow(
    'ExportLogsServiceRequest.resource_logs has wire type 0, not 2',
  );
});

// Reading an OTLP receiver's answers. OpenTelemetry's own deserialiser is the oracle for whatever it can read; what it
// takes silently for a success (a web page, a cut message) must not pass here.

import { ProtobufLogsSerializer } from '@opentelemetry/otlp-transformer';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  readExportLogsAnswer,
  readStatusMessage,
} from '../../../../connectors/sinks/otlp/answer.ts';
import { encodePartialSuccess } from '../../../support/otlp-protobuf.ts';

const protobuf = 'application/x-protobuf';
const answer = (contentType: string, body: string | Uint8Array) => ({
  status: 200,
  headers: { 'content-type': contentType },
  body: typeof body === 'string' ? new TextEncoder().encode(body) : body,
});

test('readExportLogsAnswer agrees with OpenTelemetry', () => {
  fc.assert(
    fc.property(fc.nat(), fc.string({ maxLength: 40 }), (rejected, message) => {
      const body = encodePartialSuccess(rejected, message);

      const ours = readExportLogsAnswer(answer(protobuf, body));

      const theirs = ProtobufLogsSerializer.deserializeResponse(body)?.partialSuccess;
      expect(ours?.rejected).toBe(theirs?.rejectedLogRecords ?? 0);
      expect(ours?.message).toBe((theirs?.errorMessage ?? '').replace(/\p{Cc}/gu, ' ').trim());
    }),
  );
});

test('readExportLogsAnswer is total, and takes no answer for a success that OpenTelemetry cannot read', () => {
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 1, maxLength: 40 }), (body) => {
      const ours = readExportLogsAnswer(answer(protobuf, body));

      if (ours !== null)
        expect(() => ProtobufLogsSerializer.deserializeResponse(body)).not.toThrow();
    }),
    // A tag beyond 32 bits, of which other readers see the lower part.
    { examples: [[Uint8Array.from([213, 128, 128, 128, 128, 128, 128, 16, 0, 0, 0, 0])]] },
  );
});

describe('readExportLogsAnswer takes as all records taken', () => {
  test.each([
    ['an empty protobuf', protobuf, ''],
    ['an empty body without a type', '', ''],
    ['an empty JSON object', 'application/json', '{}'],
    ['JSON with a charset', 'application/json; charset=utf-8', '{"partialSuccess":{}}'],
    ['JSON null', 'application/json', '{"partialSuccess":null}'],
    ['a field of a later version', protobuf, new Uint8Array([0x12, 0x01, 0x41, 0x18, 0x05])],
    [
      'fixed-width fields',
      protobuf,
      new Uint8Array([0x19, 1, 2, 3, 4, 5, 6, 7, 8, 0x25, 1, 2, 3, 4]),
    ],
    ['a negative number', 'application/json', '{"partialSuccess":{"rejectedLogRecords":"-3"}}'],
  ])('%s', (_name, type, body) => {
    expect(readExportLogsAnswer(answer(type, body))).toEqual({ rejected: 0, message: '' });
  });
});

test.each(['"3"', '3'])('readExportLogsAnswer reads the JSON count %s', (count) => {
  const body = `{"partialSuccess":{"rejectedLogRecords":${count},"errorMessage":"no"}}`;

  expect(readExportLogsAnswer(answer('application/json', body))).toEqual({
    rejected: 3,
    message: 'no',
  });
});

describe('readExportLogsAnswer does not take as an answer', () => {
  test.each([
    ['a web page', 'text/html', '<!doctype html><title>Sign in</title>'],
    ['plain text', 'text/plain', 'ok'],
    ['JSON that is cut', 'application/json', '{"partialSucc'],
    ['a JSON array', 'application/json', '[]'],
    ['a failure as JSON', 'application/json', '{"code":13,"message":"no"}'],
    ['a failure as protobuf', 'application/x-protobuf', '\u0008\u000d\u0012\u0002no'],
    [
      'a count that is none',
      'application/json',
      '{"partialSuccess":{"rejectedLogRecords":"many"}}',
    ],
    ['a message that is none', 'application/json', '{"partialSuccess":{"errorMessage":5}}'],
    ['a cut message', protobuf, new Uint8Array([0x0a, 0x05, 0x08])],
    ['a partial success that is a number', protobuf, new Uint8Array([0x08, 0x01])],
    ['an endless varint', protobuf, new Uint8Array(12).fill(0xff)],
  ])('%s', (_name, type, body) => {
    expect(readExportLogsAnswer(answer(type, body))).toBeNull();
  });
});

test('readExportLogsAnswer keeps a receiver’s text to one bounded line', () => {
  const hostile = `line one\nline two\r\u2028\u0000${'x'.repeat(1000)}`;
  const body = encodePartialSuccess(0, hostile);

  const said = readExportLogsAnswer(answer(protobuf, body))?.message ?? '';

  expect(said).not.toMatch(/[\p{Cc}\u2028]/u);
  expect(said.length).toBeLessThanOrEqual(200);
});

test.each([
  ['protobuf', protobuf, new Uint8Array([0x08, 0x03, 0x12, 0x03, 0x62, 0x61, 0x64]), 'bad'],
  ['JSON', 'application/json', '{"code":3,"message":"bad"}', 'bad'],
  ['nothing of the kind', 'text/html', '<h1>bad</h1>', ''],
])('readStatusMessage reads google.rpc.Status in %s', (_name, type, body, message) => {
  expect(readStatusMessage(answer(type, body))).toBe(message);
});

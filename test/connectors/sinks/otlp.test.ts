// The otlp sink against a receiver that decodes OTLP with a decoder of its own, and against OTLPLogExporter, whose
// requests ours must equal.

import { SeverityNumber } from '@opentelemetry/api';
import { OTLPLogExporter } from '@opentelemetry/exporter-logs-otlp-http';
import { JsonLogsSerializer } from '@opentelemetry/otlp-transformer';
import { resourceFromAttributes } from '@opentelemetry/resources';
import type { ReadableLogRecord } from '@opentelemetry/sdk-logs';
import { describe, expect, test } from 'vitest';
import { otlpSink } from '../../../connectors/sinks/otlp.ts';
import type { Format } from '../../../src/contracts/format.ts';
import { noLines } from '../../../src/send/encode.ts';
import { type HttpAnswer, startHttpReceiver } from '../../support/http-receiver.ts';
import { type OtlpAnswer, startOtlpReceiver } from '../../support/otlp-receiver.ts';
import { openSink, parseSettings, someEvents, testTools } from '../../support/sink-opening.ts';

const never = new AbortController().signal;
const uidOf = (record: { readonly attributes: Readonly<Record<string, unknown>> }) =>
  record.attributes['log.record.uid'];
const reply = (status: number, headers: Readonly<Record<string, string>> = {}): HttpAnswer => ({
  answer: 'reply',
  status,
  headers,
});

async function answeredWith(answer: OtlpAnswer, count = 3) {
  const receiver = await startOtlpReceiver();
  receiver.answer(answer);
  const opened = await openSink(otlpSink, { url: receiver.url, timeout: '300ms' });
  const events = someEvents(count);
  const delivery = await opened.sink.send(opened.batch(events), never);
  return { delivery, events, receiver, ...opened };
}

describe.each(['protobuf', 'json'])('otlp in %s', (encoding) => {
  const format = { type: 'otel', encoding };

  test('sends every event of the batch in one gzipped request', async () => {
    const receiver = await startOtlpReceiver();
    const { sink, batch } = await openSink(otlpSink, { url: receiver.url }, { format });
    const events = someEvents(20);

    const delivery = await sink.send(batch(events), never);

    expect(delivery).toEqual({ outcome: 'delivered' });
    expect(receiver.faults).toEqual([]);
    expect(receiver.requests).toHaveLength(1);
    expect(receiver.requests[0]?.headers['content-encoding']).toBe('gzip');
    expect(receiver.records().map(uidOf)).toEqual(events.map((event) => event.uid));
  });

  test('sends nothing again that was rejected in part, and keeps all of the request', async () => {
    const receiver = await startOtlpReceiver();
    receiver.answer({ answer: 'partly', rejected: 2, message: 'too\nold' });
    const { sink, batch } = await openSink(otlpSink, { url: receiver.url }, { format });
    const events = someEvents(5);

    const delivery = await sink.send(batch(events), never);

    const reason =
      'the receiver rejected 2 of 5 records; it does not say which, so some may have arrived: too old';
    // No event was accepted for certain: a verdict of the sink, which needs no proof.
    const refused = events.map(({ uid }) => ({ uid, reason, by: 'sink' }));
    expect(delivery).toEqual({ outcome: 'partly', refused, again: [] });
  });
});

test('otlp refuses the batch where all records were rejected', async () => {
  const { delivery } = await answeredWith({ answer: 'partly', rejected: 3, message: 'no' });

  expect(delivery).toMatchObject({
    ...{ outcome: 'refused', scope: 'batch' },
    cause: { message: expect.stringContaining('the receiver rejected 3 of 3 records: no') },
  });
});

test('otlp treats a warning as success, and reports it once', async () => {
  const warning: OtlpAnswer = { answer: 'partly', rejected: 0, message: 'use gRPC' };
  const { delivery, sink, batch, tools } = await answeredWith(warning);

  const second = await sink.send(batch(someEvents(2)), never);

  expect([delivery, second]).toEqual([{ outcome: 'delivered' }, { outcome: 'delivered' }]);
  expect(tools.logged).toEqual([
    expect.objectContaining({
      level: 'warn',
      fields: { sink: 'sink-under-test', message: 'use gRPC' },
    }),
  ]);
});

test('otlp sends the requests of OTLPLogExporter', async () => {
  const receiver = await startHttpReceiver();
  const url = `${receiver.url}/v1/logs`;
  const records: ReadableLogRecord[] = ['first', 'second'].map((body, i) => ({
    hrTime: [1_700_000_000 + i, 5],
    hrTimeObserved: [1_700_000_001, 0],
    severityNumber: SeverityNumber.WARN,
    severityText: 'WARN',
    eventName: 'ocsf.api_activity',
    body,
    attributes: { 'log.record.uid': `uid-${i}` },
    resource: resourceFromAttributes({ 'service.name': 'sluice' }),
    instrumentationScope: { name: 'sluice' },
    droppedAttributesCount: 0,
  }));
  const format: Format = {
    name: 'otel',
    contentType: 'application/json',
    encode: () => '',
    document: {
      contentType: 'application/json',
      encode: () => '',
      join: () => JsonLogsSerializer.serializeRequest(records) ?? new Uint8Array(0),
    },
  };
  const settings = parseSettings(otlpSink, { url, headers: { 'X-Tenant': 't' } });
  const numbering = { spool: 's', epochs: [{ id: 1, until: null }] };
  const nothing = async () => undefined;
  const opening = {
    name: 'otel',
    format,
    numbering,
    config: () => null,
    sinks: () => [],
    position: 0,
    mark: null,
    remember: nothing,
    report: nothing,
  };
  const sink = await otlpSink.open(settings, { ...opening, tools: testTools() });
  const exporter = new OTLPLogExporter({
    url,
    headers: { 'X-Tenant': 't' },
    compression: 'gzip' as never, // the package's enum, which a type-stripping runtime cannot import as a type
  });

  await sink.send(
    { id: 'b', events: someEvents(2), lines: noLines, pages: [], start: 0, end: 2 },
    never,
  );
  const result = await new Promise<{ code: number }>((done) => exporter.export(records, done));
  await exporter.shutdown();

  expect(result.code).toBe(0);
  const [ours, theirs] = receiver.requests;
  expect(ours?.body.toString()).toBe(theirs?.body.toString());
  for (const name of ['content-type', 'content-encoding', 'x-tenant']) {
    expect(ours?.headers[name]).toBe(theirs?.headers[name]);
  }
  expect([ours?.method, ours?.path]).toEqual([theirs?.method, theirs?.path]);
});

test('otlp compresses with zstd, and not at all, if configured', async () => {
  const receiver = await startOtlpReceiver();
  const zstd = await openSink(otlpSink, { url: receiver.url, compression: 'zstd' });
  const none = await openSink(otlpSink, { url: receiver.url, compression: 'none' });

  await zstd.sink.send(zstd.batch(someEvents(3)), never);
  await none.sink.send(none.batch(someEvents(3)), never);

  const encodings = receiver.requests.map((request) => request.headers['content-encoding']);
  expect(encodings).toEqual(['zstd', undefined]);
  expect(receiver.records()).toHaveLength(6);
});

describe('otlp requests another attempt after', () => {
  test.each([408, 429, 500, 502, 503, 504])('%i, with the wait it has', async (status) => {
    const { delivery } = await answeredWith(reply(status, { 'Retry-After': '3' }));

    expect(delivery).toMatchObject({ outcome: 'retry', afterMs: 3000 });
  });

  test.each(['reset', 'cut', 'hang'] as const)('no whole answer: %s', async (answer) => {
    const { delivery } = await answeredWith({ answer });

    expect(delivery).toMatchObject({ outcome: 'retry', cause: { code: 'sink_unreachable' } });
  });
});

test('otlp takes 400 as a refusal of the batch, with the receiver’s own reason', async () => {
  const { delivery } = await answeredWith({
    answer: 'reply',
    status: 400,
    headers: { 'content-type': 'application/json' },
    body: '{"code":3,"message":"trace_id has 3 bytes"}',
  });

  expect(delivery).toMatchObject({
    outcome: 'refused',
    scope: 'batch',
    cause: { message: expect.stringMatching(/answered 400: trace_id has 3 bytes$/) },
  });
});

test.each([401, 403, 404, 405, 301])(
  'otlp takes %i as a refusal by the receiver',
  async (status) => {
    const { delivery } = await answeredWith(reply(status));

    expect(delivery).toMatchObject({ outcome: 'refused', scope: 'sink' });
  },
);

test('otlp does not take a web page for a success', async () => {
  const page: OtlpAnswer = {
    answer: 'reply',
    status: 200,
    headers: { 'content-type': 'text/html; charset=utf-8' },
    body: '<!doctype html><title>Sign in</title>',
  };

  const { delivery } = await answeredWith(page);

  expect(delivery).toMatchObject({
    outcome: 'refused',
    scope: 'sink',
    cause: { details: { status: 200, content_type: 'text/html' } },
  });
});

test('otlp halves a request that is too large until it fits, and refuses events that never will', async () => {
  const receiver = await startOtlpReceiver();
  const events = someEvents(9);
  const guilty = events[6]?.uid;
  receiver.answer(({ records }) =>
    records.length > 3 || records.some((record) => uidOf(record) === guilty)
      ? reply(413)
      : { answer: 'accept' },
  );
  const { sink, batch } = await openSink(otlpSink, { url: receiver.url });

  const delivery = await sink.send(batch(events), never);

  const reason = expect.stringContaining('answered 413');
  expect(delivery).toEqual({ outcome: 'partly', refused: [{ uid: guilty, reason }], again: [] });
  expect(receiver.records().map(uidOf)).toEqual(
    events.map((event) => event.uid).filter((uid) => uid !== guilty),
  );
});

describe('otlp probe', () => {
  test('sends a request without a record, which a receiver accepts', async () => {
    const receiver = await startOtlpReceiver();

    await otlpSink.probe(parseSettings(otlpSink, { url: receiver.url }), testTools(), never);

    expect(receiver.faults).toEqual([]);
    expect(receiver.requests.map((request) => request.records)).toEqual([[]]);
  });

  test.each([401, 404, 503])('throws on %i', async (status) => {
    const receiver = await startOtlpReceiver();
    receiver.answer(reply(status));
    const settings = parseSettings(otlpSink, { url: receiver.url });

    await expect(otlpSink.probe(settings, testTools(), never)).rejects.toThrow(
      `answered ${status}`,
    );
  });
});

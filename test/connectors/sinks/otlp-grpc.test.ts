// The otlp sink over gRPC: the meaning of each status, waits that the receiver requests, large messages, TLS, and
// servers that are no gRPC at all.

import { copyFileSync } from 'node:fs';
import { createServer as createHttpServer } from 'node:http';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { otlpSink } from '../../../connectors/sinks/otlp.ts';
import { deliver } from '../../contracts/deliver.ts';
import { anEvent } from '../../support/an-event.ts';
import { makeCa, makeUntrustedCa } from '../../support/certificates.ts';
import {
  type GrpcAnswer,
  grpcStatus,
  type OtlpGrpcOptions,
  startOtlpGrpcReceiver,
} from '../../support/otlp-grpc-receiver.ts';
import { openSink, parseSettings, someEvents, testTools } from '../../support/sink-opening.ts';
import { tempDir } from '../../support/temp.ts';
import { listen } from './syslog-receivers.ts';

const never = new AbortController().signal;
const uidOf = ({ attributes }: { attributes: Readonly<Record<string, unknown>> }) =>
  attributes['log.record.uid'];

async function withReceiver(options: OtlpGrpcOptions = {}, config: object = {}) {
  const receiver = await startOtlpGrpcReceiver(options);
  const settings = { protocol: 'grpc', timeout: '60s', url: receiver.url, ...config };
  const opened = await openSink(otlpSink, settings);
  const send = (events = someEvents(3)) => opened.sink.send(opened.batch(events), never);
  return { receiver, settings, opened, send };
}

test.each(['gzip', 'none'])(
  'every event arrives once, with headers, compression: %s',
  async (compression) => {
    const { receiver, opened } = await withReceiver(
      {},
      { compression, headers: { Authorization: 'Bearer a-token' } },
    );
    const events = someEvents(2500);

    const { attempts, refused } = await deliver(opened, events, 1000);

    expect([attempts, refused]).toEqual([3, []]);
    expect(receiver.records.map(uidOf)).toEqual(events.map(({ uid }) => uid));
    expect(receiver.calls[0]?.metadata).toMatchObject({ authorization: 'Bearer a-token' });
  },
);

test('a message over the receiver’s 4 MB is halved, and one event over it is a dead letter', async () => {
  const { receiver, opened } = await withReceiver();
  const events = Array.from({ length: 40 }, (_, offset) =>
    anEvent({ offset, ocsf: { message: 'm'.repeat(offset === 7 ? 5_000_000 : 200_000) } }),
  );

  const { refused } = await deliver(opened, events, 40);

  expect(refused).toEqual([
    {
      uid: events[7]?.uid,
      reason: expect.stringMatching(/RESOURCE_EXHAUSTED: .*larger than/),
    },
  ]);
  expect(new Set(receiver.records.map(uidOf)).size).toBe(39);
  expect(receiver.records).toHaveLength(39);
});

const { RESOURCE_EXHAUSTED, UNAVAILABLE, UNAUTHENTICATED, INVALID_ARGUMENT } = grpcStatus;

test.each([
  [
    { code: UNAVAILABLE, details: 'starting', retryAfterS: 2.5 },
    { outcome: 'retry', afterMs: 2500 },
  ],
  [
    { code: RESOURCE_EXHAUSTED, details: 'quota', retryAfterS: 7 },
    { outcome: 'retry', afterMs: 7000, cause: { code: 'sink_throttled' } },
  ],
  [{ code: RESOURCE_EXHAUSTED, details: 'the queue is full' }, { outcome: 'retry' }],
  [{ code: grpcStatus.INTERNAL, details: 'oops' }, { outcome: 'retry' }],
  [{ code: grpcStatus.UNKNOWN, details: '' }, { outcome: 'retry' }],
  [{ code: grpcStatus.DATA_LOSS, details: '' }, { outcome: 'retry' }],
  [
    { code: INVALID_ARGUMENT, details: 'bad record' },
    { outcome: 'refused', scope: 'batch' },
  ],
  [
    { code: UNAUTHENTICATED, details: 'no: Bearer a-secret-token' },
    { outcome: 'refused', scope: 'sink' },
  ],
  [
    { code: grpcStatus.PERMISSION_DENIED, details: 'no' },
    { outcome: 'refused', scope: 'sink' },
  ],
  [
    { code: grpcStatus.UNIMPLEMENTED, details: 'no' },
    { outcome: 'refused', scope: 'sink' },
  ],
] satisfies [GrpcAnswer, object][])('%j means %j, and the next call goes', async (how, meaning) => {
  const { receiver, send } = await withReceiver(
    { answer: () => how },
    { headers: { authorization: 'Bearer a-secret-token' } },
  );

  const answer = await send();
  receiver.answer(() => 'accept');
  const next = await send();

  expect(answer).toMatchObject(meaning);
  expect(JSON.stringify(answer)).not.toContain('a-secret-token');
  if ('cause' in answer) expect(answer.cause.message).not.toContain('a-secret-token');
  expect(next).toEqual({ outcome: 'delivered' });
});

test('a partial success is never sent again: its events become dead letters', async () => {
  const { send } = await withReceiver({ answer: () => ({ rejected: 1, message: 'too old' }) });

  expect(await send()).toMatchObject({
    outcome: 'partly',
    again: [],
    refused: [{ reason: expect.stringContaining('rejected 1 of 3 records') }, {}, {}],
  });
});

test('a call without an answer ends at its time, and when the run ends', async () => {
  const { opened, send } = await withReceiver({ answer: () => null }, { timeout: '200ms' });
  const stop = new AbortController();

  const answer = await send();
  const stopped = opened.sink.send(opened.batch(someEvents(1)), stop.signal);
  stop.abort(new Error('stopping'));

  expect(answer).toMatchObject({
    outcome: 'retry',
    cause: { message: expect.stringContaining('DEADLINE_EXCEEDED') },
  });
  await expect(stopped).rejects.toThrow('stopping');
});

test('TLS: the certificate is verified, and client certificates are shown', async () => {
  const tls = await makeCa();
  const files = { cert_file: tls.client.certFile, key_file: tls.client.keyFile };
  const given = { tls, clientCertificates: true };
  const right = await withReceiver(given, { tls: { ca_file: tls.caFile, ...files } });
  const outcomes = [
    (await right.send()).outcome,
    (await (await withReceiver(given, { tls: files, timeout: '2s' })).send()).outcome,
    (await (await withReceiver(given, { tls: { ca_file: tls.caFile }, timeout: '2s' })).send())
      .outcome,
    (
      await (
        await withReceiver(given, {
          tls: { ca_file: tls.caFile, ...files, server_name: 'other.example' },
          timeout: '2s',
        })
      ).send()
    ).outcome,
  ];

  expect(outcomes).toEqual(['delivered', 'retry', 'retry', 'retry']);
});

test('TLS: an authority that was corrected in its file is used', async () => {
  const [tls, other] = [await makeCa(), await makeUntrustedCa()];
  const caFile = join(tempDir(), 'ca.pem');
  copyFileSync(other.caFile, caFile);
  const { send } = await withReceiver({ tls }, { tls: { ca_file: caFile }, timeout: '20s' });

  const before = await send();
  copyFileSync(tls.caFile, caFile);

  expect(before).toMatchObject({ outcome: 'retry', cause: { code: 'sink_unreachable' } });
  await expect.poll(async () => (await send()).outcome).toBe('delivered');
});

test('a receiver that is gone is waited for', async () => {
  const { receiver, send } = await withReceiver();
  await send();

  receiver.close();
  const away = await send();

  expect(away).toMatchObject({ outcome: 'retry', cause: { code: 'sink_unreachable' } });
});

test('a web server, and a port that ends every connection, are no receivers', async () => {
  const web = await listen(createHttpServer((_, response) => response.end('<html>Sign in</html>')));
  const rude = await listen(createServer((socket) => socket.destroy()));

  for (const port of [web, rude]) {
    const config = { protocol: 'grpc', url: `http://127.0.0.1:${port}`, timeout: '1s' };
    const opened = await openSink(otlpSink, config);
    const answer = await opened.sink.send(opened.batch(someEvents(1)), never);
    expect(answer.outcome).toBe('retry');
    const probing = otlpSink.probe(parseSettings(otlpSink, config), testTools(), never);
    await expect(probing).rejects.toMatchObject({ code: 'sink_unreachable' });
  }
});

test('probe leaves no record, and reports a rejected credential', async () => {
  const { receiver, settings } = await withReceiver();
  await otlpSink.probe(parseSettings(otlpSink, settings), testTools(), never);
  expect(receiver.records).toEqual([]);

  receiver.answer(() => ({ code: UNAUTHENTICATED, details: 'who are you' }));
  const probing = otlpSink.probe(parseSettings(otlpSink, settings), testTools(), never);
  await expect(probing).rejects.toMatchObject({ code: 'sink_refused' });
});

test.each([
  [{ url: 'http://c:4317/v1/logs' }, 'url has no path'],
  [{ url: 'http://c:4317', compression: 'zstd' }, 'gzip or none'],
  [{ url: 'http://c:4317', proxy: 'http://proxy:3128' }, 'http/protobuf goes through one'],
  [{ url: 'http://c:4317', tls: {} }, 'http://'],
  [{ url: 'https://c:4317', tls: {} }, null],
])('%j is judged', (config, flaw) => {
  const judged = otlpSink.flaw?.(parseSettings(otlpSink, { protocol: 'grpc', ...config }));

  if (flaw === null) expect(judged).toBeNull();
  else expect(judged).toContain(flaw);
});

test('protocol decides the encoding, and the format does where it says none', () => {
  const encodingOf = (protocol?: string) =>
    otlpSink.format?.(
      parseSettings(otlpSink, { url: 'http://c:4317', ...(protocol && { protocol }) }),
      { type: 'otel', encoding: 'json' },
    ).encoding;

  expect([
    encodingOf(),
    encodingOf('http/json'),
    encodingOf('http/protobuf'),
    encodingOf('grpc'),
  ]).toEqual(['json', 'json', 'protobuf', 'protobuf']);
});

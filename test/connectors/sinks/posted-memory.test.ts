// When sinks that post give a batch's memory back. A receiver may answer before it has read a request, and the kernel then
// reads the request's bytes later: so the memory of lines is given back only if no request shares it.

import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';
import { gunzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { sinks } from '../../../connectors/index.ts';
import { httpSink } from '../../../connectors/sinks/http.ts';
import { FrameMemory } from '../../../connectors/sinks/syslog/relp-frames.ts';
import type { Event } from '../../../src/contracts/event.ts';
import type { HttpClient } from '../../../src/contracts/tools.ts';
import { KafkaRecord } from '../../../src/kafka/port.ts';
import { recordBatch } from '../../../src/kafka/record-batch.ts';
import { encodeLines } from '../../../src/send/encode.ts';
import { datadogKind, secOpsKind } from '../../contracts/receivers/clouds.ts';
import { elasticsearchKind } from '../../contracts/receivers/elasticsearch.ts';
import { httpKind, otlpKind } from '../../contracts/receivers/http.ts';
import { sentinelKind } from '../../contracts/receivers/sentinel.ts';
import { splunkKind } from '../../contracts/receivers/splunk.ts';
import { openSink, someEvents, testTools } from '../../support/sink-opening.ts';
import { afterThisTest, waitUntil } from '../../support/temp.ts';

const never = new AbortController().signal;

const kinds = [
  ...[httpKind('lines'), httpKind('array'), otlpKind, elasticsearchKind, sentinelKind],
  ...[secOpsKind, datadogKind, splunkKind('off'), splunkKind('required')],
].flatMap((kind) => (['none', 'gzip'] as const).map((compression) => ({ kind, compression })));

/** A sink on a receiver of a kind, and the bodies of its requests. */
async function openedOn({ type, start }: (typeof kinds)[number]['kind'], compression: string) {
  const receiver = await start('willing', Math.random);
  const bodies: Uint8Array[] = [];
  const tools = testTools();
  const http: HttpClient = {
    ...tools.http,
    async request(request, signal) {
      if (request.body instanceof Uint8Array) bodies.push(request.body);
      return await tools.http.request(request, signal);
    },
  };
  const definition = sinks.find((sink) => sink.type === type);
  if (definition === undefined) throw new Error(`there is no sink ${type}`);
  const config = { ...receiver.config, compression };
  return { bodies, ...(await openSink(definition, config, { tools: { ...tools, http } })) };
}

test.each(kinds)(
  '$kind.name with compression $compression gives back only memory that no request reads',
  async ({ kind, compression }) => {
    const { bodies, ...opened } = await openedOn(kind, compression);
    const batch = opened.batch(someEvents(50));
    let isFreed = false;

    const answer = await opened.sink.send(batch, never, () => {
      isFreed = true;
    });

    expect(answer.outcome).toBe('delivered');
    const isGivenBack = opened.sink.isDoneOnceDelivered === true || isFreed;
    const isShared = bodies.some(({ buffer }) => buffer === batch.lines.bytes.buffer);
    expect(isGivenBack).toBe(!isShared);
  },
);

/** Byte lengths of the memory that was freed during a call. */
async function freedDuring(call: () => Promise<unknown>): Promise<readonly number[]> {
  const lengths: number[] = [];
  const { transfer } = ArrayBuffer.prototype;
  ArrayBuffer.prototype.transfer = function (this: ArrayBuffer, length?: number) {
    if (length === 0) lengths.push(this.byteLength);
    return transfer.call(this, length);
  };
  try {
    await call();
  } finally {
    ArrayBuffer.prototype.transfer = transfer;
  }
  return lengths;
}

test.each(
  [otlpKind, datadogKind, sentinelKind].flatMap((kind) =>
    (['gzip', 'none'] as const).map((compression) => ({ kind, compression })),
  ),
)(
  '$kind.name with compression $compression frees the body of a request only if a copy was sent',
  async ({ kind, compression }) => {
    const { sink, batch, bodies } = await openedOn(kind, compression);
    const events = batch(someEvents(200));

    const freed = await freedDuring(() => sink.send(events, never));

    const sent = bodies.at(-1) ?? new Uint8Array(0);
    const length = compression === 'none' ? sent.length : gunzipSync(sent).length;
    expect(length).toBeGreaterThan(0);
    expect(freed.includes(length)).toBe(compression === 'gzip');
  },
);

/** A server that answers once it has a request's head, and reads the body only after `readAll`. */
async function hastyReceiver() {
  let head = '';
  let length = 0;
  const parts: Buffer[] = [];
  let socket: Socket | null = null;
  const server = createServer((connected) => {
    socket = connected.on('error', () => undefined);
    connected.on('data', (part: Buffer) => {
      let from = 0;
      if (head === '') {
        from = part.indexOf('\r\n\r\n') + 4;
        head = part.subarray(0, from).toString();
        connected.pause();
        connected.write('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n');
      }
      parts.push(part.subarray(from));
      length += part.length - from;
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  afterThisTest(() => {
    socket?.destroy();
    server.close();
  });
  const { port } = server.address() as { port: number };
  return {
    url: `http://127.0.0.1:${port}/`,
    async readAll(): Promise<Buffer> {
      socket?.resume();
      await waitUntil(() => length === Number(/content-length: (\d+)/i.exec(head)?.[1]), {
        what: () => `the whole body; it has ${length} bytes, and the head is ${head}`,
      });
      return Buffer.concat(parts);
    },
  };
}

/** More than the kernels take while the receiver does not read. */
function largeEvents(): readonly Event[] {
  const random = () => Math.random().toString(36).slice(2);
  return someEvents(400).map((event) => {
    const message = Array.from({ length: 4_000 }, random).join('');
    return { ...event, ocsf: { ...event.ocsf, message } };
  });
}

test('a receiver that answers before it reads gets every byte, whatever becomes of the lines', async () => {
  const receiver = await hastyReceiver();
  const { sink, batch } = await openSink(httpSink, { url: receiver.url, compression: 'gzip' });
  const large = batch(largeEvents());
  const lines = Buffer.from(large.lines.bytes);

  const answer = await sink.send(large, never);
  large.lines.bytes.fill(0);

  expect([answer.outcome, sink.isDoneOnceDelivered]).toEqual(['delivered', true]);
  expect(gunzipSync(await receiver.readAll()).equals(lines)).toBe(true);
});

test('lines that the kernel may still read after the answer are kept', async () => {
  const receiver = await hastyReceiver();
  const { sink, batch } = await openSink(httpSink, { url: receiver.url });
  const large = batch(largeEvents());

  const answer = await sink.send(large, never);

  expect([answer.outcome, sink.isDoneOnceDelivered]).toEqual(['delivered', false]);
  expect((await receiver.readAll()).equals(large.lines.bytes)).toBe(true);
});

test('a Kafka batch and RELP frames are copies of the lines', async () => {
  const lines = encodeLines(someEvents(3), { encode: ({ uid }) => uid });
  const value = lines.bytes.subarray(0, 64);
  const settings = { compression: 'none', transactionalId: null, crc32c: () => 0 } as const;
  const producer = { producerId: 1n, producerEpoch: 0 };
  const records = [new KafkaRecord(null, value, 'a'.repeat(64))];
  const batch = await recordBatch({ records, firstSequence: 0 }, { ...settings, ...producer });
  const frames = new FrameMemory().frame(lines, { from: 0, to: 3 }, 1);

  expect(batch.buffer).not.toBe(value.buffer);
  expect(frames.bytes.buffer).not.toBe(lines.bytes.buffer);
});

// A receiver that is away for long, in each way in which it can be: what a sink keeps does not grow with its attempts,
// neither memory nor connections. RELP and gRPC, whose sessions are made and ended by other code than sluice's HTTP client.

import { createServer as createHttp2Server } from 'node:http2';
import { createServer } from 'node:net';
import { expect, test } from 'vitest';
import { otlpSink } from '../../../connectors/sinks/otlp.ts';
import { syslogSink } from '../../../connectors/sinks/syslog.ts';
import { collectGarbage } from '../../support/garbage.ts';
import { startRelpReceiver } from '../../support/relp-receiver.ts';
import { openSink, someEvents } from '../../support/sink-opening.ts';
import { freePort } from '../../support/temp.ts';
import { listen } from './syslog-receivers.ts';

const never = new AbortController().signal;
const attempts = 100;

const relp = (port: number, connect_timeout = '20ms') => {
  const patience = { connect_timeout, stall_timeout: '20ms' };
  return [syslogSink, { address: `relp://127.0.0.1:${port}`, ...patience }] as const;
};
const grpc = (port: number) => {
  const url = `http://127.0.0.1:${port}`;
  return [otlpSink, { protocol: 'grpc', url, timeout: '20ms', compression: 'none' }] as const;
};
const mute = () => listen(createServer((socket) => void socket.on('error', () => {}).resume()));
const rude = () => listen(createServer((socket) => socket.on('error', () => {}).destroy()));

test.each([
  ['RELP: no listener', async () => relp(await freePort())],
  ['RELP: each connection ends at once', async () => relp(await rude())],
  ['RELP: no response', async () => relp(await mute())],
  [
    'RELP: a session opens, and no message is answered',
    async () => relp((await startRelpReceiver({ answer: () => 'nothing' })).port, '60s'),
  ],
  ['gRPC: no listener', async () => grpc(await freePort())],
  ['gRPC: each connection ends at once', async () => grpc(await rude())],
  ['gRPC: no response', async () => grpc(await mute())],
  [
    'gRPC: no call is answered',
    async () => grpc(await listen(createHttp2Server().on('stream', (call) => call.resume()))),
  ],
])('%s', async (_how, leading) => {
  const [definition, config] = await leading();
  const { sink, batch } = await openSink(definition, config);
  const encoded = batch(someEvents(300));
  const { bytes } = encoded.lines;
  const tryOften = async (count: number) => {
    for (let i = 0; i < count; i += 1) {
      const again = { ...encoded, lines: { ...encoded.lines, bytes: new Uint8Array(bytes) } };
      expect((await sink.send(again, never)).outcome).toBe('retry');
    }
  };
  await tryOften(attempts / 4);
  const before = kept();

  await tryOften(attempts);

  // A tenth of what was sent, where nothing should be kept for longer than a library's timers need.
  expect(bytes.length).toBeGreaterThan(100_000);
  await expect
    .poll(() => kept().bytes - before.bytes, { interval: 500 })
    .toBeLessThan((attempts * bytes.length) / 10);
  expect(kept().sockets - before.sockets).toBeLessThan(attempts / 10);
});

/** What is in use when all garbage is gone. */
function kept() {
  collectGarbage();
  const { heapUsed, external } = process.memoryUsage();
  const sockets = process.getActiveResourcesInfo().filter((name) => /TCP/.test(name)).length;
  return { bytes: heapUsed + external, sockets };
}

// The proxy is a faithful network by default: it must not close a side by itself where a receiver's close has a
// meaning, or the torture run would blame the program for the proxy's losses.

import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { expect, test } from 'vitest';
import { afterThisTest } from '../support/temp.ts';
import { startProxy } from './proxy.ts';

test('the end of a receiver that has read everything is passed on', async () => {
  const { client } = await through((receiver) => {
    receiver.resume();
    receiver.on('end', () => receiver.end());
  });

  client.end('everything');
  const [hadError] = await once(client, 'close');

  expect(hadError).toBe(false);
});

test('the end of a receiver that has not waited for ours is a reset', async () => {
  const { client } = await through((receiver) => {
    receiver.once('data', () => receiver.end());
  });

  client.write('something');
  const [error] = await once(client, 'error');

  expect(error).toMatchObject({ code: 'ECONNRESET' });
});

test('while it leads elsewhere the receiver itself gets nothing', async () => {
  const own = await through(() => {});
  const other: string[] = [];
  const elsewhere = await listen((socket) => {
    socket.setEncoding('utf8').on('data', (text) => other.push(text.toString()));
    socket.on('end', () => socket.end());
  });

  own.proxy.leadTo(portOf(elsewhere));
  const client = connect(own.proxy.port, '127.0.0.1').resume();
  client.end('secret');
  await once(client, 'close');

  expect(other.join('')).toBe('secret');
  expect(own.taken()).toBe(1);
});

async function through(take: (receiver: Socket) => void) {
  let taken = 0;
  const server = await listen((socket) => {
    taken += 1;
    take(socket);
  });
  const proxy = await startProxy(portOf(server), { endsInTurn: true });
  afterThisTest(() => proxy.close());
  const client = connect({ port: proxy.port, host: '127.0.0.1', allowHalfOpen: true });
  client.on('error', () => {}); // a reset is what some tests wait for
  client.resume();
  await once(server, 'connection');
  return { client, proxy, taken: () => taken };
}

async function listen(take: (socket: Socket) => void): Promise<Server> {
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    socket.on('error', () => {});
    take(socket);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  afterThisTest(() => server.close());
  return server;
}

function portOf(server: Server): number {
  const address = server.address();
  if (typeof address !== 'object' || address === null) throw new Error('the server has no port');
  return address.port;
}

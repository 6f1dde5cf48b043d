import { getEventListeners } from 'node:events';
import type { AddressInfo } from 'node:net';
import { createServer, type Socket } from 'node:net';
import {
  brotliCompressSync,
  deflateRawSync,
  deflateSync,
  gzipSync,
  zstdCompressSync,
} from 'node:zlib';
import { describe, expect, test } from 'vitest';
import type { HttpClient, HttpRequest } from '../../src/contracts/tools.ts';
import { type HttpClientOptions, openHttpClient } from '../../src/tools/http-client.ts';
import { buildText } from '../../src/tools/version.ts';
import { afterThisTest, freePort } from '../support/temp.ts';
import { json, never, serve } from './serving.ts';

const page = Buffer.from(
  JSON.stringify({ data: Array(500).fill({ id: 'é', text: 'x'.repeat(50) }) }),
);

function open(options?: HttpClientOptions): HttpClient {
  const client = openHttpClient(options);
  afterThisTest(() => client.close());
  return client;
}

function get(url: string, more: Partial<HttpRequest> = {}): HttpRequest {
  return { method: 'GET', url, headers: {}, timeoutMs: 10_000, bodyBytesMax: 1_000_000, ...more };
}

/** A server that says exactly these bytes to each connection, then does what `then` says. */
async function sayRaw(text: string, then: (socket: Socket) => void): Promise<string> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.once('data', () => socket.write(text, () => then(socket)));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  afterThisTest(() => {
    for (const socket of sockets) socket.destroy();
    return new Promise((resolve) => server.close(resolve));
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`; // a TCP server's address
}

describe('openHttpClient: answers', () => {
  test('gives any status with its headers in lower case, repeated ones joined', async () => {
    const { url, asked } = await serve((_, response) => {
      response.writeHead(
        418,
        [
          ['X-Thing', 'a'],
          ['x-thing', 'b'],
          ['Content-Type', 'text/x'],
        ].flat(),
      );
      response.end('short');
    });

    const answer = await open().request(get(`${url}/a/b?c=%2F%27d`), never());

    expect(answer.status).toBe(418);
    expect(answer.headers).toMatchObject({ 'x-thing': 'a, b', 'content-type': 'text/x' });
    expect(Buffer.from(answer.body).toString()).toBe('short');
    expect(asked[0]).toMatchObject({ method: 'GET', path: '/a/b?c=%2F%27d' });
    expect(asked[0]?.headers).toMatchObject({
      'user-agent': `sluice/${buildText()}`,
    });
  });

  test.each([
    ['gzip', gzipSync],
    ['x-gzip', gzipSync],
    ['deflate', deflateSync],
    ['deflate', deflateRawSync],
    ['br', brotliCompressSync],
    ['zstd', zstdCompressSync],
  ] as const)('unpacks %s', async (coding, pack) => {
    const { url, asked } = await serve((_, response) => {
      response.writeHead(200, { 'content-encoding': coding });
      response.end(pack(page));
    });

    const answer = await open().request(get(url), never());

    expect(Buffer.from(answer.body).equals(page)).toBe(true);
    expect(asked[0]?.headers['accept-encoding']).toContain('zstd');
  });

  test('unpacks a body that was packed twice, and an empty one that claims to be packed', async () => {
    const twice = await serve((_, response) => {
      response.writeHead(200, { 'content-encoding': 'gzip, br' });
      response.end(brotliCompressSync(gzipSync(page)));
    });
    const empty = await serve((_, response) => {
      response.writeHead(204, { 'content-encoding': 'gzip' });
      response.end();
    });

    const client = open();

    expect(Buffer.from((await client.request(get(twice.url), never())).body).equals(page)).toBe(
      true,
    );
    expect((await client.request(get(empty.url), never())).body).toHaveLength(0);
  });

  test('posts a body', async () => {
    const { url, asked } = await serve((_, response) => json(response, 200, {}));
    const body = new TextEncoder().encode('héllo');

    await open().request(get(url, { method: 'POST', body }), never());

    expect(asked[0]).toMatchObject({ method: 'POST', body: 'héllo' });
  });

  test('does not follow a redirect', async () => {
    const elsewhere = await serve((_, response) => json(response, 200, {}));
    const { url } = await serve((_, response) => {
      response.writeHead(302, { location: elsewhere.url });
      response.end();
    });

    const answer = await open().request(
      get(url, { headers: { authorization: 'Bearer t' } }),
      never(),
    );

    expect(answer.status).toBe(302);
    expect(elsewhere.asked).toHaveLength(0);
  });

  test('keeps connections alive and opens no more than allowed', async () => {
    const sockets = new Set<unknown>();
    const { url } = await serve((_, response, request) => {
      sockets.add(request.socket);
      setImmediate(() => json(response, 200, {}));
    });
    const client = open({ connectionsMax: 4 });

    await Promise.all(Array.from({ length: 40 }, () => client.request(get(url), never())));

    expect(sockets.size).toBeLessThanOrEqual(4);
  });
});

describe('openHttpClient: no whole answer', () => {
  test('nothing listens', async () => {
    const port = await freePort();

    await expect(open().request(get(`http://127.0.0.1:${port}/`), never())).rejects.toMatchObject({
      name: 'HttpFailure',
      reason: 'unreachable',
      message: `connect ECONNREFUSED 127.0.0.1:${port}`,
    });
  });

  test('an unknown host', async () => {
    await expect(open().request(get('http://nowhere.invalid/'), never())).rejects.toMatchObject({
      reason: 'unreachable',
      message: expect.stringContaining('nowhere.invalid'),
    });
  });

  test.each([
    ['fewer bytes than announced', 'HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{"data":['],
    [
      'chunks without an end',
      'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\n{"dat\r\n',
    ],
    ['headers without an end', 'HTTP/1.1 200 OK\r\ncontent-le'],
    ['nothing', ''],
    ['something else', 'SSH-2.0-OpenSSH_9.2\r\n'],
  ])('%s', async (_, text) => {
    const url = await sayRaw(text, (socket) => socket.end());

    await expect(open().request(get(url), never())).rejects.toMatchObject({ reason: 'cut' });
  });

  test('a reset in the middle of the body', async () => {
    const text = 'HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{"data":[';
    const url = await sayRaw(text, (socket) => setTimeout(() => socket.resetAndDestroy(), 20));

    await expect(open().request(get(url), never())).rejects.toMatchObject({ reason: 'cut' });
  });

  test('packed data that end early', async () => {
    const packed = gzipSync(page);
    const { url } = await serve((_, response) => {
      response.writeHead(200, { 'content-encoding': 'gzip' });
      response.end(packed.subarray(0, packed.length - 20));
    });

    await expect(open().request(get(url), never())).rejects.toMatchObject({ reason: 'cut' });
  });

  test.each([
    ['zstd', zstdCompressSync],
    ['br', brotliCompressSync],
  ] as const)('%s data that end early', async (coding, pack) => {
    const packed = pack(page);
    const { url } = await serve((_, response) => {
      response.writeHead(200, { 'content-encoding': coding });
      response.end(packed.subarray(0, packed.length - 5));
    });

    await expect(open().request(get(url), never())).rejects.toMatchObject({ reason: 'cut' });
  });

  test.each(['gzip', 'zstd', 'br', 'deflate', 'rot13', 'gzip,gzip,gzip'])(
    'a body that is not the %s it claims to be',
    async (coding) => {
      const { url } = await serve((_, response) => {
        response.writeHead(200, { 'content-encoding': coding });
        response.end('{"data":[]}'.repeat(20));
      });

      await expect(open().request(get(url), never())).rejects.toMatchObject({ reason: 'encoding' });
    },
  );

  test('a body that trickles is bounded by the time of the whole exchange', async () => {
    const { url } = await serve((_, response) => {
      response.writeHead(200);
      const drip = setInterval(() => response.write(' '), 20);
      response.on('close', () => clearInterval(drip));
    });

    await expect(open().request(get(url, { timeoutMs: 300 }), never())).rejects.toMatchObject({
      reason: 'timeout',
      message: 'no whole answer within 300 ms (reading the answer)',
    });
  });

  test('a mute server', async () => {
    const { url } = await serve(() => undefined);

    await expect(open().request(get(url, { timeoutMs: 100 }), never())).rejects.toMatchObject({
      reason: 'timeout',
      message: 'no whole answer within 100 ms (waiting for the answer)',
    });
  });

  test('requests that wait for a connection time out too, and are never sent afterwards', async () => {
    const held: (() => void)[] = [];
    const { url, asked } = await serve((_, response) => held.push(() => json(response, 200, {})));
    const client = open({ connectionsMax: 1 });
    const first = client.request(get(url), never());
    await expect.poll(() => held.length).toBe(1);

    const second = client.request(get(`${url}/second`, { timeoutMs: 100 }), never());
    await expect(second).rejects.toMatchObject({ reason: 'timeout' });
    held[0]?.();
    await first;
    const third = client.request(get(`${url}/third`), never());
    await expect.poll(() => held.length).toBe(2);
    held[1]?.();
    await third;

    expect(asked.map((one) => one.path)).toEqual(['/', '/third']);
  });

  test('a body above the bound, announced or not, packed or not', async () => {
    const bomb = gzipSync(Buffer.alloc(50_000_000));
    const bodies = await Promise.all([
      serve((_, response) => response.end(Buffer.alloc(2_000_000))),
      serve((_, response) => {
        response.write(Buffer.alloc(900_000));
        response.end(Buffer.alloc(900_000));
      }),
      serve((_, response) => {
        response.writeHead(200, { 'content-encoding': 'gzip' });
        response.end(bomb);
      }),
      serve((_, response) => {
        response.writeHead(200, { 'content-encoding': 'zstd' });
        response.end(zstdCompressSync(Buffer.alloc(50_000_000)));
      }),
      serve((_, response) => response.writeHead(200, { big: 'x'.repeat(60_000) }).end()),
    ]);
    const client = open();

    for (const { url } of bodies) {
      await expect(client.request(get(url), never())).rejects.toMatchObject({
        reason: 'too_large',
      });
    }
  });

  test('a body of exactly the bound is whole', async () => {
    const { url } = await serve((_, response) => response.end(Buffer.alloc(1_000, 'a')));

    const answer = await open().request(get(url, { bodyBytesMax: 1_000 }), never());

    expect(answer.body).toHaveLength(1_000);
  });

  test('an aborted signal rejects with its reason at every stage and leaves no listener', async () => {
    const { url } = await serve((asked, response) => {
      if (asked.path === '/body') response.write('{');
    });
    const client = open();
    const stop = new AbortController();

    const waiting = ['/head', '/body'].map((path) => client.request(get(url + path), stop.signal));
    setTimeout(() => stop.abort(new Error('shutting down')), 50);

    for (const request of waiting) await expect(request).rejects.toThrow('shutting down');
    await expect(client.request(get(url), stop.signal)).rejects.toThrow('shutting down');
    expect(getEventListeners(stop.signal, 'abort')).toHaveLength(0);
  });

  test('close aborts requests under way', async () => {
    const { url } = await serve(() => undefined);
    const client = openHttpClient();

    const waiting = client.request(get(url), never());
    const settled = expect(waiting).rejects.toMatchObject({ name: 'HttpFailure' });
    setTimeout(() => void client.close(), 50);

    await settled;
    await expect(client.request(get(url), never())).rejects.toMatchObject({
      reason: 'unreachable',
    });
  });

  test('an impossible request is refused without repeating a header’s value', async () => {
    const client = open();
    const bad = get('http://127.0.0.1/', { headers: { authorization: 'Bearer hush\r\nx: y' } });

    await expect(client.request(bad, never())).rejects.toSatisfy(
      (error: Error) => !error.message.includes('hush') && error.name === 'HttpFailure',
    );
    await expect(client.request(get('file:///etc/passwd'), never())).rejects.toMatchObject({
      reason: 'unreachable',
    });
  });

  test('prints no warning, also with many requests on one signal', async () => {
    const warnings: string[] = [];
    const listen = (warning: Error) => warnings.push(warning.message);
    process.on('warning', listen);
    afterThisTest(() => process.off('warning', listen));
    const { url } = await serve((_, response) => {
      response.writeHead(200, { 'content-encoding': 'zstd' });
      response.end(zstdCompressSync(page));
    });
    const client = open();
    const signal = never();

    await Promise.all(Array.from({ length: 60 }, () => client.request(get(url), signal)));
    await new Promise((resolve) => setImmediate(resolve));

    expect(warnings).toEqual([]);
  });
});

// Requests through an HTTP proxy: http:// is forwarded, https:// goes through a tunnel, and what a proxy refuses is told.

import { once } from 'node:events';
import { createServer, request as httpRequest, type IncomingMessage } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { beforeAll, describe, expect, test } from 'vitest';
import type { HttpRequest } from '../../src/contracts/tools.ts';
import { openHttpClient } from '../../src/tools/http-client.ts';
import { type Certificates, makeCa } from '../support/certificates.ts';
import { afterThisTest, freePort } from '../support/temp.ts';
import { json, never, serve } from './serving.ts';

let ca: Certificates;

beforeAll(async () => {
  ca = await makeCa();
});

interface ProxySeen {
  readonly method: string;
  readonly target: string;
  readonly credential: string | undefined;
}

/** A proxy that forwards and tunnels for one credential. */
async function aProxy(credential?: string) {
  const seen: ProxySeen[] = [];
  const letIn = ({ method = '', url = '', headers }: IncomingMessage) => {
    const given = headers['proxy-authorization'];
    seen.push({ method, target: url, credential: given });
    return credential === undefined || given === `Basic ${btoa(credential)}`;
  };
  const server = createServer((request, response) => {
    if (!letIn(request)) {
      response.writeHead(407).end();
      return;
    }
    const { 'proxy-authorization': _, ...headers } = request.headers;
    const onward = httpRequest(request.url ?? '', { method: request.method, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
    });
    request.pipe(onward);
  });
  server.on('connect', (request: IncomingMessage, socket) => {
    if (!letIn(request)) {
      socket.end('HTTP/1.1 407 Proxy Authentication Required\r\n\r\n');
      return;
    }
    const [host, port] = (request.url ?? '').split(':');
    const onward = connect(Number(port), host, () => {
      socket.write('HTTP/1.1 200 OK\r\n\r\n');
      onward.pipe(socket).pipe(onward);
    });
    onward.on('error', () => socket.destroy());
    socket.on('error', () => onward.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  afterThisTest(() => {
    server.closeAllConnections();
    server.close();
  });
  return { port: (server.address() as AddressInfo).port, seen };
}

function open() {
  const client = openHttpClient();
  afterThisTest(() => client.close());
  return client;
}

function post(url: string, proxy: string, more: Partial<HttpRequest> = {}): HttpRequest {
  const bounds = { timeoutMs: 10_000, bodyBytesMax: 1_000 };
  return { method: 'POST', url, headers: {}, body: 'hello', proxy, ...bounds, ...more };
}

describe('openHttpClient through a proxy', () => {
  test('has http:// forwarded, with the proxy’s credential for the proxy alone', async () => {
    const { url, asked } = await serve((_, response) => json(response, 201, {}));
    const { port, seen } = await aProxy('me:p@ss');

    const { status } = await open().request(
      post(`${url}/a?b=1`, `http://me:p%40ss@127.0.0.1:${port}`),
      never(),
    );

    expect(status).toBe(201);
    expect(seen).toEqual([
      { method: 'POST', target: `${url}/a?b=1`, credential: `Basic ${btoa('me:p@ss')}` },
    ]);
    expect(asked).toMatchObject([{ method: 'POST', path: '/a?b=1', body: 'hello' }]);
    expect(asked[0]?.headers).not.toHaveProperty('proxy-authorization');
  });

  test('goes to https:// through a tunnel, in which the certificate is the far side’s', async () => {
    const { url, asked } = await serve((_, response) => json(response, 200, {}), ca.server);
    const { port, seen } = await aProxy();
    const proxy = `http://127.0.0.1:${port}`;
    const client = open();

    const { status } = await client.request(
      post(url, proxy, { tls: { ca_file: ca.caFile } }),
      never(),
    );

    expect(status).toBe(200);
    expect(seen).toMatchObject([{ method: 'CONNECT', target: new URL(url).host }]);
    expect(asked).toHaveLength(1);
    await expect(client.request(post(url, proxy), never())).rejects.toMatchObject({
      reason: 'tls',
    });
  });

  test('tells a proxy that refuses, and one that is not there', async () => {
    const { url } = await serve((_, response) => json(response, 200, {}), ca.server);
    const { port } = await aProxy('me:right');
    const tls = { ca_file: ca.caFile };
    const client = open();

    await expect(
      client.request(post(url, `http://me:wrong@127.0.0.1:${port}`, { tls }), never()),
    ).rejects.toMatchObject({ reason: 'unreachable', message: expect.stringContaining('407') });
    await expect(
      client.request(post(url, `http://127.0.0.1:${await freePort()}`, { tls }), never()),
    ).rejects.toMatchObject({ reason: 'unreachable' });
  });

  test('uses none for another request to the same address', async () => {
    const { url } = await serve((_, response) => json(response, 200, {}));
    const { port, seen } = await aProxy();
    const client = open();

    await client.request(post(url, `http://127.0.0.1:${port}`), never());
    await client.request({ ...post(url, ''), proxy: '' }, never());

    expect(seen).toHaveLength(1);
  });
});

// Requests through an HTTP proxy: http:// is forwarded, https:// uses a tunnel, and a proxy's rejection is reported.

import { beforeAll, describe, expect, test } from 'vitest';
import type { HttpRequest } from '../../src/contracts/tools.ts';
import { openHttpClient } from '../../src/tools/http-client.ts';
import { type Certificates, makeCa, makeUntrustedCa } from '../support/certificates.ts';
import { aProxy } from '../support/http-proxy.ts';
import { afterThisTest, freePort } from '../support/temp.ts';
import { json, never, serve } from './serving.ts';

let ca: Certificates;

beforeAll(async () => {
  ca = await makeCa();
});

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

  test('goes to https:// through a tunnel, in which the certificate is the server’s', async () => {
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

  test('reports a proxy that rejects, and one that is not there', async () => {
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

  test('speaks TLS to an https:// proxy, whose certificate is checked', async () => {
    const { url, asked } = await serve((_, response) => json(response, 200, {}), ca.server);
    const { port, seen } = await aProxy('me:right', { own: ca.server });
    const proxy = `https://me:right@127.0.0.1:${port}`;
    const client = open();

    const { status } = await client.request(
      post(url, proxy, { tls: { ca_file: ca.caFile } }),
      never(),
    );

    expect(status).toBe(200);
    expect(seen).toMatchObject([{ method: 'CONNECT' }]);
    expect(asked).toHaveLength(1);
    await expect(client.request(post(url, proxy), never())).rejects.toMatchObject({
      message: expect.stringMatching(/certificate/),
    });
  });

  test('trusts a proxy that intercepts TLS by its authority alone', async () => {
    const { url, asked } = await serve((_, response) => json(response, 200, {}), ca.server);
    const other = await makeUntrustedCa();
    const { port } = await aProxy(undefined, { intercepts: other.server });
    const proxy = `http://127.0.0.1:${port}`;
    const client = open();

    const { status } = await client.request(
      post(url, proxy, { tls: { ca_file: other.caFile } }),
      never(),
    );

    expect([status, asked.length]).toEqual([200, 0]);
    await expect(
      client.request(post(url, proxy, { tls: { ca_file: ca.caFile } }), never()),
    ).rejects.toMatchObject({ reason: 'tls' });
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

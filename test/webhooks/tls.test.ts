// Deliveries over TLS: what is served, who is let in, and a certificate that is renewed while sluice runs.

import { copyFileSync } from 'node:fs';
import { request } from 'node:https';
import { connect } from 'node:net';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { systemClock } from '../../src/tools/clock.ts';
import { type Certificates, makeCa, makeUntrustedCa } from '../support/certificates.ts';
import { afterThisTest, tempDir } from '../support/temp.ts';
import { headersFor, listening, planned } from './listening.ts';

async function served(tls: (its: Certificates) => object, clock = systemClock()) {
  const its = await makeCa();
  const running = await listening({
    clock,
    sources: (listen) => [planned('hooks', { listen, tls: tls(its) })],
  });
  return { ...running, ...its };
}

const plain = ({ server }: Certificates) => ({
  cert_file: server.certFile,
  key_file: server.keyFile,
});

/** Sends one delivery; its status, or why there is none. */
function send(port: number, options: object): Promise<number | string> {
  const body = '{"id":"evt-1"}';
  const { promise, resolve } = Promise.withResolvers<number | string>();
  const headers = headersFor({ body });
  const asked = request(
    {
      ...{ host: '127.0.0.1', servername: 'localhost', port, path: '/webhooks' },
      method: 'POST',
      headers,
      agent: false,
      ...options,
    },
    (response) => {
      response.resume().on('end', () => resolve(response.statusCode ?? 0));
    },
  );
  asked.on('error', (error) => resolve('code' in error ? String(error.code) : error.message));
  asked.end(body);
  return promise;
}

test('a delivery over TLS is taken, and one in the clear is not', async () => {
  const { port, ca, url } = await served(plain);
  const { ca: another } = await makeUntrustedCa();

  expect(await send(port, { ca })).toBe(200);
  expect(await send(port, { ca: another })).not.toBe(200);
  await expect(fetch(url, { method: 'POST' })).rejects.toThrow();
});

test('with ca_file only a client with a certificate from there is accepted', async () => {
  const { port, ca, client } = await served((its) => ({ ...plain(its), ca_file: its.caFile }));

  expect(await send(port, { ca, cert: client.cert, key: client.key })).toBe(200);
  expect(await send(port, { ca })).not.toBe(200);
});

test('with chains of two, each side sends its intermediate and trusts the root alone', async () => {
  const { port, ca, clientChain, clientLeaf } = await served((its) => ({
    ...{ cert_file: its.chain.certFile, key_file: its.chain.keyFile, ca_file: its.caFile },
  }));

  expect(await send(port, { ca, cert: clientChain.cert, key: clientChain.key })).toBe(200);
  expect(await send(port, { ca, cert: clientLeaf.cert, key: clientLeaf.key })).not.toBe(200);
});

test('hundreds of clients without a handshake keep no other client out', async () => {
  const { port, ca } = await served(plain);
  for (let n = 0; n < 700; n += 1) {
    const socket = connect(port, '127.0.0.1').on('error', () => undefined);
    afterThisTest(() => void socket.destroy());
  }

  expect(await send(port, { ca })).toBe(200);
});

test('a certificate that is renewed in its file is served without a restart', async () => {
  const dir = tempDir('tls-');
  const files = { cert_file: join(dir, 'cert.pem'), key_file: join(dir, 'key.pem') };
  const put = ({ server }: Certificates) => {
    copyFileSync(server.certFile, files.cert_file);
    copyFileSync(server.keyFile, files.key_file);
  };
  const system = systemClock();
  let aheadMs = 0;
  const clock = { ...system, monotonic: () => system.monotonic() + aheadMs };
  const { port, ca } = await served((its) => {
    put(its);
    return files;
  }, clock);
  const other = await makeUntrustedCa();
  const before = await send(port, { ca });

  put(other);
  aheadMs = 61_000;
  await send(port, { ca });

  expect([before, await send(port, { ca: other.ca })]).toEqual([200, 200]);
});

// The agent for clients of libraries: each connection has a whole handshake, with the certificate that the file has then.

import { readFileSync } from 'node:fs';
import { createServer, get } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { expect, test } from 'vitest';
import { tlsAgent } from '../../src/tools/tls-agent.ts';
import { makeCa } from '../support/certificates.ts';
import { afterThisTest } from '../support/temp.ts';

test('no session is resumed, so that a renewed certificate is shown', async () => {
  const { ca, chain, clientChain, caFile } = await makeCa();
  const reused: boolean[] = [];
  const server = createServer(
    {
      cert: readFileSync(chain.certFile),
      key: readFileSync(chain.keyFile),
      ...{ ca, requestCert: true, rejectUnauthorized: true },
    },
    ({ socket }, response) => {
      reused.push((socket as TLSSocket).isSessionReused());
      response.end('fine');
    },
  );
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  afterThisTest(() => void server.close());
  const { port } = server.address() as AddressInfo;
  const { certFile: cert_file, keyFile: key_file } = clientChain;
  const agent = tlsAgent({ ca_file: caFile, cert_file, key_file }, { keepAlive: false });
  afterThisTest(() => agent.destroy());
  const request = () =>
    new Promise<void>((resolve, reject) => {
      get({ host: '127.0.0.1', port, agent }, (response) => {
        response.resume();
        response.on('close', resolve);
      }).on('error', reject);
    });

  for (let count = 0; count < 3; count += 1) await request();

  expect(reused).toEqual([false, false, false]);
});

import { spawn } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { copyFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { TLSSocket } from 'node:tls';
import { beforeAll, describe, expect, test } from 'vitest';
import type { HttpClient, HttpRequest, TlsSettings } from '../../src/contracts/tools.ts';
import { openHttpClient } from '../../src/tools/http-client.ts';
import {
  type Certificates,
  type KeyPair,
  makeCa,
  makeUntrustedCa,
} from '../support/certificates.ts';
import { afterThisTest, tempDir, waitUntil } from '../support/temp.ts';
import { json, never, serve } from './serving.ts';

let ca: Certificates;
let stranger: Certificates;

beforeAll(async () => {
  ca = await makeCa();
  stranger = await makeUntrustedCa();
});

function open(certificateCheckMs = 5_000): HttpClient {
  const client = openHttpClient({ certificateCheckMs });
  afterThisTest(() => client.close());
  return client;
}

function get(url: string, tls: TlsSettings): HttpRequest {
  return { method: 'GET', url, headers: {}, tls, timeoutMs: 10_000, bodyBytesMax: 1_000 };
}

describe('openHttpClient: TLS', () => {
  test('trusts the given authority, over HTTP/1.1 and TLS 1.3', async () => {
    const versions: unknown[] = [];
    const { url } = await serve((_, response, request) => {
      const { socket } = request;
      versions.push(request.httpVersion, socket instanceof TLSSocket && socket.getProtocol());
      json(response, 200, {});
    }, ca.server);

    const answer = await open().request(
      get(url, { ca_file: ca.caFile, min_version: 'TLSv1.3' }),
      never(),
    );

    expect(answer.status).toBe(200);
    expect(versions).toEqual(['1.1', 'TLSv1.3']);
  });

  test('A22: a server that offers TLS 1.2 only is refused where 1.3 is the least, with a hint', async () => {
    const { url, asked } = await serve((_, response) => json(response, 200, {}), {
      ...ca.server,
      maxVersion: 'TLSv1.2',
    });
    const client = open();

    await expect(
      client.request(get(url, { ca_file: ca.caFile, min_version: 'TLSv1.3' }), never()),
    ).rejects.toMatchObject({ reason: 'tls', message: expect.stringContaining('tls.min_version') });
    expect(asked).toHaveLength(0);
    const accepted = await client.request(
      get(url, { ca_file: ca.caFile, min_version: 'TLSv1.2' }),
      never(),
    );
    expect(accepted.status).toBe(200);
  });

  test('an unknown authority, an ended certificate, another name and a plain port each say so', async () => {
    const good = await serve((_, response) => json(response, 200, {}), ca.server);
    const ended = await serve((_, response) => json(response, 200, {}), ca.expired);
    const plain = await serve((_, response) => json(response, 200, {}));
    const client = open();
    const cases: [string, TlsSettings, string][] = [
      [good.url, { ca_file: stranger.caFile }, 'tls.ca_file'],
      [good.url, {}, 'tls.ca_file'],
      [ended.url, { ca_file: ca.caFile }, 'expired'],
      [good.url, { ca_file: ca.caFile, server_name: 'other.example' }, 'tls.server_name'],
      [plain.url.replace('http:', 'https:'), { ca_file: ca.caFile }, 'does not speak TLS'],
    ];

    for (const [url, tls, hint] of cases) {
      await expect(client.request(get(url, tls), never())).rejects.toMatchObject({
        reason: 'tls',
        message: expect.stringContaining(hint),
      });
    }
  });

  test('a missing intermediate certificate is named, and one that is sent is accepted', async () => {
    const serving = (pair: KeyPair) => serve((_, response) => json(response, 200, {}), pair);
    const [leafOnly, whole] = [await serving(ca.leaf), await serving(ca.chain)];
    const client = open();
    const request = (url: string, ca_file: string) =>
      client.request(get(url, { ca_file }), never());

    await expect(request(leafOnly.url, ca.caFile)).rejects.toMatchObject({
      reason: 'tls',
      message: expect.stringMatching(/sent no intermediate certificate.*LEAF_SIGNATURE/),
    });
    await expect(request(whole.url, ca.intermediateFile)).rejects.toMatchObject({
      reason: 'tls',
      message: expect.stringMatching(/without its root certificate/),
    });
    expect((await request(whole.url, ca.caFile)).status).toBe(200);
  });

  test('an encrypted key is named', async () => {
    const { certFile: cert_file } = ca.client;
    const files = { cert_file, key_file: ca.encryptedKeyFile };

    await expect(open().request(get('https://127.0.0.1:1', files), never())).rejects.toMatchObject({
      reason: 'tls',
      message: expect.stringContaining(
        `tls.key_file: ${ca.encryptedKeyFile} is encrypted with a passphrase`,
      ),
    });
  });

  test('server_name is the name that is verified', async () => {
    const { url } = await serve((_, response) => json(response, 200, {}), ca.server);

    const answer = await open().request(
      get(url, { ca_file: ca.caFile, server_name: 'localhost' }),
      never(),
    );

    expect(answer.status).toBe(200);
  });

  test('a client certificate is shown', async () => {
    const { url } = await serve((_, response) => json(response, 200, {}), {
      ...ca.server,
      ca: ca.ca,
      requestCert: true,
      rejectUnauthorized: true,
    });
    const { certFile: cert_file, keyFile: key_file } = ca.client;

    const answer = await open().request(
      get(url, { ca_file: ca.caFile, cert_file, key_file }),
      never(),
    );

    expect(answer.status).toBe(200);
  });

  test.each(['-tls1_2', '-tls1_3'])(
    'without the client certificate that an OpenSSL server wants, the hint names it (%s)',
    async (version) => {
      const args = ['s_server', '-accept', '127.0.0.1:0', '-www', version, '-Verify', '1'];
      const files = ['-CAfile', ca.caFile, '-cert', ca.server.certFile, '-key', ca.server.keyFile];
      const server = spawn('openssl', [...args, ...files, '-verify_return_error']);
      afterThisTest(() => server.kill());
      let said = '';
      server.stdout.on('data', (chunk) => {
        said += chunk;
      });
      const port = await waitUntil(() => /ACCEPT 127\.0\.0\.1:(\d+)/.exec(said)?.[1], {
        what: () => `openssl s_server to listen; it said ${said}`,
      });

      const request = open().request(
        get(`https://127.0.0.1:${port}/`, { ca_file: ca.caFile }),
        never(),
      );

      await expect(request).rejects.toMatchObject({
        reason: 'tls',
        message: expect.stringContaining('tls.cert_file'),
      });
    },
  );

  test('files that are missing or do not fit together are named', async () => {
    const client = open();
    const missing = { ca_file: '/nowhere/ca.pem' };
    const mixed = { cert_file: ca.client.certFile, key_file: ca.server.keyFile };

    await expect(
      client.request(get('https://127.0.0.1:1', missing), never()),
    ).rejects.toMatchObject({
      reason: 'tls',
      message: 'tls.ca_file: cannot read /nowhere/ca.pem (ENOENT)',
    });
    await expect(client.request(get('https://127.0.0.1:1', mixed), never())).rejects.toMatchObject({
      reason: 'tls',
      message: expect.stringContaining(`tls.key_file: ${ca.server.keyFile} does not fit`),
    });
  });

  test('certificates rotated on disk are taken up; a file caught half-written changes nothing', async () => {
    const subjects: string[] = [];
    const { url } = await serve(
      (_, response, request) => {
        const { socket } = request;
        const certificate =
          socket instanceof TLSSocket ? socket.getPeerX509Certificate() : undefined;
        subjects.push(certificate?.fingerprint256 ?? 'none');
        json(response, 200, {});
      },
      { ...ca.server, ca: [ca.ca, stranger.ca], requestCert: true, rejectUnauthorized: true },
    );
    const dir = tempDir();
    const [cert_file, key_file] = [join(dir, 'cert.pem'), join(dir, 'key.pem')];
    const request = get(url, { ca_file: ca.caFile, cert_file, key_file });
    const client = open(0);
    copyFileSync(ca.client.certFile, cert_file);
    copyFileSync(ca.client.keyFile, key_file);

    await client.request(request, never());
    copyFileSync(ca.server.certFile, cert_file);
    await client.request(request, never());
    writeFileSync(key_file, 'half');
    await client.request(request, never());
    copyFileSync(stranger.client.certFile, cert_file);
    copyFileSync(stranger.client.keyFile, key_file);
    const answer = await client.request(request, never());

    expect(answer.status).toBe(200);
    const [first, second] = [ca, stranger].map(
      ({ client }) => new X509Certificate(client.cert).fingerprint256,
    );
    expect(subjects).toEqual([first, first, first, second]);
  });
});

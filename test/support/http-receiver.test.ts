// The HTTP receiver keeps its requests and misbehaves as scripted.
import { gzipSync, zstdCompressSync } from 'node:zlib';
import { request } from 'undici';
import { describe, expect, test } from 'vitest';
import { makeCa, makeUntrustedCa } from './certificates.ts';
import { inTurn, startHttpReceiver } from './http-receiver.ts';

describe('startHttpReceiver', () => {
  const encodings = [
    { encoding: 'identity', encode: (text: string) => Buffer.from(text) },
    { encoding: 'gzip', encode: (text: string) => gzipSync(text) },
    { encoding: 'zstd', encode: (text: string) => zstdCompressSync(text) },
  ];
  test.for(encodings)(
    'keeps a request with its $encoding body decoded',
    async ({ encoding, encode }) => {
      const receiver = await startHttpReceiver();
      const body = encode('line 1\nline 2 ü');

      const response = await request(`${receiver.url}/in?x=1`, {
        method: 'POST',
        headers: { 'content-encoding': encoding, authorization: 'Token t' },
        body,
      });

      const [received] = await receiver.waitFor(1);
      expect(response.statusCode).toBe(200);
      expect(received).toMatchObject({ number: 1, method: 'POST', path: '/in?x=1' });
      expect(received?.headers).toMatchObject({ authorization: 'Token t' });
      expect(received?.body.toString()).toBe('line 1\nline 2 ü');
      expect(received?.wireBytes).toBe(body.length);
    },
  );

  test('answers in turn, and then with the last answer for ever', async () => {
    const receiver = await startHttpReceiver();
    const headers = { 'retry-after': '2' };
    receiver.answer(
      inTurn(
        { answer: 'reply', status: 429, headers, body: 'slow down' },
        { answer: 'reply', status: 204 },
      ),
    );

    const first = await request(receiver.url);
    const second = await request(receiver.url);
    const third = await request(receiver.url);

    expect(first).toMatchObject({ statusCode: 429, headers });
    expect(await first.body.text()).toBe('slow down');
    expect([second.statusCode, third.statusCode]).toEqual([204, 204]);
  });

  test('resets, cuts and hangs when scripted, and still keeps the requests', async () => {
    const receiver = await startHttpReceiver();

    receiver.answer({ answer: 'reset' });
    await expect(request(receiver.url)).rejects.toMatchObject({ code: 'ECONNRESET' });
    receiver.answer({ answer: 'cut' });
    const cut = await request(receiver.url);
    await expect(cut.body.text()).rejects.toThrow();
    receiver.answer({ answer: 'hang' });
    await expect(request(receiver.url, { headersTimeout: 200 })).rejects.toMatchObject({
      code: 'UND_ERR_HEADERS_TIMEOUT',
    });

    expect(receiver.requests).toHaveLength(3);
  });

  test('refuses connections while closed and is back on the same port when reopened', async () => {
    const receiver = await startHttpReceiver();

    await receiver.close();
    await expect(request(receiver.url)).rejects.toMatchObject({ code: 'ECONNREFUSED' });
    await receiver.reopen();
    const response = await request(receiver.url);

    expect(response.statusCode).toBe(200);
  });

  test('resets over HTTPS too, and shows another certificate when scripted', async () => {
    const { Agent } = await import('undici');
    const [tls, other] = [await makeCa(), await makeUntrustedCa()];
    const receiver = await startHttpReceiver({ tls });
    const dispatcher = new Agent({ connect: { ca: tls.ca } });
    const ask = () => request(receiver.url, { dispatcher });

    receiver.answer({ answer: 'reset' });
    await expect(ask()).rejects.toMatchObject({ code: 'ECONNRESET' });
    receiver.answer({ answer: 'reply', status: 204 });
    await (await ask()).body.dump();
    receiver.show(other);
    await expect(ask()).rejects.toMatchObject({ code: /CERT|ISSUER/ });
    await receiver.close();
    receiver.show(tls);
    await receiver.reopen();
    const { statusCode } = await ask();

    expect(statusCode).toBe(204);
    await dispatcher.destroy();
  });

  test('serves HTTPS and requires a client certificate when scripted', async () => {
    const { Agent } = await import('undici');
    const { ca, client } = await makeCa();
    const tls = await makeCa();
    const receiver = await startHttpReceiver({ tls, clientCertificates: true });
    const stranger = new Agent({ connect: { ca } });
    const known = new Agent({ connect: { ca, cert: client.cert, key: client.key } });

    const refused = request(receiver.url, { dispatcher: stranger });
    await expect(refused).rejects.toThrow();
    const response = await request(receiver.url, { dispatcher: known });

    expect(response.statusCode).toBe(200);
    await Promise.all([stranger.destroy(), known.destroy()]);
  });
});

// Objects in a bucket, at a real server: what the directory keeps to, and what only a bucket has.

import { randomBytes } from 'node:crypto';
import { afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { Secret } from '../../src/contracts/secret.ts';
import { openBucket } from '../../src/objects/s3.ts';
import { bucketFailure } from '../../src/objects/s3-failure.ts';
import { aProxy } from '../support/http-proxy.ts';
import { startHttpReceiver } from '../support/http-receiver.ts';
import { type S3Server, s3BuildMsMax, startS3 } from '../support/s3.ts';
import { askedOf } from '../support/s3-front.ts';
import { s3ServerName } from '../support/s3-program.ts';
import { textOf } from './reading.ts';
import { keepsObjects } from './store-contract.ts';

const name = await s3ServerName();
let server: S3Server;
beforeAll(async () => {
  server = await startS3();
}, s3BuildMsMax);

/** As a config would say it. */
function reached(change: { key?: string; secret?: string } = {}) {
  const { endpoint, region, credentials } = server.settings;
  const { key = credentials.access_key_id, secret = credentials.secret_access_key } = change;
  return {
    endpoint,
    region,
    credentials: { access_key_id: key, secret_access_key: new Secret(() => secret) },
  };
}

async function aBucket(isLocked = false) {
  const bucket = await server.bucket(isLocked);
  const open = () => openBucket({ ...reached(), bucket, prefix: 'some/prefix/' });
  return { bucket, store: await open(), again: await open() };
}

describe(`objects in a bucket of ${name}`, () => {
  keepsObjects(() => aBucket());

  test.each([8 * 1024 * 1024, 8 * 1024 * 1024 + 1, 20_000_000])(
    'an object of %i bytes is written once, in parts where it is long',
    async (bytes) => {
      const { store, bucket } = await aBucket();
      const body = randomBytes(bytes);
      const pieces = [body.subarray(0, 7), body.subarray(7, 9_000_000), body.subarray(9_000_000)];

      expect(await store.create('x', pieces, { metadata: { a: 'b' } })).toBe('created');
      expect(await store.create('x', [randomBytes(bytes)])).toBe('exists');

      expect(await store.facts('x')).toMatchObject({ bytes, metadata: { a: 'b' } });
      expect(body.equals((await store.read('x'))?.body ?? Buffer.alloc(0))).toBe(true);
      expect([...(await server.objects(bucket)).keys()]).toEqual(['some/prefix/x']);
    },
  );

  test('an object with versions can be listed until all of them are deleted', async () => {
    const { bucket, store } = await aBucket(true);
    await store.put('x', [Buffer.from('first')]);
    await store.put('x', [Buffer.from('second')]);
    await store.put('x', [Buffer.from('third')]);
    let left = 0;
    const front = await startHttpReceiver({
      answer: (request) => {
        left -= request.method === 'DELETE' ? 1 : 0;
        return left < 0 ? { answer: 'reset' } : askedOf(server.endpoint, request);
      },
    });
    const settings = { ...reached(), endpoint: front.url, bucket, prefix: 'some/prefix/' };
    const cut = await openBucket(settings);
    const listed = async () => (await Array.fromAsync(store.list(''))).length;

    const seen: (readonly [number, number])[] = [];
    for (let deleted = 0; deleted < 3; deleted += 1) {
      seen.push([await listed(), await server.versions(bucket)]);
      left = 1;
      await cut.remove('x').catch(() => undefined);
    }

    expect(seen).toEqual([
      [1, 3],
      [1, 2],
      [1, 1],
    ]);
    expect([await listed(), await server.versions(bucket)]).toEqual([0, 0]);
  });

  // moto does not look at If-Match where parts are completed.
  test.runIf(name === 'versitygw')(
    'an object of many parts is replaced by its tag only',
    async () => {
      const { store, again } = await aBucket();
      const long = randomBytes(9_000_000);
      const tag = await store.replace('x', [long], null);

      expect(await again.replace('x', [long], null)).toBeNull();
      expect(await again.replace('x', [long], '"not-this"')).toBeNull();
      expect(await again.replace('x', [Buffer.from('short')], tag)).not.toBeNull();
      expect(await textOf(store, 'x')).toBe('short');
    },
  );

  test.runIf(name === 'versitygw')(
    'a lock keeps an object, long or short, until its date',
    async () => {
      const { store, bucket } = await aBucket(true);
      const lock = { mode: 'COMPLIANCE', until: Date.now() + 3_600_000 } as const;
      await store.create('short', [Buffer.from('x')], { lock });
      await store.create('long', [randomBytes(9_000_000)], { lock });
      await store.create('held', [Buffer.from('x')], { lock: { until: 0, hold: true } });

      expect(await store.locks()).toBe(true);
      for (const name of ['short', 'long', 'held']) {
        await expect(server.destroy(bucket, `some/prefix/${name}`)).rejects.toThrow(
          /lock|protected/i,
        );
      }
    },
  );

  test('a bucket without Object Lock is reported, before and when a lock is requested', async () => {
    const { store } = await aBucket();
    const lock = { mode: 'GOVERNANCE', until: Date.now() + 3_600_000 } as const;

    expect(await store.locks()).toBe(false);
    await expect(store.create('x', [Buffer.from('x')], { lock })).rejects.toMatchObject({
      code: 'sink_refused',
    });
  });

  test('a missing bucket is reported by its name', async () => {
    const store = await openBucket({ ...reached(), bucket: 'not-there', prefix: '' });

    for (const work of [
      () => store.create('x', [Buffer.from('x')]),
      () => store.read('x'),
      () => store.list('').next(),
    ]) {
      await expect(work()).rejects.toMatchObject({
        code: 'sink_refused',
        message: expect.stringMatching(/s3:\/\/not-there\/: 404 NoSuchBucket/),
        next: expect.stringMatching(/Create the bucket/),
      });
    }
  });

  test.runIf(name === 'versitygw').each([
    ['InvalidAccessKeyId', { key: 'AKIAOTHEROTHEROTHERO' }],
    ['SignatureDoesNotMatch', { secret: 'another-secret' }],
  ])('%s is reported without the secret', async (code, change) => {
    const bucket = await server.bucket();
    const store = await openBucket({ ...reached(change), bucket, prefix: '' });

    const failure = await store.create('x', [Buffer.from('x')]).catch((error) => error);

    expect(failure).toMatchObject({
      code: 'sink_refused',
      next: expect.stringMatching(/credentials/),
    });
    expect(failure.message).toContain(code);
    expect(JSON.stringify(failure)).not.toContain('another-secret');
  });

  test.runIf(name === 'versitygw')(
    'a step of the clock is reported as that, and fails one request',
    async () => {
      const { store } = await aBucket();
      vi.useFakeTimers({ toFake: ['Date'] });
      const now = Date.now();

      for (const step of [3_600_000, 0, 3_650 * 86_400_000, 0, 1_000 - now, 0]) {
        vi.setSystemTime(now + step);
        await expect(store.put('x', [Buffer.from('x')])).rejects.toMatchObject({
          code: 'sink_unreachable',
          next: expect.stringMatching(/clock \(NTP\)/),
        });
        await store.put('x', [Buffer.from(`${step}`)]);
        expect(await textOf(store, 'x')).toBe(`${step}`);
      }
    },
  );

  test('a proxy is gone through, with its credential', async () => {
    const { bucket } = await aBucket();
    const { port, seen } = await aProxy('me:secret');
    const proxy = new Secret(() => `http://me:secret@127.0.0.1:${port}`);
    const store = await openBucket({ ...reached(), bucket, prefix: '', proxy });

    expect(await store.create('x', [randomBytes(9_000_000)])).toBe('created');

    expect(seen.map(({ method }) => method)).toEqual(['POST', 'PUT', 'PUT', 'POST']);
    expect(new Set(seen.map(({ credential }) => credential))).toEqual(
      new Set([`Basic ${btoa('me:secret')}`]),
    );
    expect([...(await server.objects(bucket)).keys()]).toEqual(['x']);
  });

  test.each([
    ['', 1],
    ['127.0.0.0/8', 0],
  ])('proxy: env with NO_PROXY %j leads %i requests through the proxy', async (noProxy, count) => {
    const { bucket } = await aBucket();
    const { port, seen } = await aProxy();
    vi.stubEnv('HTTP_PROXY', `http://127.0.0.1:${port}`);
    vi.stubEnv('NO_PROXY', noProxy);
    const proxy = new Secret(() => 'env');
    const store = await openBucket({ ...reached(), bucket, prefix: '', proxy });

    expect(await store.read('x')).toBeNull();

    expect(seen).toHaveLength(count);
  });

  test('an unreachable server is reported as that, and requests under way are given up', async () => {
    const { store, bucket } = await aBucket();
    store.close();
    await expect(store.read('x')).rejects.toMatchObject({ code: 'sink_unreachable' });

    const nowhere = { ...reached(), endpoint: 'http://127.0.0.1:1', bucket, prefix: '' };
    await expect((await openBucket(nowhere)).read('x')).rejects.toMatchObject({
      code: 'sink_unreachable',
      message: expect.stringMatching(/ECONNREFUSED/),
    });
  });
});

test('the page of a proxy in place of a response is no response to any request', async () => {
  const front = await startHttpReceiver({ keep: false });
  const headers = { 'content-type': 'text/html' };
  const page = Buffer.from('<!doctype html><html><body><p>Log in to go on.</p></body></html>');
  front.answer(() => ({ answer: 'reply', status: 200, headers, body: page }));
  const place = { ...reached(), endpoint: front.url, bucket: 'b-1', prefix: '' };
  const store = await openBucket(place);
  const long = [randomBytes(9_000_000)];

  for (const ask of [
    () => store.create('x', [page]),
    () => store.create('x', long),
    () => store.replace('x', [page], '"a"'),
    () => store.put('x', [page]),
    () => store.read('x'),
    () => store.facts('x'),
    () => store.list('').next(),
  ]) {
    await expect(ask()).rejects.toMatchObject({ code: 'sink_unreachable' });
  }
});

afterEach(() => {
  vi.unstubAllEnvs();
  vi.useRealTimers();
});

test.each([
  ['SlowDown', 503, 'sink_throttled', /more slowly/],
  ['InternalError', 500, 'sink_unreachable', /by itself/],
  ['ConditionalRequestConflict', 409, 'sink_unreachable', /by itself/],
  ['BadDigest', 400, 'sink_unreachable', /by itself/],
  ['AccessDenied', 403, 'sink_refused', /s3:PutObject/],
  ['ExpiredToken', 400, 'sink_refused', /Renew the credentials/],
  ['PermanentRedirect', 301, 'sink_refused', /Set region to eu-west-1/],
  ['InvalidRequest', 400, 'sink_refused', /error of the service/],
])('%s has its documented meaning', (name, httpStatusCode, code, next) => {
  const said = Object.assign(new Error('some\n\u001bwords'), {
    name,
    Region: 'eu-west-1',
    $metadata: { httpStatusCode, requestId: 'R1' },
  });

  expect(bucketFailure('writing x', said)).toMatchObject({
    code,
    message: `writing x: ${httpStatusCode} ${name} some words`,
    next: expect.stringMatching(next),
    details: { status: httpStatusCode, request_id: 'R1' },
  });
});

test('an endpoint that sends no intermediate certificate is named as such', () => {
  const code = 'UNABLE_TO_VERIFY_LEAF_SIGNATURE';
  const said = Object.assign(new Error('unable to verify the first certificate'), { code });

  const { code: kind, next } = bucketFailure('writing x', said);

  expect(kind).toBe('sink_unreachable');
  expect(next).toMatch(/sent no intermediate certificate/);
});

// A service that speaks only a part of S3, in front of a real server: it answers 501 to checksum headers, to conditions, or
// to both. `check --connect` names the keys that help, a sink with them delivers, and one without stops and says so.

import { beforeAll, describe, expect, test } from 'vitest';
import { s3Sink } from '../../../connectors/sinks/s3.ts';
import { openStore } from '../../../src/objects/open.ts';
import { type ReceivedRequest, startHttpReceiver } from '../../support/http-receiver.ts';
import { type S3Server, s3BuildMsMax, startS3 } from '../../support/s3.ts';
import { askedOf } from '../../support/s3-front.ts';
import { s3ServerName } from '../../support/s3-program.ts';
import { openSink, parseSettings, someEvents, testTools } from '../../support/sink-opening.ts';
import { uids, uidsIn } from './file-engine.ts';

const never = new AbortController().signal;
const name = await s3ServerName();
let server: S3Server;
beforeAll(async () => {
  server = await startS3();
}, s3BuildMsMax);

const body =
  '<Error><Code>NotImplemented</Code><Message>A header you provided implies functionality that is not implemented</Message></Error>';
const lacks = {
  checksums: ({ headers }: ReceivedRequest) =>
    Object.keys(headers).some((header) => /^x-amz-(checksum-|sdk-checksum|trailer)/.test(header)),
  conditions: ({ headers }: ReceivedRequest) => 'if-none-match' in headers,
};

async function aFront(what: readonly (keyof typeof lacks)[]) {
  const bucket = await server.bucket();
  const front = await startHttpReceiver({
    keep: false,
    answer: (request) =>
      what.some((one) => lacks[one](request))
        ? { answer: 'reply', status: 501, body }
        : askedOf(server.endpoint, request),
  });
  return { bucket, settings: { ...server.settings, bucket, endpoint: front.url } };
}

describe(`s3 sink before ${name}`, () => {
  test.each([
    [['checksums'], 'checksums: when_required', { checksums: 'when_required' }],
    [['conditions'], 'conditional_writes: false', { conditional_writes: false }],
    [
      ['checksums', 'conditions'],
      'checksums: when_required and conditional_writes: false',
      { checksums: 'when_required', conditional_writes: false },
    ],
  ] as const)('a service without %j needs %s', async (what, keys, remedy) => {
    const { bucket, settings } = await aFront(what);
    const probe = (change: object) =>
      s3Sink.probe(parseSettings(s3Sink, { ...settings, ...change }), testTools(), never);

    await expect(probe({})).rejects.toMatchObject({
      code: 'sink_refused',
      message: expect.stringContaining('501'),
      next: expect.stringContaining(`Set ${keys} on this sink`),
    });
    await probe(remedy);
    expect(await server.objects(bucket)).toHaveProperty('size', 0);

    const without = await openSink(s3Sink, settings);
    const refused = without.sink.send(without.batch(someEvents(3)), never);
    without.sink.flush?.();
    expect(await refused).toMatchObject({ outcome: 'refused', scope: 'sink' });

    for (const count of [3, 5]) {
      const { sink, batch } = await openSink(s3Sink, { ...settings, ...remedy });
      const answer = sink.send(batch(someEvents(count)), never);
      sink.flush?.();
      expect(await answer).toEqual({ outcome: 'delivered' });
      await sink.close();
    }
    const { gunzipSync } = await import('node:zlib');
    const found = [...(await server.objects(bucket)).values()];
    expect(found.flatMap((one) => uidsIn(gunzipSync(one.body).toString()))).toEqual(uids(5));
  });

  test('promises once with conditional writes only', () => {
    const promise = (change: object) => {
      const settings = parseSettings(s3Sink, { bucket: 'abc', ...change });
      return [s3Sink.assurance(settings), s3Sink.advice?.(settings)];
    };

    expect(promise({})).toEqual(['once', []]);
    expect(promise({ conditional_writes: false })).toEqual([
      'answered',
      [expect.stringContaining('at least once')],
    ]);
  });

  test('an object of several parts goes without checksums, and one with a lock has one', async () => {
    const { bucket, settings } = await aFront(['checksums']);
    const { credentials: _, ...where } = settings;
    const plain = await server.store(bucket, '');
    const { Secret } = await import('../../../src/contracts/secret.ts');
    const { access_key_id, secret_access_key } = settings.credentials;
    const store = await openStore(`s3://${bucket}`, {
      ...where,
      checksums: 'when_required',
      credentials: { access_key_id, secret_access_key: new Secret(() => secret_access_key) },
    });
    const large = Buffer.alloc(9 * 1024 * 1024, 'x');

    expect(await store.create('large', [large])).toBe('created');
    expect(await plain.facts('large')).toMatchObject({ bytes: large.length });
    const lock = { until: Date.now() + 60_000, mode: 'GOVERNANCE' as const };
    await expect(store.create('locked', [Buffer.from('x')], { lock })).rejects.toMatchObject({
      details: { status: 501 },
    });
    store.close();
  });
});

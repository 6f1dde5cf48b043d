// The Kafka sink with tokens, over each client: OAUTHBEARER with a token endpoint against a real Apache Kafka that
// checks unsigned tokens, and the token of Amazon MSK beside AWS Signature Version 4 as its guide describes it.

import { createHash, createHmac } from 'node:crypto';
import { inspect } from 'node:util';
import { describe, expect, test, vi } from 'vitest';
import { sasl, saslIdentity } from '../../../connectors/sinks/kafka/identity.ts';
import { kafkaSink } from '../../../connectors/sinks/kafka.ts';
import { rejectionIn } from '../../../src/kafka/sasl.ts';
import { makeCa } from '../../support/certificates.ts';
import { aProxy } from '../../support/http-proxy.ts';
import { startHttpReceiver } from '../../support/http-receiver.ts';
import { consumeAll, sharedKafka } from '../../support/kafka.ts';
import { grant, saslFor } from '../../support/kafka-tokens.ts';
import { manualClock } from '../../support/manual-clock.ts';
import { openSink, parseSettings, someEvents, testTools } from '../../support/sink-opening.ts';
import { aTopic, batchOf, deliver, drivers, goOn } from './kafka-engine.ts';

const uids = (events: readonly { readonly uid: string }[]) => events.map(({ uid }) => uid).sort();
const secret = 'secret-canary';

const { protected: guarded } = await sharedKafka();

describe.skipIf(guarded === null).each(drivers)(
  'kafkaSink over %s with a token (skipped: KAFKA_BROKERS has no such listener)',
  (driver) => {
    test.each([true, false])('delivers with a token (exactly_once: %s)', async (exactly_once) => {
      const topic = await aTopic('token');
      const endpoint = await startHttpReceiver({ answer: () => grant(3_600) });
      const { caFile } = await makeCa();
      const config = {
        ...{ driver, topic, exactly_once, sasl: saslFor(endpoint) },
        ...{ brokers: [guarded?.sasl], tls: undefined },
      };
      const overTls = { ...config, brokers: [guarded?.saslTls], tls: { ca_file: caFile } };
      const opened = await openSink(kafkaSink, exactly_once ? overTls : config, {
        spoolId: driver,
      });

      const { dead } = await deliver(opened, someEvents(5));

      expect(dead).toEqual([]);
      const records = await consumeAll(topic);
      expect(records.map(({ headers }) => headers.uid).sort()).toEqual(uids(someEvents(5)));
      const form = new URLSearchParams(endpoint.requests[0]?.body.toString());
      expect(Object.fromEntries(form)).toEqual({
        ...{ grant_type: 'client_credentials', client_id: 'me' },
        ...{ client_secret: secret, scope: 'kafka' },
      });
    });

    test('a rejected token stops the sink, and the next attempt has a new token', async () => {
      const topic = await aTopic('rejected');
      const endpoint = await startHttpReceiver({ answer: () => grant(-3_600, 3_600) });
      const config = { driver, brokers: [guarded?.sasl], topic, sasl: saslFor(endpoint) };
      const opened = await openSink(kafkaSink, config);

      const refused = await opened.sink.send(batchOf(opened, someEvents(5)), goOn);

      expect(refused).toMatchObject({
        outcome: 'refused',
        scope: 'sink',
        cause: { code: 'sink_refused', message: expect.stringContaining('rejected the token') },
      });
      expect(inspect([refused, opened.tools.logged], { depth: 20 })).not.toContain('canary');
      const probing = kafkaSink.probe(parseSettings(kafkaSink, config), opened.tools, goOn);
      await expect(probing).rejects.toMatchObject({ code: 'sink_refused' });

      endpoint.answer(grant(3_600));
      const accepted = await opened.sink.send(batchOf(opened, someEvents(5)), goOn);
      expect(accepted).toEqual({ outcome: 'delivered' });
      expect(await consumeAll(topic)).toHaveLength(5);
    });

    test.each([
      [401, 'refused'],
      [503, 'retry'],
    ])('a token endpoint that answers %s', async (status, outcome) => {
      const endpoint = await startHttpReceiver({
        answer: () => ({
          answer: 'reply',
          status,
          body: JSON.stringify({ error: `no ${secret}` }),
        }),
      });
      const config = { driver, brokers: [guarded?.sasl], topic: 'x', sasl: saslFor(endpoint) };
      const opened = await openSink(kafkaSink, config);

      const answer = await opened.sink.send(batchOf(opened, someEvents(1)), goOn);

      expect(answer).toMatchObject({
        outcome,
        cause: { message: expect.stringContaining('sink-under-test: requesting a token') },
      });
      expect(inspect([answer, opened.tools.logged], { depth: 20 })).not.toContain('canary');
    });

    test('sasl.proxy is the way to the token endpoint', async () => {
      const topic = await aTopic('proxy');
      const endpoint = await startHttpReceiver({ answer: () => grant(3_600) });
      const { port, seen } = await aProxy('me:proxy-canary');
      const sasl = { ...saslFor(endpoint), proxy: `http://me:proxy-canary@127.0.0.1:${port}` };
      const config = { driver, brokers: [guarded?.sasl], topic, sasl };
      const opened = await openSink(kafkaSink, config);

      const answer = await opened.sink.send(batchOf(opened, someEvents(3)), goOn);

      expect(answer).toEqual({ outcome: 'delivered' });
      expect(seen.map(({ target }) => target).join()).toContain(`${new URL(endpoint.url).port}`);
      expect(inspect([answer, opened.tools.logged], { depth: 20 })).not.toContain('canary');
    });

    test('one token serves several batches, and none is requested for a delivery alone', async () => {
      const topic = await aTopic('several');
      const endpoint = await startHttpReceiver({ answer: () => grant(3_600) });
      const config = { driver, brokers: [guarded?.sasl], topic, sasl: saslFor(endpoint) };
      const opened = await openSink(kafkaSink, config);
      const events = someEvents(6);
      await opened.sink.send(batchOf(opened, events.slice(0, 3)), goOn);

      endpoint.answer({ answer: 'reply', status: 503, body: '' });
      const later = await opened.sink.send(batchOf(opened, events.slice(3)), goOn);

      expect(later).toEqual({ outcome: 'delivered' });
      expect(endpoint.requests).toHaveLength(1);
    });
  },
);

test('the token of Amazon MSK is a request that is signed with the credential of the environment', async () => {
  const [key, secretKey, session] = ['AKIDEXAMPLE', 'aws-canary', 'session+/='];
  vi.stubEnv('AWS_ACCESS_KEY_ID', key);
  vi.stubEnv('AWS_SECRET_ACCESS_KEY', secretKey);
  vi.stubEnv('AWS_SESSION_TOKEN', session);
  const tools = testTools();
  const deps = { tools, doing: 'sending to lake', timeout: 1_000 };
  const identity = saslIdentity({ mechanism: 'aws_msk_iam', region: 'eu-west-1' }, deps);
  if (identity.mechanism !== 'oauthbearer') throw new Error('a password');

  const token = await identity.token();

  expect(token).toMatch(/^[\w-]+$/);
  const url = new URL(Buffer.from(token, 'base64url').toString());
  const given = Object.fromEntries(url.searchParams);
  const { 'X-Amz-Signature': signature, 'User-Agent': agent, ...signed } = given;
  expect(url.host).toBe('kafka.eu-west-1.amazonaws.com');
  expect(agent).toBe('sluice');
  expect(signed).toMatchObject({
    ...{ Action: 'kafka-cluster:Connect', 'X-Amz-Algorithm': 'AWS4-HMAC-SHA256' },
    ...{ 'X-Amz-Expires': '900', 'X-Amz-SignedHeaders': 'host', 'X-Amz-Security-Token': session },
  });
  // https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html
  const time = signed['X-Amz-Date'] ?? '';
  const scope = `${time.slice(0, 8)}/eu-west-1/kafka-cluster/aws4_request`;
  expect(signed['X-Amz-Credential']).toBe(`${key}/${scope}`);
  const query = Object.keys(signed)
    .sort()
    .map((name) => `${encodeURIComponent(name)}=${encodeURIComponent(signed[name] ?? '')}`)
    .join('&');
  const sha = (text: string) => createHash('sha256').update(text).digest('hex');
  const canonical = ['GET', '/', query, `host:${url.host}`, '', 'host', sha('')].join('\n');
  const text = ['AWS4-HMAC-SHA256', time, scope, sha(canonical)].join('\n');
  const hmac = (by: string | Buffer, part: string) => createHmac('sha256', by).update(part);
  const signing = scope
    .split('/')
    .reduce<string | Buffer>((by, part) => hmac(by, part).digest(), `AWS4${secretKey}`);
  expect(signature).toBe(hmac(signing, text).digest('hex'));
  expect(await identity.token()).toBe(token);
});

test('a token of Amazon MSK is signed again after five minutes, or once it is dropped', async () => {
  vi.stubEnv('AWS_ACCESS_KEY_ID', 'AKIDEXAMPLE');
  vi.stubEnv('AWS_SECRET_ACCESS_KEY', 'aws-canary');
  const clock = manualClock(Date.UTC(2026, 2, 4));
  const deps = { tools: testTools(clock), doing: 'sending to lake', timeout: 1_000 };
  const identity = saslIdentity({ mechanism: 'aws_msk_iam', region: 'eu-west-1' }, deps);
  if (identity.mechanism !== 'oauthbearer') throw new Error('a password');
  const signedAt = async () => {
    const url = new URL(Buffer.from(await identity.token(), 'base64url').toString());
    return url.searchParams.get('X-Amz-Date');
  };
  vi.useFakeTimers({ toFake: ['Date'], now: Date.UTC(2026, 2, 4, 12, 0, 0) });
  try {
    expect(await signedAt()).toBe('20260304T120000Z');
    vi.setSystemTime(Date.UTC(2026, 2, 4, 12, 0, 30));
    await clock.advance(299_999);
    expect(await signedAt()).toBe('20260304T120000Z');
    await clock.advance(1);
    expect(await signedAt()).toBe('20260304T120030Z');
    vi.setSystemTime(Date.UTC(2026, 2, 4, 12, 0, 40));
    identity.drop();
    expect(await signedAt()).toBe('20260304T120040Z');
  } finally {
    vi.useRealTimers();
  }
});

test.each([
  [{ mechanism: 'oauthbearer', client_id: 'a', client_secret: 'b' }, 'token_url', 'is missing'],
  [{ mechanism: 'aws_msk_iam' }, 'region', 'is missing'],
  [{ mechanism: 'plain', username: 'a' }, 'password', 'is missing'],
  [
    {
      ...{ mechanism: 'oauthbearer', client_id: 'a', client_secret: 'b' },
      token_url: 'http://idp.example/token',
    },
    'token_url',
    'begins with https://',
  ],
  [{ mechanism: 'aws_msk_iam', region: 'eu-west-1', scope: 'a' }, 'scope', 'does not belong'],
])('sasl %j is refused by its key', (settings, key, words) => {
  const { error } = sasl().safeParse(settings);

  expect(error?.issues).toMatchObject([{ path: [key], message: expect.stringContaining(words) }]);
});

test('what a broker wrote about a token is one short line', () => {
  expect(rejectionIn(null)).toBeNull();
  expect(rejectionIn(Buffer.from(''))).toBeNull();
  const hostile = Buffer.from(`{"status":"invalid_token"}\n\u001b[31m${'x'.repeat(5_000)}`);
  const reason = rejectionIn(hostile) ?? '';

  expect(reason).toContain('rejected the token: {"status":"invalid_token"} [31mxxx');
  expect(reason.length).toBeLessThan(140);
});

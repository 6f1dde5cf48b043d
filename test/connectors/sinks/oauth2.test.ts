// OAuth 2.0 client credentials of the sinks http and otlp: how a token is requested, used, renewed and replaced, what each
// response of the token endpoint means, and that neither secret nor token is ever shown.

import { expect, test } from 'vitest';
import { httpSink } from '../../../connectors/sinks/http.ts';
import { otlpSink } from '../../../connectors/sinks/otlp.ts';
import { type HttpAnswer, startHttpReceiver } from '../../support/http-receiver.ts';
import { manualClock } from '../../support/manual-clock.ts';
import { grpcStatus, startOtlpGrpcReceiver } from '../../support/otlp-grpc-receiver.ts';
import { openSink, parseSettings, someEvents, testTools } from '../../support/sink-opening.ts';

const never = new AbortController().signal;
const secret = 'hunter2-&=+secret';
const ok: HttpAnswer = { answer: 'reply', status: 200 };
const reply = (status: number, body: object = {}, headers: Record<string, string> = {}) =>
  ({ answer: 'reply', status, body: JSON.stringify(body), headers }) as const;

/** A token endpoint that numbers its tokens, unless it answers otherwise. */
async function tokenEndpoint(expiresIn: number | null = 3_600) {
  let count = 0;
  const life = expiresIn === null ? {} : { expires_in: expiresIn };
  return await startHttpReceiver({
    answer: () => {
      count += 1;
      return reply(200, { access_token: `token-${count}-canary`, token_type: 'Bearer', ...life });
    },
  });
}

async function aSink(
  definition: typeof httpSink | typeof otlpSink = httpSink,
  { expiresIn = 3_600, more = {} }: { expiresIn?: number | null; more?: object } = {},
) {
  const endpoint = await tokenEndpoint(expiresIn);
  const receiver = await startHttpReceiver();
  const oauth2 = {
    token_url: `${endpoint.url}/token`,
    client_id: 'me',
    client_secret: secret,
    scope: 'logs:write other',
  };
  const clock = manualClock();
  const opened = await openSink(
    definition as typeof httpSink,
    { url: receiver.url, oauth2, ...more },
    { tools: testTools(clock) },
  );
  const send = () => opened.sink.send(opened.batch(someEvents(2)), never);
  const bearers = () => receiver.requests.map(({ headers }) => headers.authorization);
  return { endpoint, receiver, clock, send, bearers };
}

test.each([
  ['http', httpSink],
  ['otlp', otlpSink],
])('%s requests one token with client id and secret, and uses it', async (_, definition) => {
  const { endpoint, send, bearers } = await aSink(definition);

  expect([await send(), await send()]).toEqual([
    { outcome: 'delivered' },
    { outcome: 'delivered' },
  ]);

  expect(bearers()).toEqual(['Bearer token-1-canary', 'Bearer token-1-canary']);
  expect(endpoint.requests).toHaveLength(1);
  expect(endpoint.requests[0]).toMatchObject({ method: 'POST', path: '/token' });
  expect(Object.fromEntries(new URLSearchParams(endpoint.requests[0]?.body.toString()))).toEqual({
    grant_type: 'client_credentials',
    client_id: 'me',
    client_secret: secret,
    scope: 'logs:write other',
  });
});

test.each([
  [3_600, 3_539_000, 3_541_000],
  [10, 8_900, 9_100],
  [null, 269_000, 271_000],
])('a token with expires_in %s is renewed before its end', async (expiresIn, before, after) => {
  const { clock, send, bearers } = await aSink(httpSink, { expiresIn });
  await send();
  await clock.advance(before);
  await send();
  await clock.advance(after - before);
  await send();

  expect(bearers()).toEqual([1, 1, 2].map((n) => `Bearer token-${n}-canary`));
});

test('after a 401 the request is sent once more with a new token, and a second 401 is final', async () => {
  const { receiver, send, bearers, endpoint } = await aSink();
  await send();
  receiver.answer(({ headers }) =>
    headers.authorization === 'Bearer token-2-canary' ? ok : reply(401),
  );
  expect(await send()).toEqual({ outcome: 'delivered' });
  receiver.answer(reply(401, { message: 'token-3-canary is no token' }));

  const refused = await send();

  expect(refused).toMatchObject({ outcome: 'refused', scope: 'sink' });
  expect(JSON.stringify(refused)).not.toContain('canary');
  expect(bearers().map((one) => one?.match(/\d/)?.[0])).toEqual(['1', '1', '2', '2', '3']);
  expect(endpoint.requests).toHaveLength(3);
});

test.each([
  [400, 'refused'],
  [401, 'refused'],
  [403, 'refused'],
  [429, 'retry'],
  [503, 'retry'],
])('a token endpoint that answers %i: %s', async (status, outcome) => {
  const { endpoint, receiver, send } = await aSink();
  const echo = `bad: ${secret} ${encodeURIComponent(secret)}`;
  endpoint.answer(reply(status, { error_description: echo }, { 'retry-after': '7' }));

  const delivery = await send();

  expect(delivery).toMatchObject({
    outcome,
    ...(outcome === 'refused' ? { scope: 'sink' } : { afterMs: 7_000 }),
    cause: { message: expect.stringContaining('requesting a token') },
  });
  const { cause } = delivery as { cause?: Error };
  expect(String(cause) + JSON.stringify(cause)).not.toContain('hunter2');
  expect(receiver.requests).toHaveLength(0);
});

// None of these concerns an event, so none is split from its batch or becomes a dead letter.
test.each([
  [302, /Redirects are not followed: set the address of oauth2.token_url/],
  [404, /Check oauth2: token_url/],
  [405, /Check oauth2: token_url/],
  [407, /Check oauth2: token_url/],
  [413, /Check oauth2: token_url/],
  [422, /Check oauth2: token_url/],
])('a token endpoint that answers %i refuses the sink, and no event', async (status, next) => {
  const { endpoint, receiver, send } = await aSink();
  const elsewhere = `${receiver.url}/token?secret=${encodeURIComponent(secret)}`;
  endpoint.answer(reply(status, {}, { location: elsewhere }));

  expect(await send()).toMatchObject({
    ...{ outcome: 'refused', scope: 'sink' },
    cause: { code: 'sink_refused', next: expect.stringMatching(next) },
  });
  expect([receiver.requests.length, endpoint.requests.length]).toEqual([0, 1]);
});

test('a token response of megabytes is read in part only, and refused', async () => {
  const { endpoint, receiver, send } = await aSink();
  const body = JSON.stringify({ access_token: 'a', pad: 'x'.repeat(6 * 1024 * 1024) });
  endpoint.answer({ answer: 'reply', status: 200, body });

  expect(await send()).toMatchObject({
    ...{ outcome: 'refused', scope: 'sink' },
    cause: { next: expect.stringContaining('oauth2: token_url') },
  });
  expect(receiver.requests).toHaveLength(0);
});

test.each(['hang', 'reset', 'cut'] as const)(
  'a token endpoint whose connection does %s is tried again later',
  async (answer) => {
    const { endpoint, receiver, send } = await aSink(httpSink, { more: { timeout: '2s' } });
    endpoint.answer({ answer });

    expect(await send()).toMatchObject({
      outcome: 'retry',
      cause: { code: 'sink_unreachable', next: expect.stringContaining('oauth2.token_url') },
    });
    expect(receiver.requests).toHaveLength(0);
  },
);

test.each([
  ['"10"', 8_900, 9_100],
  ['0', 269_000, 271_000],
  ['-5', 269_000, 271_000],
  ['"soon"', 269_000, 271_000],
  ['1e99', 1e9, null],
])('expires_in %s is text, nonsense or without an end', async (text, before, after) => {
  const { endpoint, clock, send } = await aSink();
  const body = `{"access_token":"token-1-canary","expires_in":${text}}`;
  endpoint.answer({ answer: 'reply', status: 200, body });
  await send();
  await clock.advance(before);
  await send();
  const kept = endpoint.requests.length;
  if (after !== null) await clock.advance(after - before);
  await send();

  expect([kept, endpoint.requests.length]).toEqual([1, after === null ? 1 : 2]);
});

test.each([
  ['no JSON', { answer: 'reply', status: 200, body: '<html>login</html>' }],
  ['no token', reply(200, { token: 'a' })],
  ['another type', reply(200, { access_token: 'a', token_type: 'mac' })],
  ['a forged header', reply(200, { access_token: 'a\r\nx: y' })],
] as const)('a token response with %s is refused', async (_, answer) => {
  const { endpoint, send } = await aSink();
  endpoint.answer(answer);

  expect(await send()).toMatchObject({ outcome: 'refused', scope: 'sink' });
});

test('otlp over gRPC sends the token, and replaces a rejected one once', async () => {
  const endpoint = await tokenEndpoint();
  const receiver = await startOtlpGrpcReceiver({
    answer: ({ metadata }) =>
      metadata.authorization === 'Bearer token-1-canary'
        ? { code: grpcStatus.UNAUTHENTICATED, details: 'expired' }
        : 'accept',
  });
  const { sink, batch } = await openSink(otlpSink, {
    protocol: 'grpc',
    url: receiver.url,
    oauth2: { token_url: endpoint.url, client_id: 'me', client_secret: secret },
  });

  expect(await sink.send(batch(someEvents(2)), never)).toEqual({ outcome: 'delivered' });
  expect(receiver.calls.map(({ metadata }) => metadata.authorization)).toEqual([
    'Bearer token-1-canary',
    'Bearer token-2-canary',
  ]);
});

test.each([
  [{ headers: { authorization: 'a' } }, /headers.authorization and oauth2 do not go together/],
  [{ url: 'http://ingest.example' }, /begin with https:/],
  [{ token: 'http://id.example' }, /begin with https:/],
])('wrong settings are refused: %j', (more, flaw) => {
  const { token = 'https://id.example/token', ...rest } = more as { token?: string };
  const settings = parseSettings(httpSink, {
    url: 'https://ingest.example',
    oauth2: { token_url: token, client_id: 'a', client_secret: 'b' },
    ...rest,
  });

  expect(httpSink.flaw?.(settings)).toMatch(flaw);
});

test('check --connect requests a token before it connects', async () => {
  const endpoint = await startHttpReceiver({ answer: () => reply(401) });
  const receiver = await startHttpReceiver();
  const settings = parseSettings(httpSink, {
    url: receiver.url,
    oauth2: { token_url: endpoint.url, client_id: 'a', client_secret: 'b' },
  });
  const probe = () => httpSink.probe?.(settings, testTools(), never);

  await expect(probe()).rejects.toThrow('requesting a token');
  endpoint.answer(reply(200, { access_token: 'a-token' }));
  await probe();

  expect(receiver.requests.map(({ headers }) => headers.authorization)).toEqual(['Bearer a-token']);
});

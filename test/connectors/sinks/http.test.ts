// The http sink against a real HTTP server: what arrives, and what each answer means to the engine.

import { describe, expect, test } from 'vitest';
import { postOnce } from '../../../connectors/shared/http-post.ts';
import { httpSink } from '../../../connectors/sinks/http.ts';
import { Secret } from '../../../src/contracts/secret.ts';
import type { Delivery } from '../../../src/contracts/sink.ts';
import { anEvent } from '../../support/an-event.ts';
import { makeCa, makeUntrustedCa } from '../../support/certificates.ts';
import { aProxy } from '../../support/http-proxy.ts';
import { type HttpAnswer, inTurn, startHttpReceiver } from '../../support/http-receiver.ts';
import { openSink, parseSettings, someEvents, testTools } from '../../support/sink-opening.ts';

const never = new AbortController().signal;
const reply = (status: number, headers: Readonly<Record<string, string>> = {}): HttpAnswer => ({
  answer: 'reply',
  status,
  headers,
});

async function answeredWith(answer: HttpAnswer): Promise<Delivery> {
  const receiver = await startHttpReceiver({ answer: () => answer });
  const { sink, batch } = await openSink(httpSink, { url: receiver.url, timeout: '300ms' });
  return await sink.send(batch(someEvents(3)), never);
}

test('http posts one JSON event a line, with its headers and a key', async () => {
  const receiver = await startHttpReceiver();
  const headers = { Authorization: 'Splunk 1234', 'X-Index': 'main' };
  const { sink, batch, format } = await openSink(httpSink, { url: `${receiver.url}/in`, headers });
  const events = someEvents(3);

  const delivery = await sink.send(batch(events), never);

  expect(delivery).toEqual({ outcome: 'delivered' });
  const [request] = receiver.requests;
  expect(request).toMatchObject({ method: 'POST', path: '/in' });
  expect(request?.headers).toMatchObject({
    authorization: 'Splunk 1234',
    'x-index': 'main',
    'content-type': 'application/x-ndjson',
    'idempotency-key': expect.stringMatching(/^[0-9a-f]{32}$/),
  });
  expect(request?.headers).not.toHaveProperty('content-encoding');
  expect(request?.body.toString()).toBe(events.map((e) => `${format.encode(e)}\n`).join(''));
});

test('after a proxy refused the password, the command that prints it runs again', async () => {
  const receiver = await startHttpReceiver();
  const { port } = await aProxy('me:new-secret');
  let password = 'old-secret';
  const proxy = new Secret(() => '');
  proxy.bind(
    () => `http://me:${password}@127.0.0.1:${port}`,
    null,
    async () => {
      password = 'new-secret';
    },
  );
  const context = { doing: 'sending', tools: testTools(), signal: never };
  const to = { url: receiver.url, timeout: 5_000, compression: 'none', proxy } as const;
  const post = () => postOnce(to, { body: Buffer.from('a'), headers: {} }, context);

  const refused = await post();

  expect(refused).toMatchObject({
    outcome: 'retry',
    cause: { message: expect.stringContaining('407') },
  });
  expect(JSON.stringify(refused)).not.toContain('secret');
  expect(await post()).toMatchObject({ outcome: 'accepted' });
});

test('http posts a JSON array if configured', async () => {
  const receiver = await startHttpReceiver();
  const { sink, batch } = await openSink(httpSink, { url: receiver.url, body: 'array' });
  const events = someEvents(3);

  await sink.send(batch(events), never);

  const [request] = receiver.requests;
  expect(request?.headers['content-type']).toBe('application/json');
  expect(JSON.parse(request?.body.toString() ?? '')).toEqual(
    events.map(({ ocsf }) => JSON.parse(JSON.stringify(ocsf))),
  );
});

test('http posts text formats as lines, and as JSON strings in an array', async () => {
  const receiver = await startHttpReceiver();
  const asLines = await openSink(httpSink, { url: receiver.url }, { format: 'cef' });
  const asArray = await openSink(httpSink, { url: receiver.url, body: 'array' }, { format: 'cef' });
  const events = someEvents(2);

  await asLines.sink.send(asLines.batch(events), never);
  await asArray.sink.send(asArray.batch(events), never);

  const [lines, array] = receiver.requests.map((request) => request.body.toString());
  const expected = events.map((event) => asLines.format.encode(event));
  expect(lines?.split('\n')).toEqual([...expected, '']);
  expect(JSON.parse(array ?? '')).toEqual(expected);
  expect(receiver.requests[0]?.headers['content-type']).toBe('text/plain; charset=utf-8');
});

test.each(['gzip', 'zstd'] as const)('http compresses bodies with %s', async (compression) => {
  const receiver = await startHttpReceiver();
  const { sink, batch } = await openSink(httpSink, { url: receiver.url, compression });

  await sink.send(batch(someEvents(50)), never);

  const [request] = receiver.requests;
  expect(request?.headers['content-encoding']).toBe(compression);
  expect(request?.body.toString().split('\n')).toHaveLength(51);
  expect(request?.wireBytes).toBeLessThan((request?.body.length ?? 0) / 4);
});

test('http takes up a secret header that changed', async () => {
  const receiver = await startHttpReceiver();
  const tools = testTools();
  const settings = parseSettings(httpSink, { url: receiver.url, headers: { 'X-Key': 'old' } });
  const secrets = settings.headers as Record<string, { bind(read: () => string): void }>;
  const { format } = await openSink(httpSink, { url: receiver.url });
  const numbering = { spool: 's', epochs: [{ id: 1, until: null }] };
  const nothing = async () => undefined;
  const opening = {
    name: 'post',
    format,
    numbering,
    config: () => null,
    sinks: () => [],
    position: 0,
    mark: null,
    remember: nothing,
    report: nothing,
    tools,
  };
  const sink = await httpSink.open(settings, opening);
  const { batch } = await openSink(httpSink, { url: receiver.url });

  await sink.send(batch(someEvents(1)), never);
  secrets['X-Key']?.bind(() => 'new');
  await sink.send(batch(someEvents(1)), never);

  expect(receiver.requests.map((request) => request.headers['x-key'])).toEqual(['old', 'new']);
});

describe('http takes as delivered', () => {
  test.each([200, 201, 202, 204])('%i', async (status) => {
    expect(await answeredWith(reply(status))).toEqual({ outcome: 'delivered' });
  });
});

describe('http requests another attempt after', () => {
  test.each([408, 409, 425, 429, 500, 501, 502, 503, 504, 599])('%i', async (status) => {
    const delivery = await answeredWith(reply(status));

    const code = status === 429 ? 'sink_throttled' : 'sink_unreachable';
    expect(delivery).toMatchObject({ outcome: 'retry', cause: { code } });
    expect(delivery).not.toHaveProperty('afterMs');
  });

  test.each(['reset', 'cut', 'hang'] as const)('no whole answer: %s', async (answer) => {
    const delivery = await answeredWith({ answer });

    expect(delivery).toMatchObject({ outcome: 'retry', cause: { code: 'sink_unreachable' } });
  });

  test('a refused connection', async () => {
    const receiver = await startHttpReceiver();
    await receiver.close();
    const { sink, batch } = await openSink(httpSink, { url: receiver.url });

    const delivery = await sink.send(batch(someEvents(1)), never);

    expect(delivery).toMatchObject({ outcome: 'retry', cause: { code: 'sink_unreachable' } });
  });
});

test.each([429, 503])('http passes the wait of a %i to the engine', async (status) => {
  const delivery = await answeredWith(reply(status, { 'Retry-After': '17' }));

  expect(delivery).toMatchObject({ outcome: 'retry', afterMs: 17_000 });
});

test.each([400, 422])('http takes %i as a refusal of the batch', async (status) => {
  const delivery = await answeredWith(reply(status));

  expect(delivery).toMatchObject({
    outcome: 'refused',
    scope: 'batch',
    cause: { code: 'record_refused' },
  });
});

test.each([301, 302, 307, 308, 401, 403, 404, 405, 407, 410, 415, 451])(
  'http takes %i as a refusal by the receiver, and follows no redirect',
  async (status) => {
    const elsewhere = await startHttpReceiver();

    const delivery = await answeredWith(reply(status, { Location: elsewhere.url }));

    expect(delivery).toMatchObject({
      outcome: 'refused',
      scope: 'sink',
      cause: { code: 'sink_refused' },
    });
    expect(elsewhere.requests).toEqual([]);
  },
);

const nextOf = (delivery: unknown) => String(Object(Object(delivery).cause).next);

test('http names the next step for a rejection by the sink’s settings', async () => {
  const bare = nextOf(await answeredWith(reply(401)));
  const cached = nextOf(await answeredWith(reply(304)));
  const proxied = nextOf(await answeredWith(reply(407)));
  const receiver = await startHttpReceiver({ answer: () => reply(401) });
  const headers = { Authorization: 'Bearer hunter2' };
  const { sink, batch } = await openSink(httpSink, { url: receiver.url, headers });
  const signed = nextOf(await sink.send(batch(someEvents(1)), new AbortController().signal));

  expect(bare).toMatch(/sends no credentials: set .*headers: \{ Authorization/);
  expect(cached).not.toMatch(/redirect/i);
  expect(proxied).toMatch(/the sink’s proxy/);
  expect(signed).toMatch(/credentials of the sink; it sends them in the headers Authorization/);
  expect(signed).not.toContain('hunter2');
});

test('http halves a batch that is too large, each part under a key of its own, the same at each attempt', async () => {
  const receiver = await startHttpReceiver({
    answer: ({ body }) => reply(body.toString().split('\n').length > 4 ? 413 : 200),
  });
  const { sink, batch } = await openSink(httpSink, { url: receiver.url });
  const events = someEvents(10);

  const first = await sink.send(batch(events), never);
  const keysOfFirst = receiver.requests.map((request) => request.headers['idempotency-key']);
  await sink.send(batch(events), never);

  expect(first).toEqual({ outcome: 'delivered' });
  const keys = receiver.requests.map((request) => request.headers['idempotency-key']);
  expect(new Set(keysOfFirst).size).toBe(keysOfFirst.length);
  expect(keys.slice(keysOfFirst.length)).toEqual(keysOfFirst);
});

test('http gives a dead letter that is sent again a key of its own', async () => {
  const receiver = await startHttpReceiver();
  const { sink, batch } = await openSink(httpSink, { url: receiver.url });
  const event = anEvent({ offset: 3 });

  await sink.send(batch([event]), never);
  await sink.send(batch([event]), never);
  await sink.send(batch([{ ...event, offset: 900 }]), never);

  const [first, attempt, replay] = receiver.requests.map((r) => r.headers['idempotency-key']);
  expect(attempt).toBe(first);
  expect(replay).not.toBe(first);
});

test('http refuses the one event that is too large, by name', async () => {
  const receiver = await startHttpReceiver({
    answer: ({ body }) => reply(body.includes('too much') ? 413 : 200),
  });
  const { sink, batch } = await openSink(httpSink, { url: receiver.url });
  const events = someEvents(7).map((event, i) =>
    i === 4 ? { ...event, ocsf: { ...event.ocsf, message: 'too much' } } : event,
  );

  const delivery = await sink.send(batch(events), never);

  expect(delivery).toEqual({
    outcome: 'partly',
    refused: [{ uid: events[4]?.uid, reason: expect.stringContaining('413') }],
    again: [],
  });
});

test('http sends only the rest after a part of the batch was accepted', async () => {
  const receiver = await startHttpReceiver({
    answer: inTurn(reply(413), reply(200), reply(503, { 'Retry-After': '1' })),
  });
  const { sink, batch } = await openSink(httpSink, { url: receiver.url });
  const events = someEvents(6);

  const delivery = await sink.send(batch(events), never);

  expect(delivery).toEqual({
    outcome: 'partly',
    refused: [],
    again: events.slice(3).map((event) => event.uid),
  });
});

test('http never shows a secret, a path or a query in a failure', async () => {
  const receiver = await startHttpReceiver({ answer: () => reply(403) });
  const url = `${receiver.url}/collect/t0ken?key=s3cret`;
  const { sink, batch } = await openSink(httpSink, { url, headers: { 'X-Key': 's3cret' } });

  const delivery = await sink.send(batch(someEvents(1)), never);

  const said = delivery.outcome === 'refused' ? delivery.cause : null;
  expect(said?.message).toBe(`sending to sink-under-test: ${receiver.url} answered 403`);
  expect(`${said?.next} ${JSON.stringify(said?.details)}`).not.toMatch(/s3cret|t0ken/);
});

test('http gives up promptly when aborted', async () => {
  const receiver = await startHttpReceiver({ answer: () => ({ answer: 'hang' }) });
  const { sink, batch } = await openSink(httpSink, { url: receiver.url });
  const stop = new AbortController();

  const sending = sink.send(batch(someEvents(1)), stop.signal);
  await receiver.waitFor(1);
  stop.abort(new Error('stopping'));

  await expect(sending).rejects.toThrow('stopping');
});

test('http speaks TLS with its own authority, and refuses a stranger’s certificate', async () => {
  const [ours, theirs] = [await makeCa(), await makeUntrustedCa()];
  const receiver = await startHttpReceiver({ tls: ours });
  const trusting = await openSink(httpSink, { url: receiver.url, tls: { ca_file: ours.caFile } });
  const other = await openSink(httpSink, { url: receiver.url, tls: { ca_file: theirs.caFile } });

  const trusted = await trusting.sink.send(trusting.batch(someEvents(1)), never);
  const refused = await other.sink.send(other.batch(someEvents(1)), never);

  expect(trusted).toEqual({ outcome: 'delivered' });
  expect(refused).toMatchObject({ outcome: 'refused', scope: 'sink' });
  expect(receiver.requests).toHaveLength(1);
});

describe('http settings', () => {
  test.each([
    ['no URL', { url: 'ingest.example' }, /expected a URL/],
    ['another scheme', { url: 'ftp://ingest.example' }, /expected a URL/],
    ['credentials in the URL', { url: 'https://me:pw@ingest.example' }, /headers/],
    ['an unknown key', { url: 'https://ingest.example', verb: 'PUT' }, /verb/],
  ])('refuse %s', (_name, config, message) => {
    expect(() => parseSettings(httpSink, config)).toThrow(message);
  });

  test('have a flaw where tls stands beside http://', () => {
    const plain = parseSettings(httpSink, { url: 'http://ingest.example', tls: {} });
    const secure = parseSettings(httpSink, { url: 'https://ingest.example', tls: {} });

    expect(httpSink.flaw?.(plain)).toMatch(/https/);
    expect(httpSink.flaw?.(secure)).toBeNull();
  });
});

describe('http probe', () => {
  const probe = async (answer: HttpAnswer) => {
    const receiver = await startHttpReceiver({ answer: () => answer });
    const settings = parseSettings(httpSink, { url: receiver.url, timeout: '300ms' });
    await httpSink.probe(settings, testTools(), never);
    return receiver.requests;
  };

  test.each([200, 204, 404, 405, 400])('takes %i to a GET as reached', async (status) => {
    const requests = await probe(reply(status));

    expect(requests.map((request) => request.method)).toEqual(['GET']);
  });

  test.each([401, 403, 500, 503])('throws on %i', async (status) => {
    await expect(probe(reply(status))).rejects.toThrow(`answered ${status}`);
  });

  test('throws when no server answers', async () => {
    await expect(probe({ answer: 'hang' })).rejects.toMatchObject({ code: 'sink_unreachable' });
  });
});

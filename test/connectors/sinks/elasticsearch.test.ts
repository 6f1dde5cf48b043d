// The elasticsearch sink: its requests, and the meaning of each kind of response. Responses that no cluster sends come
// from a scripted server; those of a real cluster are in elasticsearch-cluster.test.ts.

import { createHash, createHmac } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { elasticsearchSink } from '../../../connectors/sinks/elasticsearch.ts';
import { anEvent, type EventWishes } from '../../support/an-event.ts';
import {
  type HttpAnswer,
  type HttpReceiver,
  startHttpReceiver,
} from '../../support/http-receiver.ts';
import { openSink, parseSettings, someEvents, testTools } from '../../support/sink-opening.ts';
import { afterThisTest } from '../../support/temp.ts';

const never = new AbortController().signal;
const reply = (body: unknown, status = 200): HttpAnswer => ({
  answer: 'reply',
  status,
  headers: { 'content-type': 'application/json' },
  body: typeof body === 'string' ? body : JSON.stringify(body),
});
const items = (...parts: readonly object[]) =>
  reply({ errors: true, items: parts.map((create) => ({ create })) });
const conflict = { type: 'version_conflict_engine_exception', reason: 'document already exists' };
const failure = (status: number, type: string, reason = 'because') => ({
  status,
  error: { type, reason },
});

/** What each action line says, and the documents. */
function sentTo({ requests }: HttpReceiver) {
  return requests.map(({ path, headers, body }) => {
    const lines = body.toString().split('\n');
    const json = (line: string) => JSON.parse(line);
    return {
      path,
      headers,
      last: lines.at(-1),
      actions: lines
        .slice(0, -1)
        .filter((_, i) => i % 2 === 0)
        .map(json),
      documents: lines
        .slice(0, -1)
        .filter((_, i) => i % 2 === 1)
        .map(json),
    };
  });
}

async function answered(answer: HttpAnswer, count: number, config: object = {}) {
  const receiver = await startHttpReceiver({ answer: () => answer });
  const { sink, batch } = await openSink(elasticsearchSink, { url: receiver.url, ...config });
  const events = someEvents(count);
  const delivery = await sink.send(batch(events), never);
  return { delivery, uids: events.map(({ uid }) => uid), receiver, sink, batch };
}

/** The index of one event. */
async function indexFor(wishes: EventWishes, index?: string): Promise<string> {
  const receiver = await startHttpReceiver({ answer: () => items({ status: 201 }) });
  const config = { url: receiver.url, ...(index !== undefined && { index }) };
  const { sink, batch } = await openSink(elasticsearchSink, config);
  await sink.send(batch([anEvent(wishes)]), never);
  return sentTo(receiver)[0]?.actions[0].create._index;
}

describe('elasticsearch sends', () => {
  test('an action with the uid as id, and the event, a line each, the last one ended', async () => {
    const { receiver, uids } = await answered(items({ status: 201 }, { status: 201 }), 2, {
      auth: { api_key: 'a2V5' },
      pipeline: 'clean',
    });

    const [request] = sentTo(receiver);
    expect(request?.actions).toEqual(
      uids.map((_id) => ({ create: { _index: 'sluice-api_activity-2026.03.04', _id } })),
    );
    expect(request?.documents.map(({ event }) => event.id)).toEqual(uids);
    expect(request?.last).toBe('');
    expect(request?.path).toMatch(/^\/_bulk\?filter_path=.*&pipeline=clean$/);
    expect(request?.headers).toMatchObject({
      authorization: 'ApiKey a2V5',
      'content-type': 'application/x-ndjson',
      'content-encoding': 'gzip',
    });
  });

  test('records as upstream sent them, and the user of HTTP Basic', async () => {
    const receiver = await startHttpReceiver({ answer: () => items({ status: 201 }) });
    const config = { url: `${receiver.url}/`, auth: { username: 'me', password: 'p:w' } };
    const format = { type: 'json', schema: 'original' };
    const { sink, batch } = await openSink(elasticsearchSink, config, { format });

    const delivery = await sink.send(batch([anEvent({ raw: '{ "a":\n1 }' })]), never);

    expect(delivery).toEqual({ outcome: 'delivered' });
    const [request] = sentTo(receiver);
    expect(request?.documents).toEqual([{ a: 1 }]);
    expect(request?.path).toMatch(/^\/_bulk\?/);
    expect(request?.headers.authorization).toBe(`Basic ${btoa('me:p:w')}`);
  });

  test.each([
    [Date.UTC(2000, 0, 1), '2000.01.01'],
    [Date.UTC(2000, 0, 1) - 1, 'undated'],
    [Date.UTC(2026, 2, 5, 23, 59, 59, 999), '2026.03.05'],
    [Date.UTC(2026, 2, 6), 'undated'],
    [0, 'undated'],
    [-8.64e15, 'undated'],
    [8.64e15, 'undated'],
    [1e300, 'undated'],
    [Number.NaN, 'undated'],
  ])('an event of %d, read on 4 March 2026, to the index of %s', async (time, date) => {
    expect(await indexFor({ ocsf: { time } })).toBe(`sluice-api_activity-${date}`);
  });

  test.each([
    ['Base Event', 'base_event'],
    ['../_all,*', 'all'],
    ['', 'event'],
    [undefined, 'event'],
  ])('an event of the class %j to the index of %s', async (name, text) => {
    const ocsf = { class_name: name as string };
    expect(await indexFor({ ocsf }, '{class}')).toBe(text);
  });
});

describe('elasticsearch takes an answer', () => {
  test('of each event as its own: delivered, again, or refused with the reason', async () => {
    const { delivery, uids } = await answered(
      items(
        { status: 201 },
        { status: 409, error: conflict },
        failure(429, 'rejected_execution_exception'),
        failure(503, 'process_cluster_event_timeout_exception'),
        failure(400, 'mapper_parsing_exception', 'failed to parse\n\u001b[31mfield [time]'),
        failure(404, 'index_not_found_exception'),
        { status: 201, failure_store: 'used', _id: 'lEu8jZYB_ZAKuDfZNouU' },
        { status: 200 },
        failure(409, 'illegal_state_exception'),
        failure(429, 'cluster_block_exception'),
        failure(403, 'cluster_block_exception'),
        failure(503, 'unavailable_shards_exception'),
      ),
      12,
    );

    const reasons = [
      [4, '400 mapper_parsing_exception: failed to parse [31mfield [time]'],
      [5, expect.stringMatching(/^index sluice-\S+: 404 index_not_found_exception: because$/)],
      [6, '201 the data stream refused it and put it into its failure store'],
      // Others were accepted: a right or a shard that one index lacks holds no other.
      [10, expect.stringMatching(/^index sluice-\S+: 403 cluster_block_exception: because$/)],
      [11, expect.stringMatching(/^index sluice-\S+: 503 unavailable_shards_exception: because$/)],
    ] as const;
    expect(delivery).toEqual({
      outcome: 'partly',
      refused: reasons.map(([at, reason]) => ({
        ...{ uid: uids[at], reason },
        ...([5, 10, 11].includes(at) && { by: 'destination' }),
      })),
      again: [2, 3, 8, 9].map((at) => uids[at]),
    });
  });

  test('with the nested cause of an error, once', async () => {
    const error = {
      type: 'mapper_parsing_exception',
      reason: 'failed to parse',
      caused_by: { type: 'illegal_argument_exception', reason: 'not an IP' },
    };

    const { delivery } = await answered(items({ status: 400, error }, { status: 201 }), 2);

    expect(delivery).toMatchObject({
      refused: [
        {
          reason:
            '400 mapper_parsing_exception: failed to parse; illegal_argument_exception: not an IP',
        },
      ],
    });
  });

  test('that all have to wait as a wait', async () => {
    const full = failure(429, 'rejected_execution_exception', 'queue is full');

    const { delivery } = await answered(items(full, full), 2);

    expect(delivery).toMatchObject({
      outcome: 'retry',
      cause: { code: 'sink_throttled', message: expect.stringContaining('queue is full') },
    });
  });

  test('that all are denied as the sink’s refusal', async () => {
    const denied = failure(403, 'security_exception', 'no permission');

    const { delivery } = await answered(items(denied, denied), 2);

    expect(delivery).toMatchObject({ outcome: 'refused', scope: 'sink' });
  });

  test.each([
    ['illegal_argument_exception', 'pipeline with id [x] does not exist'],
    [
      'validation_exception',
      'this action would add [2] shards, but this cluster has [1000]/[1000]',
    ],
    ['index_closed_exception', 'closed'],
    ['illegal_argument_exception', 'no write index is defined for alias [sluice]'],
  ])('%s: %s for a fault of the index, which it names', async (type, reason) => {
    const bad = failure(400, type, reason);
    const { delivery, uids } = await answered(items(bad, bad), 2);

    const named = expect.stringMatching(/^index sluice-\S+: 400 /);
    expect(delivery).toEqual({
      outcome: 'partly',
      refused: uids.map((uid) => ({ uid, reason: named, by: 'destination' })),
      again: [],
    });
  });

  const ok = { status: 201 };
  test.each([
    ['a login page', reply('<html><title>Sign in</title></html>')],
    ['nothing', reply('')],
    ['half an answer', reply('{"errors":false,"items":[{"create":{"status":201}},{"cre')],
    ['JSON of something else', reply({ ok: true })],
    ['too few items', items(ok)],
    ['too many items', items(ok, ok, ok)],
    ['items of others', items({ ...ok, _id: 'x' }, { ...ok, _id: 'y' })],
    ['items without a status', items(ok, {})],
    ['items that are none', reply({ items: [null, 3] })],
    ['nested too deeply', reply(`{"items":[${'['.repeat(50_000)}`)],
  ])('%s for no answer: the events stay held', async (_what, answer) => {
    const { delivery } = await answered(answer, 2);

    expect(delivery).toMatchObject({
      outcome: 'refused',
      scope: 'sink',
      cause: { code: 'sink_refused' },
    });
  });

  test('for the events of another order for no answer', async () => {
    const receiver = await startHttpReceiver();
    const { sink, batch } = await openSink(elasticsearchSink, { url: receiver.url });
    const [a, b] = someEvents(2);
    receiver.answer(items({ status: 201, _id: b?.uid }, { status: 400, _id: a?.uid }));

    expect(await sink.send(batch(someEvents(2)), never)).toMatchObject({ scope: 'sink' });
  });

  test('without repeating a secret that the cluster repeats', async () => {
    const { delivery } = await answered(
      items(failure(400, 'x_exception', 'who is c2VjcmV0LWtleQ== or 123456?'), { status: 201 }),
      2,
      { auth: { username: 'anna', password: '123456' }, headers: { 'x-key': 'c2VjcmV0LWtleQ==' } },
    );

    expect(JSON.stringify(delivery)).toContain('who is');
    expect(JSON.stringify(delivery)).not.toMatch(/c2Vj|123456/);
  });

  test('though a password stands in a uid', async () => {
    const receiver = await startHttpReceiver();
    const [event] = someEvents(1);
    const password = event?.uid.slice(0, 8) ?? '';
    receiver.answer(items({ status: 201, _id: event?.uid }));
    const { sink, batch } = await openSink(elasticsearchSink, {
      url: receiver.url,
      auth: { username: 'anna', password },
    });

    expect(await sink.send(batch(someEvents(1)), never)).toEqual({ outcome: 'delivered' });
  });
});

test.each(['none', 'gzip'])(
  'elasticsearch signs its requests for Amazon’s service (%s)',
  async (compression) => {
    const keys = { AWS_ACCESS_KEY_ID: 'AKIDEXAMPLE', AWS_SECRET_ACCESS_KEY: 'not-a-secret' };
    Object.assign(process.env, keys);
    afterThisTest(() => {
      for (const name of Object.keys(keys)) delete process.env[name];
    });
    const { receiver, delivery } = await answered(items({ status: 201 }), 1, {
      auth: { sigv4: { region: 'eu-west-1' } },
      pipeline: 'a b*,',
      compression,
    });

    const [request] = receiver.requests;
    const { authorization = '', ...headers } = request?.headers ?? {};
    const [, scope, names = '', signature] =
      /^AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE\/(\S+), SignedHeaders=(\S+), Signature=(\S+)$/.exec(
        authorization,
      ) ?? [];
    expect(delivery).toEqual({ outcome: 'delivered' });
    expect(scope).toMatch(/^\d{8}\/eu-west-1\/es\/aws4_request$/);
    expect(names.split(';')).toEqual(
      expect.arrayContaining([
        ...(compression === 'gzip' ? ['content-encoding'] : []),
        'host',
        'x-amz-date',
      ]),
    );
    if (compression === 'none') {
      const hash = createHash('sha256')
        .update(request?.body ?? '')
        .digest('hex');
      expect(headers['x-amz-content-sha256']).toBe(hash);
    }
    expect(signature).toBe(
      signatureOf(
        { path: request?.path ?? '', headers, names, scope: scope ?? '' },
        keys.AWS_SECRET_ACCESS_KEY,
      ),
    );
  },
);

/** The signature by the steps of AWS's documents ("Create a signed AWS API request"). */
function signatureOf(
  {
    path,
    headers,
    names,
    scope,
  }: { path: string; headers: Readonly<Record<string, string>>; names: string; scope: string },
  secret: string,
): string {
  const { pathname, searchParams } = new URL(path, 'http://x');
  const encoded = (text: string) =>
    encodeURIComponent(text).replace(
      /[!'()*]/g,
      (one) => `%${one.charCodeAt(0).toString(16).toUpperCase()}`,
    );
  const query = [...searchParams]
    .map(([name, value]) => `${encoded(name)}=${encoded(value)}`)
    .sort();
  const lines = names.split(';').map((name) => `${name}:${headers[name]?.trim()}\n`);
  const hash = headers['x-amz-content-sha256'];
  const canonical = ['POST', pathname, query.join('&'), lines.join(''), names, hash].join('\n');
  const hmac = (key: string | Buffer, text: string) =>
    createHmac('sha256', key).update(text).digest();
  const key = scope.split('/').reduce<string | Buffer>(hmac, `AWS4${secret}`);
  const summary = createHash('sha256').update(canonical).digest('hex');
  const text = ['AWS4-HMAC-SHA256', headers['x-amz-date'], scope, summary].join('\n');
  return hmac(key, text).toString('hex');
}

describe('elasticsearch of several addresses', () => {
  async function twoNodes() {
    const [first, second] = [await startHttpReceiver(), await startHttpReceiver()];
    for (const node of [first, second]) node.answer(() => items({ status: 201 }));
    const opened = await openSink(elasticsearchSink, { url: [first.url, second.url] });
    const send = () => opened.sink.send(opened.batch(someEvents(1)), never);
    return { first, second, send };
  }

  test('stays with one until it is gone, then continues with the next at once', async () => {
    const { first, second, send } = await twoNodes();
    await send();
    await first.close();

    const answers = [await send(), await send(), await send()];

    expect(answers).toEqual([
      expect.objectContaining({ outcome: 'retry', afterMs: 0 }),
      { outcome: 'delivered' },
      { outcome: 'delivered' },
    ]);
    expect([first.requests.length, second.requests.length]).toEqual([1, 2]);
  });

  test('waits where all are gone', async () => {
    const { first, second, send } = await twoNodes();
    await Promise.all([first.close(), second.close()]);

    const answers = [await send(), await send()];

    expect(answers).toMatchObject([{ outcome: 'retry', afterMs: 0 }, { outcome: 'retry' }]);
    expect(answers[1]).not.toHaveProperty('afterMs');
  });
});

describe('elasticsearch says', () => {
  const assurance = (config: object) =>
    elasticsearchSink.assurance(parseSettings(elasticsearchSink, { url: 'http://e', ...config }));

  test('the settings of an index', () => {
    const settings = parseSettings(elasticsearchSink, {
      url: 'http://e',
      index: 'logs-sluice-default',
    });

    expect(assurance({})).toBe('once');
    expect(assurance({ index: 'logs-sluice-default' })).toBe('answered');
    expect(elasticsearchSink.advice?.(settings)).toEqual([expect.stringContaining('rolls over')]);
  });

  const region = 'eu-west-1';
  test.each([
    { username: 'a' },
    { password: 'p' },
    { api_key: 'k', username: 'a' },
    { sigv4: { region }, api_key: 'k' },
    { sigv4: { region }, username: 'a' },
    { username: 'a', password: 'p', api_key: 'k' },
    {},
  ])('that %j is no credential', (auth) => {
    const settings = parseSettings(elasticsearchSink, { url: 'http://e', auth });

    expect(elasticsearchSink.flaw?.(settings)).toMatch(/auth needs/);
  });

  test.each(['Upper-{date}', 'a b', '-x', 'a*', '{day}', '', '../x'])(
    'that %j is no index',
    (index) => {
      expect(() => assurance({ index })).toThrow(/index/);
    },
  );

  test.each([
    [reply({ error: 'request body is required' }, 400), null],
    [reply('<html>Sign in'), /not from a cluster/],
    [reply({ error: { reason: 'missing credentials' } }, 401), /401: missing credentials/],
    [reply({}, 403), /403/],
    [reply('<html>', 404), /404/],
    [reply({}, 503), /503/],
  ])('whether it may write there: %j', async (answer, expected) => {
    const receiver = await startHttpReceiver({ answer: () => answer });
    const settings = parseSettings(elasticsearchSink, { url: receiver.url });

    const asked = elasticsearchSink.probe(settings, testTools(), never);

    if (expected === null) await expect(asked).resolves.toBeUndefined();
    else await expect(asked).rejects.toThrow(expected);
  });
});

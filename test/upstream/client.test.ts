import { gzipSync, zstdCompressSync } from 'node:zlib';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import type { UpstreamRequest } from '../../src/contracts/upstream.ts';
import { openHttpClient } from '../../src/tools/http-client.ts';
import { EndsByUpstream } from '../../src/upstream/announced-ends.ts';
import { UpstreamClient } from '../../src/upstream/client.ts';
import { upstreamFields } from '../../src/upstream/settings.ts';
import { openThrottles } from '../../src/upstream/throttles.ts';
import { openTokens } from '../../src/upstream/tokens.ts';
import { type ManualClock, manualClock } from '../support/manual-clock.ts';
import { afterThisTest } from '../support/temp.ts';
import { type Answering, json, keepingLog, never, serve } from '../tools/serving.ts';

const oauth = { client_id: 'client-1', client_secret: 's3cr3t-value', scope: 'events:read' };

/** An upstream at a server that hands out numbered tokens and answers everything else with `answer`. */
async function upstream(
  answer: Answering,
  more: Record<string, unknown> = {},
  apiKey?: () => string,
) {
  let number = 0;
  const server = await serve((asked, response, request) => {
    if (!asked.path.endsWith('/token')) answer(asked, response, request);
    else
      json(response, 200, {
        access_token: `token-${++number}`,
        expires_in: 3_600,
        scope: 'mc:read',
      });
  });
  const clock = manualClock();
  const log = keepingLog();
  const client = openAt(server.url, { clock, log, more, ...(apiKey && { apiKey }) });
  const pages = () => server.asked.filter((one) => !one.path.endsWith('/token'));
  return { client, clock, log, pages, tokens: () => server.asked.length - pages().length };
}

function openAt(
  url: string,
  with_: {
    clock: ManualClock;
    log: ReturnType<typeof keepingLog>;
    more: Record<string, unknown>;
    apiKey?: () => string;
  },
) {
  const { clock, log, more, apiKey } = with_;
  const http = openHttpClient();
  afterThisTest(() => http.close());
  const random = () => 0;
  const settings = z
    .strictObject(upstreamFields)
    .parse({ api: 'unified', base_url: `${url}/v1`, allow_http: true, auth: oauth, ...more });
  if (apiKey) settings.auth.api_key?.bind(apiKey);
  return new UpstreamClient(
    'edge',
    { ...settings, companies: [] },
    {
      clock,
      log,
      http,
      throttles: openThrottles({ clock, random }),
      tokens: openTokens({ clock, http, log, random }),
      ends: new EndsByUpstream(clock),
    },
  );
}

/** A request for a path without variable parts, or as `more` says. */
function asking(path: string, more: Partial<UpstreamRequest> = {}): UpstreamRequest {
  return { path, template: path, query: [], ...more };
}

const page = { data: [{ id: '1' }], next_cursor: null };
const aRequest = { url: 'http://127.0.0.1:1/', headers: {}, timeoutMs: 1_000, bodyBytesMax: 1 };

describe('get: the request', () => {
  test('carries token, path and query, every value encoded once and in the order given', async () => {
    const { client, pages } = await upstream((_, response) => json(response, 200, page));
    const cursor = `a+/=%2F é&'(*)"<`;

    const answer = await client.get(
      asking('/audit/events', {
        query: [
          ['limit', '100'],
          ['cursor', cursor],
        ],
      }),
      never(),
    );

    expect(answer.outcome).toBe('ok');
    expect(pages()[0]).toMatchObject({
      method: 'GET',
      path: '/v1/audit/events?limit=100&cursor=a%2B%2F%3D%252F%20%C3%A9%26%27%28%2A%29%22%3C',
    });
    expect(pages()[0]?.headers).toMatchObject({ authorization: 'Bearer token-1' });
  });

  test('a cursor comes back to the server byte for byte, whatever it is', async () => {
    const { client, pages } = await upstream((_, response) => json(response, 200, page));
    const cursors = fc.sample(fc.string({ unit: 'grapheme', minLength: 1, maxLength: 60 }), 60);
    cursors.push('https://evil.example/?a=b#c', '..', '%', '\u0000\n', '"\\');

    for (const cursor of cursors)
      await client.get(asking('/a', { query: [['cursor', cursor]] }), never());

    const seen = pages().map((one) => new URLSearchParams(one.path.split('?')[1]).get('cursor'));
    expect(seen).toEqual(cursors);
  });

  test('with a body is a POST of that body, sent again after a rejected token, and its values are hidden', async () => {
    const { client, pages } = await upstream((asked, response) =>
      json(response, pages().length < 2 ? 401 : 400, { error: { message: `no ${asked.body}` } }),
    );
    const body = { limit: 10, cursor: 'a-secret-place', filter: { text: 'é' } };

    const answer = await client.get(asking('/search', { body }), never());

    expect(answer).toMatchObject({ outcome: 'refused', cause: { details: { method: 'POST' } } });
    expect(answer.outcome === 'refused' && answer.cause.message).not.toContain('a-secret-place');
    expect(pages().map(({ method, path, body: sent }) => [method, path, JSON.parse(sent)])).toEqual(
      [
        ['POST', '/v1/search', body],
        ['POST', '/v1/search', body],
      ],
    );
    expect(pages()[1]?.headers).toMatchObject({
      'content-type': 'application/json',
      authorization: 'Bearer token-2',
    });
  });

  test('without one is a GET, whatever else it has', async () => {
    const { client, pages } = await upstream((_, response) => json(response, 200, page));

    await client.get(asking('/a', { query: [['method', 'POST']], response: 'ndjson' }), never());

    expect(pages()).toMatchObject([{ method: 'GET', body: '' }]);
  });

  test('with an address goes there at the origin of base_url, which no address leaves', async () => {
    const { client, pages } = await upstream((_, response) => json(response, 200, page));
    const address = '//elsewhere.example/v2?cursor=a%2Fb';

    const answer = await client.get(asking('/list', { address, query: [['limit', '1']] }), never());
    const bare = client.get(asking('/list', { address: '.evil.example/' }), never());

    expect(answer).toMatchObject({ outcome: 'ok', url: expect.stringMatching(/^http:\/\/127/) });
    expect(pages()).toMatchObject([{ path: address }]);
    await expect(bare).rejects.toThrow('names no origin');
    expect(pages().length).toBe(1);
  });

  test('for lines takes an answer without any only where upstream says that it is lines', async () => {
    const type = { value: 'application/x-ndjson' };
    const { client } = await upstream((_, response) => {
      response.writeHead(200, { 'content-type': type.value }).end();
    });
    const ask = (response?: 'ndjson') =>
      client.get(asking('/list', response === undefined ? {} : { response }), never());

    const lines = await ask('ndjson');
    const one = await ask();
    type.value = 'application/json';
    const unreported = await ask('ndjson');

    expect([lines, one, unreported].map(({ outcome }) => outcome)).toEqual([
      'ok',
      'retry',
      'retry',
    ]);
  });

  test('the services API uses its own token endpoint with HTTP Basic', async () => {
    const server = await serve((asked, response) =>
      json(
        response,
        200,
        asked.method === 'POST' ? { access_token: 't', expires_in: 43_200 } : page,
      ),
    );
    const more = { api: 'services', base_url: server.url };
    const client = openAt(server.url, { clock: manualClock(), log: keepingLog(), more });

    await client.get(asking('/api/fleet/v1/hosts/1'), never());

    expect(server.asked.map((one) => `${one.method} ${one.path}`)).toEqual([
      'POST /api/auth/v1/oauth/v2/token',
      'GET /api/fleet/v1/hosts/1',
    ]);
    expect(server.asked[0]?.headers.authorization).toMatch(/^Basic /);
  });
});

describe('get: the token', () => {
  test('A18: fifty requests whose token is rejected cause one renewal, and all succeed', async () => {
    const { client, pages, tokens } = await upstream((asked, response) => {
      const fresh = asked.headers.authorization !== 'Bearer token-1';
      setImmediate(() => json(response, fresh ? 200 : 401, fresh ? page : {}));
    });

    const answers = await Promise.all(
      Array.from({ length: 50 }, () => client.get(asking('/audit/events'), never())),
    );

    expect(answers.every((answer) => answer.outcome === 'ok')).toBe(true);
    expect(tokens()).toBe(2);
    expect(pages().length).toBeLessThanOrEqual(100);
  });

  test('A18: a second 401 is denied, after one renewal', async () => {
    const { client, pages, tokens } = await upstream((_, response) =>
      json(response, 401, { error: { code: 'unauthorized', message: 'no' }, request_id: 'r-1' }),
    );

    const answer = await client.get(asking('/audit/events'), never());

    expect(answer).toMatchObject({
      outcome: 'denied',
      status: 401,
      wait: { ms: 60_000 },
      cause: {
        message:
          'requesting /audit/events from edge: upstream answered 401 (code unauthorized: no; request_id r-1)',
      },
    });
    expect([pages().length, tokens()]).toEqual([2, 2]);
  });

  test('a credential of which every token is rejected is tried once a minute, by all concurrent requests', async () => {
    let refusing = true;
    const { client, clock, tokens, pages } = await upstream((_, response) =>
      json(response, refusing ? 401 : 200, page),
    );
    const ask = () => client.get(asking('/audit/events'), never());

    const meanwhile = [await ask(), ...(await Promise.all(Array.from({ length: 20 }, ask)))];
    const asked = [tokens(), pages().length];
    await clock.advance(60_000);
    await Promise.all(Array.from({ length: 20 }, ask));
    const askedLater = [tokens(), pages().length];
    refusing = false;
    await clock.advance(60_000);
    const repaired = await ask();

    expect(new Set(meanwhile.map((answer) => answer.outcome))).toEqual(new Set(['denied']));
    expect([asked, askedLater]).toEqual([
      [2, 2],
      [3, 3],
    ]);
    expect(repaired.outcome).toBe('ok');
  });

  test('a refused API key is tried once a minute, on each of its paths in turn, and at once when it was changed', async () => {
    let key = 'revoked';
    const { clock, pages, client } = await upstream(
      (asked, response) =>
        json(response, asked.headers.authorization === 'Bearer good' ? 200 : 401, page),
      { auth: { api_key: 'given' } },
      () => key,
    );
    const paths = Array.from({ length: 20 }, (_, at) => `/audit/${at}`);
    const askAll = () => Promise.all(paths.map((path) => client.get(asking(path), never())));
    for (const path of paths) await client.get(asking(path), never());
    const asked = [pages().length];
    for (let minute = 0; minute < 3; minute++) {
      await clock.advance(60_000);
      await askAll();
      asked.push(pages().length);
    }

    key = 'good';
    const repaired = await askAll();
    const after = await askAll();

    expect(asked).toEqual([2, 3, 4, 5]);
    expect(repaired.filter(({ outcome }) => outcome === 'ok')).toHaveLength(1);
    expect(after.every(({ outcome }) => outcome === 'ok')).toBe(true);
  });

  test('an operator may have a refused credential tried now', async () => {
    let refusing = true;
    const { client, pages } = await upstream((_, response) =>
      json(response, refusing ? 401 : 200, page),
    );
    const ask = () => client.get(asking('/audit/events'), never());
    const denied = await ask();
    refusing = false;
    const held = await ask();

    if (held.outcome === 'denied') held.wait?.cut?.();
    const answered = await ask();

    expect([denied.outcome, held.outcome, answered.outcome]).toEqual(['denied', 'denied', 'ok']);
    expect(pages()).toHaveLength(3);
  });

  test('a 401 of one path alone does not stop the others', async () => {
    const { client, clock, tokens } = await upstream((asked, response) =>
      json(response, asked.path === '/v1/forbidden' ? 401 : 200, page),
    );

    const outcomes: string[] = [];
    for (let round = 0; round < 5; round++) {
      outcomes.push((await client.get(asking('/forbidden'), never())).outcome);
      outcomes.push((await client.get(asking('/audit/events'), never())).outcome);
      await clock.advance(60_000);
    }

    expect(outcomes).toEqual(Array(5).fill(['denied', 'ok']).flat());
    expect(tokens()).toBeLessThanOrEqual(6);
  });

  test('A16: a refused API key is denied at once', async () => {
    const { client, pages } = await upstream((_, response) => json(response, 401, {}), {
      auth: { api_key: 'key-123456' },
    });

    const answer = await client.get(asking('/audit/events'), never());

    expect(answer).toMatchObject({ outcome: 'denied', status: 401 });
    expect(pages()).toHaveLength(1);
    expect(pages()[0]?.headers.authorization).toBe('Bearer key-123456');
  });

  test('a token that is refused is denied with the token endpoint’s words; authorise says the same', async () => {
    const server = await serve((_, response) => json(response, 401, { error: 'invalid_client' }));
    const client = openAt(server.url, { clock: manualClock(), log: keepingLog(), more: {} });

    const answer = await client.get(asking('/audit/events'), never());

    expect(answer).toMatchObject({
      outcome: 'denied',
      wait: { ms: 60_000 },
      cause: { code: 'token_refused' },
    });
    expect(await client.authorise(never())).toMatchObject({ code: 'token_refused' });
    expect(server.asked).toHaveLength(1);
  });

  test('A17: 403 lists the requested and the granted scopes', async () => {
    const { client } = await upstream((_, response) =>
      json(response, 403, { title: 'Forbidden', trace_id: 't-1' }),
    );

    const answer = await client.get(asking('/audit/events'), never());

    expect(answer).toMatchObject({ outcome: 'denied', status: 403 });
    expect(answer.outcome !== 'ok' && answer.cause.message).toContain(
      '403 (Forbidden; trace_id t-1); requested scope: events:read, granted: mc:read',
    );
  });
});

describe('get: outcomes', () => {
  test('A36: 451 is a block', async () => {
    const { client } = await upstream((_, response) => json(response, 451, {}));

    const answer = await client.get(asking('/audit/events'), never());

    expect(answer).toMatchObject({ outcome: 'blocked', status: 451 });
  });

  test.each([400, 404, 405, 409, 410, 422])(
    '%d is refused, with code and field',
    async (status) => {
      const { client, pages } = await upstream((_, response) =>
        json(response, status, {
          error: { code: 'validation_failed', message: 'bad cursor', field: 'cursor' },
          request_id: 'req-7',
        }),
      );

      const answer = await client.get(asking('/audit/events'), never());

      expect(answer).toMatchObject({
        outcome: 'refused',
        status,
        field: 'cursor',
        cause: {
          code: 'upstream_refused',
          details: {
            ...{ upstream: 'edge', path: '/audit/events', status, request_id: 'req-7' },
            upstream_code: 'validation_failed',
          },
        },
      });
      expect(pages()).toHaveLength(1);
    },
  );

  test.each([408, 500, 502, 503, 504])('A21: %d is to be requested again', async (status) => {
    const { client, pages } = await upstream((_, response) => {
      response.writeHead(status, { 'retry-after': '7' });
      response.end('<html>Bad gateway</html>');
    });

    const answer = await client.get(asking('/audit/events'), never());

    expect(answer).toMatchObject({ outcome: 'retry', cause: { code: 'upstream_unreachable' } });
    expect(answer.outcome === 'retry' && answer.wait?.ms).toBe(status === 408 ? undefined : 7_000);
    expect(pages()).toHaveLength(1);
  });

  test('a redirect is refused and not followed', async () => {
    const elsewhere = await serve((_, response) => json(response, 200, page));
    const { client } = await upstream((_, response) => {
      response.writeHead(302, { location: elsewhere.url });
      response.end();
    });

    const answer = await client.get(asking('/audit/events'), never());

    expect(answer).toMatchObject({ outcome: 'refused', status: 302 });
    expect(elsewhere.asked).toHaveLength(0);
  });

  test.each([
    ['utf-8', Buffer.from('{"data":[]}'), /Content-Encoding utf-8, which is none of gzip/],
    ['', gzipSync('{"data":[]}'), /packed with gzip, and has no Content-Encoding/],
    ['', zstdCompressSync('{"data":[]}'), /packed with zstd, and has no Content-Encoding/],
  ])(
    'the Content-Encoding "%s" of an unrequested coding is named',
    async (coding, body, message) => {
      const { client } = await upstream(({ method }, response) => {
        if (method === 'POST') return json(response, 200, { access_token: 't', expires_in: 60 });
        const packing: Record<string, string> = coding === '' ? {} : { 'content-encoding': coding };
        response.writeHead(200, { 'content-type': 'application/json', ...packing }).end(body);
      });

      const answer = await client.get(asking('/audit/events'), never());

      const { code, message: said, next } = answer.outcome === 'retry' ? answer.cause : {};
      expect(code).toBe('upstream_nonsense');
      expect(said).toMatch(message);
      expect(next).toMatch(/Content-Encoding/);
    },
  );

  test('304 is no redirect', async () => {
    const { client } = await upstream((_, response) => void response.writeHead(304).end());

    const answer = await client.get(asking('/audit/events'), never());

    const { message, next } = answer.outcome === 'refused' ? answer.cause : {};
    expect(message).toMatch(/answered 304 \(not modified\)/);
    expect(`${message} ${next}`).not.toMatch(/redirect|base_url/);
    expect(next).toMatch(/cache or proxy/);
  });

  test.each([401, 403])(
    '%i names the upstream, so that two of them are two matters',
    async (status) => {
      const { client } = await upstream(({ method }, response) => {
        if (method === 'POST') json(response, 200, { access_token: 't', expires_in: 60 });
        else json(response, status, {});
      });

      const answer = await client.get(asking('/audit/events'), never());

      expect(answer.outcome === 'denied' && answer.cause.next).toMatch(/of upstream \w+/);
    },
  );

  test.each<[string, number, string, string]>([
    ['HTML', 200, 'text/html', '<!doctype html><title>Login</title>'],
    ['HTML that claims to be JSON', 200, 'application/json', '<html></html>'],
    ['nothing', 200, 'application/json', ''],
    ['white space', 200, 'application/json', ' \n '],
    ['{}', 200, 'application/json', '{}'],
    ['half an object', 200, 'application/json', '{"data":[{"id":'],
    ['null', 200, 'application/json', 'null'],
    ['a unified error', 200, 'application/json', '{"error":{"code":"internal"},"request_id":"r"}'],
    ['problem details', 200, 'application/problem+json', '{"title":"Oops","trace_id":"t"}'],
    ['a failure’s status', 200, 'application/json', '{"title":"Oops","status":500}'],
    ['204', 204, 'application/json', ''],
    ['206', 206, 'application/json', '{"data":[]}'],
  ])(
    'A21: a success with %s is nonsense, never the end of the data',
    async (_, status, type, body) => {
      const { client } = await upstream((_, response) => {
        response.writeHead(status, { 'content-type': type });
        response.end(body);
      });

      const answer = await client.get(asking('/audit/events'), never());

      expect(answer).toMatchObject({ outcome: 'retry', cause: { code: 'upstream_nonsense' } });
    },
  );

  test.each([502, 200])(
    'A21: a proxy’s page with %d is reported by its title, on one line and without the token',
    async (status) => {
      const { client } = await upstream((asked, response) => {
        response.writeHead(status, { 'content-type': 'text/html' });
        response.end(
          `<html><title id=x>Guest\nnetwork ${asked.headers.authorization}</title>token-1`,
        );
      });

      const answer = await client.get(asking('/audit/events'), never());

      const message = answer.outcome === 'ok' ? '' : answer.cause.message;
      expect(message).toContain('(Guest network Bearer [hidden])');
      expect(message).not.toMatch(/token-1|\n/);
    },
  );

  test.each([
    ['text/plain', '{"data":[]}'],
    ['application/json', '\ufeff\n {"data":[]}'],
    ['application/json', '[{"id":1}]'],
    ['application/json', '{"data":[],"error":null}'],
    ['application/json', '{"id":"p-1","rules":[],"status":"active"}'],
  ])('JSON passes as %s: %s', async (type, body) => {
    const { client } = await upstream((_, response) => {
      response.writeHead(200, { 'content-type': type });
      response.end(body);
    });

    const answer = await client.get(asking('/audit/events'), never());

    expect(answer.outcome === 'ok' && Buffer.from(answer.body).toString()).toBe(body);
  });

  test('A40: a cut body is to be requested again, one that is too large names the setting to raise', async () => {
    const cut = await upstream((_, response) => {
      response.writeHead(200, { 'content-length': 100 });
      response.write('{"data":[');
      setTimeout(() => response.destroy(), 20);
    });
    const large = await upstream((_, response) => response.end(Buffer.alloc(3_000)), {
      max_body: '2KiB',
    });

    const answers = await Promise.all(
      [cut, large].map(({ client }) => client.get(asking('/audit/events'), never())),
    );

    expect(answers[0]).toMatchObject({
      outcome: 'retry',
      cause: { code: 'upstream_unreachable', details: { failure: 'cut' } },
    });
    expect(answers[1]).toMatchObject({
      outcome: 'retry',
      cause: { next: expect.stringContaining('max_body'), details: { failure: 'too_large' } },
    });
  });

  test('a rejection has the time of the next request', async () => {
    const { client } = await upstream((_, response) => json(response, 404, {}));

    const answer = await client.get(asking('/audit/events'), never());

    const next = expect.stringMatching(/requests it again.*after a config change/);
    expect(answer).toMatchObject({ outcome: 'refused', status: 404, cause: { next } });
  });

  test.each([
    ['application/problem+json', '{}', ''],
    ['application/problem+json', '{"title":7,"detail":null,"trace_id":["t"],"errors":{}}', ''],
    ['application/problem+json', '{"title":"No","errors":[null,{"message":3},"x"]}', ' (No)'],
    [
      'application/problem+json',
      '{"title":"No","detail":"scope is unknown","errors":[{"message":"scope: scope is unknown"},{"message":"No"}]}',
      ' (No: scope: scope is unknown)',
    ],
    ['text/plain', '{"detail":"Not now","trace_id":"t-9"}', ' (Not now; trace_id t-9)'],
    ['application/json', '["Not now"]', ''],
    [
      'application/problem+json',
      '{"title":"No","errors":[{"message":"a"},{"message":"b"}]}',
      ' (No: a: b)',
    ],
  ])('A37: problem details are read as far as they go: %s %s', async (type, body, reported) => {
    const { client } = await upstream((_, response) => {
      response.writeHead(400, { 'content-type': type });
      response.end(body);
    });

    const answer = await client.get(asking('/audit/events'), never());

    const message = `requesting /audit/events from edge: upstream answered 400${reported}`;
    expect(answer).toMatchObject({ outcome: 'refused', status: 400, cause: { message } });
  });

  test('A53: an upstream is only ever read: GET, and POST to the token endpoint alone', async () => {
    const methods: string[] = [];
    const { client } = await upstream((asked, response) => {
      methods.push(asked.method);
      json(response, 200, page);
    });
    const http = openHttpClient();
    afterThisTest(() => http.close());

    await client.get(asking('/audit/events'), never());
    const writing = http.request(
      // A method that the type does not allow, as a mistake elsewhere might make.
      { ...aRequest, method: 'DELETE' as 'GET' },
      never(),
    );

    await expect(writing).rejects.toThrow('requests are GET or POST');
    expect(methods).toEqual(['GET']);
  });

  test('upstream’s text cannot forge a line, and does not repeat cursor or token', async () => {
    const { client } = await upstream((asked, response) =>
      json(response, 400, {
        title: 'x\n{"level":"fatal"}\u202e\u0007',
        detail: `${'y'.repeat(10_000)}`,
        trace_id: { not: 'text' },
        errors: [
          {
            message: `cursor ${new URLSearchParams(asked.path.split('?')[1]).get('cursor')} unknown`,
          },
          { message: `bad ${asked.headers.authorization} at ${asked.path}` },
        ],
      }),
    );
    const quiet = await upstream((asked, response) =>
      json(response, 400, { detail: `${asked.path} ${asked.headers.authorization}` }),
    );
    const question = asking('/audit/events', { query: [['cursor', 'c/secret==']] });

    const loud = await client.get(question, never());
    const echo = await quiet.client.get(question, never());

    for (const answer of [loud, echo]) {
      const { message, details } =
        answer.outcome === 'ok' ? { message: '', details: {} } : answer.cause;
      expect(message).toMatch(/^requesting \/audit\/events from edge: upstream answered 400/);
      expect(message + JSON.stringify(details)).not.toMatch(/[\u0000-\u001f\u202e]|secret|token-1/);
      expect(message.length).toBeLessThan(600);
    }
  });

  test('an aborted signal rejects with its reason', async () => {
    const { client } = await upstream(() => undefined);
    const stop = new AbortController();

    const waiting = client.get(asking('/audit/events'), stop.signal);
    setTimeout(() => stop.abort(new Error('shutting down')), 50);

    await expect(waiting).rejects.toThrow('shutting down');
  });
});

describe('get: limits', () => {
  test('A19: a 429 parks its path for the requested time, thirty days and a wrong clock included', async () => {
    let limited = true;
    const { client, clock, pages } = await upstream((asked, response) => {
      if (limited && asked.path === '/v1/audit/events') {
        json(
          response,
          429,
          {},
          {
            date: 'Thu, 01 Jan 2015 00:00:00 GMT',
            'retry-after': 'Sat, 31 Jan 2015 00:00:00 GMT',
          },
        );
      } else json(response, 200, page);
    });
    const month = 30 * 86_400_000;

    const answer = await client.get(asking('/audit/events'), never());
    limited = false;
    const elsewhere = await client.get(asking('/sites'), never());
    const parked = client.get(asking('/audit/events'), never());
    await clock.advance(month - 1);
    const early = pages().length;
    await clock.advance(1);
    const after = await parked;

    expect(answer).toMatchObject({
      outcome: 'retry',
      wait: { ms: month },
      cause: { code: 'upstream_throttled' },
    });
    expect([elsewhere.outcome, after.outcome, early]).toEqual(['ok', 'ok', 2]);
  });

  const at = Date.parse('2026-01-01T00:00:00.000Z');
  const date = new Date(at).toUTCString();
  test.for([
    [429, { 'x-ratelimit-reset': `${at + 3_000}000` }],
    [429, { 'x-ratelimit-reset': `${at + 3_000}000000` }],
    [429, { 'x-ratelimit-reset': `${at / 1_000 + 3}.0` }],
    [429, { 'x-ratelimit-reset-after': '3' }],
    [429, { 'retry-after-ms': '3000' }],
    [403, { 'retry-after': '3' }],
    [403, { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': `${at / 1_000 + 3}` }],
  ] as const)('a %d with %j waits 3 s, and so does its path', async ([status, headers]) => {
    let answers = 0;
    const { client, clock, pages } = await upstream((_, response) => {
      answers += 1;
      if (answers === 1) json(response, status, {}, { date, ...headers });
      else json(response, 200, page);
    });

    const answer = await client.get(asking('/audit/events'), never());
    const parked = client.get(asking('/audit/events'), never());
    await clock.advance(2_999);
    const early = pages().length;
    await clock.advance(302); // a spread of a tenth
    await parked;

    const ms = (answer.outcome !== 'ok' && answer.wait?.ms) || 0;
    expect(ms).toBeGreaterThanOrEqual(3_000);
    expect(ms).toBeLessThanOrEqual(3_300);
    expect([answer.outcome === 'ok', early, pages().length]).toEqual([false, 1, 2]);
  });

  test('a reset more than a day away is ignored and reported once', async () => {
    const { client, clock, log } = await upstream((_, response) =>
      json(response, 429, {}, { 'x-ratelimit-reset': '99999999999999' }),
    );

    const waits: number[] = [];
    for (let time = 0; time < 4; time += 1) {
      const answer = await client.get(asking('/audit/events'), never());
      const ms = (answer.outcome !== 'ok' && answer.wait?.ms) || 0;
      waits.push(ms);
      await clock.advance(ms);
    }

    expect(Math.max(...waits)).toBeLessThanOrEqual(16_000);
    const reports = log.lines.filter(({ text }) => text.includes('more than a day away'));
    expect(reports).toMatchObject([{ level: 'warn', fields: { path: '/audit/events' } }]);
  });

  test('A20: none remaining on a success gives the page, then waits for the pause', async () => {
    const { client, clock, pages } = await upstream(
      (_, response) =>
        json(response, 200, page, { 'x-ratelimit-limit': '60', 'x-ratelimit-remaining': '0' }),
      { rate_limit_pause: '12s' },
    );

    const first = await client.get(asking('/audit/events'), never());
    const second = client.get(asking('/audit/events'), never());
    await clock.settle();
    const { throttles } = client.state();
    await clock.advance(12_000);

    expect([first.outcome, (await second).outcome]).toEqual(['ok', 'ok']);
    expect(throttles).toEqual([{ path: '/audit/events', waitMs: 12_000, limit: 60, remaining: 0 }]);
    expect(pages()).toHaveLength(2);
  });

  test('a ceiling from the config holds for all companies of a path template', async () => {
    const { client, clock, pages } = await upstream((_, response) => json(response, 200, page), {
      throttle: [{ path: '/c/{company_id}/logs', requests: 2, per: '1m' }],
    });
    const ask = (company: string) =>
      client.get(
        asking(`/c/${company}/logs`, { template: '/c/{company_id}/logs', company }),
        never(),
      );

    await Promise.all([ask('a'), ask('b')]);
    const third = ask('c');
    await clock.advance(59_999);
    const early = pages().length;
    await clock.advance(1);
    await third;

    expect([early, pages().length]).toEqual([2, 3]);
  });
});

test('A48: an announced end is logged once for each endpoint, and stops nothing', async () => {
  const { client, clock, log } = await upstream((_, response) =>
    json(response, 200, page, {
      deprecation: '@1767225600',
      sunset: 'Fri, 01 Jan 2027 00:00:00 GMT',
      link: '<https://docs.example/eol>; rel="deprecation"',
    }),
  );

  for (let time = 0; time < 3; time++)
    await client.get(asking('/a/1', { template: '/a/{id}' }), never());
  await client.get(asking('/b'), never());
  await clock.advance(86_400_000);
  await client.get(asking('/b'), never());

  expect(log.lines).toHaveLength(2);
  expect(log.lines[0]).toMatchObject({
    level: 'warn',
    fields: {
      upstream: 'edge',
      endpoint: '/a/{id}',
      deprecation: '2026-01-01T00:00:00.000Z',
      sunset: '2027-01-01T00:00:00.000Z',
      ends: '2027-01-01T00:00:00.000Z',
      days_left: 365,
      link: 'https://docs.example/eol',
    },
  });
  expect(client.announced.all.map((one) => one.endpoint)).toEqual(['/a/{id}', '/b']);
  expect(client.state().end).toMatchObject({
    ...{ endsMs: Date.UTC(2027, 0, 1), from: 'sunset', endpoint: '/a/{id}' },
  });
});

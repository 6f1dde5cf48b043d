import { describe, expect, test } from 'vitest';
import { Secret } from '../../src/contracts/secret.ts';
import type { Clock, HttpClient } from '../../src/contracts/tools.ts';
import { openHttpClient } from '../../src/tools/http-client.ts';
import type { TokenAnswer } from '../../src/upstream/access-token.ts';
import type { Credential } from '../../src/upstream/token-request.ts';
import { openTokens } from '../../src/upstream/tokens.ts';
import { manualClock } from '../support/manual-clock.ts';
import { afterThisTest } from '../support/temp.ts';
import { json, keepingLog, never, secretOf, serve } from '../tools/serving.ts';

type ClientCredential = Extract<Credential, { kind: 'client' }>;

function credential(url: string, more: Partial<ClientCredential> = {}): ClientCredential {
  return {
    kind: 'client',
    url: `${url}/oauth/token`,
    clientId: secretOf('client-1'),
    clientSecret: secretOf('s3cr3t-value'),
    scope: 'events:read platform:read',
    placing: 'form',
    basicEncoding: 'raw',
    tls: {},
    ...more,
  };
}

function open(clock: Clock = manualClock()) {
  const http: HttpClient = openHttpClient();
  afterThisTest(() => http.close());
  const log = keepingLog();
  return { tokens: openTokens({ clock, http, log, random: () => 0 }), log };
}

/** A token endpoint that numbers its tokens. */
function endpoint(grant: object = { token_type: 'Bearer', expires_in: 3_600 }) {
  let number = 0;
  return serve((_, response) => {
    number++;
    json(response, 200, { access_token: `token-${number}`, ...grant });
  });
}

function tokenOf(answer: TokenAnswer): string {
  return answer.outcome === 'ok' ? answer.token : answer.cause.message;
}

describe('token requests', () => {
  test('the unified API gets client, secret and scope in the form', async () => {
    const { url, asked } = await endpoint();

    const answer = await open().tokens.source(credential(url)).token(never());

    expect(tokenOf(answer)).toBe('token-1');
    expect(asked[0]).toMatchObject({
      method: 'POST',
      path: '/oauth/token',
      body: 'grant_type=client_credentials&client_id=client-1&client_secret=s3cr3t-value&scope=events%3Aread+platform%3Aread',
    });
    expect(asked[0]?.headers).toMatchObject({
      'content-type': 'application/x-www-form-urlencoded',
    });
    expect(asked[0]?.headers.authorization).toBeUndefined();
  });

  test.each([
    ['raw', 'id é:s%c+r t'],
    ['rfc6749', 'id+%C3%A9:s%25c%2Br+t'],
  ] as const)(
    'A52: the services API gets client and secret in HTTP Basic, %s',
    async (basicEncoding, pair) => {
      const { url, asked } = await endpoint();
      const source = open().tokens.source(
        credential(url, {
          placing: 'basic',
          basicEncoding,
          clientId: secretOf('id é'),
          clientSecret: secretOf('s%c+r t'),
          scope: 'urn:vendor:api:public',
        }),
      );

      await source.token(never());

      expect(asked[0]?.body).toBe(
        'grant_type=client_credentials&scope=urn%3Avendor%3Aapi%3Apublic',
      );
      const sent = String(asked[0]?.headers.authorization).replace('Basic ', '');
      expect(Buffer.from(sent, 'base64').toString()).toBe(pair);
    },
  );

  test('A16: an API key is used as it is, read again each time, and cannot be renewed', async () => {
    let key = 'key-1';
    const source = open().tokens.source({
      kind: 'api_key',
      key: new Secret(() => key),
      url: 'http://a',
    });

    const first = tokenOf(await source.token(never()));
    key = 'key-2';
    const second = tokenOf(await source.token(never()));

    expect([first, second, source.invalidate(second)]).toEqual(['key-1', 'key-2', false]);
  });
});

describe('token life', () => {
  test('fifty concurrent callers cause one request, also across sources of the same credential', async () => {
    const { url, asked } = await endpoint();
    const { tokens } = open();

    const answers = await Promise.all(
      Array.from({ length: 50 }, () => tokens.source(credential(url)).token(never())),
    );

    expect(new Set(answers.map(tokenOf))).toEqual(new Set(['token-1']));
    expect(asked).toHaveLength(1);
  });

  test('another secret under the same client id is another token', async () => {
    const { url, asked } = await endpoint();
    const { tokens } = open();
    const other = credential(url, { clientSecret: secretOf('another') });

    const answers = [
      await tokens.source(credential(url)).token(never()),
      await tokens.source(other).token(never()),
    ];

    expect(answers.map(tokenOf)).toEqual(['token-1', 'token-2']);
    expect(asked[1]?.body).toContain('another');
  });

  test('another scope is another token', async () => {
    const { url, asked } = await endpoint();
    const { tokens } = open();

    await tokens.source(credential(url)).token(never());
    await tokens.source(credential(url, { scope: 'mc:read' })).token(never());

    expect(asked).toHaveLength(2);
  });

  test.each([
    ['12 hours: at 80 %', 43_200, 34_560],
    ['4 minutes: a minute before the end', 240, 180],
    ['1 minute: not before half of it', 60, 30],
    ['a digit string', '600', 480],
    ['missing: taken for 300 s', undefined, 240],
    ['null', null, 240],
    ['zero', 0, 240],
    ['negative', -5, 240],
    ['text', 'soon', 240],
    ['hexadecimal', '0x10', 240],
  ])('expires_in of %s', async (_, expires_in, renewedAfterS) => {
    const clock = manualClock();
    const { url, asked } = await endpoint({ expires_in });
    const source = open(clock).tokens.source(credential(url));

    await source.token(never());
    await clock.advance(renewedAfterS * 1_000 - 1);
    await source.token(never());
    await clock.settle();
    const before = asked.length;
    await clock.advance(1);
    const current = tokenOf(await source.token(never()));

    expect([before, current]).toEqual([1, 'token-1']);
    await expect.poll(async () => tokenOf(await source.token(never()))).toBe('token-2');
    expect(asked).toHaveLength(2);
  });

  test('a token endpoint that no longer answers delays no request while the token is valid', async () => {
    const clock = manualClock();
    let mute = false;
    const { url, asked } = await serve((_, response) => {
      if (!mute) json(response, 200, { access_token: 'token-1', expires_in: 1_000 });
    });
    const source = open(clock).tokens.source(credential(url));
    await source.token(never());

    mute = true;
    await clock.advance(900_000);
    const tokens = await Promise.all(Array.from({ length: 20 }, () => source.token(never())));

    expect(new Set(tokens.map(tokenOf))).toEqual(new Set(['token-1']));
    await expect.poll(() => asked.length).toBe(2);
  });

  test('A15: another address requests a token of its own, with the same client', async () => {
    const [west, east] = await Promise.all([endpoint(), endpoint()]);
    const { tokens } = open();

    await tokens.source(credential(west.url)).token(never());
    await tokens.source(credential(east.url)).token(never());

    expect([west.asked.length, east.asked.length]).toEqual([1, 1]);
  });

  test('A18: a wall clock that jumps changes no token’s life', async () => {
    const { url, asked } = await endpoint();
    const clock = manualClock();
    const source = open(clock).tokens.source(credential(url));

    await source.token(never());
    clock.jump(86_400_000);
    const ahead = tokenOf(await source.token(never()));
    clock.jump(-2 * 86_400_000);
    const behind = tokenOf(await source.token(never()));
    const askedBefore = asked.length;
    await clock.advance(3_600_000);
    const ended = tokenOf(await source.token(never()));

    expect([ahead, behind, askedBefore, ended]).toEqual(['token-1', 'token-1', 1, 'token-2']);
  });

  test('A18: a token that cannot be renewed is used to its end, and no longer', async () => {
    const clock = manualClock();
    let up = true;
    const { url } = await serve((_, response) => {
      if (up) json(response, 200, { access_token: 'token-1', expires_in: 1_000 });
      else json(response, 503, {});
    });
    const source = open(clock).tokens.source(credential(url));
    await source.token(never());

    up = false;
    await clock.advance(900_000);
    const late = await source.token(never());
    await clock.advance(100_000);
    const over = await source.token(never());

    expect(tokenOf(late)).toBe('token-1');
    expect(over).toMatchObject({ outcome: 'retry', cause: { code: 'upstream_unreachable' } });
  });

  test('invalidate counts only for the current token', async () => {
    const { url, asked } = await endpoint();
    const source = open().tokens.source(credential(url));
    const first = tokenOf(await source.token(never()));

    source.invalidate(first);
    const second = tokenOf(await source.token(never()));
    source.invalidate(first);
    const third = tokenOf(await source.token(never()));

    expect([first, second, third]).toEqual(['token-1', 'token-2', 'token-2']);
    expect(asked).toHaveLength(2);
  });

  test('a caller that stops waiting does not take the token from the others', async () => {
    const held: (() => void)[] = [];
    const { url } = await serve((_, response) => {
      held.push(() => json(response, 200, { access_token: 'token-1', expires_in: 60 }));
    });
    const source = open().tokens.source(credential(url));
    const stop = new AbortController();

    const leaver = source.token(stop.signal);
    const stayer = source.token(never());
    await expect.poll(() => held.length).toBe(1);
    stop.abort(new Error('leaving'));
    await expect(leaver).rejects.toThrow('leaving');
    held[0]?.();

    expect(tokenOf(await stayer)).toBe('token-1');
  });

  test('when no caller waits any longer the request is aborted, and proves nothing about the endpoint', async () => {
    const closed: string[] = [];
    const stop = new AbortController();
    let mute = true;
    const { url } = await serve((_, response) => {
      response.on('close', () => closed.push('closed'));
      // Before the request has arrived there is nothing that the server could see closed.
      stop.abort(new Error('leaving'));
      if (!mute) json(response, 200, { access_token: 'token-2', expires_in: 60 });
    });
    const { tokens, log } = open();
    const source = tokens.source(credential(url));

    await expect(source.token(stop.signal)).rejects.toThrow('leaving');
    await expect.poll(() => closed.length).toBe(1);
    mute = false;

    expect(tokenOf(await source.token(never()))).toBe('token-2');
    expect(log.lines).toEqual([]);
  });

  test('the granted scope is reported', async () => {
    const { url } = await endpoint({ scope: 'events:read' });
    const source = open().tokens.source(credential(url));

    const before = source.granted();
    await source.token(never());

    expect([before, source.granted()]).toEqual([null, 'events:read']);
  });
});

describe('token failures', () => {
  test('A51: a rejection is remembered, so that no account is locked by retries; a new secret is tried at once', async () => {
    let secret = 'wrong-secret';
    const { url, asked } = await serve((one, response) => {
      if (one.body.includes('right-secret'))
        json(response, 200, { access_token: 't', expires_in: 60 });
      else json(response, 401, { error: 'invalid_client', error_description: `no: ${secret}` });
    });
    const clock = manualClock();
    const { tokens, log } = open(clock);
    const source = tokens.source(credential(url, { clientSecret: new Secret(() => secret) }));

    const first = await source.token(never());
    const second = await source.token(never());
    const askedMeanwhile = asked.length;
    await clock.advance(60_000);
    const third = await source.token(never());
    secret = 'right-secret';
    const fourth = await source.token(never());

    expect(first).toMatchObject({
      outcome: 'denied',
      wait: { ms: 60_000 },
      cause: {
        code: 'token_refused',
        message: expect.stringMatching(
          /answered 401 \(code invalid_client: no: \[hidden\]\) .*events:read/,
        ),
      },
    });
    expect(second).toMatchObject({ outcome: 'denied' });
    expect(askedMeanwhile).toBe(1);
    expect(third).toMatchObject({ outcome: 'denied' });
    expect(tokenOf(fourth)).toBe('t');
    expect(JSON.stringify([first, second, third, log.lines])).not.toContain('wrong-secret');
  });

  test('A51: a caller that waits for a rejected secret notices within a second that it was changed', async () => {
    let secret = 'wrong-secret';
    const { url, asked } = await serve((one, response) =>
      json(response, one.body.includes('right-secret') ? 200 : 401, { access_token: 't' }),
    );
    const clock = manualClock();
    const { tokens } = open(clock);
    const source = tokens.source(credential(url, { clientSecret: new Secret(() => secret) }));
    const refused = await source.token(never());
    if (refused.outcome === 'ok') throw new Error('it was taken');
    const received: number[] = [];
    const waiting = [1, 2].map(async () => {
      await refused.wait?.repaired?.(never());
      received.push(clock.monotonic());
    });

    await clock.advance(5_500);
    secret = 'right-secret';
    await clock.advance(1_000);
    await Promise.all(waiting);

    expect(received).toEqual([6_000, 6_000]);
    expect(clock.sleepers).toBe(0);
    expect(asked).toHaveLength(1);
    expect(tokenOf(await source.token(never()))).toBe('t');
  });

  test('a token for a secret that could not be read is requested as soon as the secret can be read', async () => {
    let secret: string | null = null;
    const { url, asked } = await endpoint();
    const clientSecret = new Secret(() => {
      if (secret === null) throw new Error('there is no such file');
      return secret;
    });
    const source = open().tokens.source(credential(url, { clientSecret }));

    const before = await source.token(never());
    secret = 's3cr3t';
    const after = await source.token(never());

    expect(before).toMatchObject({ outcome: 'denied', wait: { ms: 60_000 } });
    expect([tokenOf(after), asked.length]).toEqual(['token-1', 1]);
  });

  test('A51: after refusals there is one probe a minute', async () => {
    const { url } = await serve((_, response) => json(response, 400, { error: 'invalid_scope' }));
    const clock = manualClock();
    const http = openHttpClient();
    afterThisTest(() => http.close());
    const tokens = openTokens({ clock, http, log: keepingLog(), random: () => 0.9999999 });
    const source = tokens.source(credential(url));

    const waits: number[] = [];
    for (let time = 0; time < 6; time++) {
      const answer = await source.token(never());
      const waitMs = answer.outcome === 'ok' ? 0 : (answer.wait?.ms ?? 0);
      waits.push(Math.round(waitMs / 1_000));
      await clock.advance(waitMs);
    }

    expect(waits).toEqual([60, 60, 60, 60, 60, 60]);
  });

  test('429 and 5xx are tried again, not before Retry-After', async () => {
    const clock = manualClock();
    let status = 429;
    const { url, asked } = await serve((_, response) => {
      if (status === 200) json(response, 200, { access_token: 't', expires_in: 60 });
      else json(response, status, {}, { 'retry-after': '120' });
    });
    const source = open(clock).tokens.source(credential(url));

    const first = await source.token(never());
    await clock.advance(119_999);
    await source.token(never());
    const askedEarly = asked.length;
    status = 200;
    await clock.advance(1);
    const last = await source.token(never());

    expect(first).toMatchObject({
      outcome: 'retry',
      wait: { ms: 120_000 },
      cause: { code: 'upstream_throttled' },
    });
    expect(askedEarly).toBe(1);
    expect(tokenOf(last)).toBe('t');
  });

  test.each([
    ['HTML', '<html>Sign in</html>'],
    ['nothing', ''],
    ['no token', '{"token_type":"Bearer"}'],
    ['a token that would forge a header', '{"access_token":"a\\r\\nx: y"}'],
    ['another token type', '{"access_token":"t","token_type":"mac"}'],
    ['an array', '["t"]'],
  ])('a 200 with %s is invalid, and requested again', async (_, body) => {
    const { url } = await serve((_, response) => response.end(body));

    const answer = await open().tokens.source(credential(url)).token(never());

    expect(answer).toMatchObject({ outcome: 'retry', cause: { code: 'upstream_nonsense' } });
  });

  test('a redirect is not followed with the secret', async () => {
    const elsewhere = await endpoint();
    const { url } = await serve((_, response) => {
      response.writeHead(307, { location: elsewhere.url });
      response.end();
    });

    const answer = await open().tokens.source(credential(url)).token(never());

    expect(answer).toMatchObject({ outcome: 'retry', cause: { code: 'upstream_nonsense' } });
    expect(elsewhere.asked).toHaveLength(0);
  });

  test.each(['form', 'basic'] as const)(
    'an endpoint that repeats a %s credential in whatever it says gives nothing away',
    async (placing) => {
      const { url } = await serve((one, response) => {
        const said = `${one.headers.authorization} ${one.body}`;
        if (one.path.startsWith('/granting'))
          json(response, 200, { access_token: 't', scope: said });
        else json(response, 401, { error: said, error_description: said });
      });
      const secret = secretOf("s3cr3t va'lue+/=");
      const mine = (at: string) =>
        credential(`${url}/${at}`, { placing, clientSecret: secret, basicEncoding: 'rfc6749' });
      const { tokens, log } = open();

      const refused = await tokens.source(mine('refusing')).token(never());
      const granting = tokens.source(mine('granting'));
      await granting.token(never());

      const reported = `${tokenOf(refused)} ${granting.granted()} ${JSON.stringify(log)}`;
      expect(reported).toContain('[hidden]');
      expect(reported).not.toMatch(/s3cr3t|client-1|c3VyZXQ|czNjcjN0|Y2xpZW50/);
    },
  );

  test('a network failure is reported without the secret, and a secret that cannot be read as itself', async () => {
    const { tokens } = open();
    const broken = new Secret(() => {
      throw new Error('/run/secrets/edge: no such file');
    });

    const unreachable = await tokens.source(credential('http://127.0.0.1:1')).token(never());
    const unreadable = await tokens
      .source(credential('http://127.0.0.1:2', { clientSecret: broken }))
      .token(never());

    expect(unreachable).toMatchObject({
      outcome: 'retry',
      cause: { code: 'upstream_unreachable', message: expect.stringContaining('ECONNREFUSED') },
    });
    expect(tokenOf(unreadable)).toContain('/run/secrets/edge');
  });
});

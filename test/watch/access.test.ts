// Access to the status, and the protections of every response.

import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { describe, expect, test } from 'vitest';
import { routes } from '../../src/watch/answers.ts';
import { aFailure, aMoment, aServer, aSink, ask, aTap } from './a-moment.ts';

const refusing = aMoment({ sinks: [aSink({ state: 'refused', error: aFailure('401') })] });

describe('roles', () => {
  const bearers = {
    token: 'all-token',
    view: 'view-token',
    events: 'events-token',
    act: 'act-token',
  };
  const allowed = {
    open: ['none', 'wrong', 'view', 'events', 'act', 'token', 'basic'],
    view: ['view', 'events', 'act', 'token', 'basic'],
    events: ['events', 'act', 'token', 'basic'],
    act: ['act', 'token', 'basic'],
  };

  test.each(Object.entries(routes))('%s is for %s and the roles above', async (path, role) => {
    const { token, ...tokens } = bearers;
    const retry = () => [{ part: 'stream', waitsUntil: null } as const];
    const { url } = await aServer(() => aMoment(), {
      ...{ token, tokens, retry, tap: aTap([]) },
      basicAuth: ['me', 'pass'],
    });
    const callers = {
      none: {},
      wrong: { authorization: 'Bearer view-token2' },
      ...Object.fromEntries(
        Object.entries(bearers).map(([name, text]) => [name, { authorization: `Bearer ${text}` }]),
      ),
      basic: { authorization: `Basic ${btoa('me:pass')}` },
    };
    const method = path === '/retry' ? 'POST' : 'HEAD';

    for (const [name, headers] of Object.entries(callers)) {
      const { status } = await ask(`${url}${path}?name=x`, { method, headers });
      const isKnown = name !== 'none' && name !== 'wrong';
      const isAllowed = allowed[role ?? 'act'].includes(name);
      expect([name, status]).toEqual([
        name,
        isAllowed ? expect.toSatisfy((code) => [200, 202].includes(code)) : isKnown ? 403 : 401,
      ]);
    }
  });

  test('the table of roles is the one of docs/status-server.md', () => {
    const page = readFileSync(join(import.meta.dirname, '../../docs/status-server.md'), 'utf8');
    const rows = [...page.matchAll(/^\| (`\/.*) \| .* \| (none|`\w+`) \|$/gm)];
    const documented = rows.flatMap(([, paths = '', role = '']) =>
      [...paths.matchAll(/`([^`]+)`/g)].map(([, path]) => [path, role.replaceAll('`', '')]),
    );

    const served = Object.entries(routes).map(([path, role]) => [
      path,
      role?.replace('open', 'none'),
    ]);
    expect(documented).toEqual(served);
  });

  test('every path that the server serves is in the table, and no other path is served', async () => {
    const { url } = await aServer(() => aMoment(), { token: 'a-token' });
    const headers = { authorization: 'Bearer a-token' };

    for (const path of ['/nothing', '/constructor', '/__proto__', '/toString', '/retry/']) {
      expect([path, (await ask(`${url}${path}`, { headers })).status]).toEqual([path, 404]);
    }
  });

  test('a token that cannot be read refuses no reader with another one', async () => {
    const unreadable = () => {
      throw new Error('the file is gone');
    };
    const { url } = await aServer(() => aMoment(), {
      tokens: { view: unreadable, act: 'act-token' },
    });
    const status = async (token: string) =>
      (await ask(`${url}/metrics`, { headers: { authorization: `Bearer ${token}` } })).status;

    expect([await status('act-token'), await status('other')]).toEqual([200, 500]);
  });

  test('with tokens alone, the reasons of /readyz are for readers with a role', async () => {
    const { url } = await aServer(() => refusing, {
      host: '0.0.0.0',
      tokens: { view: 'view-token' },
    });
    const readyz = (headers = {}) => ask(`${url}/readyz`, { headers });

    expect((await readyz()).body).not.toContain('refused');
    expect((await readyz({ authorization: 'Bearer view-token' })).body).toContain('refused');
  });
});

describe('access rules', () => {
  test.each([
    ['localhost', 200],
    ['LOCALHOST:8686', 200],
    ['127.0.0.1:1', 200],
    ['127.9.9.9', 200],
    ['[::1]:8686', 200],
    ['evil.example', 421],
    ['127.0.0.1.evil.example', 421],
    ['127.999.0.1', 421],
    ['127.0.0.256:8686', 421],
    ['localhost.evil.example:8686', 421],
    ['localhost:8686@evil.example', 421],
    ['192.168.1.1:8686', 421],
  ])('on loopback, a request to host %s is answered %i', async (host, status) => {
    const { url } = await aServer(() => aMoment());

    expect((await ask(`${url}/status.json`, { headers: { host } })).status).toBe(status);
  });

  test.each(['/healthz', '/status.json'])('two Host headers for %s are refused', async (path) => {
    const { url } = await aServer(() => aMoment());
    const { hostname, port } = new URL(url);
    const socket = connect(Number(port), hostname);

    socket.end(`GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nhost: evil.example\r\n\r\n`);
    const reported = await text(socket);

    expect(reported).toMatch(/^HTTP\/1.1 400 /);
  });

  test('only reading is possible', async () => {
    const { url } = await aServer(() => aMoment());
    const methods = ['POST', 'PUT', 'DELETE', 'OPTIONS', 'PATCH'];

    const answers = await Promise.all(
      methods.map((method) => ask(`${url}/status.json`, { method })),
    );
    const head = await ask(`${url}/status.json`, { method: 'HEAD' });

    expect(answers.map(({ status }) => status)).toEqual(methods.map(() => 405));
    expect(answers[0]?.headers.allow).toBe('GET, HEAD');
    expect(head).toMatchObject({ status: 200, body: '' });
  });

  describe('to have something done', () => {
    const asked: string[] = [];
    const retry = (name: string) => {
      asked.push(name);
      return name === 'audit' ? [{ part: 'stream', waitsUntil: null } as const] : [];
    };
    const post = async (
      server: Parameters<typeof aServer>[1],
      headers: Readonly<Record<string, string>>,
      name = 'audit',
    ) => {
      asked.length = 0;
      const { url } = await aServer(() => aMoment(), { ...server, retry });
      const host = `127.0.0.1:${new URL(url).port}`;
      const options = { method: 'POST', headers: { host, ...headers } };
      const { status } = await ask(`http://${host}/retry?name=${name}`, options);
      return [status, asked.length];
    };
    const loopback = { host: '127.0.0.1', port: 0 };

    test('on loopback it has to be the page itself', async () => {
      const { url } = await aServer(() => aMoment(), { retry });
      const own = { headers: { origin: url }, method: 'POST' };

      const answers = [
        await ask(`${url}/retry?name=audit`, own),
        await ask(`${url}/retry?name=other`, own),
        await ask(`${url}/retry?name=audit`, { ...own, method: 'GET' }),
      ];

      expect(answers.map(({ status }) => status)).toEqual([202, 404, 405]);
      expect(answers[2]?.headers.allow).toBe('POST');
    });

    test.each([
      {},
      { origin: 'http://evil.example' },
      { origin: 'null' },
      { origin: 'http://127.0.0.1:1' },
      { 'sec-fetch-site': 'cross-site' },
      { 'sec-fetch-site': 'same-site', origin: 'http://127.0.0.1' },
    ])('on loopback no other client may: %j', async (headers) => {
      expect(await post(loopback, headers as Record<string, string>)).toEqual([403, 0]);
    });

    test('a name that leads here is not enough', async () => {
      const headers = { host: 'evil.example', origin: 'http://evil.example' };
      expect(await post(loopback, headers)).toEqual([421, 0]);
    });

    test('with credentials a client with them may, but no page of another origin', async () => {
      const basicAuth = ['ana', 'secret'] as const;
      const bearer = { authorization: 'Bearer a-token' };
      const basic = { authorization: `Basic ${Buffer.from('ana:secret').toString('base64')}` };
      const evil = { origin: 'http://evil.example' };

      expect(await post({ token: 'a-token' }, bearer)).toEqual([202, 1]);
      expect(await post({ token: 'a-token' }, { authorization: 'Bearer b' })).toEqual([401, 0]);
      expect(await post({ token: 'a-token' }, {})).toEqual([401, 0]);
      expect(await post({ basicAuth }, basic)).toEqual([202, 1]);
      expect(await post({ basicAuth }, { ...basic, ...evil })).toEqual([403, 0]);
    });
  });

  test('with a token, data are for clients that send it; probes see only good or bad', async () => {
    const { url } = await aServer(() => refusing, { host: '0.0.0.0', token: 'a-token' });
    const get = (path: string, authorization?: string) =>
      ask(url.replace('0.0.0.0', '127.0.0.1'), {
        path,
        headers: {
          host: 'sluice.example',
          ...(authorization === undefined ? {} : { authorization }),
        },
      });

    for (const path of ['/metrics', '/status.json', '/events']) {
      const [none, wrong, basic, longer] = await Promise.all([
        get(path),
        get(path, 'Bearer b-token'),
        get(path, 'Basic a-token'),
        get(path, 'Bearer a-token2'),
      ]);
      expect([none, wrong, basic, longer].map(({ status }) => status)).toEqual([
        401, 401, 401, 401,
      ]);
      expect(none.headers['www-authenticate']).toBe('Bearer realm="sluice"');
      expect(none.body).not.toContain('a-token');
    }
    expect((await get('/metrics?token=a-token')).status).toBe(401);
    expect((await get('/metrics', 'Bearer a-token')).status).toBe(200);
    expect((await get('/healthz')).status).toBe(200);
    expect((await get('/')).status).toBe(200);
    expect(await get('/readyz')).toMatchObject({ status: 503, body: '{"ready":false}\n' });
    expect((await get('/readyz', 'Bearer a-token')).body).toContain('refused');
  });

  test('with a name and a password, page and data are for clients that send them', async () => {
    const basicAuth = ['ana', 'pass:wörd'] as const;
    const { url } = await aServer(() => refusing, { basicAuth, token: 'a-token' });
    const get = (path: string, authorization?: string) =>
      ask(url, { path, headers: authorization === undefined ? {} : { authorization } });
    const basic = (text: string) => `Basic ${Buffer.from(text).toString('base64')}`;

    for (const path of ['/', '/page.js', '/metrics', '/status.json', '/events', '/tail']) {
      const answers = await Promise.all([
        get(path),
        get(path, basic('ana:pass')),
        get(path, basic('anna:pass:wörd')),
        get(path, basic('ana')),
        get(path, 'Basic *'),
      ]);
      expect(answers.map(({ status }) => status)).toEqual([401, 401, 401, 401, 401]);
      expect(answers[0]?.headers['www-authenticate']).toBe('Basic realm="sluice", charset="UTF-8"');
      expect(answers[0]?.body).not.toContain('wörd');
    }
    expect((await get('/', basic('ana:pass:wörd'))).status).toBe(200);
    expect((await get('/metrics', basic('ana:pass:wörd'))).status).toBe(200);
    expect((await get('/metrics', 'Bearer a-token')).status).toBe(200);
    expect(await get('/readyz')).toMatchObject({ status: 503, body: '{"ready":false}\n' });
    expect((await get('/healthz')).status).toBe(200);
  });

  test.each([
    ['none', 200],
    ['same-origin', 200],
    ['same-site', 403],
    ['cross-site', 403],
  ])('a browser that requests a %s page is answered %i', async (site, status) => {
    const { url } = await aServer(() => aMoment(), { tap: aTap([]) });
    const headers = { 'sec-fetch-site': site };

    const data = await ask(`${url}/status.json`, { headers });
    const page = await ask(`${url}/`, { headers });

    expect([data.status, page.status]).toEqual([status, 200]);
  });

  test('every answer is kept from caches, frames, sniffing and other origins', async () => {
    const { url } = await aServer(() => aMoment());

    for (const path of [
      '/',
      '/page.js',
      '/healthz',
      '/readyz',
      '/metrics',
      '/status.json',
      '/no',
    ]) {
      const { headers } = await ask(url, { path, headers: { origin: 'https://evil.example' } });
      expect(headers['content-security-policy']).toMatch(/^default-src 'none'; script-src 'self';/);
      expect(headers['x-content-type-options']).toBe('nosniff');
      expect(headers['cache-control']).toBe('no-store');
      expect(headers['cross-origin-resource-policy']).toBe('same-origin');
      expect(Object.keys(headers).filter((name) => name.startsWith('access-control'))).toEqual([]);
    }
  });
});

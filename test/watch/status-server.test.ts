// The status over HTTP, asked as probes, scrapers, browsers and those who should not ask do it.

import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { describe, expect, test } from 'vitest';
import { afterThisTest, waitUntil } from '../support/temp.ts';
import { aFailure, aServer, aSink, aStream, ask, aWatched } from './a-watched.ts';

const evil = '"</script><script>alert(1)</script>\n\nevent: state\ndata: {}\n\n';
const refusing = aWatched({ sinks: [aSink({ state: 'refused', error: aFailure('401') })] });

describe('the paths', () => {
  test('/healthz says that the process lives, whatever else is wrong', async () => {
    const { url } = await aServer(() => refusing);

    expect(await ask(`${url}/healthz`)).toMatchObject({ status: 200, body: 'ok\n' });
  });

  test('/readyz is 200, and 503 with the reason as soon as the journey does not go on', async () => {
    let watched = aWatched();
    const { url } = await aServer(() => watched);

    const before = await ask(`${url}/readyz`);
    watched = refusing;
    const during = await ask(`${url}/readyz`);
    watched = aWatched();
    const after = await ask(`${url}/readyz`);

    expect([before.status, during.status, after.status]).toEqual([200, 503, 200]);
    expect(JSON.parse(before.body)).toEqual({ ready: true, reasons: [] });
    expect(JSON.parse(during.body)).toMatchObject({
      ready: false,
      reasons: [{ part: 'sink', name: 'siem', reason: 'refused' }],
    });
  });

  test('/metrics is Prometheus text, and follows /readyz', async () => {
    const { url } = await aServer(() => refusing);

    const { headers, body } = await ask(`${url}/metrics`);

    expect(headers['content-type']).toBe('text/plain; version=0.0.4; charset=utf-8');
    expect(body).toContain('\nsluice_ready 0\n');
    expect(body).toContain('\nsluice_sink_refused{sink="siem"} 1\n');
  });

  test('/status.json tells everything, also of more streams than a page can show', async () => {
    const streams = Array.from({ length: 600 }, (_, index) => aStream({ name: `s${index}` }));
    const { url } = await aServer(() => ({ ...refusing, streams }));

    const report = JSON.parse((await ask(`${url}/status.json`)).body);

    expect(report).toMatchObject({
      ready: false,
      streams_total: 600,
      spool: { bytes: 1_000, max_bytes: 1_000_000, events: 10 },
      sinks: [{ name: 'siem', well: false, error: { message: '401', next: 'Look.' } }],
    });
    expect(report.streams).toHaveLength(600);
  });

  test('/events begins with the past and the present, and goes on each second', async () => {
    const { url } = await aServer(() => aWatched());

    const heard = await listenTo(`${url}/events`);
    await waitUntil(() => heard.names().length >= 4, { what: 'four events' });

    expect(heard.names().slice(0, 2)).toEqual(['history', 'state']);
    expect(heard.names().filter((name) => name === 'state').length).toBeGreaterThan(1);
  });

  test('/events: what a record says starts no event of its own', async () => {
    const { url } = await aServer(() => aWatched({ sinks: [aSink({ error: aFailure(evil) })] }));

    const heard = await listenTo(`${url}/events`);
    await waitUntil(() => heard.names().length >= 2, { what: 'two events' });

    expect(heard.names().slice(0, 2)).toEqual(['history', 'state']);
    const [, state = ''] = heard.text().split('\n\n');
    const told = JSON.parse(state.split('\n')[1]?.slice('data: '.length) ?? '');
    expect(told.sinks[0].error.message).toBe(evil);
  });

  test('/events is refused to more listeners than there is room for, until one leaves', async () => {
    const { url } = await aServer(() => aWatched());
    const listeners = [];
    for (let count = 0; count < 16; count += 1) listeners.push(await listenTo(`${url}/events`));

    const refused = await ask(`${url}/events`);
    listeners[0]?.leave();
    const next = await waitUntil(
      async () => {
        const heard = await listenTo(`${url}/events`);
        return heard.status === 200 && heard;
      },
      { what: 'room for a listener' },
    );

    expect(refused.status).toBe(503);
    expect(next.status).toBe(200);
  });

  test('what is not served is not found, and no path leads out of the page’s folder', async () => {
    const { url } = await aServer(() => aWatched());
    const paths = [
      '/no',
      '/page',
      '/../status-server.ts',
      '/%2e%2e/log.ts',
      '/constructor',
      '//',
      '/*',
    ];

    const answers = await Promise.all(paths.map((path) => ask(url, { path })));

    expect(answers.map(({ status }) => status)).toEqual(paths.map(() => 404));
  });
});

describe('who may ask', () => {
  test.each([
    ['localhost', 200],
    ['LOCALHOST:8686', 200],
    ['127.0.0.1:1', 200],
    ['127.9.9.9', 200],
    ['[::1]:8686', 200],
    ['evil.example', 421],
    ['127.0.0.1.evil.example', 421],
    ['localhost.evil.example:8686', 421],
    ['localhost:8686@evil.example', 421],
    ['192.168.1.1:8686', 421],
  ])('on loopback, a request to host %s is answered %i', async (host, status) => {
    const { url } = await aServer(() => aWatched());

    expect((await ask(`${url}/status.json`, { headers: { host } })).status).toBe(status);
  });

  test('only reading is possible', async () => {
    const { url } = await aServer(() => aWatched());
    const methods = ['POST', 'PUT', 'DELETE', 'OPTIONS', 'PATCH'];

    const answers = await Promise.all(
      methods.map((method) => ask(`${url}/status.json`, { method })),
    );
    const head = await ask(`${url}/status.json`, { method: 'HEAD' });

    expect(answers.map(({ status }) => status)).toEqual(methods.map(() => 405));
    expect(answers[0]?.headers.allow).toBe('GET, HEAD');
    expect(head).toMatchObject({ status: 200, body: '' });
  });

  test('with a token, data are for those who bring it; probes see only good or bad', async () => {
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

  test('every answer is kept from caches, frames, sniffing and other origins', async () => {
    const { url } = await aServer(() => aWatched());

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

describe('its life', () => {
  test('an address that is taken is told with what to do', async () => {
    const { url } = await aServer(() => aWatched());
    const port = Number(new URL(url).port);

    await expect(aServer(() => aWatched(), { port })).rejects.toMatchObject({
      code: 'config_invalid',
      message: `serving the status on 127.0.0.1:${port}: another program listens there already (EADDRINUSE)`,
      next: 'Choose another address as status.listen, or end what uses this one.',
    });
  });

  test('close ends listeners, and the port is free', async () => {
    const server = await aServer(() => aWatched());
    const heard = await listenTo(`${server.url}/events`);

    await server.close();
    await heard.ended;

    await expect(ask(server.url)).rejects.toThrow('ECONNREFUSED');
  });

  test('a look that fails is an answer, not the end', async () => {
    let broken = false;
    const { url } = await aServer(() => {
      if (broken) throw new Error('no sight');
      return aWatched();
    });

    broken = true;
    const during = await ask(`${url}/metrics`);
    broken = false;

    expect(during).toMatchObject({ status: 500 });
    expect(during.body).not.toContain('no sight');
    expect((await ask(`${url}/metrics`)).status).toBe(200);
  });
});

/** A listener of server-sent events; it leaves with the test. */
async function listenTo(url: string) {
  const asked = request(url, { agent: false }).end();
  const [response]: [IncomingMessage] = (await once(asked, 'response')) as [IncomingMessage];
  let text = '';
  response.setEncoding('utf8').on('data', (part: string) => {
    text += part;
  });
  response.on('error', () => undefined);
  const ended = new Promise<void>((resolve) => response.on('close', resolve));
  afterThisTest(() => asked.destroy());
  return {
    status: response.statusCode ?? 0,
    text: () => text,
    names: () => [...text.matchAll(/^event: (\w+)$/gm)].map(([, name]) => name),
    leave: () => asked.destroy(),
    ended,
  };
}

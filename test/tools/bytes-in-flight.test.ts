// Bodies in flight, over real connections: together they keep to the bound, whatever each says of its length, and all of them
// come to their end.

import { createServer } from 'node:http';
import { gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { BytesInFlight } from '../../src/tools/bytes-in-flight.ts';
import { openHttpClient } from '../../src/tools/http-client.ts';
import { listen } from '../connectors/sinks/syslog-receivers.ts';
import { afterThisTest, waitUntil } from '../support/temp.ts';

const MiB = 1024 ** 2;
const page = Buffer.alloc(3 * MiB, 'sluice ');
const huge = Buffer.alloc(9 * MiB, 'sluice ');
const never = new AbortController().signal;

/** Serves a page with its length, in chunks, or packed; `/endless` never ends. */
async function upstream(): Promise<string> {
  const server = createServer((request, response) => {
    switch (request.url) {
      case '/chunked':
        response.write(page.subarray(0, 10));
        response.end(page.subarray(10));
        break;
      case '/packed':
        response.setHeader('content-encoding', 'gzip').end(gzipSync(page));
        break;
      case '/huge':
        response.end(huge);
        break;
      case '/small':
        response.end(page.subarray(0, 10_000));
        break;
      case '/endless':
        response.write(page);
        break;
      default:
        response.setHeader('content-length', page.length).end(page);
    }
  });
  afterThisTest(() => server.closeAllConnections());
  return `http://127.0.0.1:${await listen(server)}`;
}

function client(inFlightBytesMax: number) {
  const http = openHttpClient({ inFlightBytesMax });
  afterThisTest(() => http.close());
  const get = (url: string, signal = never) =>
    http.request(
      { method: 'GET', url, headers: {}, timeoutMs: 60_000, bodyBytesMax: 16 * MiB },
      signal,
    );
  return { http, get };
}

describe('bodies in flight', () => {
  test.each(['/plain', '/chunked', '/packed', '/huge'])(
    'twelve polls for %s keep to the bound together, and all are read',
    async (path) => {
      const url = await upstream();
      const { http, get } = client(4 * MiB);
      const size = path === '/huge' ? huge.length : page.length;
      let most = 0;

      const lengths = await Promise.all(
        Array.from({ length: 12 }, () =>
          http.inFlight.during(async () => {
            const { body } = await get(url + path);
            most = Math.max(most, http.inFlight.bytes);
            // As judging and holding it would take a while.
            await new Promise((resolve) => setImmediate(resolve));
            return body.length;
          }),
        ),
      );

      expect(lengths).toEqual(new Array(12).fill(size));
      // The one that always continues, and the bytes that each connection had read before it had to wait.
      expect(most).toBeLessThan(4 * MiB + size + 12 * 128 * 1024);
      expect(http.inFlight.bytes).toBe(0);
    },
  );

  test('one that never ends keeps others waiting only until it is given up', async () => {
    const url = await upstream();
    const { http, get } = client(MiB);
    const stop = new AbortController();
    const stuck = http.inFlight.during(() => get(`${url}/endless`, stop.signal));
    stuck.catch(() => undefined);
    await waitUntil(() => http.inFlight.bytes > MiB, { what: 'bytes over the bound' });
    const others = [1, 2].map(() => http.inFlight.during(() => get(`${url}/plain`)));

    stop.abort(new Error('given up'));

    await expect(stuck).rejects.toThrow('given up');
    const bodies = await Promise.all(others);
    expect(bodies.map(({ body }) => body.length)).toEqual([page.length, page.length]);
    expect(http.inFlight.bytes).toBe(0);
  });

  test.each(['/huge', '/plain'])(
    'the next %s of a poll is read although the one before had nothing to store',
    async (path) => {
      const url = await upstream();
      const { http, get } = client(4 * MiB);
      const hasOne = Promise.withResolvers<void>();
      const other = Promise.withResolvers<unknown>();

      const first = http.inFlight.during(async () => {
        await get(url + path);
        hasOne.resolve();
        await waitUntil(() => http.inFlight.bytes > 4 * MiB, { what: 'another poll to wait' });
        await get(url + path);
        return await get(`${url}/small`);
      });
      await hasOne.promise;
      other.resolve(http.inFlight.during(() => get(`${url}/huge`)));

      expect((await first).body.length).toBe(10_000);
      expect(await other.promise).toMatchObject({ body: { length: huge.length } });
      expect(http.inFlight.bytes).toBe(0);
    },
  );

  test('the next page of a poll waits while the one before is being stored', async () => {
    const inFlight = new BytesInFlight(100);

    await inFlight.during(async () => {
      const page = inFlight.open();
      page?.add(90);
      page?.complete();
      const landed = inFlight.landing();
      const next = inFlight.open();
      const turn = Promise.withResolvers<void>();
      expect(next?.add(90)).toBe(false);
      next?.onTurn(turn.resolve);
      landed();
      await turn.promise;
    });
  });

  test('a stalled huge body keeps no small ones waiting', async () => {
    const url = await upstream();
    const { http, get } = client(MiB);
    const stop = new AbortController();
    const stuck = Promise.all(
      [1, 2, 3].map(() => http.inFlight.during(() => get(`${url}/endless`, stop.signal))),
    );
    stuck.catch(() => undefined);
    await waitUntil(() => http.inFlight.bytes > MiB, { what: 'bytes over the bound' });

    const bodies = await Promise.all(
      Array.from({ length: 50 }, () => http.inFlight.during(() => get(`${url}/small`))),
    );
    stop.abort(new Error('given up'));

    expect(bodies.map(({ body }) => body.length)).toEqual(new Array(50).fill(10_000));
    await expect(stuck).rejects.toThrow('given up');
    expect(http.inFlight.bytes).toBe(0);
  });

  test('beside the first large body several small ones are read, up to half of the bound', async () => {
    const inFlight = new BytesInFlight(3_200);

    const leases = Array.from({ length: 20 }, () => {
      let lease: ReturnType<BytesInFlight['open']> = null;
      void inFlight.during(async () => {
        lease = inFlight.open();
        await new Promise(() => undefined);
      });
      return lease as ReturnType<BytesInFlight['open']>;
    });
    const [first, other, ...small] = leases;

    expect([first?.add(4_000), other?.add(200)]).toEqual([true, false]);
    expect(small.map((lease) => lease?.add(100))).toEqual([
      ...Array<boolean>(16).fill(true),
      ...Array<boolean>(2).fill(false),
    ]);
  });

  test('a page counts until it has landed, and the next one of its poll beside it', async () => {
    const inFlight = new BytesInFlight(100);
    const read = (bytes: number) => {
      const lease = inFlight.open();
      const mayGoOn = lease?.add(bytes);
      lease?.complete();
      return mayGoOn;
    };

    await inFlight.during(async () => {
      expect(read(60)).toBe(true);
      const landed = inFlight.landing();
      expect(read(30)).toBe(true);
      expect(inFlight.bytes).toBe(90);
      landed();
      expect(inFlight.bytes).toBe(30);
      expect([read(10), read(10), read(10)]).toEqual([true, true, true]);
      expect(inFlight.bytes).toBe(20);
      // Another poll waits, since it did not begin first; alone it would continue.
      await inFlight.during(async () => expect(read(200)).toBe(false));
    });

    expect(inFlight.bytes).toBe(0);
    await inFlight.during(async () => expect(read(200)).toBe(true));
    expect(inFlight.open()).toBe(null);
  });
});

// Rows of the ambiguity register that are about the two list sources by themselves: what they make of answers and of a config.

import { expect, test } from 'vitest';
import { auditEventsSource } from '../../../connectors/sources/audit-events.ts';
import { logsSource } from '../../../connectors/sources/logs.ts';
import type { ListStream } from '../../../src/contracts/source.ts';
import type { Upstream, UpstreamRequest } from '../../../src/contracts/upstream.ts';
import { fetchPage } from '../../../src/list/fetch-page.ts';
import { settingsOf } from '../../support/plain-upstream.ts';

/** The first page of a log list, and its request. */
async function firstPage(given: Record<string, unknown>, body: string) {
  const asked: UpstreamRequest[] = [];
  const upstream: Upstream = {
    name: 'ops',
    api: 'services',
    baseUrl: 'https://svc.example.com',
    companies: ['c-1'],
    get: async (request) => {
      asked.push(request);
      return { outcome: 'ok', url: 'http://upstream/', body: Buffer.from(body), headers: {} };
    },
  };
  const settings = settingsOf(logsSource, given);
  const [stream] = logsSource.streams(settings, { name: 'web', upstream }) as readonly ListStream[]; // a list source
  const position = { by: 'cursor', cursor: null } as const;
  if (stream === undefined) throw new Error('the source has a stream');
  const fetched = await fetchPage(stream, { position, limit: 10 }, new AbortController().signal);
  return { fetched, asked };
}

test('A01: records and the next cursor are found where the config says', async () => {
  const { fetched } = await firstPage(
    { path: '/logs', pagination: { items: 'result.rows', next: 'paging.next' } },
    '{"result":{"rows":[{"id":1},{"id":2}]},"paging":{"next":"c2"}}',
  );

  expect(fetched).toMatchObject({
    outcome: 'ok',
    page: { next: 'c2', records: { items: 'result.rows', length: 2 } },
  });
});

test('A27: a log endpoint is the one in the config, and without a path there is none', async () => {
  const { asked } = await firstPage(
    { path: '/v9/{company_id}/flows', params: { kind: 'flow' } },
    '{"data":[]}',
  );

  expect(asked).toMatchObject([
    {
      path: '/v9/c-1/flows',
      query: [
        ['kind', 'flow'],
        ['limit', '10'],
      ],
    },
  ]);
  expect(() => settingsOf(logsSource, {})).toThrow();
});

test('A33: a previous cursor leads nowhere', async () => {
  const { fetched } = await firstPage(
    { path: '/logs' },
    '{"data":[],"prev_cursor":"p0","next_cursor":null}',
  );

  expect(fetched).toMatchObject({ outcome: 'ok', page: { next: null } });
});

test('A15: a base address is part of a checkpoint’s identity', () => {
  const upstreamAt = (baseUrl: string): Upstream => ({
    ...{ name: 'edge', api: 'unified', baseUrl, companies: [] },
    get: () => Promise.reject(new Error('nothing is asked')),
  });
  const printAt = (baseUrl: string) => {
    const opening = { name: 'audit', upstream: upstreamAt(baseUrl) };
    const [stream] = auditEventsSource.streams(settingsOf(auditEventsSource), opening);
    return stream?.fingerprint;
  };

  expect(printAt('https://api.example.com/v1')).not.toBe(printAt('https://eu.example.com/v1'));
});

// The two list sources by themselves: their requests, and their results for responses that the sandbox does not send.

import { describe, expect, test } from 'vitest';
import { auditEventsSource } from '../../../connectors/sources/audit-events.ts';
import { logsSource } from '../../../connectors/sources/logs.ts';
import type { Answer } from '../../../src/contracts/answer.ts';
import { ExportError } from '../../../src/contracts/errors.ts';
import type { ListStream } from '../../../src/contracts/source.ts';
import type { Body, Upstream, UpstreamRequest } from '../../../src/contracts/upstream.ts';
import { fetchPage } from '../../../src/list/fetch-page.ts';
import type { PageQuery } from '../../../src/list/page.ts';
import { settingsOf } from '../../support/plain-upstream.ts';

const never = new AbortController().signal;
const first: PageQuery = { position: { by: 'cursor', cursor: null }, limit: 100 };
const following: PageQuery = { position: { by: 'cursor', cursor: 'a+/=%2F é&' }, limit: 100 };
const logPath = '/api/logs/v1/companies/{company_id}/events';

/** An upstream that records its requests and has one response. */
function answering(answer: Answer<Body>, companies: readonly string[] = ['c-1', 'a/b c']) {
  const asked: UpstreamRequest[] = [];
  const upstream: Upstream = {
    name: 'edge',
    api: 'services',
    baseUrl: 'https://api.example.com/v1',
    companies,
    get: async (request) => {
      asked.push(request);
      return answer;
    },
  };
  return { upstream, asked };
}

function ok(body: string | object, headers: Record<string, string> = {}): Answer<Body> {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  return { outcome: 'ok', url: 'http://upstream/', body: Buffer.from(text), headers };
}

function refused(status: number, field?: string): Answer<Body> {
  const cause = new ExportError('upstream_refused', `upstream answered ${status}`, { next: '' });
  return { outcome: 'refused', status, cause, ...(field === undefined ? {} : { field }) };
}

function streamsOf(upstream: Upstream, given: Record<string, unknown> = {}) {
  const settings = settingsOf(logsSource, { path: logPath, ...given });
  return logsSource.streams(settings, { name: 'web', upstream }) as readonly ListStream[]; // a list source
}

function streamOf(upstream: Upstream, given: Record<string, unknown> = {}): ListStream {
  const [stream] = streamsOf(upstream, given);
  if (stream === undefined) throw new Error('there is a stream per company');
  return stream;
}

async function fetched(answer: Answer<Body>, query = first, given: Record<string, unknown> = {}) {
  return await fetchPage(streamOf(answering(answer).upstream, given), query, never);
}

describe('fetchPage: the question', () => {
  test('parameters come in one order, the cursor as it was given', async () => {
    const { upstream, asked } = answering(ok({ data: [], next_cursor: null }));
    const given = { params: { region: 'eu' }, order_by: 'timestamp', order: 'DESC' };
    const stream = streamOf(upstream, given);

    await fetchPage(stream, following, never);

    expect(asked[0]?.query).toEqual([
      ['region', 'eu'],
      ['order_by', 'timestamp'],
      ['order', 'DESC'],
      ['limit', '100'],
      ['cursor', 'a+/=%2F é&'],
    ]);
  });

  test('A32: without the sorting all else is requested as before', async () => {
    const { upstream, asked } = answering(ok({ data: [], next_cursor: null }));
    const given = { params: { region: 'eu' }, order_by: 'timestamp', order: 'DESC' };
    const stream = streamOf(upstream, given);

    await fetchPage(stream, { ...following, unsorted: true }, never);

    expect(asked[0]?.query).toEqual([
      ['region', 'eu'],
      ['limit', '100'],
      ['cursor', 'a+/=%2F é&'],
    ]);
  });

  test('A49: a company is one encoded segment of the path, and its stream has its name', async () => {
    const { upstream, asked } = answering(ok({ data: [] }));
    const streams = streamsOf(upstream);

    for (const stream of streams) await fetchPage(stream, first, never);

    expect(streams.map(({ name, company }) => [name, company])).toEqual([
      ['web/c-1', 'c-1'],
      ['web/a/b c', 'a/b c'],
    ]);
    expect(asked[1]).toMatchObject({
      path: '/api/logs/v1/companies/a%2Fb%20c/events',
      template: logPath,
      company: 'a/b c',
    });
  });

  test('A27: names of parameters are the config’s', async () => {
    const { upstream, asked } = answering(ok({ rows: [], total: 0 }));
    const pagination = {
      style: 'offset',
      limit_param: 'per_page',
      offset_param: 'skip',
      items: 'rows',
    };
    const stream = streamOf(upstream, { pagination });

    await fetchPage(stream, { position: { by: 'offset', offset: 20 }, limit: 10 }, never);

    expect(asked[0]?.query).toEqual([
      ['per_page', '10'],
      ['skip', '20'],
    ]);
  });

  test('A50: a fingerprint differs with path, parameters, sorting and paging, and not with the page limit', () => {
    const { upstream } = answering(ok({}));
    const print = (given: Record<string, unknown>) => streamsOf(upstream, given)[0]?.fingerprint;
    const variants = [
      {},
      { path: '/other' },
      { params: { a: 'b' } },
      { order_by: 'time', order: 'ASC' },
      { pagination: { style: 'offset' } },
    ];

    expect(new Set(variants.map(print)).size).toBe(variants.length);
    expect(print({ page_limit: 7 })).toBe(print({}));
  });
});

describe('fetchPage: pages', () => {
  test('A01: an answer that is itself an array is a page', async () => {
    const page = await fetched(ok('[{"id":1},{"id":2}]'));

    expect(page).toMatchObject({
      outcome: 'ok',
      page: { records: { items: '' }, next: undefined },
    });
  });

  test.for([
    { next: '"c2"', read: 'c2' },
    { next: 'null', read: null },
    { next: '""', read: null },
    { next: '9007199254740993001', read: '9007199254740993001' },
  ])('a next cursor of $next is read as $read', async ({ next, read }) => {
    const page = await fetched(ok(`{"data":[],"next_cursor":${next}}`));

    expect(page).toMatchObject({ outcome: 'ok', page: { next: read } });
  });

  test.for([
    '{"data":[],"next_cursor":{}}',
    '{"data":[],"next_cursor":true}',
    '{"data":{}}',
    '{"items":[]}',
    '"data"',
    '',
    '{"data":[',
    '{"error":{"code":"x"},"data":[]}',
  ])('%s is nonsense, not the end', async (body) => {
    const answer = await fetched(ok(body));

    expect(answer).toMatchObject({ outcome: 'retry', cause: { code: 'upstream_nonsense' } });
  });

  test('nesting beyond bounds is nonsense', async () => {
    const deep = `{"data":[${'['.repeat(5_000)}${']'.repeat(5_000)}]}`;

    expect(await fetched(ok(deep))).toMatchObject({ outcome: 'retry' });
  });

  const many = Array.from({ length: 10 }, (_, id) => ({ id }));
  const link = {
    link: '<https://u/x?page=1>; rel="prev", <https://u/x?after=9>; title="a, b"; rel=next',
  };
  test.for<[body: object, more: unknown, headers?: Record<string, string>, style?: string]>([
    [
      { data: many, next_cursor: 'c2' },
      { sign: 'next_cursor', likely: { style: 'cursor', next: 'next_cursor' } },
      {},
      'offset',
    ],
    [
      { data: many, next_cursor: 'c2' },
      { sign: 'next_cursor', likely: { style: 'cursor', next: 'next_cursor' } },
      {},
      'none',
    ],
    [
      { data: many, meta: { next: 'c2' } },
      { sign: 'meta.next', likely: { style: 'cursor', next: 'meta.next' } },
    ],
    [
      { data: many, links: { next: 'https://u/x?p=2' } },
      { sign: 'links.next', likely: { style: 'next_url', next: 'links.next' } },
    ],
    [{ data: many, '@odata.nextLink': '/x?$skip=10' }, { sign: '@odata.nextLink' }],
    [
      { data: many, next: '?limit=10&offset=10' },
      { sign: 'next', likely: { style: 'offset', offset_param: 'offset' } },
    ],
    [{ data: many, _links: { next: { href: '/x?p=2' } } }, { sign: '_links.next' }],
    [
      { data: many, next_page: 2 },
      { sign: 'next_page', likely: { style: 'page' } },
    ],
    [
      { data: many, has_more: true },
      { sign: 'has_more', likely: null },
    ],
    [{ data: many, pageInfo: { hasNextPage: true } }, { sign: 'pageInfo.hasNextPage' }],
    [{ data: many, is_last: false }, { sign: 'is_last' }],
    [{ data: many, isTruncated: true }, { sign: 'isTruncated' }],
    [
      { data: many, page: 1, total_pages: 2 },
      { sign: 'total_pages', likely: { style: 'page' } },
    ],
    [{ data: many, page: { number: 0, totalPages: 3 } }, { sign: 'page.totalPages' }],
    [many, { sign: 'Link: rel="next"', likely: { style: 'link' } }, link],
    [many, { sign: 'X-Next-Page', likely: { style: 'page' } }, { 'x-next-page': '2' }],
  ])('A28: more than the paging reads is noticed: %j', async ([body, more, headers, style]) => {
    const place = style === 'offset' ? { by: 'offset' as const, offset: 0 } : first.position;
    const pagination = { style: style ?? 'cursor' };

    const answer = await fetched(ok(body, headers), { position: place, limit: 10 }, { pagination });

    expect(answer).toMatchObject({ outcome: 'ok', page: { more } });
  });

  test.for<[body: object, headers?: Record<string, string>]>([
    [{ data: many, next_cursor: 'c2', total: 500 }],
    [{ data: many, next_cursor: null, next: null, has_more: false, links: { next: '' } }],
    [{ data: many, links: { prev: '/x?p=1', self: '/x', last: '/x' }, page: 1, total_pages: 1 }],
    [{ data: many, page: { number: 0, size: 10, totalPages: 1, totalElements: 10 }, last: true }],
    [{ data: many, schedule: { next: 'tomorrow' }, truncated: false, is_last: true, more: 'no' }],
    [
      many,
      { link: '<https://u/x>; rel="prev", <https://u/n>; rel="nextcloud"', 'x-next-page': '' },
    ],
  ])('A28: %j is no sign of more pages', async ([body, headers]) => {
    const answer = await fetched(ok(body, headers));

    expect(answer).toMatchObject({ outcome: 'ok', page: { more: null } });
  });

  test.for<[body: object, total: number | null, headers?: Record<string, string>]>([
    [{ data: many, total: 7, total_count: 500 }, 7],
    [{ data: many, meta: { count: 10, total_count: '500' } }, 500],
    [many, 500, { 'x-total-count': '500' }],
    [many, 500, { 'content-range': 'items 0-9/500' }],
    [{ data: many, total: { value: 500 } }, null],
  ])('A30: the length of a list: %j is %j', async ([body, total, headers]) => {
    const answer = await fetched(ok(body, headers));

    expect(answer).toMatchObject({ outcome: 'ok', page: { total } });
  });
});

describe('fetchPage: refusals', () => {
  test.for([
    { status: 422, field: 'cursor', query: following, about: 'cursor' },
    { status: 400, field: undefined, query: following, about: 'cursor' },
    { status: 404, field: undefined, query: following, about: 'cursor' },
    { status: 409, field: undefined, query: following, about: 'cursor' },
    { status: 410, field: undefined, query: following, about: 'cursor' },
    { status: 422, field: 'limit', query: following, about: 'limit' },
    { status: 422, field: 'limit', query: first, about: 'limit' },
    { status: 400, field: undefined, query: first, about: 'limit' },
    { status: 400, field: undefined, query: { ...first, limit: null }, about: undefined },
    { status: 422, field: 'region', query: first, about: undefined },
    { status: 422, field: 'region', query: following, about: undefined },
    { status: 404, field: undefined, query: first, about: undefined },
    { status: 418, field: undefined, query: following, about: undefined },
  ])('A07: $status naming $field, about $about', async ({ status, field, query, about }) => {
    const answer = await fetched(refused(status, field), query);

    expect(answer).toMatchObject({ outcome: 'refused', status });
    expect(answer.outcome === 'refused' && answer.about).toBe(about);
  });

  test.for([
    { status: 400, field: 'order_by', query: first, about: 'sort' },
    { status: 422, field: 'order', query: following, about: 'sort' },
    { status: 422, field: 'order', query: { ...following, unsorted: true }, about: undefined },
    { status: 400, field: undefined, query: first, about: 'limit' },
  ])('A32: $status naming $field, about $about', async ({ status, field, query, about }) => {
    const given = { order_by: 'ts', order: 'oldest_first' };

    const answer = await fetched(refused(status, field), query, given);

    expect(answer).toMatchObject({ outcome: 'refused', status });
    expect(answer.outcome === 'refused' && answer.about).toBe(about);
  });

  test('A29: an offset that is too deep says how far it came', async () => {
    const query: PageQuery = { position: { by: 'offset', offset: 10_000 }, limit: 100 };

    const answer = await fetched(refused(400), query, { pagination: { style: 'offset' } });

    expect(answer).toMatchObject({
      outcome: 'refused',
      cause: { details: { offset: 10_000 } },
    });
  });

  test('retry and denied pass through', async () => {
    const cause = new ExportError('upstream_throttled', 'slow down', { next: '' });

    expect(await fetched({ outcome: 'retry', wait: { ms: 5_000 }, cause })).toEqual({
      outcome: 'retry',
      wait: { ms: 5_000 },
      cause,
    });
    expect(await fetched({ outcome: 'denied', status: 403, cause })).toEqual({
      outcome: 'denied',
      status: 403,
      cause,
    });
  });
});

describe('settings', () => {
  test('the defaults are those of the contract', () => {
    const settings = settingsOf(auditEventsSource);

    expect(settings).toMatchObject({
      path: '/audit/events',
      page_limit: 100,
      order: 'auto',
      start: 'beginning',
      id: 'id',
      time: ['timestamp', 'time', 'created_at'],
    });
    expect(auditEventsSource.list?.(settings)).toEqual({
      order: 'auto',
      start: 'beginning',
      lookbackMs: 600_000,
      rewindEveryMs: 900_000,
      reconcileEveryMs: 3_600_000,
      onCursorInvalid: 'rewalk',
    });
  });

  test('start takes a time, and nothing else', () => {
    const settings = settingsOf(auditEventsSource, { start: '2026-01-31T00:00:00+01:00' });

    expect(settings.start).toBe(Date.UTC(2026, 0, 30, 23));
    expect(() => settingsOf(auditEventsSource, { start: 'yesterday' })).toThrow('RFC 3339');
  });

  test.for([
    { given: { path: logPath }, companies: [], flaw: 'companies' },
    { given: { path: '/x', order_by: 'time' }, companies: [], flaw: 'order' },
    { given: { path: '/x', params: { limit: '5' } }, companies: [], flaw: 'page_limit' },
    { given: { path: '/x' }, companies: [], flaw: null },
  ])('a fault in $given is reported: $flaw', ({ given, companies, flaw }) => {
    const said = logsSource.flaw?.(settingsOf(logsSource, given), { api: 'services', companies });

    if (flaw === null) expect(said).toBeNull();
    else expect(said).toContain(flaw);
  });

  test.for(['logs', '/logs?x=1', '/logs/{host_id}', ''])('a path of %j is refused', (path) => {
    expect(() => settingsOf(logsSource, { path })).toThrow();
  });

  test('A32: with order_by the order is requested and still learned from the records', () => {
    const settings = settingsOf(logsSource, {
      path: '/x',
      order_by: 'time',
      order: 'newest_first',
    });

    expect(logsSource.list?.(settings)).toMatchObject({ order: 'auto' });
  });
});

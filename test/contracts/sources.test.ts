// The contract of every source in the list, so that a new one is covered by being listed: pages that are the same at
// each request, a walk that can be cut anywhere, a reaction to an abort, an error for an invalid response, and cursors
// that lead nowhere. The test calls the source, not the engine: it remembers nothing between two calls.

import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { sources } from '../../connectors/sources/index.ts';
import type {
  CollectionStream,
  ListStream,
  ParentsStream,
  Stream,
} from '../../src/contracts/source.ts';
import { fetchPage } from '../../src/list/fetch-page.ts';
import {
  firstPosition,
  type ListPosition,
  type Page,
  type PageAnswer,
} from '../../src/list/page.ts';
import { askObject } from '../../src/parents/ask-object.ts';
import { readParentState } from '../../src/parents/state.ts';
import type { FaultRule, Sandbox } from '../../src/sandbox/sandbox.ts';
import { collectionReader, standingSandbox } from '../list/reading.ts';
import { settingsOf, streamsOf, upstreamAt } from '../support/plain-upstream.ts';

const never = new AbortController().signal;

/** The settings that each source needs beside its defaults, to read from the sandbox. */
const needs: Readonly<Record<string, readonly Readonly<Record<string, unknown>>[]>> = {
  audit_events: [{}],
  logs: [
    { path: '/api/logs/v1/companies/{company_id}/events' },
    { path: '/api/logs/v1/companies/{company_id}/web', pagination: { style: 'offset' } },
    { path: '/api/logs/v1/companies/{company_id}/all', pagination: { style: 'none' } },
  ],
  firewall: [{}],
  sites: [{}],
  web_categories: [{}],
  company: [{}],
  hosts: [{}, { detail: null }],
  block_list: [{}],
  exclusion_list: [{}, { page_limit: 7, pagination: { style: 'cursor' } }],
  tickets: [{}],
  ticket_events: [{ each: { ids: ['tkt-4713', 'tkt-10004713'] } }],
  incident_timeline: [{ each: { ids: ['INC-30003'] } }],
  investigations: [{ each: { ids: ['inv_700003'] } }],
  changes: [
    {
      each: {
        ids: ['7c9e6679-7425-40de-944b-100000000003', '7c9e6679-7425-40de-944b-100010000003'],
      },
    },
  ],
  collection: [
    { path: '/api/fleet/v1/companies/{company_id}', single: true, id: 'company_id' },
    {
      path: '/api/ticketing/v1/companies/{company_id}/tickets',
      id: 'ticket_id',
      page_limit: 7,
      pagination: { style: 'offset' },
    },
  ],
  // Requests nothing: its deliveries are tested in test/webhooks.
  webhooks: [],
};

const cases = sources.flatMap((source) =>
  (needs[source.type] ?? []).map((given) => ({
    source,
    given,
    name: [source.type, ...Object.values(given).map((value) => JSON.stringify(value))].join(' '),
  })),
);

async function opened({ source, given }: (typeof cases)[number], events = 40) {
  const { sandbox } = await standingSandbox({ companies: ['c-1', 'x/../y z'], events });
  const [api] = source.apis;
  const upstream = upstreamAt(
    given.path === undefined ? (api ?? 'services') : 'services',
    sandbox,
    ['c-1', 'x/../y z'],
  );
  const streams = readFrom(streamsOf(source, upstream, given), given);
  return { sandbox, upstream, streams };
}

/** Streams that send requests; if one reads a list or an object of each parent, the company's own. */
function readFrom(streams: readonly Stream[], { each }: (typeof cases)[number]['given']) {
  return streams.flatMap((stream, at): (ListStream | CollectionStream | ObjectStream)[] => {
    if (stream.kind === 'push') return [];
    if (stream.kind !== 'parents') return [stream];
    const [id = ''] = (each as { ids: readonly string[] }).ids.slice(at);
    const list = stream.listOf(id);
    if (list === null) throw new Error(`${id} can stand in no path`);
    return [stream.object === undefined ? list : { ...stream, id, list }];
  });
}

function breakAll(sandbox: Sandbox, fault: FaultRule['fault']): void {
  sandbox.control.setFaults({
    rules: [
      { path: '/api/**', fault },
      { path: '/v1/**', fault },
    ],
  });
}

function ask(stream: ListStream, position: ListPosition, limit = 7): Promise<PageAnswer> {
  return fetchPage(stream, { position, limit }, never);
}

async function pageAt(stream: ListStream, position: ListPosition, limit = 7) {
  const fetched = await ask(stream, position, limit);
  if (fetched.outcome !== 'ok') throw fetched.cause;
  return fetched.page;
}

/** An object of a parent. */
type ObjectStream = ParentsStream & { readonly id: string; readonly list: ListStream };

async function readWhole(stream: CollectionStream | ObjectStream, signal: AbortSignal) {
  if (stream.kind === 'collection') return await collectionReader(stream).read(signal);
  const { id, list } = stream;
  const asked = await askObject(stream, { id, list, known: unknown, now: () => 0 }, signal);
  if (asked.outcome !== 'done') return asked;
  return { ...asked, outcome: 'ok' as const, flaw: asked.page === null ? 'untold' : null };
}

const unknown = readParentState(null, 0);

/** A list from its first page to its last one. */
async function walked(stream: ListStream, limit = 7) {
  const pages: { readonly position: ListPosition; readonly page: Page }[] = [];
  let position: ListPosition | null = firstPosition(stream.pagination);
  while (position !== null) {
    const page = await pageAt(stream, position, limit);
    pages.push({ position, page });
    if (pages.length > 100)
      throw new Error('the walk does not end: is the paging of the source right?');
    position = nextOf(stream, position, page);
  }
  return pages;
}

function nextOf(stream: ListStream, position: ListPosition, page: Page): ListPosition | null {
  if (position.by === 'cursor')
    return typeof page.next === 'string' ? { by: 'cursor', cursor: page.next } : null;
  if (page.records.length === 0) return null;
  const passed = stream.pagination.style === 'page' ? 1 : page.records.length;
  return { by: 'offset', offset: position.offset + passed };
}

test('every source in the list has settings in `needs`', () => {
  const types = sources.map(({ type }) => type);

  expect(types.filter((type) => needs[type] === undefined)).toEqual([]);
  expect(types.filter((type) => needs[type]?.length === 0)).toEqual(['webhooks']);
});

describe.for(cases)('$name', (one) => {
  test('every key is described, and its settings have a JSON Schema', () => {
    const { fields } = one.source;

    const schema = z.toJSONSchema(z.strictObject(fields), { io: 'input' });
    const undescribed = Object.entries(schema.properties ?? {}).filter(
      ([, property]) => typeof property !== 'object' || property.description === undefined,
    );

    expect(undescribed.map(([key]) => key)).toEqual([]);
  });

  test('its streams have names of their own, that stay', async () => {
    const { upstream, streams } = await opened(one);

    const again = readFrom(streamsOf(one.source, upstream, one.given), one.given);

    expect(streams.length).toBeGreaterThan(0);
    expect(new Set(streams.map(({ name }) => name)).size).toBe(streams.length);
    expect(again.map(({ name, fingerprint }) => [name, fingerprint])).toEqual(
      streams.map(({ name, fingerprint }) => [name, fingerprint]),
    );
    for (const { name } of streams) expect(name).toMatch(/^src($|[/:])/);
  });

  test('it can be read for each company, whatever the company is called', async () => {
    const { streams } = await opened(one);

    for (const stream of streams) {
      if (stream.kind === 'list') {
        const page = await pageAt(stream, firstPosition(stream.pagination));
        expect(page.records.length).toBeGreaterThan(0);
      } else {
        expect(await readWhole(stream, never)).toMatchObject({ outcome: 'ok', flaw: null });
      }
    }
  });

  test('a page requested again, from anywhere and by any client, is the same to the byte', async () => {
    const { upstream, streams } = await opened(one);
    const others = readFrom(streamsOf(one.source, upstream, one.given), one.given);

    for (const [index, stream] of streams.entries()) {
      const other = others[index];
      if (stream.kind !== 'list' || other?.kind !== 'list') continue;
      for (const { position } of (await walked(stream)).toReversed()) {
        const [first, second] = [await pageAt(stream, position), await pageAt(other, position)];
        expect(Buffer.from(second.body).toString()).toBe(Buffer.from(first.body).toString());
        expect(second.next).toBe(first.next);
      }
    }
  });

  test('a walk reads its whole list', async () => {
    // More records than the sandbox's largest page, also if the limit does not reach the sandbox.
    const { sandbox, streams } = await opened(one, 240);

    for (const stream of streams) {
      if (stream.kind !== 'list') continue;
      const pages = await walked(stream, 50);
      const count = pages.reduce((sum, { page }) => sum + page.records.length, 0);
      const { path } = stream.request;
      const list = sandbox.ledger().lists.find((served) => served.path.endsWith(path));

      expect(
        pages.at(-1)?.page.more,
        'rows that the paging of the source does not read',
      ).toBeNull();
      if (list !== undefined) expect([path, count]).toEqual([path, list.size]);
    }
  });

  test('a whole reading requested again is the same', async () => {
    const { streams } = await opened(one);
    const wholes = streams.flatMap((stream) => (stream.kind === 'list' ? [] : [stream]));

    for (const stream of wholes) {
      const [first, second] = [await readWhole(stream, never), await readWhole(stream, never)];
      expect(second).toEqual(first);
    }

    expect(wholes.length > 0).toBe(streams.every(({ kind }) => kind !== 'list'));
  });

  test('an abort is answered at once with its reason', async () => {
    const { sandbox, streams } = await opened(one);
    breakAll(sandbox, 'hang');
    const stop = new AbortController();

    const asked = streams.map((stream) =>
      stream.kind === 'list'
        ? fetchPage(stream, { position: firstPosition(stream.pagination), limit: 7 }, stop.signal)
        : readWhole(stream, stop.signal),
    );
    setTimeout(() => stop.abort(new Error('stopping')), 100);

    for (const settled of await Promise.allSettled(asked)) {
      expect(settled).toMatchObject({ status: 'rejected', reason: { message: 'stopping' } });
    }
  });

  test.for([
    'html',
    'empty_body',
    'empty_object',
    'error_in_200',
    'cut_json',
    'reset',
    500,
    { kind: 'wrong_shape', shape: 'data_null' },
    { kind: 'wrong_shape', shape: 'data_object' },
    { kind: 'wrong_shape', shape: 'data_missing' },
  ] as const)('%j says nothing about the data', async (fault) => {
    const { sandbox, streams } = await opened(one);
    breakAll(sandbox, fault);

    for (const stream of streams) {
      // One object has no list whose shape could be wrong.
      const isOne = stream.kind === 'parents' || (stream.kind === 'collection' && stream.single);
      if (isOne && typeof fault === 'object') continue;
      const answer =
        stream.kind === 'list'
          ? await ask(stream, firstPosition(stream.pagination))
          : await readWhole(stream, never);
      if (answer.outcome === 'ok') {
        // The list of policies may have been whole; what broke is each policy's own answer.
        expect(answer).toMatchObject({ flaw: expect.anything(), entities: [] });
      } else expect(answer.outcome).toBe('retry');
    }
  });

  test('403 is a matter of rights, never of data', async () => {
    const { sandbox, streams } = await opened(one);
    breakAll(sandbox, 403);

    for (const stream of streams) {
      const answer =
        stream.kind === 'list'
          ? await ask(stream, firstPosition(stream.pagination))
          : await readWhole(stream, never);
      expect(answer.outcome).toBe('denied');
    }
  });

  test('an unknown key is refused', () => {
    expect(() => settingsOf(one.source, { ...one.given, pth: '/x' })).toThrow('pth');
  });
});

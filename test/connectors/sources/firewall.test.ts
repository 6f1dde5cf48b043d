// The firewall source by itself: lists followed however they are paged, policies with their rules, and what makes a
// reading incomplete. Answers are made up where the sandbox gives others.

import { describe, expect, test } from 'vitest';
import { firewallSource } from '../../../connectors/sources/firewall.ts';
import type { Entity } from '../../../src/collection/entities.ts';
import type { FullScan } from '../../../src/collection/reader.ts';
import type { Answer } from '../../../src/contracts/answer.ts';
import { ExportError } from '../../../src/contracts/errors.ts';
import type { CollectionStream } from '../../../src/contracts/source.ts';
import type { Body, Upstream, UpstreamRequest } from '../../../src/contracts/upstream.ts';
import { collectionReader } from '../../list/reading.ts';
import { settingsOf } from '../../support/plain-upstream.ts';

const never = new AbortController().signal;
const base = '/api/firewall/v1/companies/c-1';

type Answering = (request: UpstreamRequest) => unknown;

/** A number is a status, a string a body as it stands, anything else a JSON body. */
function answerOf(given: unknown): Answer<Body> {
  if (typeof given === 'number') {
    const cause = new ExportError('upstream_refused', `upstream answered ${given}`, { next: '' });
    if (given === 403 || given === 401) return { outcome: 'denied', status: given, cause };
    return given >= 500
      ? { outcome: 'retry', cause }
      : { outcome: 'refused', status: given, cause };
  }
  const text = typeof given === 'string' ? given : JSON.stringify(given);
  return { outcome: 'ok', url: 'http://upstream/', body: Buffer.from(text), headers: {} };
}

function stream(
  resource: 'objects' | 'policies',
  answering: Answering,
  given: Record<string, unknown> = {},
  company = 'c-1',
): CollectionStream {
  const upstream: Upstream = {
    name: 'ops',
    api: 'services',
    baseUrl: 'https://svc.example.com',
    companies: ['c-1', 'c-2'],
    get: async (request) => answerOf(answering(request)),
  };
  const streams = firewallSource.streams(settingsOf(firewallSource, given), {
    name: 'fw',
    upstream,
  });
  const found = streams.find(({ name }) => name === `fw/${company}/${resource}`);
  if (found?.kind !== 'collection') throw new Error('no such stream');
  return found;
}

const read = (...args: Parameters<typeof stream>) => collectionReader(stream(...args)).read(never);

function summary(reading: Answer<FullScan & { entities: readonly Entity[] }>) {
  if (reading.outcome !== 'ok') return reading.outcome;
  return { complete: reading.flaw === null, ids: reading.entities.map(({ id }) => id) };
}

const rows = (from: number, to: number) =>
  Array.from({ length: to - from }, (_, n) => ({ id: `o${from + n}` }));
const all = rows(0, 25).map(({ id }) => id);
const numberIn = ({ query }: UpstreamRequest, name: string) =>
  Number(query.find(([key]) => key === name)?.[1] ?? 0);

describe('A40: a list is followed as it is paged', () => {
  test.for<{ name: string; answering: Answering }>([
    { name: 'unpaged', answering: () => ({ data: rows(0, 25) }) },
    { name: 'a bare array', answering: () => rows(0, 25) },
    { name: 'unpaged, with a total', answering: () => ({ data: rows(0, 25), total: 25 }) },
    {
      name: 'by offset',
      answering: (request) => {
        const offset = numberIn(request, 'offset');
        return { data: rows(offset, Math.min(25, offset + 10)), limit: 10, offset, total: 25 };
      },
    },
    {
      name: 'by cursor',
      answering: (request) => {
        const from = numberIn(request, 'cursor');
        return {
          data: rows(from, Math.min(25, from + 10)),
          next_cursor: from < 20 ? String(from + 10) : null,
        };
      },
    },
    {
      name: 'by cursor, ending without one',
      answering: (request) =>
        request.query.length === 0
          ? { data: rows(0, 20), next_cursor: '20' }
          : { data: rows(20, 25) },
    },
  ])('$name', async ({ answering }) => {
    expect(summary(await read('objects', answering))).toEqual({ complete: true, ids: all });
  });

  test.for<{ name: string; answering: Answering }>([
    { name: 'fewer rows than its total', answering: () => ({ data: rows(0, 25), total: 26 }) },
    { name: 'an id twice', answering: () => ({ data: [...rows(0, 24), { id: 'o3' }] }) },
    {
      name: 'cursors in a loop',
      answering: (request) => {
        const from = numberIn(request, 'cursor');
        return { data: rows(from, from + 10), next_cursor: from === 0 ? '10' : '0' };
      },
    },
    {
      name: 'a page that fails',
      answering: (request) =>
        request.query.length === 0 ? { data: rows(0, 25), next_cursor: 'x' } : 503,
    },
    {
      name: 'rows that keep moving',
      answering: (request) => {
        const offset = numberIn(request, 'offset');
        return { data: rows(offset + (offset > 0 ? 3 : 0), 25), offset, total: 40 };
      },
    },
  ])('A30 A40: one with $name is not complete, and yields its entries', async ({ answering }) => {
    const reading = await read('objects', answering);

    if (reading.outcome !== 'ok') throw reading.cause;
    expect(reading.flaw?.cause).toBeInstanceOf(ExportError);
    expect(reading.entities.length).toBeGreaterThanOrEqual(20);
  });

  test('A30 A40: one whose next cursor vanishes, where it was null before, is not complete', async () => {
    let end: object = { next_cursor: null };
    const reader = collectionReader(
      stream('objects', ({ query }) =>
        query.length === 0
          ? { data: rows(0, 20), next_cursor: '20' }
          : { data: rows(20, 25), ...end },
      ),
    );

    const before = summary(await reader.read(never));
    end = {};
    const after = summary(await reader.read(never));

    expect(before).toEqual({ complete: true, ids: all });
    expect(after).toEqual({ complete: false, ids: all.slice(0, 20) });
  });

  test('A30: one that shows more than its paging leads to is not complete', async () => {
    const answering = () => ({ data: rows(0, 25), has_more: true });

    const reading = await read('objects', answering);

    expect(summary(reading)).toEqual({ complete: false, ids: all });
    expect(reading).toMatchObject({ flaw: { cause: { code: 'paging_suspected' } } });
  });

  test('empty pages in between are passed, and a tail of them ends the list', async () => {
    const answering: Answering = (request) => {
      const from = numberIn(request, 'cursor');
      return {
        data: from === 0 || from === 7 ? rows(from, from + 5) : [],
        next_cursor: String(from + 1),
      };
    };
    const reader = collectionReader(stream('objects', answering));

    for (const _ of ['learned', 'known']) {
      const ids = [...rows(0, 5), ...rows(7, 12)].map(({ id }) => id);
      expect(summary(await reader.read(never))).toEqual({ complete: true, ids });
    }
  });

  test.for([
    [403, 'denied'],
    [404, 'refused'],
    [503, 'retry'],
  ] as const)('%i on the list is handed on as %s', async ([status, outcome]) => {
    expect((await read('objects', () => status)).outcome).toBe(outcome);
  });
});

describe('objects', () => {
  test('are reported as they were sent, ids as text', async () => {
    const text = '{ "id" : 9007199254740993001, "name":"n", "x": 1.0 }';

    const reading = await read('objects', () => `{"data":[${text}]}`);

    expect(reading).toMatchObject({
      entities: [{ kind: 'object', id: '9007199254740993001', name: 'n', text }],
    });
  });

  test('A42 2.3.9: shared ones are reported once if the config requires it', async () => {
    const answering = () => ({ data: [{ id: 'own' }, { id: 'common', shared: true }] });
    const given = { shared_objects: 'once' };

    const first = summary(await read('objects', answering, given));
    const second = summary(await read('objects', answering, given, 'c-2'));

    expect(first).toEqual({ complete: true, ids: ['own', 'common'] });
    expect(second).toEqual({ complete: true, ids: ['own'] });
  });
});

describe('policies', () => {
  const policy = {
    id: 'p1',
    name: 'Edge',
    forward_rules: [{ id: 'r1', n: 1 }, { id: 'r2', n: 2 }, { n: 3 }, { n: 3 }],
    nat_rules: [{ id: 'r1', n: 4 }],
  };
  const one = (detail: unknown, listed: unknown = [{ id: 'p1', rule_count: 5 }]): Answering => {
    return ({ path }) => (path === `${base}/policies` ? { data: listed } : detail);
  };

  test('are reported with the order of their rules, and each rule by itself', async () => {
    const reading = await read('policies', one(policy));

    if (reading.outcome !== 'ok') throw reading.cause;
    const [head, ...rules] = reading.entities;
    expect(JSON.parse(head?.text ?? '')).toEqual({
      id: 'p1',
      name: 'Edge',
      forward_rules: ['r1', 'r2', rules[2]?.id, `${rules[2]?.id}#2`],
      nat_rules: ['r1'],
      rule_count: 5,
    });
    expect(rules.map(({ kind, parentId }) => [kind, parentId])).toEqual(
      Array(5).fill(['rule', 'p1']),
    );
    expect(new Set(reading.entities.map(({ key }) => key)).size).toBe(6);
    expect(reading.flaw).toBeNull();
  });

  test('may be wrapped in data', async () => {
    const reading = await read('policies', one({ data: policy }));

    expect(reading).toMatchObject({ flaw: null });
    expect(reading.outcome === 'ok' && reading.entities.length).toBe(6);
  });

  test.for([
    { name: 'denied', detail: 403 },
    { name: 'failing', detail: 500 },
    { name: 'another one', detail: { ...policy, id: 'p2' } },
    { name: 'without its rules being a list', detail: { ...policy, nat_rules: null } },
    { name: 'with a rule that is none', detail: { ...policy, nat_rules: ['r1'] } },
    { name: 'no object', detail: [policy] },
    { name: '404, and still listed', detail: 404 },
  ])('$name: unknown, so the reading is not complete', async ({ detail }) => {
    expect(summary(await read('policies', one(detail)))).toEqual({ complete: false, ids: [] });
  });

  test('A41: one deleted while the list was read is gone from it, and the reading is complete', async () => {
    let lists = 0;
    const answering: Answering = ({ path }) => {
      if (path !== `${base}/policies`) return path.endsWith('/p1') ? policy : 404;
      lists += 1;
      return { data: lists === 1 ? [{ id: 'p1' }, { id: 'p2' }] : [{ id: 'p1' }] };
    };

    expect(await read('policies', answering)).toMatchObject({ flaw: null });
  });

  test('A49: an id is one segment of the path, and an impossible one is never requested', async () => {
    const asked: string[] = [];
    const listed = [{ id: 'a/b' }, { id: '..' }];
    const answering: Answering = (request) => {
      asked.push(request.path);
      return one({ ...policy, id: 'a/b' }, listed)(request);
    };

    const reading = await read('policies', answering);

    expect(asked).toEqual([`${base}/policies`, `${base}/policies/a%2Fb`]);
    expect(reading).toMatchObject({ flaw: { outcome: 'retry' } });
  });

  test.for([
    { key: ['policy', 'p1'], detail: 404, answer: 'gone' },
    { key: ['policy', 'p1'], detail: policy, answer: 'there' },
    { key: ['policy', 'p1'], detail: 403, answer: 'unknown' },
    { key: ['policy', 'p1'], detail: 503, answer: 'unknown' },
    { key: ['policy', 'p1'], detail: '<html>', answer: 'unknown' },
    { key: ['rule', 'p1', 'forward_rules', 'r2'], detail: policy, answer: 'there' },
    { key: ['rule', 'p1', 'forward_rules', 'r9'], detail: policy, answer: 'gone' },
    { key: ['rule', 'p1', 'other_rules', 'r9'], detail: policy, answer: 'unknown' },
    { key: ['rule', 'p1', 'forward_rules', 'r2'], detail: 404, answer: 'gone' },
  ])('2.3.2: $key with an answer of $detail is $answer', async ({ key, detail, answer }) => {
    const reader = collectionReader(stream('policies', one(detail)));

    expect(await reader.stillThere(JSON.stringify(key), never)).toBe(answer);
  });
});

describe('settings', () => {
  test('the defaults are those of the contract', () => {
    expect(firewallSource.collection?.(settingsOf(firewallSource))).toMatchObject({
      confirmAfterMs: 30_000,
      settleMs: 600_000,
      removalsAfter: 2,
      brake: { share: 0.3, count: 10 },
      baseline: 'summary',
    });
  });

  test('an upstream without companies is said', () => {
    const settings = settingsOf(firewallSource);

    expect(firewallSource.flaw?.(settings, { api: 'services', companies: [] })).toContain(
      'companies',
    );
  });
});

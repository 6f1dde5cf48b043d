// The earlier form of the ledger beside the later ones: the same records, in another form and at another port, with the faults
// that a move between the two has to be rehearsed with.

import { describe, expect, test } from 'vitest';
import { type FaultScript, parseFaultScript, type Sandbox } from '../../src/sandbox/sandbox.ts';
import { patienceMs, waitUntil } from '../support/temp.ts';
import { ask, stillSandbox } from './client.ts';

const audit = '/earlier/v1/audit/events';
const logs = '/api/logs/v1/audit';
type Value = Readonly<Record<string, unknown>>;

async function earlier(sandbox: Sandbox, below: string, key = sandbox.credentials.apiKey) {
  const response = await fetch(`${sandbox.earlierBaseUrl}${below}`, {
    headers: { authorization: `Bearer ${key}` },
    signal: AbortSignal.timeout(patienceMs),
  });
  return { status: response.status, headers: response.headers, text: await response.text() };
}

/** All records of an earlier list, page by page. */
async function walked(sandbox: Sandbox, below: string): Promise<readonly Value[]> {
  const all: Value[] = [];
  for (let page = 1; ; page += 1) {
    const { text } = await earlier(sandbox, `${below}?page=${page}&page_size=7`);
    const body = JSON.parse(text);
    all.push(...body.data);
    expect(body).toMatchObject({ page, pageSize: 7, totalPages: Math.ceil(body.total / 7) });
    if (page >= body.totalPages) return all;
  }
}

async function served(sandbox: Sandbox, path: string): Promise<readonly Value[]> {
  const { status, text } = await ask(sandbox, path);
  expect([path, status]).toEqual([path, 200]);
  return JSON.parse(text).data;
}

/** In the later form: derived in the other direction than the sandbox's own conversion. */
function folded(value: unknown, name = ''): unknown {
  if (Array.isArray(value)) return value.map((one) => folded(one));
  if (typeof value === 'number' && /^(id|.*_id)$/.test(name)) return String(value);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, one]) => {
      const snake = key.replace(/[A-Z]/g, (capital) => `_${capital.toLowerCase()}`);
      return [snake, folded(one, snake)];
    }),
  );
}

test('audit events: one ledger in three forms', async () => {
  await using sandbox = await stillSandbox({ earlier: {}, events: 130 });
  const old = await walked(sandbox, '/audit/events');
  const unified = await served(sandbox, '/v1/audit/events?limit=200');
  const later = await served(sandbox, `${logs}?limit=200`);
  const byOffset = await served(sandbox, `${logs}?limit=200&offset=30`);

  expect(old.map(({ id }) => id)).toEqual(Array.from({ length: 130 }, (_, n) => 10_000_000 + n));
  expect(later).toEqual(unified);
  expect(byOffset).toEqual(later.slice(30));
  expect(old.map((one) => folded(one))).toEqual(later);
  expect(JSON.stringify(old)).not.toMatch(/"\w+_\w+":/);
  expect(sandbox.ledger().list(audit).textOf('10000007')).toContain('"id":10000007');
});

test('audit events grow in all forms at once', async () => {
  await using sandbox = await stillSandbox({ earlier: {}, events: 10 });
  sandbox.control.setRate(0);
  sandbox.control.grow(logs, 5);

  const sizes = ['/v1/audit/events', audit, logs].map((path) => sandbox.ledger().list(path).size);

  expect(sizes).toEqual([15, 15, 15]);
});

test.each([
  ['/tickets', (company: string) => `/api/ticketing/v1/companies/${company}/tickets`],
  ['/hosts', (company: string) => `/api/fleet/v1/companies/${company}/hosts`],
  [
    '/utp/block-list',
    (company: string) => `/api/threat-protection/v1/companies/${company}/block-list-entries`,
  ],
])('%s: all companies in one list', async (below, path) => {
  await using sandbox = await stillSandbox({ earlier: {} });
  const old = await walked(sandbox, below);
  const later = [
    ...(await served(sandbox, `${path('1001')}?limit=500`)),
    ...(await served(sandbox, `${path('1002')}?limit=500`)),
  ];

  expect(old.map((one) => folded(one))).toEqual(later);
  const isId = (value: unknown) => typeof value === 'number';
  expect(old.filter((one) => !isId(one.companyId) || !isId(Object.values(one)[0]))).toEqual([]);
});

test('the timeline of a ticket', async () => {
  await using sandbox = await stillSandbox({ earlier: {} });
  const old = await walked(sandbox, '/tickets/4711/events');
  const later = await served(
    sandbox,
    '/api/ticketing/v1/companies/1001/tickets/4711/events?limit=100',
  );

  expect(later.length).toBeGreaterThan(0);
  expect(old.map((one) => folded(one))).toEqual(later);
});

test('an API key, plain errors, and no token', async () => {
  await using sandbox = await stillSandbox({ earlier: {} });
  const refused = await earlier(sandbox, '/hosts', 'another-key');
  const replies = [
    await earlier(sandbox, '/nothing'),
    await earlier(sandbox, '/hosts?page=0'),
    await earlier(sandbox, '/oauth/token'),
  ];

  expect(refused).toMatchObject({ status: 401, text: '401 Unauthorized\n' });
  expect(replies.map(({ status, text }) => [status, text])).toEqual([
    [404, '404 Not Found\n'],
    [400, '400 Bad Request\n'],
    [404, '404 Not Found\n'],
  ]);
  const elsewhere = await fetch(`${sandbox.url}/earlier/v1/hosts`, {
    headers: { authorization: `Bearer ${sandbox.credentials.apiKey}` },
  });
  expect(elsewhere.status).toBe(404);
});

test('without it nothing is served that was not before, and ids are as ever', async () => {
  await using sandbox = await stillSandbox();

  expect(sandbox.earlierBaseUrl).toBeNull();
  expect((await ask(sandbox, logs)).status).toBe(404);
  expect(sandbox.ledger().list('/v1/audit/events').textAt(0)).toContain('"id":"evt_000000000"');
});

describe('faults', () => {
  const under = async (sandbox: Sandbox, script: FaultScript) => sandbox.control.setFaults(script);

  test('a record that one side lacks, and one that differs', async () => {
    await using sandbox = await stillSandbox({ earlier: {} });
    await under(
      sandbox,
      parseFaultScript(`lists:
  - { path: ${logs}, hidden: [10000005], differs: [ { id: 10000007, field: outcome, value: unknown } ] }
  - { path: /earlier/v1/tickets, hidden: ["4711"], differs: [ { id: 4712, field: status, value: lost } ] }
`),
    );
    const [old, later] = [await walked(sandbox, '/audit/events'), await served(sandbox, logs)];
    const byOffset = await served(sandbox, `${logs}?offset=0`);
    const tickets = await walked(sandbox, '/tickets');

    const ids = new Set(later.map(({ id }) => String(id)));
    expect(old.filter(({ id }) => !ids.has(String(id))).map(({ id }) => id)).toEqual([10_000_005]);
    expect(byOffset).toEqual(later);
    const differing = old
      .map((one) => folded(one) as Value)
      .flatMap((one) => {
        const other = later.find(({ id }) => id === one.id);
        const isEqual = JSON.stringify(other) === JSON.stringify(one);
        return other === undefined || isEqual ? [] : [[one.id, other.outcome]];
      });
    expect(differing).toEqual([['10000007', 'unknown']]);
    expect(tickets.slice(0, 1)).toMatchObject([{ ticketId: 4712, status: 'lost' }]);
  });

  test.each([401, 404, 410])('an API that ends in the middle, with %i', async (status) => {
    await using sandbox = await stillSandbox({ earlier: {} });
    await under(sandbox, { rules: [{ path: '/earlier/**', after: 2, fault: status }] });
    const replies: unknown[] = [];
    for (let n = 0; n < 4; n += 1) replies.push((await earlier(sandbox, '/hosts')).status);

    expect(replies).toEqual([200, 200, status, status]);
    expect((await ask(sandbox, logs)).status).toBe(200);
  });

  test('an API that nothing listens for any more, until another script is set', async () => {
    await using sandbox = await stillSandbox({ earlier: {} });
    await under(sandbox, { rules: [{ path: '/earlier/**', after: 1, fault: 'refused' }] });
    const outcome = () =>
      earlier(sandbox, '/hosts').then(
        ({ status }) => status,
        (error: Error) => String(Object(error.cause).code),
      );
    const first = await outcome();
    const second = await outcome();
    const third = await outcome();
    await under(sandbox, {});
    const reopened = await waitUntil(async () => (await outcome()) === 200, {
      what: 'the port to be open again',
    });

    expect([first, third, reopened]).toEqual([200, 'ECONNREFUSED', true]);
    expect(second).toMatch(/ECONNRESET|UND_ERR_SOCKET/);
    expect((await ask(sandbox, logs)).status).toBe(200);
  });

  test('an end that is announced by either header', async () => {
    await using sandbox = await stillSandbox({ earlier: {} });
    await under(
      sandbox,
      parseFaultScript(`lists:
  - { path: /earlier/**, sunset: 2026-12-31 }
  - { path: /earlier/v1/hosts, deprecation: "2026-12-31T23:59:59Z" }
`),
    );
    const headersOf = async (below: string) => {
      const { headers } = await earlier(sandbox, below);
      return [headers.get('sunset'), headers.get('deprecation')];
    };

    expect(await headersOf('/hosts')).toEqual(['Thu, 31 Dec 2026 00:00:00 GMT', '@1798761599']);
    expect(await headersOf('/nothing')).toEqual(['Thu, 31 Dec 2026 00:00:00 GMT', null]);
    expect((await ask(sandbox, logs)).headers.get('sunset')).toBeNull();
  });

  test('the API that is moved to announces no end of its own', async () => {
    await using sandbox = await stillSandbox({ earlier: {} });
    const { headers } = await ask(sandbox, '/api/fleet/v1/companies/1001/hosts');

    expect([headers.get('sunset'), headers.get('deprecation')]).toEqual([null, null]);
  });

  test.each([
    ['rules: [ { path: /v1/sites, fault: refused } ]', '1:36: refused needs a path that begins'],
    ['lists: [ { path: /x, hidden: 7 } ]', '1:30: hidden must be a list of ids'],
    ['lists: [ { path: /x, differs: [ { id: 1, field: a } ] } ]', 'value is missing'],
    ['lists: [ { path: /x, differs: 1 } ]', 'differs must be a list'],
    ['lists: [ { path: /x, sunset: soon } ]', 'sunset must be a date or an RFC 3339 time'],
  ])('%s is refused', (text, message) => {
    expect(() => parseFaultScript(text)).toThrow(message);
  });
});

// The event `upstream.ends`: each once for an upstream, date and sink, whatever happens in between.

import { expect, test } from 'vitest';
import { parseConfig } from '../../src/config/config.ts';
import type { Spool } from '../../src/contracts/spool.ts';
import { EndEvents } from '../../src/run/end-events.ts';
import { planFrom } from '../../src/run/plan.ts';
import { readState } from '../../src/watch/state.ts';
import { aSpool } from '../list/reading.ts';
import { type ManualClock, manualClock } from '../support/manual-clock.ts';
import { silent } from '../support/silent-log.ts';
import { tempDir, waitUntil } from '../support/temp.ts';
import { planMeans } from './plan-deps.ts';

const dayMs = 86_400_000;
const ends = Date.UTC(2026, 11, 31, 23, 59, 59);
const before = (days: number) => ends - days * dayMs;

interface Parts {
  readonly spool: Spool;
  readonly clock: ManualClock;
  /** Settings of the upstream beside its address. */
  readonly upstream?: string;
  readonly baseUrl?: string;
  readonly sources?: string;
  readonly routes?: string;
  /** Further sinks. */
  readonly sinks?: string;
  /** Headers of each response. */
  readonly headers?: () => Readonly<Record<string, string>>;
  /** Its sources have successors that deliver and are read. */
  readonly hasMoved?: boolean;
}

/** A process with one upstream, two sources on it and two sinks. */
async function aProcess(parts: Parts) {
  const { spool, clock, headers = () => ({}), upstream = '' } = parts;
  const baseUrl = parts.baseUrl ?? 'https://edge.example/v1';
  const config = parseConfig(
    `upstreams: { edge: { api: unified, base_url: "${baseUrl}", auth: { api_key: k }${upstream} } }
sources: { ${parts.sources ?? 'audit: { type: audit_events, upstream: edge }, sites: { type: sites, upstream: edge }'} }
sinks: { a: { type: stdout }, b: { type: file, path: ./b.ndjson, format: json }${parts.sinks ?? ''} }
${parts.routes ?? ''}
`,
    'c.yaml',
    { env: {} },
  );
  const answer = () => ({ status: 200, body: '{"data":[]}', headers: headers() });
  const deps = planMeans({ clock, answer });
  const plan = planFrom(config, deps);
  const found: string[] = [];
  const events = new EndEvents({
    ...{ spool, clock, log: silent },
    found: ({ condition }) => found.push(condition),
    hasMoved: () => parts.hasMoved === true,
  });
  await events.runs(plan);
  const client = plan.upstreams.get('edge');
  const respond = async (path = '/audit/events') => {
    const request = { path, template: path, query: [] };
    await client?.get(request, new AbortController().signal);
  };
  return { events, found, respond, end: () => client?.state().end };
}

/** The events in the spool, each with a sink that it is for; `leads`: the sinks of a page for all, by source. */
async function sentTo(spool: Spool, leads: Readonly<Record<string, readonly string[]>> = {}) {
  const sent = [];
  for (let from = 0; from < spool.gauge.end; ) {
    for (const page of await spool.read(from, 1 << 20)) {
      const [record] = JSON.parse(Buffer.from(page.body).toString());
      const uid = Buffer.from(page.uids).toString('hex');
      const { onlySink, context } = page;
      const sinks = onlySink === undefined ? (leads[context.source] ?? ['a', 'b']) : [onlySink];
      for (const sink of sinks) sent.push({ ...record, sink, uid, onlySink });
      from = page.first + page.count;
    }
  }
  return sent;
}

const daysSent = async (spool: Spool, sink = 'a') =>
  (await sentTo(spool)).filter((one) => one.sink === sink).map(({ details }) => details.days);

/** Lets time pass until something was sent; what is stored comes from a thread of its own. */
async function passUntilSent(spool: Spool, clock: ManualClock): Promise<void> {
  const pass = async () => {
    await clock.advance(1_000);
    return spool.gauge.end > 0;
  };
  await waitUntil(pass, { what: 'an event' });
}

test('each event is emitted once to each sink, over restarts', async () => {
  const dir = tempDir('ends-');
  const clock = manualClock(before(100));
  for (const days of [100, 89.9, 89, 30.1, 30, 7, 6, 1, 0.5, -2]) {
    const spool = await aSpool(dir);
    clock.jump(before(days) - clock.now());
    const { events } = await aProcess({ spool, clock });
    await events.look(true);
    await events.look(true);
    await spool.close();
  }
  const spool = await aSpool(dir);

  expect(await daysSent(spool, 'a')).toEqual([90, 30, 7, 1]);
  expect(await daysSent(spool, 'b')).toEqual([90, 30, 7, 1]);
});

test('a first start emits only the nearest event that is due, with the date and its origin', async () => {
  const [spool, clock] = [await aSpool(), manualClock(before(5.5))];
  const { events, found } = await aProcess({ spool, clock });
  await events.look(true);
  const sent = await sentTo(spool);

  expect(sent).toMatchObject([
    {
      ...{ condition: 'upstream.ends', source: 'audit', stream: 'audit', sink: 'a' },
      message: expect.stringMatching(/^upstream edge ends on 2026-12-31, in 5 days; /),
      details: { upstream: 'edge', ends_at: '2026-12-31T23:59:59.000Z', days: 7, days_left: 5 },
    },
    { sink: 'b', uid: sent[0].uid },
  ]);
  expect(found).toEqual(['upstream.ends']);

  clock.jump(4.6 * dayMs);
  await events.look(true);
  expect(await daysSent(spool)).toEqual([7, 1]);
});

test('of a known date, each event that a stopped process missed is emitted', async () => {
  const [spool, clock] = [await aSpool(), manualClock(before(100))];
  const { events } = await aProcess({ spool, clock });
  await events.look(true);
  clock.jump(before(20) - clock.now());
  await events.look(true);

  expect(await daysSent(spool)).toEqual([90, 30]);
});

test('a clock that is set back repeats nothing', async () => {
  const [spool, clock] = [await aSpool(), manualClock(before(20))];
  const { events } = await aProcess({ spool, clock });
  await events.look(true);
  clock.jump(-200 * dayMs);
  await events.look(true);
  clock.jump(200 * dayMs);
  await events.look(true);

  expect(await daysSent(spool)).toEqual([30]);
});

test('a new date has its own events, and a date that returns repeats none', async () => {
  const dir = tempDir('ends-');
  const clock = manualClock(before(20));
  for (const date of ['2026-12-31', '2027-01-05', '2026-12-31', 'never', '2027-01-05']) {
    const spool = await aSpool(dir);
    const { events } = await aProcess({ spool, clock, upstream: `, ends: ${date}` });
    await events.look();
    await spool.close();
  }
  const sent = await sentTo(await aSpool(dir));

  const own = sent.filter(({ sink }) => sink === 'a').map(({ details }) => details.ends_at);
  expect(own).toEqual(['2026-12-31T23:59:59.000Z', '2027-01-05T23:59:59.000Z']);
});

test('each sink gets the event once by the source that leads to it, and no other sink does', async () => {
  const [spool, clock] = [await aSpool(), manualClock(before(20))];
  const routes = 'routes: [{ from: [sites], to: [b] }, { from: [audit], to: [b] }]';
  const { events } = await aProcess({ spool, clock, routes });
  await events.look(true);

  expect(await sentTo(spool, { audit: ['b'], sites: ['b'] })).toMatchObject([{ sink: 'b' }]);
});

test('sinks share one page where no source repeats the event, so that an archive has what its lake has', async () => {
  const [spool, clock] = [await aSpool(), manualClock(before(20))];
  const routes = 'routes: [{ from: [audit], to: [a] }, { from: [sites], to: [a, b] }]';
  const { events } = await aProcess({ spool, clock, routes });
  await events.look(true);

  expect(await sentTo(spool, { audit: ['a'] })).toMatchObject([
    { sink: 'a', source: 'sites', onlySink: undefined },
    { sink: 'b', source: 'sites', onlySink: undefined },
  ]);
});

test('a sink whose sources have other sinks of the same event gets a page of its own', async () => {
  const [spool, clock] = [await aSpool(), manualClock(before(20))];
  const routes = 'routes: [{ from: [audit], to: [a, c] }, { from: [sites], to: [c, b] }]';
  const { events } = await aProcess({ spool, clock, routes, sinks: ', c: { type: stdout }' });
  await events.look(true);

  expect(await sentTo(spool, { audit: ['a', 'c'] })).toMatchObject([
    { sink: 'a', source: 'audit', onlySink: undefined },
    { sink: 'c', source: 'audit', onlySink: undefined },
    { sink: 'b', source: 'sites', onlySink: 'b' },
  ]);
});

test('without a sink the event waits until there is one', async () => {
  const [spool, clock] = [await aSpool(), manualClock(before(20))];
  const none = 'hooks: { type: webhooks, upstream: other, listen: "127.0.0.1:9", secret: x }';
  const other =
    '}, other: { api: unified, ends: never, base_url: "https://o/v1", auth: { api_key: k }';
  const before_ = await aProcess({ spool, clock, sources: none, upstream: `${other} ` });
  await before_.events.look(true);
  expect(await sentTo(spool)).toEqual([]);

  const after = await aProcess({ spool, clock });
  await after.events.look(true);
  expect(await daysSent(spool)).toEqual([30]);
});

test('an event that could not be stored is emitted by the next look, once', async () => {
  const [whole, clock] = [await aSpool(), manualClock(before(20))];
  let isFull = true;
  const spool = new Proxy(whole, {
    get: (of, key) =>
      key === 'append' && isFull
        ? () => Promise.reject(new Error('disk full'))
        : (Reflect.get(of, key, of).bind?.(of) ?? Reflect.get(of, key, of)),
  });
  const { events, found } = await aProcess({ spool, clock });
  await events.look(true);
  expect(found).toEqual([]);
  isFull = false;
  await events.look(true);
  await events.look(true);

  expect(await daysSent(whole)).toEqual([30]);
});

test('while a process runs, the default date waits for a response, which can name another', async () => {
  const [spool, clock] = [await aSpool(), manualClock(before(20))];
  const over = new AbortController();
  const sunset = new Date(before(-3)).toUTCString();
  const { events, respond } = await aProcess({ spool, clock, headers: () => ({ sunset }) });
  const running = events.run(over.signal);
  await clock.advance(59_000);
  expect(await daysSent(spool)).toEqual([]);
  await respond();
  await passUntilSent(spool, clock);
  over.abort();
  await running;

  expect(await sentTo(spool)).toMatchObject([
    { details: { from: 'sunset', endpoint: '/audit/events', days: 30 } },
    { sink: 'b' },
  ]);
});

test('while no response arrives, the default date is reported after a minute', async () => {
  const [spool, clock] = [await aSpool(), manualClock(before(20))];
  const over = new AbortController();
  const { events } = await aProcess({ spool, clock });
  const running = events.run(over.signal);
  await clock.advance(58_000);
  expect(await daysSent(spool)).toEqual([]);
  await passUntilSent(spool, clock);
  over.abort();
  await running;

  expect(await daysSent(spool)).toEqual([30]);
});

test('a date in a header is stored, and counts after a restart without a response', async () => {
  const dir = tempDir('ends-');
  const clock = manualClock(before(200));
  const sunset = new Date(before(50)).toUTCString();
  const spool = await aSpool(dir);
  const first = await aProcess({ spool, clock, headers: () => ({ sunset }) });
  await first.respond('/sites');
  await first.events.look();
  await spool.close();
  const again = await aSpool(dir);
  const second = await aProcess({ spool: again, clock });
  const elsewhere = await aProcess({ spool: again, clock, baseUrl: 'https://next.example/v1' });

  expect(second.end()).toMatchObject({ from: 'sunset', endpoint: '/sites', endsMs: before(50) });
  expect(elsewhere.end()).toMatchObject({ from: 'default' });
  expect(readState(dir).ends.get('edge')?.announced).toMatchObject([{ endpoint: '/sites' }]);
  expect([...readState(dir).streams.keys()]).toEqual([]);
});

test('headers with another date in each response cannot flood sinks', async () => {
  const [spool, clock] = [await aSpool(), manualClock(before(0))];
  let n = 0;
  const headers = () => ({ sunset: new Date(before(-80 + n)).toUTCString() });
  const { events, respond } = await aProcess({ spool, clock, headers });
  for (; n < 60; n += 1) {
    await respond();
    await events.look(true);
  }

  expect(await daysSent(spool)).toHaveLength(8);
});

test('an end that concerns no source any more is reported as such, once', async () => {
  const [spool, clock] = [await aSpool(), manualClock(before(20))];
  const { events } = await aProcess({ spool, clock, hasMoved: true });
  await events.look(true);
  await events.look(true);

  const sent = await sentTo(spool);
  const forOne = sent.filter(({ sink }) => sink === 'a');
  expect(forOne).toMatchObject([
    { details: { days: 30, moved: true }, message: expect.stringContaining('have moved') },
  ]);
});

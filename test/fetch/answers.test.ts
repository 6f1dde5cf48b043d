// Every response from upstream is stored if a sink accepts pages: against the sandbox, which counts its responses, with
// all ways of reading at once. No other report of the journey shows responses as records.

import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parseConfig } from '../../src/config/config.ts';
import { defineSink } from '../../src/contracts/definition.ts';
import type { Batch } from '../../src/contracts/sink.ts';
import type { ListStream } from '../../src/contracts/source.ts';
import type { Append, FetchSpool, HeldPage } from '../../src/contracts/spool.ts';
import type { Received } from '../../src/contracts/upstream.ts';
import { StreamResponses } from '../../src/fetch/answers.ts';
import { StreamSpool } from '../../src/fetch/stream-spool.ts';
import { type OwnSpool, openSpool } from '../../src/hold/spool.ts';
import { Pipeline } from '../../src/pipeline.ts';
import { planFrom, type WholePlan } from '../../src/run/plan.ts';
import { openTools } from '../../src/run/tools.ts';
import { type Sandbox, startSandbox } from '../../src/sandbox/sandbox.ts';
import type { PlannedSink } from '../../src/send/sending.ts';
import { systemClock } from '../../src/tools/clock.ts';
import { cutRecords } from '../../src/tools/record-list.ts';
import { configEnv } from '../config/config-text.ts';
import { aPage } from '../support/a-page.ts';
import { silent } from '../support/silent-log.ts';
import { afterThisTest, tempDir, waitUntil } from '../support/temp.ts';

const company = 'c-1';
const audit = '/v1/audit/events';

function planOn(sandbox: Sandbox, sources: string): WholePlan {
  const { clientId, clientSecret, unifiedScope, servicesScope } = sandbox.credentials;
  const upstream = (api: string, base: string, scope: string) =>
    `{ api: ${api}, base_url: "${base}", allow_http: true, auth: { client_id: ${clientId}, client_secret: ${clientSecret}, scope: "${scope}" }`;
  const text = `upstreams:
  edge: ${upstream('unified', sandbox.unifiedBaseUrl, unifiedScope)} }
  ops: ${upstream('services', sandbox.servicesBaseUrl, servicesScope)}, companies: [${company}] }
sources:
${sources}
sinks:
  screen: { type: stdout }
`;
  const tools = openTools(silent);
  afterThisTest(() => tools.http.close());
  const config = parseConfig(text, join(tempDir(), 'c.yaml'), configEnv());
  return planFrom(config, tools);
}

/** A sink that keeps what it takes. */
function keeper(name: string, takes: 'events' | 'pages') {
  const batches: Batch[] = [];
  const planned: PlannedSink = {
    name,
    definition: defineSink({
      type: 'kept',
      summary: '',
      fields: {},
      takes,
      carries: ['lines'],
      usualFormat: 'json',
      sample: { to: null, lines: () => [] },
      inFlightMax: 1,
      assurance: () => 'once',
      open: async () => ({
        send: async (batch) => {
          batches.push(batch);
          return { outcome: 'delivered' };
        },
        close: async () => undefined,
      }),
      probe: async () => undefined,
    }),
    settings: { type: 'kept' },
    format: { name: 'json', contentType: 'x', encode: ({ uid }) => uid },
    formatKey: 'json',
    bounds: { eventsMax: 1_000, bytesMax: 1e6 },
    waitMs: 0,
    retry: { minMs: 1, maxMs: 1 },
  };
  return { planned, batches, pages: () => batches.flatMap(({ pages }) => pages) };
}

/** A pipeline of these sources whose answers are held, all of them. */
async function journey(sandbox: Sandbox, sources: string, everyMs = 0) {
  const proof = keeper('proof', 'pages');
  const siem = keeper('siem', 'events');
  const sinks = [proof.planned, siem.planned];
  const plan = planOn(sandbox, sources);
  const held = plan.sources.map((source) => ({ ...source, answersEveryMs: everyMs }));
  const spool = await openSpool({
    ...{ dir: tempDir(), sync: 'normal', keepMs: 1e9, bytesMax: 1e9 },
    sinks: sinks.map(({ name }) => name),
  });
  const tools = openTools(silent);
  afterThisTest(() => tools.http.close());
  const pipeline = new Pipeline(
    { ...plan, sources: held, sinks },
    { spool, tools, random: tools.random },
  );
  return { proof, siem, spool, pipeline };
}

/** How often each path was answered with a status, as far as a page sink knows. */
function answered(pages: readonly HeldPage[], status: number): Readonly<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const { context } of pages) {
    if (context.answer?.status !== status) continue;
    const [path = ''] = context.answer.path.split('?');
    counts[path] = (counts[path] ?? 0) + 1;
  }
  return counts;
}

/** The same as the sandbox counts it, by requested path. */
function served(sandbox: Sandbox, status: number): Readonly<Record<string, number>> {
  return Object.fromEntries(
    Object.entries(sandbox.control.requests()).flatMap(([path, { statuses }]) => {
      const count = statuses[status] ?? 0;
      const isAsked = count > 0 && !path.endsWith('/token');
      return isAsked ? [[path.replace(/^\/v1(?=\/)/, ''), count]] : [];
    }),
  );
}

async function closed(spool: OwnSpool): Promise<void> {
  await spool.close();
}

test('every response of lists, collections, parents and objects is stored, once, and sent to no other sink', async () => {
  const sandbox = await startSandbox({ rate: 0, events: 450, companies: [company] });
  afterThisTest(() => sandbox.close());
  const ids = (path: string) =>
    JSON.stringify([...sandbox.ledger().collection(path).entities().keys()].slice(0, 5));
  const { proof, siem, spool, pipeline } = await journey(
    sandbox,
    `  audit: { type: audit_events, upstream: edge }
  fw: { type: firewall, upstream: ops, confirm_after: 0s }
  sites: { type: sites, upstream: edge, confirm_after: 0s }
  tickets: { type: tickets, upstream: ops, confirm_after: 0s }
  entries: { type: ticket_events, upstream: ops, each: { of: tickets, id: ticket_id } }
  findings: { type: investigations, upstream: edge, each: { ids: ${ids('/v1/intelligence/investigations')} } }`,
  );

  const summary = await pipeline.once(new AbortController().signal, 5_000);

  expect(summary).toMatchObject({ failed: [], behind: [] });
  expect(answered(proof.pages(), 200)).toEqual(served(sandbox, 200));
  expect(Object.keys(answered(proof.pages(), 200)).length).toBeGreaterThan(12);
  const records = proof.batches.flatMap(({ events }) => events.map(({ uid }) => uid));
  expect(siem.batches.flatMap(({ events }) => events.map(({ uid }) => uid))).toEqual(records);
  const [ofProof, ofSiem] = pipeline.state.sinks;
  expect([ofProof?.delivered, ofSiem?.delivered]).toEqual([records.length, records.length]);
  await closed(spool);
});

test('the responses of a list are a chain: each was requested by the cursor of the one before', async () => {
  const sandbox = await startSandbox({ rate: 0, events: 730, companies: [company] });
  afterThisTest(() => sandbox.close());
  const { proof, spool, pipeline } = await journey(
    sandbox,
    '  audit: { type: audit_events, upstream: edge, rewind_every: 24h, reconcile_every: 24h }',
  );

  await pipeline.once(new AbortController().signal, 5_000);

  const answers = proof.pages().flatMap(({ context: { answer } }) => answer ?? []);
  let next: string | null | undefined = null;
  for (const answer of answers) {
    if (answer.asked !== null) expect(answer.asked).toBe(next);
    next = answer.next;
  }
  expect(next).toBeNull();
  expect(answers[0]).toMatchObject({ status: 200, path: '/audit/events?limit=100', records: 100 });
  expect(answers.every(({ date }) => Number.isFinite(Date.parse(date ?? '')))).toBe(true);
  for (const { context, body, items, kind } of proof
    .pages()
    .map((page) => ({ ...page, kind: page.context.kind }))) {
    if (kind === 'answer') expect(JSON.parse(Buffer.from(body).toString())).toHaveProperty('data');
    else expect(cutRecords(body, items).length).toBe(context.answer?.records);
  }
  await closed(spool);
});

test('equal responses are stored once in a while, and a failure once with its message', async () => {
  const sandbox = await startSandbox({ rate: 0, events: 120, companies: [company] });
  afterThisTest(() => sandbox.close());
  const { proof, spool, pipeline } = await journey(
    sandbox,
    '  audit: { type: audit_events, upstream: edge, every: 20ms }',
    3_600_000,
  );
  const stop = new AbortController();
  const running = pipeline.run(stop.signal, 2_000);
  const polls = () => pipeline.state.streams[0]?.polls ?? 0;
  await waitUntil(() => polls() >= 20, { what: 'an idle stream to be polled' });
  const said = proof.pages().map((page) => {
    const { status, path, asked } = page.context.answer ?? {};
    return [page.context.kind, status, path, asked, Buffer.from(page.body).toString()].join();
  });
  expect(new Set(said).size).toBe(said.length);
  expect(said.length).toBeLessThan(sandbox.control.requests()[audit]?.requests ?? 0);

  sandbox.control.setFaults({
    rules: [{ path: audit, fault: { kind: 'status', status: 503 }, times: 3 }],
  });
  await waitUntil(() => (sandbox.control.requests()[audit]?.statuses[503] ?? 0) >= 3, {
    what: 'failures',
  });
  await waitUntil(() => pipeline.state.streams[0]?.error === null, { what: 'an end of failures' });
  stop.abort(new Error('enough'));
  await running;

  const failures = proof.pages().filter(({ context }) => context.answer?.status === 503);
  expect(failures).toHaveLength(1);
  expect(failures[0]?.context.answer?.requestId).toMatch(/^req_/);
  await closed(spool);
});

test('a checkpoint is stored together with the response that leads to it, and without pages still being read', async () => {
  const appended: Append[] = [];
  const spool = {
    append: async (entry: Append) => appended.push(entry),
  } as unknown as FetchSpool;
  const body = Buffer.from('{"data":[]}');
  const list = {
    kind: 'list',
    name: 'audit',
    source: 'audit',
    pagination: { style: 'cursor', cursor_param: 'cursor' },
    upstream: {
      get: async (_: unknown, __: AbortSignal, received: Received) => {
        const response = { status: 200, headers: {}, body: Buffer.from(body) };
        received(response);
        return { outcome: 'ok', url: '', ...response };
      },
    },
  } as unknown as ListStream;
  const responses = new StreamResponses(list, {
    spool,
    tools: { clock: systemClock(), log: silent },
    everyMs: () => 0,
  });
  const ask = async (next: string) => {
    const request = { path: '/audit', template: '/audit', query: [] };
    const { upstream } = responses.stream as ListStream;
    const answer = await upstream.get(request, new AbortController().signal);
    if (answer.outcome === 'ok') answer.shows?.({ next, records: 0 });
  };
  await ask('cursor-2');
  await ask('cursor-3');
  await ask('cursor-4');

  await responses.append({
    stream: 'audit',
    pages: [],
    checkpoint: { walk: { cursor: 'cursor-3' } },
  });

  const [{ pages = [], checkpoint } = {}] = appended;
  expect(pages.map(({ context }) => context.answer?.next)).toEqual(['cursor-2', 'cursor-3']);
  expect(checkpoint).toEqual({ walk: { cursor: 'cursor-3' } });
});

test('a response for a position that was read before is marked, until the list is read on', async () => {
  const held: HeldPage[] = [];
  const trail = [
    { cursor: 'a', at: 1 },
    { cursor: 'b', at: 2 },
  ];
  const spool: FetchSpool = {
    append: async ({ pages }) => held.push(...(pages as unknown as HeldPage[])),
    trail: async () => trail,
    recall: async () => ({ checkpoint: null, identities: [] }),
    entities: async () => new Map(),
    room: async () => undefined,
    parents: undefined as never,
  };
  const asking = async (answers: StreamResponses, cursors: readonly string[]) => {
    for (const cursor of cursors) {
      const request = {
        ...{ method: 'GET', path: '/e', template: '/e' },
        query: [['cursor', cursor]],
      } as const;
      await (answers.stream as ListStream).upstream.get(request, new AbortController().signal);
    }
  };
  const get: ListStream['upstream']['get'] = async (_, __, received) => {
    const body = Buffer.from(`{"at":${held.length}}`);
    received?.({ status: 200, headers: {}, body } as unknown as Parameters<Received>[0]);
    return { outcome: 'ok', body, headers: {} } as never;
  };
  const stream = {
    ...{ kind: 'list', name: 'audit', source: 'audit', upstream: { get } },
    pagination: { style: 'cursor', cursor_param: 'cursor' },
  } as unknown as ListStream;
  const tools = { clock: systemClock(), log: silent };
  const answers = new StreamResponses(stream, { spool, tools, everyMs: () => 0 });
  const feed = { withParents: (entry: Append) => entry };
  const own = new StreamSpool(answers, { spool, feed, sideOf: () => null });

  await answers.during(async () => {
    await asking(answers, ['b']);
    await own.trail('audit');
    await asking(answers, ['a', 'b', 'c', 'a']);
    return { outcome: 'done', fresh: 0, more: false };
  });

  expect(held.map(({ context: { answer } }) => [answer?.asked, answer?.isRewind])).toEqual([
    ['b', undefined],
    ['a', true],
    ['b', true],
    ['c', undefined],
    ['a', undefined],
  ]);
});

/** Responses of this many bytes, and what the spool got of them. */
async function heldBodies(count: number, bytes: number) {
  const appended: Append[] = [];
  const bodies = Array.from({ length: count }, (_, n) => Buffer.alloc(bytes, `${n}`));
  const left = [...bodies];
  const get = async (_: unknown, __: AbortSignal, received: Received) => {
    const response = { status: 200, headers: {}, body: left.shift() as Buffer };
    received(response);
    return { outcome: 'ok', url: '', ...response };
  };
  const list = {
    ...{ kind: 'list', name: 'audit', source: 'audit', upstream: { get } },
    pagination: { style: 'cursor', cursor_param: 'cursor' },
  } as unknown as ListStream;
  const answers = new StreamResponses(list, {
    spool: { append: async (entry: Append) => appended.push(entry) } as unknown as FetchSpool,
    tools: { clock: systemClock(), log: silent },
    everyMs: () => 0,
  });
  for (let n = 0; n < count; n += 1) {
    const request = {
      ...{ path: '/audit', template: '/audit' },
      query: [['cursor', `${n}`]] as const,
    };
    await (answers.stream as ListStream).upstream.get(request, new AbortController().signal);
  }
  return { answers, bodies, appended };
}

test('a body that was stored as a response is not given away with its page', async () => {
  const { answers, bodies, appended } = await heldBodies(3, 600_000);
  const page = (body: Uint8Array) => ({ ...aPage({ ids: ['1'] }), body, givesBody: true });
  const [first, , last] = bodies as [Buffer, Buffer, Buffer];

  await answers.append({ stream: 'audit', pages: [page(first), page(last)] });

  const [{ pages: alone = [] } = {}, { pages = [] } = {}] = appended;
  expect(alone.map(({ body }) => body)).toEqual([first]);
  const given = pages.filter(({ context }) => context.kind !== 'answer');
  expect(given.map(({ givesBody }) => givesBody)).toEqual([false, true]);
});

test('a large response is stored as a copy, since it moves to another thread', async () => {
  const { bodies, appended } = await heldBodies(3, 2_000_000);

  const stored = appended.flatMap(({ pages }) => pages);
  expect(stored.map(({ body }) => Buffer.compare(body, bodies[0] as Buffer))).toEqual([0]);
  expect(stored.map(({ body }) => body.buffer === bodies[0]?.buffer)).toEqual([false]);
});

// A sink that takes pages, behind a real sender on a real spool: it gets every page of its sources whole, as it is held
// and with the answers among them, whatever it answers; and nothing else that is there for others.

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { defineSink } from '../../src/contracts/definition.ts';
import { ExportError } from '../../src/contracts/errors.ts';
import type { Route } from '../../src/contracts/index.ts';
import type { Json } from '../../src/contracts/json.ts';
import type { Batch, Delivery, Sink, SinkOpening } from '../../src/contracts/sink.ts';
import { backlog, type HeldPage, type NewPage } from '../../src/contracts/spool.ts';
import { openSpool } from '../../src/hold/spool.ts';
import { type PlannedSink, Senders } from '../../src/send/sending.ts';
import { readState } from '../../src/watch/state.ts';
import { anAppend, aPage } from '../support/a-page.ts';
import { testTools } from '../support/sink-opening.ts';
import { tempDir, waitUntil } from '../support/temp.ts';

const cause = new ExportError('sink_unreachable', 'testing: scripted', { next: 'nothing' });
const json = { name: 'json', contentType: 'x', encode: () => 'line' };

/** A sink of the config with a scripted opening. */
function aSink(
  name: string,
  takes: 'events' | 'pages',
  open: (opening: SinkOpening) => Sink,
  inFlightMax = 1,
): PlannedSink {
  return {
    name,
    definition: defineSink({
      type: 'test',
      summary: '',
      fields: {},
      takes,
      carries: ['lines'],
      usualFormat: 'json',
      sample: { to: null, lines: () => [] },
      inFlightMax,
      assurance: () => 'once',
      open: async (_, opening) => open(opening),
      probe: async () => undefined,
    }),
    settings: { type: 'test' },
    format: json,
    formatKey: 'json',
    bounds: { eventsMax: 8, bytesMax: 1e6 },
    waitMs: 0,
    retry: { minMs: 1, maxMs: 1 },
  };
}

/** A sink that keeps what it has taken. */
function keeper(answer: (batch: Batch) => Delivery = () => ({ outcome: 'delivered' })) {
  const batches: Batch[] = [];
  const sink: Sink = {
    async send(batch) {
      const answered = answer(batch);
      if (answered.outcome === 'delivered') batches.push(batch);
      return answered;
    },
    close: async () => undefined,
  };
  return { sink, batches, pages: () => batches.flatMap(({ pages }) => pages) };
}

/** Upstream's other responses, as stored. */
function anAnswer(text: string): NewPage {
  return {
    context: { source: 'audit', stream: 'audit', kind: 'answer', fetchedAt: 1 },
    body: Buffer.from(text),
    items: '',
    kept: null,
    uids: Buffer.alloc(32),
    onlySink: '',
  };
}

async function spoolOf(pages: readonly NewPage[], sinks: readonly string[], dir = tempDir()) {
  const spool = await openSpool({
    ...{ dir, sync: 'normal', keepMs: 1e9, bytesMax: 1e9, eager: true },
    sinks,
  });
  if (pages.length > 0) await spool.append({ stream: 'audit', pages, checkpoint: null });
  return spool;
}

type Held = Awaited<ReturnType<typeof spoolOf>>;

function sendingOn(spool: Held, routes: readonly Route[] = []): Senders {
  const deps = { spool, tools: testTools(), random: () => 0 };
  return new Senders(deps, { sources: [], routes });
}

async function drained(spool: Held, sending: Senders): Promise<void> {
  await waitUntil(() => sending.state.every(({ position }) => position >= spool.gauge.end), {
    what: () => `every position at ${spool.gauge.end}: ${JSON.stringify(sending.state)}`,
  });
}

function texts(pages: readonly HeldPage[]): string[] {
  return pages.map(({ body }) => Buffer.from(body).toString());
}

test('a page sink gets each page of its sources as it is held, and others no answer', async () => {
  const large = aPage({ ids: Array.from({ length: 40 }, (_, i) => `l${i}`), pad: 50_000 });
  const repeated = { ...aPage({ ids: ['a', 'b', 'c'] }), kept: Uint32Array.of(1) };
  const pages: readonly NewPage[] = [
    anAnswer('first'),
    aPage({ ids: ['a', 'b', 'c'] }),
    { ...repeated, uids: repeated.uids.subarray(0, 32) },
    aPage({ source: 'other', ids: ['x'] }),
    large,
    { ...aPage({ ids: ['d'] }), onlySink: 'siem' },
    anAnswer('last'),
  ];
  const spool = await spoolOf(pages, ['proof', 'siem']);
  const [proof, siem] = [keeper(), keeper()];
  const routes = [{ from: ['audit'], to: ['proof', 'siem'] }];
  const sending = sendingOn(spool, routes);

  sending.start(
    await sending.open([
      aSink('proof', 'pages', () => proof.sink),
      aSink('siem', 'events', () => siem.sink),
    ]),
  );
  await drained(spool, sending);
  await sending.stop(1_000);

  const own = pages.filter((page) => page.context.source === 'audit' && page.onlySink !== 'siem');
  expect(texts(proof.pages())).toEqual(own.map(({ body }) => Buffer.from(body).toString()));
  expect(proof.batches.map(({ start }) => start)).toEqual([
    0,
    ...proof.batches.slice(0, -1).map(({ end }) => end),
  ]);
  const records = proof.batches.flatMap(({ events }) => events.map(({ raw }) => `${raw}`));
  expect(records).toHaveLength(44);
  expect(siem.batches.flatMap(({ events }) => events)).toHaveLength(45);
  expect(siem.pages()).toEqual([]);
  const [state] = sending.state;
  expect(state).toMatchObject({ name: 'proof', delivered: 44 });
  await spool.close();
});

test('a page sink gets every page, however it answers and wherever it was cut off', async () => {
  const answers = fc.array(fc.constantFrom<Delivery['outcome']>('delivered', 'retry', 'refused'), {
    maxLength: 12,
  });
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.integer({ min: 0, max: 6 }), { minLength: 1, maxLength: 12 }),
      answers,
      fc.constantFrom(1, 4),
      async (sizes, script, inFlightMax) => {
        const pages = sizes.map((size, n) =>
          size === 0
            ? anAnswer(`answer ${n}`)
            : aPage({ ids: Array.from({ length: size }, (_, i) => `${n}.${i}`) }),
        );
        const spool = await spoolOf(pages, ['proof']);
        const said = [...script];
        const proof = keeper(() => {
          const outcome = said.shift();
          if (outcome === 'retry') return { outcome, cause };
          // A batch of pages has no event to make a dead letter: it is sent again.
          if (outcome === 'refused') return { outcome, scope: 'batch', cause };
          return { outcome: 'delivered' };
        });
        const sending = sendingOn(spool);

        sending.start(await sending.open([aSink('proof', 'pages', () => proof.sink, inFlightMax)]));
        await drained(spool, sending);
        await sending.stop(1_000);

        expect(new Set(texts(proof.pages()))).toEqual(
          new Set(pages.map(({ body }) => Buffer.from(body).toString())),
        );
        expect(sending.state[0]?.deadLetters).toBe(0);
        await spool.close();
      },
    ),
    { numRuns: 8 },
  );
});

test('a page sink that is at a later page than it said is sent the rest, from that page', async () => {
  const spool = await spoolOf([anAnswer('a'), anAnswer('b'), anAnswer('c')], ['proof']);
  let reached = 0;
  const proof = keeper(() => {
    if (reached > 0) return { outcome: 'delivered' };
    reached = 2;
    return { outcome: 'retry', cause };
  });
  const committed = async () => ({ position: reached, ahead: false });
  const sending = sendingOn(spool);

  sending.start(
    await sending.open([aSink('proof', 'pages', () => ({ ...proof.sink, committed }))]),
  );
  await drained(spool, sending);
  await sending.stop(1_000);

  expect(texts(proof.pages())).toEqual(['c']);
  await spool.close();
});

test('responses are no stored events, also after a restart, and count by their size', async () => {
  const dir = tempDir();
  const pages = [anAnswer('a'), aPage({ ids: ['1', '2', '3'] }), anAnswer('b'), anAnswer('c')];
  const bytes = pages.reduce((sum, { body }) => sum + body.length, 3 * 512);
  const first = await spoolOf(pages, ['siem'], dir);
  const look = ({ gauge }: Held) => [0, 1, 2, 4, 7].map((position) => backlog(gauge, position));
  expect(look(first)).toEqual([3, 3, 2, 0, 0]);
  expect(first.gauge.bytes).toBe(bytes);
  await first.close();

  const second = await spoolOf([], ['siem'], dir);

  expect(look(second)).toEqual([3, 3, 2, 0, 0]);
  expect(second.gauge.bytes).toBe(bytes);
  const { spool } = readState(dir);
  expect([spool.events, backlog(spool, 0), spool.bytes]).toEqual([3, 3, bytes]);
  await second.close();
});

test('conditions of a sink go to all sinks that accept events, whatever the routes are', async () => {
  const spool = await spoolOf([], ['proof', 'other', 'siem']);
  const [proof, other, siem] = [keeper(), keeper(), keeper()];
  const openings: SinkOpening[] = [];
  const sending = sendingOn(spool, [{ from: ['audit'], to: ['other'], where: 'false' }]);
  const opened = await sending.open([
    aSink('proof', 'pages', (opening) => {
      openings.push(opening);
      return proof.sink;
    }),
    aSink('other', 'pages', () => other.sink),
    aSink('siem', 'events', () => siem.sink),
  ]);
  sending.start(opened);
  const reported = { condition: 'archive.checkpoint', message: 'm', about: '7' } as const;

  await openings[0]?.report({ ...reported, details: { size: 7 } });
  await openings[0]?.report({ ...reported, details: { size: 7 } });
  await drained(spool, sending);
  await sending.stop(1_000);

  const events = siem.batches.flatMap((batch) => batch.events);
  expect(events.map(({ ocsf }) => ocsf)).toMatchObject([
    { metadata: { event_code: 'archive.checkpoint', log_source: 'proof' }, message: 'm' },
    { metadata: { event_code: 'archive.checkpoint' }, unmapped: { details: { size: 7 } } },
  ]);
  expect(new Set(events.map(({ uid }) => uid)).size).toBe(1);
  expect([proof.batches, other.batches]).toEqual([[], []]);
  await spool.close();
});

test('a sink that finishes its events together is notified when no more come', async () => {
  const spool = await spoolOf([], ['proof']);
  const open: PromiseWithResolvers<Delivery>[] = [];
  let finished = 0;
  const flush = () => {
    finished += 1;
    for (const { resolve } of open.splice(0)) resolve({ outcome: 'delivered' });
  };
  const sink: Sink = {
    send: () => {
      const answer = Promise.withResolvers<Delivery>();
      open.push(answer);
      return answer.promise;
    },
    flush,
    close: async () => flush(),
  };
  const sending = sendingOn(spool);
  sending.start(await sending.open([aSink('proof', 'pages', () => sink, 3)]));
  for (let n = 0; n < 2; n += 1) {
    await spool.append(anAppend({ ids: [`${n}`] }));
    await waitUntil(() => open.length === n + 1, { what: `page ${n}, which waits for company` });
  }
  expect([finished, sending.state[0]?.position]).toEqual([0, 0]);

  sending.finish();
  await drained(spool, sending);
  for (let n = 2; n < 9; n += 1) await spool.append(anAppend({ ids: [`${n}`] }));
  await drained(spool, sending);

  await sending.stop(1_000);
  expect(open).toEqual([]);
  await spool.close();
});

test('a mark is remembered at once, whatever the position, and outlives a step without one', async () => {
  const spool = await spoolOf([anAnswer('a')], ['proof']);
  const marks: Json[] = [];
  const openings: SinkOpening[] = [];
  const proof = keeper();
  const planned = aSink('proof', 'pages', (opening) => {
    openings.push(opening);
    marks.push(opening.mark);
    return proof.sink;
  });
  const sending = sendingOn(spool);
  const opened = await sending.open([planned]);
  await openings[0]?.remember({ signing: 7 });
  expect(await spool.progress('proof')).toEqual({ position: 0, mark: { signing: 7 } });

  sending.start(opened);
  await drained(spool, sending);
  await sending.stop(1_000);
  await sending.open([planned]);

  expect(marks).toEqual([null, { signing: 7 }]);
  expect(await spool.progress('proof')).toEqual({ position: 1, mark: { signing: 7 } });
  await spool.close();
});

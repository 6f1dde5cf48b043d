// The watch over a trail on a real spool: its memory survives a restart and is bounded, pages wait for it, and an
// unreadable checkpoint starts it again without a report about the time before.

import { expect, test } from 'vitest';
import type { CollectionReading } from '../../src/contracts/definition.ts';
import type { PageContext } from '../../src/contracts/event.ts';
import type { CollectionStream } from '../../src/contracts/source.ts';
import { uidBytes } from '../../src/contracts/spool.ts';
import { Drift } from '../../src/drift/drift.ts';
import { driftKey, parseDrift } from '../../src/drift/state.ts';
import type { PlannedSource } from '../../src/fetch/polled-stream.ts';
import type { RunnerState } from '../../src/fetch/stream-runner.ts';
import { openSpool } from '../../src/hold/spool.ts';
import type { FindingRecord } from '../../src/poll/own-pages.ts';
import { aCollection } from '../list/reading.ts';
import { okOf, pagination } from '../support/made-up-list.ts';
import { type ManualClock, manualClock } from '../support/manual-clock.ts';
import { silent } from '../support/silent-log.ts';
import { afterThisTest, tempDir } from '../support/temp.ts';

const within = 5_000;
const settings = {
  ...{ changes: ['fw'], trail: ['audit'], withinMs: within },
  match: {
    changes: ['entity.uid'],
    trail: ['resources.uid'],
    type: ['resources.type'],
    company: [],
  },
};
const collection: CollectionReading = {
  ...{
    confirmAfterMs: 0,
    settleMs: 0,
    removalsAfter: 1,
    brake: { share: 1, count: 9 },
    sweepMs: 0,
    removals: true,
  },
  ...{ baseline: 'summary', ignore: [], unordered: [] },
};
const sources = [
  {
    ...{ name: 'fw', upstream: 'ops', schedule: { everyMs: 1_000 }, list: null, collection },
    ...{ reading: { id: null, time: [] } },
    // Only its name and company are looked at.
    streams: [
      { kind: 'collection', name: 'fw/c-1', source: 'fw', company: 'c-1' } as CollectionStream,
    ],
  },
  {
    ...{
      name: 'audit',
      upstream: 'edge',
      schedule: { everyMs: 1_000 },
      list: null,
      collection: null,
    },
    ...{ reading: { id: 'id', time: ['timestamp'] }, streams: [] },
  },
] satisfies PlannedSource[];

async function aWatch(dir: string, clock: ManualClock, reading = collection) {
  const spool = await openSpool({
    ...{ dir, sync: 'normal', keepMs: 0, bytesMax: 2 ** 30, sinks: [driftKey], eager: true },
    reserveBytesMax: 2 ** 20,
  });
  afterThisTest(() => spool.close());
  const streams = (): readonly RunnerState[] =>
    [
      ['fw', 'fw/c-1'],
      ['audit', 'audit'],
    ].map(([source = '', name = '']) => ({
      ...{ source, name, state: 'waiting', polls: 1, records: 0, skipped: 0 },
      ...{ caughtUpAt: clock.now(), nextPollAt: null, error: null },
    }));
  const tools = { clock, log: silent };
  const planned = sources.map((one) =>
    one.collection === null ? one : { ...one, collection: reading },
  );
  const reported: string[] = [];
  const found = ({ condition, details }: FindingRecord) =>
    reported.push(`${condition} ${details?.entity_id}`);
  const drift = new Drift(settings, { spool, tools, found, sources: () => planned, streams });
  return { spool, drift, reported };
}

type Spool = Awaited<ReturnType<typeof aWatch>>['spool'];
let made = 0;

async function hold(spool: Spool, context: PageContext, records: readonly object[]) {
  const uids = Buffer.alloc(records.length * uidBytes);
  records.forEach((_, at) => {
    made += 1;
    uids.writeUInt32BE(made, at * uidBytes);
  });
  const body = Buffer.from(JSON.stringify(records));
  const page = { context, body, items: '', kept: null, uids };
  await spool.append({ stream: context.stream, pages: [page], checkpoint: null });
}

const audit = (spool: Spool, clock: ManualClock, ids: readonly string[]) =>
  hold(
    spool,
    { source: 'audit', stream: 'audit', kind: 'audit', fetchedAt: clock.now() },
    ids.map((id) => ({
      ...{ id: `evt-${id}`, timestamp: new Date(clock.now()).toISOString(), action: 'rule.update' },
      ...{ actor: { name: 'ana' }, resource: { type: 'rule', id }, source_ip: '192.0.2.1' },
    })),
  );
const changed = (spool: Spool, clock: ManualClock, id: string) =>
  hold(
    spool,
    { source: 'fw', stream: 'fw/c-1', kind: 'drift', company: 'c-1', fetchedAt: clock.now() },
    [
      {
        ...{
          change: 'updated',
          entity_kind: 'rule',
          entity_id: id,
          company_id: 'c-1',
          generation: 1,
        },
        ...{ epoch: 'e', entity_version: 2, observed_at: new Date(clock.now()).toISOString() },
      },
    ],
  );

async function look(drift: Drift, clock: ManualClock, times: number) {
  for (let n = 0; n < times; n += 1) {
    clock.jump(2_000);
    await drift.look();
  }
}

test('open items survive a restart, and each finding is reported once', async () => {
  const [clock, dir] = [manualClock(), tempDir('drift-')];
  const first = await aWatch(dir, clock);
  await look(first.drift, clock, 10);
  await audit(first.spool, clock, ['a']);
  for (const id of ['a', 'b']) await changed(first.spool, clock, id);
  await look(first.drift, clock, 1);
  expect(first.spool.gauge.oldest).toBe(first.spool.gauge.end);
  await first.spool.close();

  const second = await aWatch(dir, clock);
  await look(second.drift, clock, 20);
  expect(second.reported).toEqual(['change.unexplained b']);
  expect(await second.spool.entities(driftKey, { after: '', max: 100 })).toEqual(new Map());
});

test('pages wait for the watch', async () => {
  const [clock, dir] = [manualClock(), tempDir('drift-')];
  const { spool, drift } = await aWatch(dir, clock);
  await drift.look();
  await audit(spool, clock, ['a', 'b']);
  expect(spool.gauge.end - spool.gauge.oldest).toBe(2);
  await drift.look();
  expect(spool.gauge.oldest).toBe(spool.gauge.end);
});

test('memory is bounded, and items that a forgotten one may match are not judged', async () => {
  const [clock, dir] = [manualClock(), tempDir('drift-')];
  const { spool, drift } = await aWatch(dir, clock);
  await drift.look();
  const since = async () => parseDrift((await spool.recall(driftKey)).checkpoint)?.since ?? 0;
  const before = await since();
  for (let page = 0; page < 12; page += 1) {
    clock.jump(1);
    await audit(
      spool,
      clock,
      Array.from({ length: 1_000 }, (_, n) => `${page}-${n}`),
    );
  }
  await drift.look();
  const items = await spool.entities(driftKey, { after: '', max: 100_000 });
  expect(items.size).toBe(10_000);
  expect(await since()).toBeGreaterThan(before);
});

test('an unreadable checkpoint is replaced by a new one', async () => {
  const [clock, dir] = [manualClock(), tempDir('drift-')];
  const first = await aWatch(dir, clock);
  await look(first.drift, clock, 10);
  await changed(first.spool, clock, 'a');
  await look(first.drift, clock, 1);
  const entities = { put: [['x', '{'] as const], drop: [] };
  await first.spool.append({ stream: driftKey, pages: [], checkpoint: { version: 9 }, entities });
  await first.spool.close();
  const second = await aWatch(dir, clock);
  await look(second.drift, clock, 20);
  expect(second.reported).toEqual([]);
  expect(await second.spool.entities(driftKey, { after: '', max: 100 })).toEqual(new Map());
});

/** Rules that count, read as a collection is: one changes to ACCEPT at each of these readings. */
async function aCounting(acceptedAt: Readonly<Record<string, number>>) {
  const clock = manualClock();
  const reading = { ...collection, confirmAfterMs: 1_000, settleMs: 4_000 };
  const { spool, drift, reported } = await aWatch(tempDir('drift-'), clock, reading);
  let n = 0;
  const rules = () =>
    ['r-0', 'r-1', 'r-2', 'r-3'].map((id, i) => ({
      ...{ id, hits: n * (i + 1), last_hit: new Date(clock.now()).toISOString() },
      action: n >= (acceptedAt[id] ?? Number.POSITIVE_INFINITY) ? 'ACCEPT' : 'DENY',
    }));
  const stream: CollectionStream = {
    kind: 'collection',
    ...{ name: 'fw/c-1', source: 'fw', company: 'c-1', paths: [], fingerprint: 'made up' },
    ...{ resource: 'rules', entity: { kind: 'rule', ids: ['id'] } },
    list: {
      ...{ name: 'fw/c-1', request: { path: '/x', template: '/x', query: [] }, sorting: [] },
      ...{ id: 'id', pageLimit: null, pagination: { ...pagination, style: 'shown' } },
      upstream: { get: async () => okOf(JSON.stringify({ data: rules() })) },
    },
  };
  const read = await aCollection(clock, stream, { reading, spool });
  return {
    reported,
    found: read.found,
    /** Reads so often; the trail has an event of these ids at these readings. */
    async readFor(readings: number, trail: Readonly<Record<number, string>>) {
      let fresh = 0;
      for (const until = n + readings; n < until; n += 1) {
        clock.jump(2_000);
        const id = trail[n];
        if (id !== undefined) await audit(spool, clock, [id]);
        const polled = await read.poll();
        fresh += polled.outcome === 'done' ? polled.fresh : 0;
        await drift.look();
      }
      return fresh;
    },
  };
}

test('beside counters a change meets its audit event, and one without an event is reported', async () => {
  const { readFor, reported } = await aCounting({ 'r-1': 20, 'r-2': 40 });

  await readFor(39, { 20: 'r-1' });
  const explained = [...reported];
  await readFor(25, {});

  expect(explained).toEqual([]);
  expect(reported).toEqual(['change.unexplained r-2']);
});

test('the same before the counters are learned', async () => {
  const { readFor, reported } = await aCounting({ 'r-1': 20, 'r-2': 2 });

  await readFor(50, { 2: 'r-2', 20: 'r-1' });

  expect(reported).toEqual([]);
});

test('counters alone are no changes for the trail', async () => {
  const { readFor, reported, found } = await aCounting({});

  // The baseline, and a condition for each path that is learned.
  expect(await readFor(40, {})).toBe(3);
  expect(reported).toEqual([]);
  expect(found.map(({ condition }) => condition)).toEqual(Array(2).fill('source.volatile_fields'));
});

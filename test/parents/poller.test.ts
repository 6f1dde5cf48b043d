// Many small lists and objects through a real spool: when each is requested, the meaning of a rejection of one of many,
// and that nothing is lost or reported twice whatever upstream or the process does in between.

import { expect, test } from 'vitest';
import type { ConditionRecord } from '../../src/contracts/change.ts';
import { ExportError } from '../../src/contracts/errors.ts';
import type { ListStream, ParentsStream } from '../../src/contracts/source.ts';
import type { Spool } from '../../src/contracts/spool.ts';
import type { Upstream, UpstreamRequest } from '../../src/contracts/upstream.ts';
import { Feed } from '../../src/parents/feed.ts';
import { ParentsPoller } from '../../src/parents/poller.ts';
import { aSpool, heldIn, hourMs, minuteMs } from '../list/reading.ts';
import { answerWith, cursorIn, madeUpList, okOf } from '../support/made-up-list.ts';
import { manualClock } from '../support/manual-clock.ts';
import { noLog } from '../support/plain-upstream.ts';
import { tempDir } from '../support/temp.ts';

const never = new AbortController().signal;
const dayMs = 24 * hourMs;

interface Wishes {
  readonly ids: readonly string[];
  readonly object?: ParentsStream['object'];
  readonly immutable?: boolean;
  readonly company?: string;
  readonly spool?: Spool;
  readonly start?: 'beginning' | 'now';
}

/** Timelines, or objects, by their parents' ids; a number stands for a status. */
type Served = Map<string, readonly unknown[] | Record<string, unknown> | number | Buffer>;

/** The error of a 403 with a wait of 3 s. */
const patience = -403;

const refusal = (status: number) => ({
  outcome: status === 403 || status === 401 ? ('denied' as const) : ('refused' as const),
  status,
  cause: new ExportError('upstream_refused', `upstream answered ${status}`, { next: 'Look.' }),
});

/** Two entries a page, by cursor. */
function answer(
  served: Served,
  { path, ...request }: UpstreamRequest,
  said: ReadonlyMap<string, object>,
): ReturnType<Upstream['get']> {
  const what = served.get(decodeURIComponent(path.slice(1))) ?? 404;
  if (what === 500) {
    const cause = new ExportError('upstream_unreachable', 'upstream answered 500', { next: '' });
    return Promise.resolve({ outcome: 'retry', status: 500, cause });
  }
  if (what === patience) return Promise.resolve({ ...refusal(403), wait: { ms: 3_000 } });
  if (typeof what === 'number') return Promise.resolve(refusal(what));
  if (Buffer.isBuffer(what)) return Promise.resolve({ ...okOf(''), body: what });
  if (!Array.isArray(what)) return Promise.resolve(okOf(JSON.stringify(what)));
  const from = Number(cursorIn({ path, ...request }) ?? 0);
  const next = from + 2 < what.length ? String(from + 2) : null;
  const more = said.get(decodeURIComponent(path.slice(1))) ?? {};
  return Promise.resolve(answerWith(what.slice(from, from + 2), { next_cursor: next, ...more }));
}

async function aStream({
  ids,
  object,
  immutable = false,
  company,
  spool: given,
  start = 'beginning',
}: Wishes) {
  const served: Served = new Map();
  /** What an answer has beside its data. */
  const said = new Map<string, object>();
  const asked: string[] = [];
  const clock = manualClock();
  const spool = given ?? (await aSpool());
  const listOf = (id: string): ListStream | null =>
    id === '..'
      ? null
      : madeUpList(
          (request) => {
            asked.push(id);
            return answer(served, request, said);
          },
          {
            ...{
              name: `src:${id}`,
              records: 'log',
              time: ['at'],
              immutable,
              fingerprint: `made up ${id}`,
              ...(company === undefined ? {} : { company }),
            },
            request: { path: `/${encodeURIComponent(id)}`, template: '/{parent_id}', query: [] },
          },
        );
  const stream: ParentsStream = {
    ...{ kind: 'parents', name: 'src', source: 'src', records: 'log', paths: [] },
    ...{ fingerprint: 'made up', listOf, ...(object && { object }) },
  };
  const make = () =>
    new ParentsPoller({
      ...{ stream, spool, clock, log: noLog, random: () => 0 },
      reading: { each: { ids }, sweepMs: dayMs },
      list: {
        ...{ order: 'auto', start, lookbackMs: 10 * minuteMs },
        ...{ rewindEveryMs: 15 * minuteMs, reconcileEveryMs: hourMs },
        onCursorInvalid: 'rewalk',
      },
      known: async function* () {
        yield ids;
      },
    });
  let poller = make();
  const held = async () => {
    const all = await heldIn(spool);
    const conditions = all.filter(({ kind }) => kind === 'condition');
    const reported = conditions.map(({ text }) => JSON.parse(text) as ConditionRecord); // sluice's own
    const records = all.filter(({ kind }) => kind === 'log').map(({ text }) => text);
    expect(new Set(all.map(({ uid }) => uid)).size).toBe(all.length);
    return {
      records,
      conditions: reported.map(({ condition, details }) => [condition, details?.parent]),
    };
  };
  return {
    ...{ served, said, asked, clock, spool, stream, held },
    facts: () => poller.parents,
    poll: (signal = never) => poller.poll(signal),
    restart() {
      poller = make();
    },
    /** Polls each minute for so long. */
    async pollFor(ms: number) {
      for (let passed = 0; passed < ms; passed += minuteMs) {
        await poller.poll(never);
        await clock.advance(minuteMs);
      }
    },
  };
}

const entry = (id: string, text = 'as it was') => ({ id, text });
const texts = (...entries: readonly object[]) => entries.map((one) => JSON.stringify(one));

test('each list is read to its end, once, over restarts', async () => {
  const { served, poll, restart, held, clock } = await aStream({ ids: ['a', 'b'] });
  // The same ids in two timelines are two records.
  served.set(
    'a',
    ['1', '2', '3', '4', '5'].map((id) => entry(id)),
  );
  served.set('b', [entry('1')]);

  await poll();
  restart();
  await clock.advance(minuteMs);
  await poll();
  served.set('b', [entry('1'), entry('2')]);
  await clock.advance(minuteMs);
  await poll();

  const { records, conditions } = await held();
  expect(records.toSorted()).toEqual(
    texts(...['1', '1', '2', '2', '3', '4', '5'].map((id) => entry(id))),
  );
  expect(conditions).toEqual([]);
});

test.for([
  { errors: [{ message: 'shard 3 timed out' }], trace_id: 't' },
  { partial: true },
  { timed_out: true },
  { success: false },
])(
  'a list in part is read again from its last position, and the others continue: %o',
  async (report) => {
    const { served, said, asked, pollFor, held, clock, poll, restart } = await aStream({
      ids: ['a', 'b'],
    });
    served.set('a', [entry('1'), entry('2')]);
    served.set('b', [entry('1')]);
    await poll();

    // Entry 3 is missing from the answer, and 4 is there.
    served.set('a', [entry('1'), entry('2'), entry('4')]);
    served.set('b', [entry('1'), entry('2')]);
    said.set('a', report);
    await clock.advance(minuteMs);
    const part = await poll();
    const meanwhile = await held();
    asked.length = 0;
    await pollFor(30 * minuteMs);
    const timesAsked = asked.filter((id) => id === 'a').length;
    restart();
    served.set('a', [entry('1'), entry('2'), entry('3'), entry('4')]);
    said.clear();
    await pollFor(hourMs);

    expect(part).toMatchObject({
      doubt: { message: expect.stringContaining('upstream answered 200 with') },
    });
    const shown = [entry('1'), entry('1'), entry('2'), entry('2'), entry('4')];
    const got = meanwhile.records.filter((one) => !one.includes('"4"'));
    expect(got.toSorted()).toEqual(texts(...shown.slice(0, 4)).toSorted());
    expect(timesAsked).toBeGreaterThan(1);
    const { records, conditions } = await held();
    expect(records.toSorted()).toEqual(texts(...shown, entry('3')).toSorted());
    expect(conditions).toEqual([]);
  },
);

test('a kill at any commit loses nothing and reports nothing twice', async () => {
  const dir = tempDir('parents-');
  const served: Served = new Map();
  const ids = Array.from({ length: 12 }, (_, n) => `p${n}`);
  for (const id of ids) served.set(id, [entry(`${id}-1`), entry(`${id}-2`), entry(`${id}-3`)]);
  const spool = await aSpool(dir);

  for (let kill = 1; kill < 40; kill += 1) {
    let left = kill % 7;
    // The commit is done, and its caller never gets the result.
    const dying: Spool = {
      ...(await faceOf(spool)),
      append: async (entry_) => {
        const block = await spool.append(entry_);
        left -= 1;
        if (left < 0) throw new ExportError('disk_full', 'killed', { next: '' });
        return block;
      },
    };
    const run = await aStream({ ids, spool: dying });
    for (const [id, what] of served) run.served.set(id, what);
    await run.poll();
  }
  const last = await aStream({ ids, spool });
  for (const [id, what] of served) last.served.set(id, what);
  await last.poll();

  const { records, conditions } = await last.held();
  expect(records.toSorted()).toEqual(
    ids.flatMap((id) => texts(entry(`${id}-1`), entry(`${id}-2`), entry(`${id}-3`))).toSorted(),
  );
  expect(conditions).toEqual([]);
});

async function faceOf(spool: Spool): Promise<Spool> {
  return {
    ...{
      numbering: spool.numbering,
      gauge: spool.gauge,
      parents: spool.parents,
      aside: spool.aside,
      settledFrom: spool.settledFrom,
    },
    append: (one) => spool.append(one),
    read: (...by) => spool.read(...by),
    arrival: (...by) => spool.arrival(...by),
    room: (signal) => spool.room(signal),
    progress: (sink) => spool.progress(sink),
    reached: (...by) => spool.reached(...by),
    acknowledge: (...by) => spool.acknowledge(...by),
    recall: (stream) => spool.recall(stream),
    trail: (stream) => spool.trail(stream),
    entities: (...by) => spool.entities(...by),
    note: (...by) => spool.note(...by),
    close: () => spool.close(),
  };
}

test.each<{ readonly status: number; readonly company?: string }>(
  [403, 404, 410].flatMap((status) => [{ status }, { status, company: 'c-1' }]),
)(
  '$status for one of many (company: $company) is reported once, and requested seldom',
  async ({ status, ...of }) => {
    const { served, asked, pollFor, held, clock } = await aStream({ ids: ['a', 'b', 'c'], ...of });
    served.set('a', [entry('1')]);
    served.set('b', status);
    served.set('c', [entry('2')]);

    await pollFor(20 * minuteMs);
    const before = asked.filter((id) => id === 'b').length;
    for (let hours = 0; hours < 72; hours += 1) {
      await pollFor(minuteMs);
      await clock.advance(hourMs);
    }

    const { records, conditions } = await held();
    expect(records.toSorted()).toEqual(texts(entry('1'), entry('2')));
    expect(conditions).toEqual([['source.parent_lost', 'b']]);
    // A 404 of a company is requested at the start of the list as well.
    const most = of.company === undefined ? 6 : 12;
    expect(before).toBeLessThan(most);
    expect(asked.filter((id) => id === 'b').length - before).toBeLessThan(most);
  },
);

test('a parent whose 403 has a wait is lost only after the usual wait', async () => {
  const { served, pollFor, held } = await aStream({ ids: ['a', 'b', 'c'] });
  served.set('a', [entry('1')]);
  served.set('b', patience);
  served.set('c', [entry('2')]);

  await pollFor(14 * minuteMs);
  const before = (await held()).conditions;
  await pollFor(20 * minuteMs);

  expect(before).toEqual([]);
  expect((await held()).conditions).toEqual([['source.parent_lost', 'b']]);
});

test('a parent that comes back is read on where it was', async () => {
  const { served, pollFor, held, clock } = await aStream({ ids: ['a', 'b'] });
  served.set('a', [entry('1')]);
  served.set('b', [entry('2')]);
  await pollFor(minuteMs);
  served.set('b', 404);
  await pollFor(10 * minuteMs);
  served.set('b', [entry('2'), entry('3')]);

  for (let hours = 0; hours < 60; hours += 1) {
    await pollFor(minuteMs);
    await clock.advance(hourMs);
  }

  const { records, conditions } = await held();
  expect(records.toSorted()).toEqual(texts(entry('1'), entry('2'), entry('3')));
  expect(conditions).toEqual([['source.parent_lost', 'b']]);
});

test('if all are rejected the stream is, and no parent is reported as lost', async () => {
  const ids = Array.from({ length: 40 }, (_, n) => `p${n}`);
  const { served, asked, poll, held, clock } = await aStream({ ids });
  for (const id of ids) served.set(id, [entry(id)]);
  await poll();
  for (const id of ids) served.set(id, 403);

  const outcomes: string[] = [];
  for (let polls = 0; polls < 30; polls += 1) {
    await clock.advance(hourMs);
    outcomes.push((await poll()).outcome);
  }
  const before = asked.length;
  for (const id of ids) served.set(id, [entry(id), entry(`${id}+`)]);
  await clock.advance(dayMs);
  await poll();

  const { records, conditions } = await held();
  expect(conditions).toEqual([]);
  expect(outcomes).toContain('denied');
  expect(before).toBeLessThan(40 + 40 * 2 + 30 * 8);
  expect(records).toHaveLength(80);
});

test.each([
  { rest: 'change no more', states: [{ status: 'DONE' }, { status: 'DONE' }] },
  { rest: 'have their turn later', states: [{ status: 'ON' }, { status: 'ON' }] },
])('if all others $rest, one that is gone is reported as lost, and no outage is', async (by) => {
  const object = { isFinal: ({ status }: { status?: unknown }) => status === 'DONE' };
  const ids = ['a', 'b', 'c'];
  const { served, asked, pollFor, poll, restart, held, clock } = await aStream({ ids, object });
  for (const [n, id] of ids.entries()) served.set(id, by.states[n] ?? { status: 'ON', n });
  await pollFor(minuteMs);
  // An outage: every other request is rejected as well.
  await clock.advance(20 * dayMs);
  for (const id of ids) served.set(id, 404);
  const during: string[] = [];
  for (let polls = 0; polls < 6; polls += 1) {
    await clock.advance(5 * hourMs);
    during.push((await poll()).outcome);
    restart();
  }
  const reportedInOutage = (await held()).conditions;
  for (const [n, id] of ids.entries()) {
    served.set(id, id === 'c' ? 404 : (by.states[n] ?? 404));
  }
  await pollFor(5 * minuteMs);
  asked.length = 0;
  const last = await poll();

  expect(during).toContain('refused');
  expect(reportedInOutage).toEqual([]);
  expect((await held()).conditions).toEqual([['source.parent_lost', 'c']]);
  expect((await held()).records).toHaveLength(3);
  expect(last.outcome).toBe('done');
  expect(asked).not.toContain('c');
});

test('a passing 404 of one that has failed for long is looked at a second time', async () => {
  const { served, poll, clock, held } = await aStream({ ids: ['a', 'b'] });
  served.set('a', [entry('1')]);
  const answers = [500, 500, 500, 404, 500, 500, 404];
  for (const status of answers) {
    served.set('b', status);
    await clock.advance(hourMs);
    await poll();
  }

  expect((await held()).conditions).toEqual([]);
});

test('where all others change no more, one that fails keeps its own waits, and no other', async () => {
  const object = { isFinal: ({ status }: { status?: unknown }) => status === 'DONE' };
  const { served, poll, clock } = await aStream({ ids: ['a', 'b'], object });
  served.set('a', { status: 'DONE' });
  served.set('b', 500);
  await poll();

  const outcomes: string[] = [];
  for (let polls = 0; polls < 20; polls += 1) {
    await clock.advance(minuteMs);
    outcomes.push((await poll()).outcome);
  }

  expect(outcomes).toEqual(outcomes.map(() => 'done'));
});

test.each([
  { of: 'is gone', status: 404, wasThere: true, reported: [['source.parent_lost', 'a']] },
  { of: 'is denied', status: 403, wasThere: true, reported: [] },
  { of: 'was never there', status: 404, wasThere: false, reported: [] },
])('the only parent that $of for a day: $reported', async ({ status, wasThere, reported }) => {
  const { served, poll, restart, held, clock } = await aStream({ ids: ['a'] });
  served.set('a', wasThere ? [entry('1')] : status);
  await poll();
  await clock.advance(3 * hourMs);
  served.set('a', status);
  restart();

  const outcomes: string[] = [];
  for (let hours = 0; hours < 30; hours += 1) {
    await clock.advance(hourMs);
    outcomes.push((await poll()).outcome);
    if (hours === 20) expect((await held()).conditions).toEqual([]);
    if (hours % 7 === 0) restart();
  }

  expect((await held()).conditions).toEqual(reported);
  expect(outcomes[0]).not.toBe('done');
  expect(outcomes.at(-1) === 'done').toBe(reported.length > 0);
});

test('one that always fails keeps no other waiting', async () => {
  const ids = ['bad', ...Array.from({ length: 50 }, (_, n) => `p${n}`)];
  const { served, asked, pollFor, held } = await aStream({ ids });
  for (const id of ids) served.set(id, id === 'bad' ? 500 : [entry(id)]);

  await pollFor(hourMs);

  expect((await held()).records).toHaveLength(50);
  expect(asked.filter((id) => id === 'bad').length).toBeLessThan(20);
});

test('a timeline that is rewritten or shrinks is reported, and both versions are delivered', async () => {
  const { served, pollFor, held } = await aStream({ ids: ['a', 'b', 'c'], immutable: true });
  served.set('a', [entry('a1'), entry('a2')]);
  served.set('b', [entry('b1'), entry('b2')]);
  served.set('c', [entry('c1'), entry('c2')]);
  await pollFor(2 * minuteMs);
  served.set('a', [entry('a1', 'rewritten'), entry('a2')]);
  served.set('b', [entry('b1')]);

  await pollFor(40 * minuteMs);

  const { records, conditions } = await held();
  expect(records).toContain(JSON.stringify(entry('a1', 'rewritten')));
  expect(records).toHaveLength(7);
  expect(conditions.toSorted()).toEqual([
    ['integrity_violation', undefined],
    ['integrity_violation', 'b'],
  ]);
});

test('an object is reported when it changes, also back, and no more once it is final', async () => {
  const object = { isFinal: ({ status }: { status?: unknown }) => status === 'COMPLETED' };
  const { served, asked, pollFor, restart, held, spool } = await aStream({ ids: ['a'], object });
  const states = [
    { id: 'a', status: 'RUNNING', step: 1 },
    { step: 1, status: 'RUNNING', id: 'a' },
    { id: 'a', status: 'RUNNING', step: 2 },
    { id: 'a', status: 'RUNNING', step: 1 },
    { id: 'a', status: 'COMPLETED' },
  ];
  for (const state of states) {
    served.set('a', state);
    await pollFor(3 * minuteMs);
    restart();
  }
  const before = asked.length;
  await pollFor(hourMs);

  const [first, , ...others] = states;
  expect((await held()).records).toEqual(texts(first ?? {}, ...others));
  const pages = await spool.read(0, 1 << 20);
  expect(pages.map(({ context }) => context.isUpdate ?? false)).toEqual([false, true, true, true]);
  expect(asked.length).toBe(before);
});

test('a noticed parent is requested first, and again if it is noticed during the request', async () => {
  const ids = Array.from({ length: 200 }, (_, n) => `p${n}`);
  const { served, asked, poll, spool, clock, held } = await aStream({ ids });
  for (const id of [...ids, 'new']) served.set(id, [entry(id)]);
  await poll();
  await clock.advance(hourMs);
  asked.length = 0;
  const notice = (id: string) =>
    spool.append({
      ...{ stream: 'other', pages: [], checkpoint: null },
      parents: [{ stream: 'src', id, as: 'noticed' }],
    });
  await notice('new');
  await notice('p77');
  await poll();

  // Four are requested at a time, and in any order among themselves.
  expect(asked.slice(0, 4)).toEqual(expect.arrayContaining(['new', 'p77']));
  const [row] = await spool.parents.due('src', Number.MAX_SAFE_INTEGER, 1);
  const was = row?.due ?? 0;
  await notice(row?.id ?? '');
  await spool.append({
    ...{ stream: 'src', pages: [], checkpoint: null },
    parents: [
      {
        stream: 'src',
        id: row?.id ?? '',
        as: 'asked',
        was,
        rank: 1,
        due: clock.now() + 9 * dayMs,
        state: {},
      },
    ],
  });
  expect((await spool.parents.due('src', 0, 10)).map(({ id }) => id)).toContain(row?.id);
  expect((await held()).records).toHaveLength(201);
});

test('a rotation takes no longer than allowed, and makes no more requests than needed', async () => {
  const ids = Array.from({ length: 300 }, (_, n) => `p${n}`);
  const { served, asked, poll, pollFor, facts, clock } = await aStream({ ids });
  for (const id of ids) served.set(id, []);
  await poll();
  await clock.advance(dayMs);
  await pollFor(minuteMs);
  asked.length = 0;

  await pollFor(hourMs);

  expect(new Set(asked).size).toBe(300);
  expect(asked.length).toBeLessThan(300 * 4 * 3);
  expect(facts()).toMatchObject({ known: 300, due: 0 });
  expect(facts()?.rotation_ms).toBeLessThan(hourMs);
});

test('an id that no path can contain is never requested', async () => {
  const feed = new Feed(noLog);
  const { stream } = await aStream({ ids: [] });
  const parents = { each: { of: 'other', id: 'x' }, sweepMs: dayMs, valuesIn: () => ['..', 'ok'] };
  feed.add({ streams: [stream], parents });
  const from = { ...madeUpList(() => Promise.resolve(okOf('[]'))), name: 'other', source: 'other' };

  const page = {
    context: {} as never,
    body: Buffer.from('[]'),
    items: '',
    kept: null,
    uids: Buffer.alloc(0),
  };
  const entry = feed.withParents({ stream: 'other', pages: [page], checkpoint: null }, from);

  expect(entry.parents).toEqual([{ stream: 'src', id: 'ok', as: 'noticed' }]);
});

test('a parent that has been quiet for long is not requested again with the next poll', async () => {
  const ids = Array.from({ length: 100 }, (_, n) => `p${n}`);
  const { served, asked, poll } = await aStream({ ids });
  for (const id of ids) served.set(id, [{ id, at: '2020-01-01T00:00:00Z' }]);
  await poll();
  asked.length = 0;

  await poll();

  expect(asked).toEqual([]);
});

test('parents that were reported as lost make no stream fail when only they are requested again', async () => {
  const ids = Array.from({ length: 12 }, (_, n) => `p${n}`);
  const { served, asked, poll, pollFor, held, spool, clock } = await aStream({ ids });
  for (const id of ids) served.set(id, id === 'p0' ? [{ id, at: '2020-01-01T00:00:00Z' }] : 404);
  await pollFor(20 * minuteMs);
  const rows = await spool.parents.due('src', Number.MAX_SAFE_INTEGER, 32);
  const was = rows.find(({ id }) => id === 'p0')?.due ?? 0;
  const later = {
    was,
    rank: 1,
    due: clock.now() + 9 * dayMs,
    state: { askedAt: 1, changedAt: 1 },
  } as const;
  await spool.append({
    ...{ stream: 'other', pages: [], checkpoint: null },
    parents: [{ stream: 'src', id: 'p0', as: 'asked', ...later }],
  });
  asked.length = 0;

  await clock.advance(8 * dayMs);
  const { outcome } = await poll();

  expect((await held()).conditions).toHaveLength(11);
  expect(new Set(asked)).toEqual(new Set(ids.slice(1)));
  expect(outcome).toBe('done');
});

const report = { trace_id: 't-9', errors: [{ message: 'shard 3 timed out' }] };

test('an object in part is delivered once, is not final, and is requested again', async () => {
  const isFinal = ({ status }: { readonly status?: unknown }) => status === 'COMPLETED';
  const { served, poll, held, clock } = await aStream({ ids: ['i-1'], object: { isFinal } });
  served.set('i-1', { data: { id: 'i-1', status: 'COMPLETED' }, ...report });

  const results = [];
  for (const trace_id of ['t-1', 't-2', 't-3']) {
    served.set('i-1', { data: { id: 'i-1', status: 'COMPLETED' }, ...report, trace_id });
    results.push(await poll());
    await clock.advance(hourMs);
  }
  served.set('i-1', { id: 'i-1', status: 'COMPLETED', evidence: [1] });
  await poll();
  await clock.advance(dayMs);
  const after = await poll();

  expect(results[0]).toMatchObject({
    outcome: 'done',
    doubt: { message: expect.stringContaining('trace_id t-1') },
  });
  expect((await held()).records).toEqual([
    '{"id":"i-1","status":"COMPLETED"}',
    '{"id":"i-1","status":"COMPLETED","evidence":[1]}',
  ]);
  expect(after).toMatchObject({ outcome: 'done' });
});

test.for([
  ['as it is', (object: string) => object],
  ['in an envelope', (object: string) => `{"data":${object}}`],
] as const)(
  'an object %s with another byte that is not UTF-8 is reported with its bytes',
  async ([, wrap]) => {
    const object = { isFinal: () => false };
    const { served, poll, clock, spool, restart } = await aStream({ ids: ['a'], object });
    // Latin-1: é is the byte E9, and è is E8.
    const of = (name: string) => `{"id":"a","name":"${name}"}`;
    const read = async (name: string) => {
      served.set('a', Buffer.from(wrap(of(name)), 'latin1'));
      await clock.advance(dayMs);
      await poll();
    };

    for (const name of ['caf\u00e9', 'caf\u00e9', 'caf\u00e8', 'caf\u00e8']) await read(name);
    const bodies = async () => {
      const pages = await spool.read(0, 1 << 20);
      return pages
        .filter(({ context }) => context.kind === 'log')
        .map(({ body }) => Buffer.from(body).toString('latin1'));
    };
    const before = await bodies();

    expect(before).toEqual([`[${of('caf\u00e9')}]`, `[${of('caf\u00e8')}]`]);
    restart();
    await read('caf\u00e8');
    expect(await bodies()).toEqual(before);
  },
);

test('parents that changed by a clock that was ahead come to rest', async () => {
  const ids = Array.from({ length: 12 }, (_, n) => `p${n}`);
  const { served, clock, poll, asked, restart } = await aStream({ ids });
  for (const id of ids) served.set(id, [entry('1')]);
  clock.jump(3_650 * dayMs);
  await poll();
  for (const id of ids) served.set(id, [entry('1'), entry('2')]);
  await clock.advance(minuteMs);
  await poll();
  clock.jump(-3_650 * dayMs);
  restart();
  await poll();
  await clock.advance(2 * dayMs);
  await poll();
  asked.length = 0;

  await clock.advance(10_000);
  await poll();

  expect(asked).toEqual([]);
});

test('start: now by a clock that was ahead skips no record once the clock is right', async () => {
  const { served, clock, poll, held } = await aStream({ ids: ['a', 'b'], start: 'now' });
  const at = (id: string) => ({ ...entry(id), at: new Date(clock.now()).toISOString() });
  served.set('a', [at('1')]);
  clock.jump(3_650 * dayMs);
  await poll();
  clock.jump(-3_650 * dayMs);
  await clock.advance(minuteMs);
  await poll();
  await clock.advance(minuteMs);
  served.set('a', [...((served.get('a') ?? []) as object[]), at('2')]);
  // A parent that is requested for the first time.
  served.set('b', [at('3')]);
  await clock.advance(minuteMs);

  await poll();

  const { records } = await held();
  expect(records.filter((text) => /"id":"[23]"/.test(text))).toHaveLength(2);
});

// Versions of one id, exhaustively: each side shows up to three contents of an id, equal ones or others, in each order and
// interleaving, with patience over or not between any two of them, and with a cutover at any point. However it goes, a content that
// both sides show becomes an event once. One that a single side shows becomes an event, too, or it is left out in favour of one
// content that only the other side shows: those are the same record, with a value that differs.

import { hash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import type { ListStream, Stream } from '../../src/contracts/source.ts';
import type { NewPage } from '../../src/contracts/spool.ts';
import type { PairSide } from '../../src/contracts/succession.ts';
import { Store } from '../../src/hold/store.ts';
import { pairingsOf, sideIn } from '../../src/succession/pairing.ts';
import { pairedPage } from '../../src/succession/side.ts';
import { tempDir } from '../support/temp.ts';

const patienceMs = 1_000;
const begun = Date.UTC(2026, 10, 1);

/** What the two sides show of one id, and in which order. */
interface World {
  readonly old: readonly string[];
  readonly new: readonly string[];
  /** Which side shows its next version. */
  readonly turns: readonly PairSide[];
}

/** All sequences of up to `count` contents; those of the old side are named in its own order. */
function worldsOf(count: number): readonly World[] {
  const lengths = Array.from({ length: count + 1 }, (_, length) => length);
  return lengths.flatMap((before) =>
    lengths.flatMap((after) => {
      const old = [...'ABC'].slice(0, before);
      const all = interleavings(before, after);
      return sequences(old, after).flatMap((late) =>
        all.map((turns) => ({ old, new: late, turns })),
      );
    }),
  );
}

/** Of the contents of the old side and of others, which are X, Y and Z in order. */
function sequences(old: readonly string[], length: number): readonly string[][] {
  if (length === 0) return [[]];
  return sequences(old, length - 1).flatMap((start) => {
    const others = start.filter((content) => !old.includes(content)).length;
    const next = [...old.filter((content) => !start.includes(content)), 'XYZ'.charAt(others)];
    return next.map((content) => [...start, content]);
  });
}

function interleavings(old: number, late: number): readonly (readonly PairSide[])[] {
  if (old + late === 0) return [[]];
  const after = (side: PairSide, rest: readonly (readonly PairSide[])[]) =>
    rest.map((turns) => [side, ...turns]);
  return [
    ...(old > 0 ? after('old', interleavings(old - 1, late)) : []),
    ...(late > 0 ? after('new', interleavings(old, late - 1)) : []),
  ];
}

/** When patience is over, and when the phase changes; alike for all worlds of a run. */
interface Course {
  /** Before the step with this number. */
  readonly isOver: (step: number) => boolean;
  readonly cutAt: number | null;
}

const list = (source: string, name: string): Stream =>
  ({
    ...{ kind: 'list', source, name, id: 'id' },
    time: [source === 'audit' ? 'createdAt' : 'created_at'],
  }) as unknown as ListStream;

const streams = { old: list('audit', 'audit'), new: list('late', 'late') };
const pairings = pairingsOf([
  { name: 'audit', streams: [streams.old] },
  {
    ...{ name: 'late', streams: [streams.new] },
    succeeds: { source: 'audit', fields: {}, ignore: [], overlapMs: 86_400_000, patienceMs },
  },
]);

/** By step and side, the page that shows all worlds' contents; each world has an id of its own. */
function pagesOf(
  worlds: readonly World[],
  steps: number,
): readonly Record<PairSide, NewPage | null>[] {
  const next = worlds.map(() => ({ old: 0, new: 0 }));
  const page = (step: number, side: PairSide) => {
    const shown = worlds.flatMap((world, id) => {
      if (world.turns[step] !== side) return [];
      const place = next[id] as Record<PairSide, number>;
      place[side] += 1;
      return [{ id, content: world[side][place[side] - 1] ?? '' }];
    });
    return shown.length === 0 ? null : aPage(side, shown);
  };
  return Array.from({ length: steps }, (_, step) => ({
    old: page(step, 'old'),
    new: page(step, 'new'),
  }));
}

/** All worlds side by side. Returns how often their contents became events. */
function play(pages: ReturnType<typeof pagesOf>, { isOver, cutAt }: Course, worlds: number) {
  const store = new Store({ dir: tempDir(), sync: 'none', keepMs: 1e12 });
  store.retainFor([]);
  let now = begun;
  store.transaction(() =>
    store.pairs.settle(
      pairings.map(({ plan }) => plan),
      now,
    ),
  );
  const show = (side: PairSide, page: NewPage | null) => {
    if (page !== null) store.append({ stream: streams[side].name, pages: [page] }, now);
  };
  for (const [step, { old, new: late }] of pages.entries()) {
    now += isOver(step) ? patienceMs + 1 : 1;
    store.transaction(() => store.releaseWaiting(now));
    if (cutAt === step) cutOver(store, now);
    store.transaction(() => {
      show('old', old);
      show('new', late);
    });
  }
  if (cutAt === pages.length) cutOver(store, now);
  for (let left = 1; left > 0; ) {
    now += patienceMs + 1;
    store.transaction(() => store.releaseWaiting(now));
    left = store.pairReports(now)[0]?.waiting ?? 0;
  }
  const events = eventsIn(store, worlds);
  store.close();
  return events;
}

function cutOver(store: Store, now: number): void {
  const wish = { pair: 'late', phase: 'cut_over' as const, isForced: true, unread: null };
  store.transaction(() => store.cutOver(wish, now));
}

function aPage(
  side: PairSide,
  shown: readonly { readonly id: number; readonly content: string }[],
): NewPage {
  const [source, time] = side === 'old' ? ['audit', 'createdAt'] : ['late', 'created_at'];
  const records = shown.map(({ id, content }) => ({ id, [time]: begun, content }));
  const uids = shown.map((one) => hash('sha256', JSON.stringify([side, one]), 'buffer'));
  const page: NewPage = {
    context: { source, stream: source, kind: 'log', fetchedAt: begun },
    ...{ body: Buffer.from(JSON.stringify(records)), items: '', kept: null },
    uids: Buffer.concat(uids),
  };
  const of = sideIn(pairings, source);
  return of === null ? page : pairedPage(page, of);
}

function eventsIn(store: Store, count: number): readonly Map<string, number>[] {
  const events = Array.from({ length: count }, () => new Map<string, number>());
  for (const { body, kept, context } of store.read(0, 1e9)) {
    if (context.kind !== 'log') continue;
    const records = JSON.parse(Buffer.from(body).toString()) as { id: number; content: string }[];
    for (const index of kept ?? records.keys()) {
      const { id, content } = records[index] as { id: number; content: string };
      events[id]?.set(content, (events[id]?.get(content) ?? 0) + 1);
    }
  }
  return events;
}

/** What is wrong with the events of a world; null: nothing. */
function flawOf(world: World, events: ReadonlyMap<string, number>): string | null {
  const twice = [...events].filter(([, count]) => count > 1).map(([content]) => content);
  if (twice.length > 0) return `twice: ${twice}`;
  const alone = {
    old: world.old.filter((content) => !world.new.includes(content)),
    new: world.new.filter((content) => !world.old.includes(content)),
  };
  const both = world.old.filter((content) => world.new.includes(content) && !events.has(content));
  if (both.length > 0) return `shown by both, no event: ${both}`;
  for (const side of ['old', 'new'] as const) {
    const leftOut = alone[side].filter((content) => !events.has(content));
    const other = alone[side === 'old' ? 'new' : 'old'].filter((content) => events.has(content));
    if (leftOut.length > other.length) return `lost: ${leftOut}`;
  }
  const isOneEach = alone.old.length === 1 && world.old.length === 1 && world.new.length === 1;
  return isOneEach && events.size !== 1
    ? 'one record with a value that differs is two events'
    : null;
}

/** All of them would be too many for each run of the tests. */
const isWhole = process.env.PAIR_VERSIONS === 'all';

/** As bits, the steps before which patience is over: all of up to two versions, else those with few, or few others. */
function oversOf(longest: number, steps: number): readonly number[] {
  const all = Array.from({ length: 2 ** (steps - 1) }, (_, over) => over);
  const ones = (over: number) => over.toString(2).replaceAll('0', '').length;
  return all.filter((over) => longest < 3 || isWhole || ones(over) < 2 || ones(over) === steps - 1);
}

describe.each([2, 3])('up to %i versions on each side', (longest) => {
  const steps = longest * 2;
  const turns = Array.from({ length: steps + 1 }, (_, step) => step);
  const cuts = longest < 3 || isWhole ? [null, ...turns] : [null];
  const worlds = worldsOf(longest);
  const pages = pagesOf(worlds, steps);

  test.each(cuts)('with a cutover before step %s: none is lost, none repeated', (cutAt) => {
    const flaws: string[] = [];
    for (const over of oversOf(longest, steps)) {
      const isOver = (step: number) => step > 0 && ((over >> (step - 1)) & 1) === 1;
      const events = play(pages, { isOver, cutAt }, worlds.length);
      for (const [index, world] of worlds.entries()) {
        const flaw = flawOf(world, events[index] ?? new Map());
        if (flaw !== null) flaws.push(`${JSON.stringify({ ...world, over })}: ${flaw}`);
      }
    }
    expect([flaws.length, flaws.slice(0, 3)]).toEqual([0, []]);
  });
});

// Small pages of a walk are stored together: which pages share an append, when it is made, and the result if it fails.
// test/simulation checks that this loses and repeats nothing, whatever the server and wherever the process dies.

import { getEventListeners } from 'node:events';
import { describe, expect, onTestFinished, test } from 'vitest';
import { ExportError } from '../../src/contracts/errors.ts';
import type { ListStream, Stream } from '../../src/contracts/source.ts';
import { type Append, identityBytes, type Spool } from '../../src/contracts/spool.ts';
import { StreamSpool } from '../../src/fetch/stream-spool.ts';
import { Rebuilding } from '../../src/hold/rebuild.ts';
import { openSpool } from '../../src/hold/spool.ts';
import { backfillSpool } from '../../src/list/backfill-spool.ts';
import { AUDIT } from '../sandbox/client.ts';
import { answeredBy } from '../support/made-up-list.ts';
import { tempDir } from '../support/temp.ts';
import {
  aList,
  aSpool,
  differences,
  type ListChoices,
  ledgerIds,
  none,
  standingSandbox,
} from './reading.ts';

/** As many bytes of pages as are held together, but for the last page of them. */
const groupBytes = 512 * 1024;

/** A list, with what is appended for it; `before` is passed before each append and may throw. */
async function watched(
  {
    events = 60,
    groupBytes,
    room,
    ...choices
  }: ListChoices & {
    readonly events?: number;
    readonly groupBytes?: number;
    readonly room?: () => Promise<void>;
  },
  before: (appends: readonly Append[]) => void = () => undefined,
) {
  const world = await standingSandbox({ events });
  const appends: Append[] = [];
  const real = await aSpool();
  const append: Spool['append'] = async (entry) => {
    before(appends);
    const block = await real.append(entry);
    appends.push(entry);
    return block;
  };
  const spool = new Proxy(real, {
    get(target, name) {
      if (name === 'append') return append;
      if (name === 'groupBytes') return groupBytes;
      if (name === 'room' && room !== undefined) return room;
      const member: unknown = Reflect.get(target, name);
      return typeof member === 'function' ? member.bind(target) : member;
    },
  });
  const list = await aList(world, { ...choices, spool });
  const ids = async () => (await list.records()).map(({ id }) => id);
  return { ...world, list, appends, ids, served: () => ledgerIds(world.sandbox) };
}

/** Holds requests back until they are released, from the one numbered `from` on. */
function gate(from: number) {
  const { promise: opened, resolve: open } = Promise.withResolvers<void>();
  let requests = 0;
  const wrap = (stream: ListStream): ListStream =>
    answeredBy(stream, async (request, signal) => {
      requests += 1;
      if (requests >= from) await opened;
      return await stream.upstream.get(request, signal);
    });
  return { wrap, open };
}

const sizes = ({ pages }: Append) => pages.map(({ body }) => body.length);
const sum = (numbers: readonly number[]) => numbers.reduce((a, b) => a + b, 0);

describe('the end of a walk', () => {
  test('leaves no listener on the signal of its poll', async () => {
    const { list } = await watched({});
    const { signal } = new AbortController();

    const { outcome } = await list.poll(signal);

    expect(outcome).toBe('done');
    expect(getEventListeners(signal, 'abort')).toEqual([]);
  });

  test('is also the end of a poll that is interrupted during a request', async () => {
    const stop = new AbortController();
    const { list, served, ids } = await watched({
      wrap: (stream) =>
        answeredBy(stream, async (request, signal) => {
          const answer = await stream.upstream.get(request, signal);
          stop.abort(new Error('stopped'));
          signal.throwIfAborted();
          return answer;
        }),
    });

    await expect(list.poll(stop.signal)).rejects.toThrow('stopped');

    expect(await ids()).toEqual([]);
    expect(served()).not.toEqual([]);
  });
});

describe('small pages of a walk', () => {
  test('are one append, with all their identities and every cursor they came by', async () => {
    const { list, appends, ids, served } = await watched({});

    await list.readToTail();

    const whole = appends.filter(({ pages }) => pages.length > 0);
    expect(whole.map(({ pages }) => pages.length)).toEqual([6]);
    expect(whole[0]?.identities).toHaveLength(60 * identityBytes);
    const trail = await list.spool.trail(list.stream.name);
    // The first page has none, and at the last one the list continues.
    expect(new Set(trail.map(({ cursor }) => cursor)).size).toBe(4);
    expect(trail).toEqual(whole[0]?.trail);
    expect(await ids()).toEqual(served());
  });

  test.each([
    ['512 KiB', undefined, groupBytes],
    ['the size that the spool wants', 300_000, 300_000],
  ])('are held once they have %s together', async (_, wanted, groupBytes) => {
    const { list, appends, ids, served } = await watched({
      events: 2_500,
      ...(wanted === undefined ? {} : { groupBytes: wanted }),
      settings: { page_limit: 100 },
    });

    await list.readToTail();

    const whole = appends.map(sizes).filter(({ length }) => length > 0);
    expect(whole.length).toBeGreaterThan(2);
    for (const pages of whole.slice(0, -1)) {
      expect(sum(pages)).toBeGreaterThanOrEqual(groupBytes);
      expect(sum(pages.slice(0, -1))).toBeLessThan(groupBytes);
    }
    expect(differences(await ids(), served())).toEqual(none);
  });

  test('wait no longer than 20 ms for a slow one, and the walk continues with it', async () => {
    const { wrap, open } = gate(3);
    const { list, clock, ids, served } = await watched({ wrap });

    const polling = list.poll();
    await expect.poll(() => clock.sleepers, { interval: 1 }).toBe(1);
    const early = await ids();
    const waitMs = await clock.advanceToNext();
    await expect.poll(ids, { interval: 1 }).toEqual(served().slice(0, 20));
    open();
    await polling;

    expect(early).toEqual([]);
    expect(waitMs).toBe(20);
    expect(await ids()).toEqual(served());
    expect(clock.sleepers).toBe(0);
  });

  test('wait longer while the next request waits for room in the spool', async () => {
    const { wrap, open } = gate(4);
    const room = Promise.withResolvers<void>();
    let rooms = 0;
    const { list, clock, appends, ids, served } = await watched({
      wrap,
      room: async () => {
        rooms += 1;
        if (rooms === 3) await room.promise;
      },
    });
    const settled = () => expect.poll(() => clock.sleepers, { interval: 1 }).toBe(1);

    const polling = list.poll();
    await settled();
    for (let steps = 0; steps < 3; steps += 1) {
      await clock.advanceToNext();
      await settled();
    }
    const held = await ids();
    room.resolve();
    await expect.poll(() => rooms, { interval: 1 }).toBe(4);
    await clock.advanceToNext();
    await expect.poll(ids, { interval: 1 }).toEqual(served().slice(0, 30));
    open();
    await polling;

    expect(held).toEqual([]);
    expect(appends[0]?.pages).toHaveLength(3);
    expect(await ids()).toEqual(served());
  });

  test('wait no longer than 200 ms for room in the spool', async () => {
    const room = Promise.withResolvers<void>();
    let rooms = 0;
    const { list, clock, ids, served } = await watched({
      room: async () => {
        rooms += 1;
        if (rooms === 3) await room.promise;
      },
    });

    const polling = list.poll();
    const waits: (number | null)[] = [];
    while ((await ids()).length === 0) {
      await expect.poll(() => clock.sleepers, { interval: 1 }).toBe(1);
      waits.push(await clock.advanceToNext());
      if (waits.length >= 10) await expect.poll(ids, { interval: 1 }).not.toEqual([]);
    }
    room.resolve();
    await polling;

    expect(waits).toEqual(Array(10).fill(20));
    expect(await ids()).toEqual(served());
  });

  test('are stored if the page after them is invalid', async () => {
    const { sandbox, list, ids, served } = await watched({});
    sandbox.control.setFaults({ rules: [{ path: AUDIT, after: 3, fault: 500 }] });

    const polled = await list.poll();

    expect(polled.outcome).toBe('retry');
    expect(await ids()).toEqual(served().slice(0, 30));
  });

  test('are read again where they could not be held, and nothing that follows them is held first', async () => {
    const full = new ExportError('disk_full', 'testing: no space', { next: 'nothing' });
    let refused = 0;
    const { list, appends, ids, served } = await watched(
      { events: 2_500, settings: { page_limit: 100 } },
      (made) => {
        if (made.length !== 1 || refused > 0) return;
        refused += 1;
        throw full;
      },
    );

    const polled = await list.poll();
    const held = await ids();
    list.restart();
    await list.readToTail();

    expect(polled).toEqual({ outcome: 'retry', cause: full, advanced: true });
    expect(held).toEqual(served().slice(0, held.length));
    expect(held).toHaveLength(100 * (appends[0]?.pages.length ?? 0));
    expect(await ids()).toEqual(served());
  });
});

test('with a log more pages share an append, also in the views of a spool', async () => {
  const dir = tempDir();
  new Rebuilding(dir).finish({ isCache: true });
  const log = { commit: async () => undefined, forgetBefore: () => undefined };
  const settings = { dir, sync: 'none', keepMs: 0, bytesMax: 2 ** 30, sinks: [], log } as const;
  const spool = await openSpool(settings);
  onTestFinished(() => spool.close());
  const { view } = backfillSpool({ spool, key: 'b', span: { fromMs: 0, toMs: 1 }, time: [] });

  const responses = { stream: {} as Stream, append: spool.append, rewinds: () => undefined };
  const feed = { withParents: (entry: Append) => entry };
  const own = new StreamSpool(responses, { spool, feed, sideOf: () => null });

  const sizes = [spool, own, view].map((one) => one.groupBytes);
  expect(sizes).toEqual(Array(3).fill(5 * groupBytes));
});

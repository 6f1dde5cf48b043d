// Lists whose upstream never ends them: after the last record it leads on with a new cursor for ever, to empty pages or
// to the last records again. This end is learned, and no gap in a list is mistaken for the end.

import { describe, expect, test } from 'vitest';
import type { Answer } from '../../src/contracts/answer.ts';
import type { Body } from '../../src/contracts/upstream.ts';
import type { PageQuery } from '../../src/list/page.ts';
import { answeredBy, answerWith, queryIn } from '../support/made-up-list.ts';
import { keepingLog } from '../tools/serving.ts';
import {
  aList,
  type ListChoices,
  type ListUnderTest,
  minuteMs,
  standingSandbox,
} from './reading.ts';

interface Row {
  readonly id?: string;
  readonly n: number;
}

const named = (n: number): Row => ({ id: `r${n}`, n });
const nameless = (n: number): Row => ({ n });

/** A server whose cursors are a position in the list and a number that no other cursor has. */
class Endless {
  readonly rows: Row[] = [];
  asked = 0;
  /** How many of the last rows come again behind the end. */
  readonly #again: number;
  readonly #newestFirst: boolean;
  readonly #row: (n: number) => Row;
  #nonce = 0;
  /** So many cursors of a position take turns. */
  readonly #turns: number;

  constructor({
    count = 25,
    again = 0,
    newestFirst = false,
    row = named,
    turns = Number.POSITIVE_INFINITY,
  } = {}) {
    this.#turns = turns;
    this.#again = again;
    this.#newestFirst = newestFirst;
    this.#row = row;
    this.grow(count);
  }

  grow(count: number): void {
    for (let n = 0; n < count; n += 1) this.rows.push(this.#row(this.rows.length));
  }

  page({ position, limit }: PageQuery): Answer<Body> {
    this.asked += 1;
    const cursor = position.by === 'cursor' ? position.cursor : null;
    const from = Number(cursor?.split('.')[0] ?? 0);
    const rows = this.#newestFirst ? this.rows.toReversed() : this.rows;
    const page = rows.slice(from, from + (limit ?? 100));
    const again = this.#again === 0 ? [] : rows.slice(-this.#again);
    this.#nonce = this.#nonce + 1 < this.#turns ? this.#nonce + 1 : 0;
    return pageOf(page.length === 0 ? again : page, `${from + page.length}.${this.#nonce}`);
  }
}

function pageOf(rows: readonly Row[], next: string | null): Answer<Body> {
  return answerWith(rows, { next_cursor: next });
}

const readingOf = (
  answer: (query: PageQuery) => Answer<Body>,
  rest: ListChoices = {},
): ListChoices => ({
  ...rest,
  wrap: (stream) =>
    answeredBy(stream, async (request, signal) => {
      signal.throwIfAborted();
      return answer(queryIn(request));
    }),
});

const numbersOf = async (list: ListUnderTest) =>
  (await list.records()).map(({ text }) => (JSON.parse(text) as Row).n).toSorted((a, b) => a - b);
const upTo = (count: number) => Array.from({ length: count }, (_, n) => n);

describe('a list that never ends', () => {
  const servers = [
    { what: 'two records again', again: 2 },
    { what: 'one record again', again: 1 },
    { what: 'a full page again', again: 10 },
    { what: 'a small list again', count: 2, again: 2 },
    { what: 'empty pages', again: 0 },
    { what: 'empty pages, with nothing in it', count: 0, again: 0 },
    { what: 'empty pages whose two cursors take turns', turns: 2 },
    {
      what: 'empty pages whose three cursors take turns, newest first',
      newestFirst: true,
      turns: 3,
    },
    { what: 'empty pages, newest first', newestFirst: true },
    { what: 'two records again, newest first', newestFirst: true, again: 2 },
    { what: 'records without ids again', again: 3, row: nameless, settings: { id: null } },
  ];
  test.for(servers)(
    'A04 A05: costs two requests a poll and hides nothing new: $what',
    async ({ what: _, settings = {}, ...kind }) => {
      const world = await standingSandbox();
      const server = new Endless(kind);
      const list = await aList(
        world,
        readingOf((query) => server.page(query), { settings }),
      );
      const poll = async () => {
        await world.clock.advance(minuteMs / 4);
        const before = server.asked;
        const polled = await list.poll();
        return { polled, asked: server.asked - before };
      };
      await list.readToTail();

      const idle = [await poll(), await poll()];
      list.restart();
      idle.push(await poll());
      for (const count of [3, 1]) {
        server.grow(count);
        await poll();
        await poll();
        expect(await numbersOf(list)).toEqual(upTo(server.rows.length));
      }

      const done = { outcome: 'done', fresh: 0, more: false };
      expect(idle.map(({ polled }) => polled)).toEqual([done, done, done]);
      expect(Math.max(...idle.map(({ asked }) => asked))).toBeLessThanOrEqual(2);
      expect(await list.conditions()).toEqual([]);
    },
  );
});

describe('empty pages before a record', () => {
  /** Empty pages before each row, whose cursors are the same at each request. */
  const gaps = (empty: number, rows: readonly Row[]) => {
    const cursors: string[] = [];
    const answer = ({ position }: PageQuery): Answer<Body> => {
      const at = position.by === 'cursor' ? Number(position.cursor ?? 0) : 0;
      cursors.push(String(at));
      const row = at % (empty + 1) === empty ? rows[Math.floor(at / (empty + 1))] : undefined;
      const isEnd = at + 1 >= rows.length * (empty + 1);
      return pageOf(row === undefined ? [] : [row], isEnd ? null : String(at + 1));
    };
    return { cursors, answer };
  };

  test('A05: are followed however many they are, and committed, also by a first walk that is stopped', async () => {
    const world = await standingSandbox();
    const { cursors, answer } = gaps(150, upTo(3).map(named));
    const stop = new AbortController();
    const list = await aList(
      world,
      readingOf((query) => {
        if (cursors.length === 60) stop.abort(new Error('stopping'));
        return answer(query);
      }),
    );

    await expect(list.poll(stop.signal)).rejects.toThrow('stopping');
    list.restart();
    const before = cursors.length;
    await list.readToTail();

    expect(await numbersOf(list)).toEqual(upTo(3));
    expect(Number(cursors[before])).toBeGreaterThan(55);
  });

  test('A05: do not hide records after the only page that a list had', async () => {
    const world = await standingSandbox();
    let rows: readonly Row[] | null = null;
    const { answer } = gaps(250, [named(0)]);
    const list = await aList(
      world,
      readingOf((query) => (rows === null ? pageOf([], null) : answer(query))),
    );
    await list.readToTail();

    rows = [named(0)];
    await list.readToTail();

    expect(await numbersOf(list)).toEqual([0]);
  });

  test('A05: more of them than are followed are named, and crossed a page at each poll', async () => {
    const world = await standingSandbox();
    const { cursors, answer } = gaps(310, [named(0)]);
    const log = keepingLog();
    const list = await aList(world, readingOf(answer, { log }));
    await list.readToTail();
    const early = await numbersOf(list);

    const before = cursors.length;
    let polls = 0;
    for (; polls < 20 && (await numbersOf(list)).length === 0; polls += 1) {
      await world.clock.advance(minuteMs);
      await list.poll();
    }

    expect(early).toEqual([]);
    expect(await numbersOf(list)).toEqual([0]);
    expect(cursors.length - before).toBeLessThanOrEqual(2 * polls);
    expect(log.lines.filter(({ event }) => event === 'empty_pages_ended')).toHaveLength(1);
  });
});

describe('a last second of several pages that repeats under new cursors', () => {
  interface Timed extends Row {
    readonly time: string;
  }
  const at = (n: number, second: number): Timed => ({
    ...named(n),
    time: new Date(1_700_000_000_000 + second * 1_000).toISOString(),
  });

  /** A cursor is a second, how many of its rows and later ones were shown, and a number that no other has. */
  const server = (rows: Timed[]) => {
    let nonce = 0;
    return ({ position, limit }: PageQuery): Answer<Body> => {
      const cursor = position.by === 'cursor' ? position.cursor : null;
      const [since = '', skip = '0'] = cursor?.split('+') ?? [];
      const left = rows.filter(({ time }) => time >= since);
      const page = left.slice(Number(skip), Number(skip) + (limit ?? 10));
      const isThrough = Number(skip) + page.length >= left.length;
      const shown = isThrough ? 0 : Number(skip) + page.length;
      const from = isThrough ? rows.at(-1)?.time : since;
      nonce += 1;
      return pageOf(page, `${from}+${shown}+${nonce}`);
    };
  };

  test('A04: is no cursor loop, and hides nothing that comes then', async () => {
    const world = await standingSandbox();
    const rows = upTo(40).map((n) => at(n, Math.min(n, 25)));
    const list = await aList(world, readingOf(server(rows)));
    const poll = async () => {
      await world.clock.advance(minuteMs);
      return await list.poll();
    };

    const polled = [await poll(), await poll()];
    for (const second of [25, 25, 26, 27]) {
      for (let n = 0; n < 7; n += 1) rows.push(at(rows.length, second));
      polled.push(await poll(), await poll());
      expect(await numbersOf(list)).toEqual(upTo(rows.length));
    }

    expect(polled.map(({ outcome }) => outcome)).toEqual(Array(10).fill('done'));
    expect(await list.conditions()).toEqual([]);
  });
});

// `npx node bench/requests.ts [--records N] [--page N] [--every-s N]`: how many requests a poll of a list makes, in each
// style and order, by a clock that stands still: a poll without new records, one with the search for late records, one
// with a full scan, and the average of a day with a new record each ten minutes. The list is in memory and perfect.

import { parseArgs } from 'node:util';
import { z } from 'zod';
import { logsSource } from '../connectors/sources/logs.ts';
import type { Upstream, UpstreamRequest } from '../src/contracts/upstream.ts';
import { openSpool } from '../src/hold/spool.ts';
import { ListPoller } from '../src/list/poller.ts';
import { ListReader } from '../src/list/reader.ts';
import { manualClock } from '../test/support/manual-clock.ts';
import { silent } from '../test/support/silent-log.ts';
import { inDirectory } from './program.ts';

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
const growEveryMs = 10 * minuteMs;
const never = new AbortController().signal;

interface Kind {
  readonly style: 'cursor' | 'offset';
  readonly order: 'oldest_first' | 'newest_first';
}

/** A list in memory; `cursor`: the id of the page's first record, so that a newest page does not move. */
class List {
  requests = 0;
  readonly #kind: Kind;
  readonly #ids: number[] = [];
  readonly #now: () => number;
  readonly #times = new Map<number, string>();

  constructor(kind: Kind, now: () => number) {
    this.#kind = kind;
    this.#now = now;
  }

  grow(count: number, ageMs = 0): void {
    for (let i = count; i > 0; i -= 1) {
      const id = this.#times.size + 1;
      this.#times.set(id, new Date(this.#now() - ageMs * i).toISOString());
      if (this.#kind.order === 'oldest_first') this.#ids.push(id);
      else this.#ids.unshift(id);
    }
  }

  get upstream(): Upstream {
    return {
      ...{ name: 'bench', api: 'services', baseUrl: 'http://127.0.0.1', companies: [] },
      get: async (request) => {
        this.requests += 1;
        const body = Buffer.from(JSON.stringify(this.#page(request)));
        return { outcome: 'ok', url: request.path, body, headers: {} };
      },
    };
  }

  #page({ query }: UpstreamRequest) {
    const asked = new Map(query);
    const limit = Number(asked.get('limit'));
    const cursor = asked.get('cursor');
    const found = cursor === undefined ? 0 : this.#ids.indexOf(Number(cursor));
    const from = this.#kind.style === 'offset' ? Number(asked.get('offset') ?? 0) : found;
    const ids = this.#ids.slice(from, from + limit);
    const data = ids.map((id) => ({ id: `r-${id}`, timestamp: this.#times.get(id) }));
    const next = this.#ids[from + limit];
    return this.#kind.style === 'offset'
      ? { data, limit, offset: from, total: this.#ids.length }
      : { data, next_cursor: next === undefined ? null : `${next}` };
  }
}

/** Requests of polls of one kind of list. */
async function requestsOf(kind: Kind, size: { records: number; page: number; everyMs: number }) {
  return inDirectory(async (dir) => {
    const clock = manualClock();
    const list = new List(kind, clock.now);
    const parsed = z.strictObject(logsSource.fields).parse({
      ...{ path: '/events', page_limit: size.page, pagination: { style: kind.style } },
    });
    const settings = { ...parsed, type: 'logs', upstream: 'bench' };
    const { upstream } = list;
    const [stream] = logsSource.streams(settings, { name: 'bench', upstream });
    const reading = logsSource.list?.(settings);
    if (stream?.kind !== 'list' || reading === undefined) throw new Error('logs is no list');
    const spool = await openSpool({
      ...{ dir, sync: 'normal', keepMs: 0, bytesMax: 2 ** 30, sinks: [] },
      reserveBytesMax: 2 ** 20,
    });
    const { order, start, rewindEveryMs: patienceMs, lookbackMs } = reading;
    const deps = { stream, spool, clock, log: silent, order, start, patienceMs, lookbackMs };
    const poller = new ListPoller(new ListReader(deps), reading);
    const poll = async (waitMs: number) => {
      await clock.advance(waitMs);
      const before = list.requests;
      const result = await poller.poll(never);
      if (result.outcome !== 'done') throw result.cause;
      return list.requests - before;
    };
    list.grow(size.records, minuteMs);
    const first = await poll(0);
    for (let i = 0; i < 2; i += 1) {
      list.grow(3);
      await poll(minuteMs);
    }
    const idle = await poll(minuteMs);
    await poll(hourMs);
    const late = await poll(15 * minuteMs);
    const whole = await poll(24 * hourMs);
    const before = list.requests;
    let polls = 0;
    for (let at = size.everyMs; at <= 24 * hourMs; at += size.everyMs) {
      if (at % growEveryMs === 0) list.grow(1);
      await poll(size.everyMs);
      polls += 1;
    }
    await spool.close();
    return {
      list: `${kind.style}, ${kind.order}`,
      'first poll': first,
      'no new record': idle,
      'search for late records': late,
      'full scan': whole,
      'average of a day': Number(((list.requests - before) / polls).toFixed(2)),
    };
  });
}

const { values } = parseArgs({
  options: {
    records: { type: 'string', default: '60' },
    page: { type: 'string', default: '10' },
    'every-s': { type: 'string', default: '60' },
  },
});
const rows = [];
for (const style of ['cursor', 'offset'] as const) {
  for (const order of ['oldest_first', 'newest_first'] as const) {
    const size = { records: Number(values.records), page: Number(values.page) };
    const everyMs = Number(values['every-s']) * 1_000;
    rows.push(await requestsOf({ style, order }, { ...size, everyMs }));
  }
}
console.table(rows);

// The sandbox's lists: that a walk meets each record once whatever the style and order, and that
// each awkward behaviour is really there, since the client's tests rely on it.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { AUDIT, ask, LOGS, page, scan, stillSandbox, tokenFor, WEB, walk } from './client.ts';

describe('cursor lists', () => {
  it('a walk meets each record once, in any order, page size and tail', async () => {
    await using sandbox = await stillSandbox();
    const shape = fc.record({
      order: fc.constantFrom('oldest_first' as const, 'newest_first' as const, 'mixed' as const),
      tail: fc.constantFrom('null' as const, 'same' as const, 'missing' as const),
      limit: fc.integer({ min: 1, max: 60 }),
      empty_every: fc.option(fc.integer({ min: 2, max: 4 }), { nil: undefined }),
      path: fc.constantFrom(AUDIT, LOGS),
    });

    await fc.assert(
      fc.asyncProperty(shape, async ({ order, tail, limit, empty_every: every, path }) => {
        const empty = every === undefined ? {} : { empty_every: every };
        sandbox.control.setFaults({ lists: [{ path, order, tail, ...empty }] });

        const { ids } = await walk(sandbox, path, limit);

        expect(ids.toSorted()).toEqual([...sandbox.ledger().list(path).ids()]);
      }),
      { numRuns: 30 },
    );
  });

  it('serves the bytes that the ledger holds', async () => {
    await using sandbox = await stillSandbox({ events: 300 });

    const { text } = await ask(sandbox, `${AUDIT}?limit=300`);

    const records = [...sandbox.ledger().list(AUDIT).records()].map((record) => record.text);
    expect(text).toBe(`{"data":[${records.join(',')}],"next_cursor":null}`);
  });

  it('oldest_first: a record that arrives during a walk comes at its end, through a kept cursor too', async () => {
    await using sandbox = await stillSandbox();

    const first = await walk(sandbox, AUDIT, 10, (n) => {
      if (n === 2) sandbox.control.grow(AUDIT, 7);
    });
    sandbox.control.grow(AUDIT, 3);
    const after = await page(sandbox, `${AUDIT}?limit=10&cursor=${first.lastCursor}`);

    expect(first.ids).toHaveLength(47);
    expect(after.data.map((record) => record.id)).toEqual(
      [...sandbox.ledger().list(AUDIT).ids()].slice(40),
    );
  });

  it('newest_first: a record that arrives during a walk is on the first page only', async () => {
    await using sandbox = await stillSandbox();
    sandbox.control.setFaults({ lists: [{ path: AUDIT, order: 'newest_first' }] });

    const { ids } = await walk(sandbox, AUDIT, 10, (n) => {
      if (n === 2) sandbox.control.grow(AUDIT, 7);
    });
    const top = await page(sandbox, `${AUDIT}?limit=1`);

    expect(ids).toHaveLength(40);
    expect(ids[0]).toBe('evt_000000039');
    expect(top.data[0]?.id).toBe('evt_000000046');
  });

  it('mixed: new records come at both ends', async () => {
    await using sandbox = await stillSandbox();
    sandbox.control.setFaults({ lists: [{ path: AUDIT, order: 'mixed' }] });
    sandbox.control.grow(AUDIT, 2);

    const { ids } = await walk(sandbox, AUDIT, 10);

    expect(ids.at(0)).toBe('evt_000000041');
    expect(ids.at(-1)).toBe('evt_000000040');
  });

  it('tail same: the last cursor repeats itself and later shows new records', async () => {
    await using sandbox = await stillSandbox();
    sandbox.control.setFaults({ lists: [{ path: AUDIT, tail: 'same' }] });
    const { lastCursor } = await walk(sandbox, AUDIT, 40);

    const idle = await page(sandbox, `${AUDIT}?cursor=${lastCursor}`);
    sandbox.control.grow(AUDIT, 2);
    const grown = await page(sandbox, `${AUDIT}?cursor=${lastCursor}`);

    expect(idle).toEqual({ data: [], next_cursor: lastCursor });
    expect(grown.data.map((record) => record.id)).toEqual(['evt_000000040', 'evt_000000041']);
  });

  it('tail missing: the last page has no next_cursor', async () => {
    await using sandbox = await stillSandbox();
    sandbox.control.setFaults({ lists: [{ path: AUDIT, tail: 'missing' }] });

    const only = await page(sandbox, `${AUDIT}?limit=100`);

    expect(Object.keys(only)).toEqual(['data']);
  });

  it('frozen_tail: a kept cursor never shows records from after its walk began', async () => {
    await using sandbox = await stillSandbox();
    sandbox.control.setFaults({ lists: [{ path: AUDIT, frozen_tail: true }] });
    const { lastCursor } = await walk(sandbox, AUDIT, 10);
    sandbox.control.grow(AUDIT, 5);

    const kept = await page(sandbox, `${AUDIT}?limit=10&cursor=${lastCursor}`);
    const again = await walk(sandbox, AUDIT, 10);

    expect(kept.data).toHaveLength(10);
    expect(kept.next_cursor).toBeNull();
    expect(again.ids).toHaveLength(45);
  });

  it('late: an event turns up behind the tail once newer ones exist', async () => {
    await using sandbox = await stillSandbox();
    const late = { every: 20, positions: 5 };
    sandbox.control.setFaults({ lists: [{ path: AUDIT, late }] });

    const before = await walk(sandbox, AUDIT, 10);
    const unseen = [...sandbox.ledger().list(AUDIT).ids()];
    sandbox.control.grow(AUDIT, 6);
    const after = await walk(sandbox, AUDIT, 10);

    expect(before.ids).not.toContain('evt_000000039');
    expect(unseen).not.toContain('evt_000000039');
    expect(after.ids.indexOf('evt_000000039')).toBe(39);
  });

  it('late by seconds: an event turns up when its time has passed', async () => {
    let nowMs = Date.UTC(2026, 5, 1);
    await using sandbox = await stillSandbox({ now: () => nowMs, rate: 1 });
    sandbox.control.setFaults({ lists: [{ path: AUDIT, late: { every: 50, seconds: 30 } }] });

    nowMs += 20_000;
    const before = await walk(sandbox, AUDIT, 100);
    nowMs += 21_000;
    const after = await walk(sandbox, AUDIT, 100);

    expect(before.ids).toHaveLength(59);
    expect(before.ids).not.toContain('evt_000000049');
    expect(after.ids).toHaveLength(81);
    expect(after.ids).toContain('evt_000000049');
  });

  it('repeat_last: a page begins with the end of the one before', async () => {
    await using sandbox = await stillSandbox();
    sandbox.control.setFaults({ lists: [{ path: AUDIT, repeat_last: 3 }] });

    const { ids } = await walk(sandbox, AUDIT, 10);

    expect(ids.slice(10, 13)).toEqual(ids.slice(7, 10));
    expect(new Set(ids)).toHaveProperty('size', 40);
  });

  it('twins_every: two records are equal to the byte and have no id', async () => {
    await using sandbox = await stillSandbox();
    sandbox.control.setFaults({ lists: [{ path: AUDIT, twins_every: 10 }] });

    const { data } = await page(sandbox, `${AUDIT}?limit=40`);

    expect(data).toHaveLength(40);
    expect(data[10]).toEqual(data[9]);
    expect(data[10]).not.toHaveProperty('id');
    expect(data[11]).toHaveProperty('id');
  });

  it('ids integer: ids are beyond the range of a JavaScript number', async () => {
    await using sandbox = await stillSandbox();
    sandbox.control.setFaults({ lists: [{ path: AUDIT, ids: 'integer' }] });

    const { text } = await ask(sandbox, `${AUDIT}?limit=2`);

    expect(text).toContain('{"id":9007199254740993001,');
    expect(sandbox.ledger().list(AUDIT).textOf('9007199254740993001')).toContain('timestamp');
  });

  it('blocked_index: a page that holds the record answers 451, others do not', async () => {
    await using sandbox = await stillSandbox();
    sandbox.control.setFaults({ lists: [{ path: AUDIT, blocked_index: 5 }] });

    const statuses = [
      await ask(sandbox, `${AUDIT}?limit=5`),
      await ask(sandbox, `${AUDIT}?limit=6`),
    ];

    expect(statuses.map((reply) => reply.status)).toEqual([200, 451]);
  });

  it('refuses a cursor that was altered, made up, or is from another list', async () => {
    await using sandbox = await stillSandbox();
    const { next_cursor: good = '' } = await page(sandbox, `${AUDIT}?limit=5`);
    const { next_cursor: other } = await page(sandbox, `${LOGS}?limit=5`);
    const altered = `${good?.slice(0, 4)}x${good?.slice(5)}`;

    const replies = await Promise.all(
      [altered, 'abc', '', other].map((cursor) => ask(sandbox, `${AUDIT}?cursor=${cursor}`)),
    );
    const services = await ask(sandbox, `${LOGS}?cursor=abc`);

    for (const reply of replies) {
      expect(reply.status).toBe(422);
      expect(JSON.parse(reply.text).error).toMatchObject({
        code: 'validation_failed',
        field: 'cursor',
      });
    }
    expect(services.status).toBe(400);
    expect(services.headers.get('content-type')).toBe('application/problem+json');
  });

  it('cursor_lifetime_s and bad_cursor: an old cursor is refused as the script says', async () => {
    let nowMs = Date.UTC(2026, 5, 1);
    await using sandbox = await stillSandbox({ now: () => nowMs });
    const list = { path: AUDIT, cursor_lifetime_s: 60 };
    const { next_cursor: cursor } = await page(sandbox, `${AUDIT}?limit=5`);

    sandbox.control.setFaults({ lists: [{ ...list, bad_cursor: 410 }] });
    const fresh = await ask(sandbox, `${AUDIT}?limit=5&cursor=${cursor}`);
    nowMs += 61_000;
    const expired = await ask(sandbox, `${AUDIT}?limit=5&cursor=${cursor}`);
    sandbox.control.setFaults({ lists: [{ ...list, bad_cursor: 'ignored' }] });
    const ignored = await page(sandbox, `${AUDIT}?limit=5&cursor=${cursor}`);

    expect([fresh.status, expired.status]).toEqual([200, 410]);
    expect(ignored.data[0]?.id).toBe('evt_000000000');
  });

  it('cursors and records outlive a restart with the same seed and epoch', async () => {
    const epochMs = Date.UTC(2026, 5, 1);
    const options = { seed: 7, epochMs, rate: 10, now: () => epochMs + 5_000 };
    const before = await stillSandbox(options);
    const { next_cursor: cursor } = await page(before, `${AUDIT}?limit=50`);
    const texts = [...before.ledger().list(AUDIT).records()];
    await before.close();

    await using after = await stillSandbox({ ...options, now: () => epochMs + 9_000 });
    const rest = await page(after, `${AUDIT}?limit=1000&cursor=${cursor}`);

    expect(rest.data).toHaveLength(80);
    expect([...after.ledger().list(AUDIT).records()].slice(0, 90)).toEqual(texts);
  });
});

describe('limit', () => {
  it('defaults to 100, is clamped to the maximum, and must be a positive number', async () => {
    await using sandbox = await stillSandbox({ events: 300, pageMax: 200 });

    const byDefault = await page(sandbox, AUDIT);
    const clamped = await page(sandbox, `${AUDIT}?limit=5000`);
    const wrong = await Promise.all(
      ['0', '-1', 'abc', ''].map((n) => ask(sandbox, `${AUDIT}?limit=${n}`)),
    );

    expect([byDefault.data.length, clamped.data.length]).toEqual([100, 200]);
    for (const reply of wrong) expect(JSON.parse(reply.text).error.field).toBe('limit');
  });

  it('limit_over refuse: a limit above the maximum is refused with the field', async () => {
    await using sandbox = await stillSandbox();
    sandbox.control.setFaults({ lists: [{ path: '**', limit_max: 25, limit_over: 'refuse' }] });

    const [unified, services] = [
      await ask(sandbox, `${AUDIT}?limit=26`),
      await ask(sandbox, `${WEB}?limit=26`),
    ];

    expect([unified.status, services.status]).toEqual([422, 400]);
  });
});

describe('offset lists', () => {
  it.each(['&order=ASC', '&order=DESC', '&order_by=timestamp&order=DESC'])(
    'a scan with "%s" meets each record once',
    async (query) => {
      await using sandbox = await stillSandbox();

      const ids = await scan(sandbox, WEB, 7, query);

      expect(ids.toSorted()).toEqual([...sandbox.ledger().list(WEB).ids()]);
      expect(ids[0]).toBe(query.includes('DESC') ? 'web_000000039' : 'web_000000000');
    },
  );

  it('echoes limit and offset and counts all records, late ones left out', async () => {
    await using sandbox = await stillSandbox();
    sandbox.control.setFaults({ lists: [{ path: WEB, late: { every: 40, positions: 5 } }] });

    const reply = await page(sandbox, `${WEB}?limit=10&offset=35`);

    expect(reply).toMatchObject({ limit: 10, offset: 35, total: 39 });
    expect(reply.data).toHaveLength(4);
  });

  it('trim and retain: the remaining records move to lower offsets', async () => {
    await using sandbox = await stillSandbox();

    sandbox.control.trim(WEB, 30);
    const trimmed = await page(sandbox, `${WEB}?limit=1`);
    sandbox.control.setFaults({ lists: [{ path: WEB, retain: 20 }] });
    const retained = await page(sandbox, `${WEB}?limit=1&offset=1`);

    expect([trimmed.data[0]?.id, trimmed.total]).toEqual(['web_000000010', 30]);
    expect([retained.data[0]?.id, retained.total]).toEqual(['web_000000021', 20]);
  });

  it('DESC: a new record shifts all offsets', async () => {
    await using sandbox = await stillSandbox();
    const token = await tokenFor(sandbox, WEB);

    const before = await page(sandbox, `${WEB}?order=DESC&limit=2`, token);
    sandbox.control.grow(WEB, 2);
    const after = await page(sandbox, `${WEB}?order=DESC&limit=2&offset=2`, token);

    expect(after.data).toEqual(before.data);
  });

  it('offset_max, a wrong offset, order or order_by are refused', async () => {
    await using sandbox = await stillSandbox();
    sandbox.control.setFaults({ lists: [{ path: WEB, offset_max: 20 }] });

    const queries = ['offset=21', 'offset=-1', 'order=UP', 'order_by=id'];
    const replies = await Promise.all(queries.map((query) => ask(sandbox, `${WEB}?${query}`)));

    expect(replies.map((reply) => reply.status)).toEqual([400, 400, 400, 400]);
    expect((await ask(sandbox, `${WEB}?offset=20`)).status).toBe(200);
  });

  it('the unpaginated list has every record at once', async () => {
    await using sandbox = await stillSandbox({ logs: 1_000 });

    const { data } = await page(sandbox, '/api/logs/v1/companies/c-1/all');

    expect(data.map((record) => record.id)).toEqual([
      ...sandbox.ledger().list('/api/logs/v1/companies/c-1/all').ids(),
    ]);
    expect(data).toHaveLength(20);
  });
});

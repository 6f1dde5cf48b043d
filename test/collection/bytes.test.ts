// Entities with bytes that are not UTF-8 (cases.md 13): a byte that becomes another one is a change, its event has the
// bytes and the marker, and a state of an older version, which has U+FFFD for them, makes no change by itself.

import { describe, expect, test } from 'vitest';
import type { CollectionReading } from '../../src/contracts/definition.ts';
import type { CollectionStream } from '../../src/contracts/source.ts';
import { compileNormaliser } from '../../src/normalise/normalise.ts';
import { PageDecoder } from '../../src/send/held-event.ts';
import { aCollection, aSpool, minuteMs, quickly } from '../list/reading.ts';
import { pagination } from '../support/made-up-list.ts';
import { manualClock } from '../support/manual-clock.ts';

/** Texts here are Latin-1: é is the one byte E9, and è is E8. */
type Bodies = Readonly<Record<string, string>>;
type Shape = Pick<CollectionStream, 'detail' | 'single'>;

const request = (path: string) => ({ path, template: path, query: [] });
const rules = { kind: 'rule', ids: ['id'], isList: (name: string) => name === 'rules' };

/** Each shape with the path of the text that changes. */
const shapes: Readonly<Record<string, { shape: Shape; bodies(name: string): Bodies }>> = {
  'a whole list': {
    shape: {},
    bodies: (name) => ({ '/': `{"data":[{"id":"t-1","name":"${name}","n":1.0},{"id":"t-2"}]}` }),
  },
  'entries without ids': {
    shape: {},
    bodies: (name) => ({ '/': `{"data":[{"name":"${name}","n":1.0},{"name":"caf\u00e9","n":2}]}` }),
  },
  'details by id': {
    shape: { detail: { request: (id) => request(`/${id}`) } },
    bodies: (name) => ({
      '/': '{"data":[{"id":"t-1"}]}',
      '/t-1': `{"id":"t-1","n":1.0,"name":"${name}"}`,
    }),
  },
  'details in an envelope': {
    shape: { detail: { request: (id) => request(`/${id}`) } },
    bodies: (name) => ({
      '/': '{"data":[{"id":"t-1"}]}',
      '/t-1': `{"data":{"id":"t-1","n":1.0,"name":"${name}"}}`,
    }),
  },
  'what only the list shows': {
    shape: { detail: { request: (id) => request(`/${id}`) } },
    bodies: (name) => ({
      '/': `{"data":[{"id":"t-1","n":1.0,"name":"${name}"}]}`,
      '/t-1': '{"id":"t-1"}',
    }),
  },
  'one object': {
    shape: { single: true },
    bodies: (name) => ({ '/': `{"id":"things","n":1.0,"name":"${name}"}` }),
  },
  'one object in an envelope, deep within': {
    shape: { single: true },
    bodies: (name) => ({ '/': `{"data":{"id":"things","n":1.0,"in":[{"name":"${name}"}]}}` }),
  },
  'the name of a member': {
    shape: { single: true },
    bodies: (name) => ({ '/': `{"id":"things","n":1.0,"${name}":true}` }),
  },
  'rules of a policy': {
    shape: { detail: { request: (id) => request(`/${id}`), parts: rules } },
    bodies: (name) => ({
      '/': '{"data":[{"id":"p-1"}]}',
      '/p-1': `{"id":"p-1","rules":[{"id":"r-1","n":1.0,"name":"${name}"}]}`,
    }),
  },
  'rules without ids': {
    shape: { detail: { request: (id) => request(`/${id}`), parts: rules } },
    bodies: (name) => ({
      '/': '{"data":[{"id":"p-1"}]}',
      '/p-1': `{"id":"p-1","rules":[{"n":1.0,"name":"${name}"},{"n":2,"name":"caf\u00e9"}]}`,
    }),
  },
};

async function watched(shape: Shape, reading: CollectionReading = quickly) {
  const clock = manualClock();
  const spool = await aSpool();
  let bodies: Bodies = {};
  const get = async ({ path }: { readonly path: string }) => ({
    ...{ outcome: 'ok' as const, url: 'http://upstream/', headers: {} },
    body: Buffer.from(bodies[path] ?? '', 'latin1'),
  });
  const stream: CollectionStream = {
    kind: 'collection',
    ...{ name: 'src', source: 'src', paths: [], fingerprint: 'made up', resource: 'things' },
    entity: { kind: 'thing', ids: ['id'] },
    list: {
      ...{ name: 'src', request: request('/'), sorting: [], id: 'id', upstream: { get } },
      ...{ pageLimit: null, pagination: { ...pagination, style: 'shown' } },
    },
    ...shape,
  };
  const collection = await aCollection(clock, stream, { reading, spool });
  const normalise = compileNormaliser('drift', { time: [], id: 'id' });
  let seen = 0;
  return {
    spool,
    restart: () => collection.restart(),
    /** Reads once; the bytes and tags of each change. */
    async read(served: Bodies) {
      bodies = served;
      await clock.advance(minuteMs);
      const result = await collection.poll();
      expect(result).toMatchObject({ outcome: 'done' });
      const events = [];
      for (const page of await spool.read(seen, 1 << 20)) {
        seen = page.first + page.count;
        if (page.context.kind !== 'drift') continue;
        const decoded = new PageDecoder(() => normalise).decode(page);
        for (const { raw, ocsf } of decoded.events) {
          const tags = JSON.stringify(ocsf.metadata.tags ?? []);
          events.push({
            bytes: Buffer.from(raw).toString('latin1'),
            what: /"change":"(\w+)"/.exec(Buffer.from(raw).toString())?.[1],
            isMarked: tags.includes('invalid_utf8'),
          });
        }
      }
      return events.filter(({ what }) => what !== 'baseline');
    },
  };
}

describe.for(Object.entries(shapes))('%s', ([name, { shape, bodies }]) => {
  test('E9 to E8 is one update, with both bytes and the marker; over restarts', async () => {
    const { read, restart } = await watched(shape);
    const first = [await read(bodies('caf\u00e9')), await read(bodies('caf\u00e9'))];
    restart();

    const same = await read(bodies('caf\u00e9'));
    const changed = await read(bodies('caf\u00e8'));
    restart();
    const after = await read(bodies('caf\u00e8'));

    expect([...first, same, after].flat()).toEqual([]);
    expect(changed).toMatchObject([{ what: 'updated', isMarked: true }]);
    const [, before, now] = (changed[0]?.bytes ?? '').split(/"(?:before|after)":/);
    expect(before).toContain('caf\u00e9');
    expect(before).not.toContain('caf\u00e8');
    expect(now).toContain('caf\u00e8');
    expect(changed[0]?.bytes).toContain('1.0');
  });

  test('a state of an older version makes no change, and the first one after it is seen', async () => {
    const { read, restart, spool } = await watched(shape);
    await read(bodies('caf\u00e9'));
    await toOldText(spool);
    restart();

    const quiet = [...(await read(bodies('caf\u00e9'))), ...(await read(bodies('caf\u00e9')))];
    const changed = await read(bodies('caf\u00e8'));

    expect(quiet).toEqual([]);
    expect(changed).toMatchObject([{ what: 'updated', isMarked: true }]);
  });

  // Without an id, an entry with another text is another entry (match.ts).
  const isNamed = name !== 'entries without ids';
  test.runIf(isNamed)('UTF-8 that becomes another byte, and back, is marked', async () => {
    const { read } = await watched(shape);
    await read(bodies('cafe'));

    const changed = await read(bodies('caf\u00e8'));
    const back = await read(bodies('cafe'));

    expect(changed).toMatchObject([{ what: 'updated', isMarked: true }]);
    expect(back).toMatchObject([{ what: 'updated', isMarked: true }]);
  });
});

test('a text of an older version that differs as well is one update, and keeps the other bytes', async () => {
  const { read, restart, spool } = await watched({ single: true });
  const of = (name: string, action: string) => ({
    '/': `{"id":"things","name":"${name}","action":"${action}"}`,
  });
  await read(of('caf\u00e9', 'DENY'));
  await toOldText(spool);
  restart();

  const changed = await read(of('caf\u00e9', 'ACCEPT'));
  const other = await read(of('caf\u00e8', 'ACCEPT'));

  expect(changed).toMatchObject([{ what: 'updated' }]);
  expect(changed[0]?.bytes).toContain('"changed":["action"]');
  expect(other[0]?.bytes).toContain('"changed":["name"]');
});

test('a new and a removed entity have their bytes', async () => {
  const { read } = await watched({}, { ...quickly, brake: { share: 1, count: 10 } });
  await read({ '/': '{"data":[{"id":"t-1"}]}' });

  const created = await read({ '/': '{"data":[{"id":"t-1"},{"id":"t-2","name":"caf\u00e9"}]}' });
  const gone = [];
  for (let n = 0; n < 3; n += 1) gone.push(...(await read({ '/': '{"data":[{"id":"t-1"}]}' })));

  for (const events of [created, gone]) {
    expect(events).toMatchObject([{ isMarked: true }]);
    expect(events[0]?.bytes).toContain('"name":"caf\u00e9"');
  }
});

test('U+FFFD that upstream sent is no byte of an older version', async () => {
  const { read, restart } = await watched({ single: true });
  const utf8 = (name: string) => Buffer.from(`{"id":"things","name":"${name}"}`).toString('latin1');
  await read({ '/': utf8('caf\ufffd') });
  restart();

  const changed = await read({ '/': '{"id":"things","name":"caf\u00e9"}' });

  expect(changed).toMatchObject([{ what: 'updated', isMarked: true }]);
});

/** Writes the entities as versions before 0.3 did. */
async function toOldText(spool: Awaited<ReturnType<typeof aSpool>>): Promise<void> {
  const rows = await spool.entities('src', { after: '', max: 100 });
  const put = Array.from(rows, ([key, body]) => {
    const { lossless: _, text, ...state } = JSON.parse(body);
    const old = text.replace(/[\udc80-\udcff]/gu, '\ufffd');
    return [key, JSON.stringify({ ...state, text: old })] as const;
  });
  await spool.append({ stream: 'src', pages: [], entities: { put, drop: [] } });
}

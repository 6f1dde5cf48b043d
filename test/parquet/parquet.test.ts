// Parquet by the events that go in: each comes back with every value, through sluice's own reading and through DuckDB's.

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { parquetMetadata } from 'hyparquet';
import { describe, expect, test } from 'vitest';
import { recordsOf } from '../../bench/work.ts';
import type { OcsfEvent } from '../../src/contracts/event.ts';
import type { JsonObject } from '../../src/contracts/json.ts';
import { compileNormaliser } from '../../src/normalise/normalise.ts';
import { classNames, namedClass } from '../../src/normalise/schema.ts';
import { bufferOf, type RowFilter, readParquet, readUids } from '../../src/parquet/read.ts';
import { Rows } from '../../src/parquet/rows.ts';
import { type ParquetGroup, tableOf } from '../../src/parquet/schema.ts';
import { writeParquet } from '../../src/parquet/write.ts';
import { anEvent } from '../support/an-event.ts';
import { anyText } from '../support/any-text.ts';
import { sampleMappings } from '../support/sample-mappings.ts';
import { describeWithShared } from '../support/shared.ts';
import { tempDir } from '../support/temp.ts';
import { differences } from './compare.ts';
import { duckdb } from './duckdb.ts';
import { objectBytes } from './object-bytes.ts';

const duck = await duckdb();
if (typeof duck === 'string') console.log(`skipped: ${duck}`);
const ask = typeof duck === 'string' ? null : duck;

const plain = (event: OcsfEvent) => JSON.parse(JSON.stringify(event)) as JsonObject;
const byTime = (events: readonly OcsfEvent[]) => events.toSorted((a, b) => a.time - b.time);

function parquetOf(
  events: readonly OcsfEvent[],
  classUid = events[0]?.class_uid ?? 0,
): Promise<Uint8Array> {
  const rows = new Rows(tableOf(classUid));
  for (const event of events) rows.add(event);
  return writeParquet(rows, { maker: 'a test' });
}

async function back(bytes: Uint8Array, requested?: RowFilter): Promise<readonly JsonObject[]> {
  return (await readParquet(objectBytes(bytes), requested)).map(plain);
}

/** What DuckDB shows of the object's rows, in their order. */
async function rowsByDuckdb(bytes: Uint8Array): Promise<readonly JsonObject[]> {
  const path = join(tempDir(), 'rows.parquet');
  writeFileSync(path, bytes);
  return (await ask?.(`select * from read_parquet('${path}') order by file_row_number`)) ?? [];
}

async function expectAllBack(events: readonly OcsfEvent[]): Promise<void> {
  const sorted = byTime(events).map(plain);
  const bytes = await parquetOf(events);

  expect(await back(bytes)).toEqual(sorted);
  if (ask === null) return;
  const rows = await rowsByDuckdb(bytes);
  expect(rows.length).toBe(sorted.length);
  expect(sorted.flatMap((event, at) => differences(event, rows[at] ?? {}))).toEqual([]);
}

const context = { source: 's', stream: 's/c-1', company: 'c-1', fetchedAt: 1_790_000_000_000 };
const uidOf = (at: number) => at.toString(16).padStart(64, '0');

/** Audit events as the platform sends them. */
function auditEvents(): readonly OcsfEvent[] {
  const normalise = compileNormaliser('audit', { time: ['timestamp'], id: 'id' });
  return recordsOf(0).map((record, at) =>
    normalise(JSON.parse(JSON.stringify(record)), uidOf(at), { ...context, kind: 'audit' }),
  );
}

describe('every value of an event comes back', () => {
  test('of audit events', async () => {
    for (const events of Map.groupBy(auditEvents(), (one) => one.class_uid).values()) {
      await expectAllBack(events);
    }
  });

  describeWithShared('of the sample records', ['data', 'samples'], (samples) => {
    test.each(Object.entries(sampleMappings))('%s', async (name, mapping) => {
      const lines = readFileSync(join(samples, `${name}.ndjson`), 'utf8')
        .trimEnd()
        .split('\n');
      const normalise = compileNormaliser('log', { time: ['timestamp', 'ts'], id: null, mapping });
      const events = lines.map((line, at) =>
        normalise(JSON.parse(line), uidOf(at), { ...context, kind: 'log' }),
      );

      expect(events.length).toBeGreaterThan(100);
      for (const group of Map.groupBy(events, (one) => one.class_uid).values()) {
        await expectAllBack(group);
      }
    });
  });

  describeWithShared(
    'of OCSF events that others wrote',
    ['data', 'ocsf', 'examples.ndjson'],
    (path) => {
      test('each of its class', async () => {
        const lines = readFileSync(path, 'utf8').trimEnd().split('\n');

        expect(lines.length).toBeGreaterThan(5);
        for (const line of lines) await expectAllBack([JSON.parse(line)]);
      });
    },
  );

  test('of any event, whatever stands where', async () => {
    const names = classNames.flatMap((name) => [...namedClass(name).attributes.keys()]);
    const name = fc.oneof(
      fc.constantFrom(...names, 'uid', 'name', 'product', 'user', 'ip', 'port', 'tags', 'type_id'),
      fc.constantFrom('__proto__', 'constructor', 'toString', 'ocsf_rest', 'unmapped', '0', ''),
      anyText(),
    );
    const value = fc.letrec((tie) => ({
      any: fc.oneof(
        { depthSize: 'small' },
        fc.jsonValue(),
        fc.constantFrom(
          '\ud800',
          'a\0b',
          'Zürich 李伟 🎉',
          2 ** 31,
          2 ** 53,
          -0.5,
          1e300,
          null,
          '',
        ),
        fc.array(tie('any'), { maxLength: 3 }),
        fc.dictionary(name, tie('any'), { maxKeys: 4 }),
      ),
    })).any;
    const event = fc.record({
      time: fc.oneof(fc.integer({ min: 0, max: 2 ** 45 }), value),
      attributes: fc.dictionary(name, value, { maxKeys: 8 }),
    });

    await fc.assert(
      fc.asyncProperty(fc.array(event, { minLength: 1, maxLength: 6 }), async (made) => {
        const events = made.map(({ time, attributes }, at) =>
          JSON.parse(JSON.stringify({ ...attributes, class_uid: 6003, time, seq: at })),
        );

        const found = await back(await parquetOf(events, 6003));

        const bySeq = (list: readonly JsonObject[]) =>
          list.toSorted((a, b) => Number(a.seq) - Number(b.seq));
        expect(bySeq(found)).toEqual(bySeq(events.map(plain)));
      }),
      { numRuns: 80 },
    );
  });

  test('of an event with lists in lists, and of those without around it', async () => {
    const listing = (evidences: JsonObject[]) =>
      anEvent({ ocsf: { class_uid: 2004, evidences } }).ocsf;
    await expectAllBack([
      listing([
        { name: 'one', data: { any: [1, null] } },
        { name: 'two', src_endpoint: { ip: '::1' } },
      ]),
      anEvent({ ocsf: { class_uid: 2004, time: 5 } }).ocsf,
      listing([
        { src_endpoint: { ip: '192.0.2.1', intermediate_ips: ['192.0.2.2', '192.0.2.3'] } },
      ]),
      listing([{ unheard: 1 }, { name: 'x' }]),
      listing([]),
    ]);
  });
});

test('rows that match are found, and objects that have none are not read', async () => {
  const events = auditEvents();
  const bytes = await parquetOf(events.filter((one) => one.class_uid === 6003));
  const some = byTime(events.filter((one) => one.class_uid === 6003))[17];
  const uid = some?.metadata.uid ?? '';
  const from = some?.time ?? 0;

  expect((await back(bytes, { values: { 'metadata.uid': [uid] } })).length).toBe(1);
  expect((await back(bytes, { from, to: from + 1 }))[0]).toEqual(plain(some as OcsfEvent));
  expect(await back(bytes, { values: { 'metadata.uid': [uidOf(1e9)] } })).toEqual([]);
  expect(await back(bytes, { values: { 'device.hostname': ['nobody'] } })).toEqual([]);
  expect(await back(bytes, { to: 1 })).toEqual([]);
});

describe.skipIf(ask === null)('as DuckDB sees an object', () => {
  test('each class has all its columns, typed, and repeats nothing but in lists of three levels', async () => {
    const dir = tempDir();
    const files = classNames.map((name) => {
      const { uid } = namedClass(name);
      return { uid, path: join(dir, `${uid}.parquet`) };
    });
    for (const { uid, path } of files) {
      writeFileSync(path, await parquetOf([anEvent({ ocsf: { class_uid: uid } }).ocsf]));
    }
    const list = files.map(({ path }) => `'${path}'`).join();
    const all = (await ask?.(`select * from parquet_schema([${list}])`)) ?? [];

    for (const { uid, path } of files) {
      const schema = all.filter((one) => one.file_name === path);
      const typeOf = (name: string) => schema.find((one) => one.name === name)?.duckdb_type;
      expect([typeOf('time'), typeOf('class_uid'), typeOf('unmapped')]).toEqual([
        'BIGINT',
        'INTEGER',
        'VARCHAR',
      ]);
      expect(schema.length).toBe(tableOf(uid).elements.length);
      const repeated = schema.flatMap((one, at) =>
        one.repetition_type === 'REPEATED' ? [at] : [],
      );
      expect(repeated.length).toBeGreaterThan(5);
      for (const at of repeated) {
        const three = [schema[at - 1]?.converted_type, schema[at]?.name, schema[at + 1]?.name];
        expect(three).toEqual(['LIST', 'list', 'element']);
      }
    }
  });

  test('it has zstd, statistics, sorted rows and bloom filters that hold', async () => {
    const events = auditEvents().filter((one) => one.class_uid === 6003);
    const bytes = await parquetOf(events.toReversed());
    const times = events.map(({ time }) => time);

    const path = join(tempDir(), 'asked.parquet');
    writeFileSync(path, bytes);
    const chunks = (await ask?.(`select * from parquet_metadata('${path}')`)) ?? [];
    const rows = (await ask?.(`select time from read_parquet('${path}')`)) ?? [];

    expect(new Set(chunks.map((one) => one.compression))).toEqual(new Set(['ZSTD']));
    const chunk = (path: string) => chunks.find((one) => one.path_in_schema === path);
    expect(chunk('time')?.stats_min_value).toBe(String(Math.min(...times)));
    expect(chunk('time')?.stats_max_value).toBe(String(Math.max(...times)));
    expect(rows.map((one) => one.time)).toEqual(times.toSorted((a, b) => a - b));
    for (const path of ['metadata, uid', 'actor, user, name', 'src_endpoint, ip']) {
      expect(chunk(path)?.bloom_filter_offset).toBeGreaterThan(0);
    }
  });
});

test('bloom filters of every length of text hold each of their values', async () => {
  const texts = Array.from({ length: 100 }, (_, length) =>
    'aé李🎉'.repeat(100).slice(0, length + 1),
  ).filter((text) => text.isWellFormed());
  const events = texts.map(
    (name, at) => anEvent({ offset: at, ocsf: { class_uid: 3002, user: { name } } }).ocsf,
  );
  const bytes = await parquetOf(events);

  for (const name of texts) {
    expect((await back(bytes, { values: { 'user.name': [name] } })).length).toBe(1);
  }
  const missed = await Promise.all(
    Array.from({ length: 200 }, (_, at) =>
      back(bytes, { values: { 'user.name': [`nobody ${at}`] } }),
    ),
  );
  expect(missed.flat()).toEqual([]);
});

test('of more different texts than stay on the heap', async () => {
  const nameOf = (at: number) => `Zoë ${at} ${'李🎉'.repeat(at % 9)}`;
  const events = Array.from({ length: 1_300 }, (_, at) => {
    const user = at % 7 === 0 ? {} : { name: nameOf(at), groups: [{ name: nameOf(at + 5_000) }] };
    const own = {
      class_uid: 3002,
      time: 1_790_000_000_000 - at,
      user,
      unmapped: { [`n${at}`]: at },
    };
    return anEvent({ offset: at, ocsf: own }).ocsf;
  });

  await expectAllBack(events);

  const bytes = await parquetOf(events);
  for (const at of [1, 1_030, 1_299]) {
    const found = await back(bytes, { values: { 'user.name': [nameOf(at)] } });
    expect(found.map(({ time }) => time)).toEqual([1_790_000_000_000 - at]);
  }
  expect(await back(bytes, { values: { 'user.name': ['nobody'] } })).toEqual([]);
});

describe('an object of many pages', () => {
  // Ahead of their time: half of the rows move. Each kind of column has more than one page.
  const count = 66_000;
  const nameOf = (at: number) => `user ${at % 7}`;
  const groupsOf = (at: number) => ['a', 'b', 'c'].map((name) => ({ name: `${name} ${at}` }));
  const loggedOf = (at: number) => 7 + (1 - at) * 2 ** 33;
  const timeOf = (at: number) => 1_790_000_000_000 + (at % 2 === 0 ? at : count * 2 - at);
  const write = () => {
    const rows = new Rows(tableOf(3002));
    for (let at = 0; at < count; at++) {
      const user = at % 3 === 0 ? {} : { name: nameOf(at), groups: groupsOf(at) };
      const event = {
        ...{ class_uid: 3002, time: timeOf(at), severity_id: at % 5, is_remote: at % 4 === 1 },
        ...{ metadata: { uid: uidOf(at), logged_time: loggedOf(at) }, risk_score: at },
        user,
      };
      rows.add(event as unknown as OcsfEvent);
    }
    return writeParquet(rows);
  };
  const order = Array.from({ length: count }, (_, at) => at).sort((a, b) => timeOf(a) - timeOf(b));

  test('has all rows in the order of time, and finds each by an index of its pages', async () => {
    const bytes = await write();

    expect(await readUids(bytes)).toEqual(order.map(uidOf));
    for (const at of [0, 1, 34_565, count - 1]) {
      const [found, ...others] = await back(bytes, { values: { 'metadata.uid': [uidOf(at)] } });
      expect(others).toEqual([]);
      expect(found).toMatchObject({ time: timeOf(at), severity_id: at % 5, risk_score: at });
      expect(found?.metadata).toMatchObject({ logged_time: loggedOf(at) });
      const inRange = await back(bytes, { from: timeOf(at), to: timeOf(at) + 1 });
      expect(inRange.map(({ risk_score }) => risk_score)).toEqual([at]);
    }
    const named = await back(bytes, { values: { 'user.name': ['user 3'] } });
    expect(named.length).toBe(order.filter((at) => at % 3 !== 0 && at % 7 === 3).length);
  });

  test.skipIf(ask === null)('shows every value to DuckDB', async () => {
    const path = join(tempDir(), 'pages.parquet');
    writeFileSync(path, await write());

    const rows = await ask?.(
      `select time, severity_id, is_remote, risk_score, metadata.uid as uid, metadata.logged_time as logged, ` +
        `"user".name as name, [one.name for one in "user".groups] as members from read_parquet('${path}') order by file_row_number`,
    );

    const expected = order.map((at) => ({
      ...{ time: timeOf(at), severity_id: at % 5, is_remote: at % 4 === 1, risk_score: at },
      ...{ uid: uidOf(at), logged: loggedOf(at) },
      ...{
        name: at % 3 === 0 ? null : nameOf(at),
        members: at % 3 === 0 ? null : groupsOf(at).map((one) => one.name),
      },
    }));
    expect(rows).toEqual(expected);
    const chunks = (await ask?.(`select * from parquet_metadata('${path}')`)) ?? [];
    const statsOf = (name: string) => {
      const chunk = chunks.find((one) => one.path_in_schema === name);
      return [chunk?.stats_min_value, chunk?.stats_max_value, chunk?.stats_null_count];
    };
    expect(statsOf('severity_id')).toEqual(['0', '4', 0]);
    expect(statsOf('is_remote')).toEqual(['false', 'true', 0]);
    expect(statsOf('user, name')).toEqual(['user 0', 'user 6', Math.ceil(count / 3)]);
    // The library shortens bounds of texts.
    expect(statsOf('metadata, uid')).toEqual(['0'.repeat(16), `${'0'.repeat(15)}1`, 0]);
    expect(statsOf('metadata, logged_time')).toEqual([
      String(loggedOf(count - 1)),
      String(loggedOf(0)),
      0,
    ]);
  });
});

test('bounds of texts stay those of the column, which is gone when they are written', async () => {
  const events = Array.from(
    { length: 1_300 },
    (_, at) => anEvent({ uid: uidOf(at), ocsf: { class_uid: 3002, time: at } }).ocsf,
  );

  const { row_groups } = parquetMetadata(bufferOf(await parquetOf(events)));

  const [chunk] = (row_groups[0]?.columns ?? []).filter(
    ({ meta_data }) => meta_data?.path_in_schema.join('.') === 'metadata.uid',
  );
  const { min_value: min, max_value: max } = chunk?.meta_data?.statistics ?? {};
  expect([min, max]).toEqual(['0'.repeat(16), `${'0'.repeat(15)}1`]);
});

test('no table has more than three levels, nor an object within itself', () => {
  const depth = (group: ParquetGroup): number =>
    1 +
    Math.max(0, ...[...group.attributes.values()].map((one) => ('type' in one ? 0 : depth(one))));

  for (const name of classNames) expect(depth(tableOf(namedClass(name).uid).event)).toBe(3);
});

// Lines of the transcoder beside those of the ordinary path, byte for byte: hostile records of many shapes (more by
// `npx node test/transcode/main.ts`), the bench's records, and other people's audit trails.

import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { makeFormat } from '../formats/make-format.ts';
import { vectorTest } from '../formats/vectors.ts';
import { compare, compareSeed } from './differences.ts';

const context = { source: 'audit', stream: 'audit' };
const formats = {
  'CEF in syslog': () => makeFormat('syslog', { message: 'cef' }),
  'JSON in syslog': () => makeFormat('syslog', { message: 'json' }),
  JSON: () => makeFormat('json'),
  'the record in syslog': () => makeFormat('syslog', { message: 'original' }),
  LEEF: () => makeFormat('leef'),
  ECS: () => makeFormat('ecs'),
  'ECS in syslog': () => makeFormat('syslog', { message: 'ecs' }),
  'a sentence in syslog': () => makeFormat('syslog', { message: 'text' }),
  OTLP: () => makeFormat('otel'),
  'OTLP with a text for a body': () => makeFormat('otel', { body: 'message' }),
  'OTLP with JSON for a body': () => makeFormat('otel', { body: 'json' }),
  GELF: () => makeFormat('gelf', { host: 'h' }),
  'CEF in RFC 3164': () => makeFormat('syslog', { message: 'cef', protocol: 'rfc3164' }),
};

function pageOf(records: readonly string[]): Buffer {
  return Buffer.from(`{"data":[${records.join(',')}]}`);
}

function range(from: number, to: number): readonly number[] {
  return Array.from({ length: to - from }, (_, i) => from + i);
}

/** Records that differ in these values, often enough to be learned. */
function manyOf(make: (i: number) => string): readonly Buffer[] {
  return Array.from({ length: 4 }, (_, page) =>
    pageOf(Array.from({ length: 20 }, (_, i) => make(page * 20 + i))),
  );
}

describe('a transcoded line is that of the ordinary path', () => {
  test('for hostile records of many shapes', async () => {
    let written = 0;
    for (let seed = 2; seed <= 11; seed += 1) {
      const found = await compareSeed(seed, 40);
      expect(found.differences, `seed ${seed}`).toEqual([]);
      written += found.written;
    }
    // Were nothing transcoded, nothing would differ.
    expect(written).toBeGreaterThan(1000);
  });

  for (const [name, make] of Object.entries(formats)) {
    test(`for records that are alike, nearly all of which are transcoded, as ${name}`, async () => {
      const record = (i: number) =>
        `{"id":"e${i}","timestamp":"2026-11-23T12:34:${10 + (i % 50)}.5Z","action":"policy.${i % 2 ? 'update' : 'delete'}",` +
        `"actor":{"type":"user","name":"José \\"${i}\\" a=b","email":"p${i}@example.com"},"source_ip":"192.0.2.${i}",` +
        `"resource":{"type":"policy","id":"p${i}"},"result":"success","changes":{"after":{"rules":${i}}},"network":{"client_port":${i}}}`;
      const found = await compare(manyOf(record), make(), context);
      expect(found.differences).toEqual([]);
      expect(found.written).toBe(found.records - 3);
    });
  }

  test('for characters that cannot be seen, and others like them', async () => {
    const odd = [
      ...'\x7f\u0085\u009f\u00a0\u2027\u2028\u2029\u202aé日😀=|^~',
      '\\"',
      '\\n',
      '\\u0041',
    ];
    const record = (i: number) =>
      `{"id":"e${i}","timestamp":"2026-11-23T12:34:56.789Z","action":"policy.update",` +
      `"actor":{"type":"user","name":"x${i % 3 === 0 ? odd[(i / 3) % odd.length] : 'y'}z"},"result":"success"}`;
    for (const make of Object.values(formats)) {
      const found = await compare(manyOf(record), make(), context);
      expect(found.differences).toEqual([]);
      expect(found.written).toBeGreaterThan(found.records / 2);
    }
  });

  test('for texts and numbers of every length that OTLP counts in one byte, two or three', async () => {
    const lengths = [1, 2, ...range(90, 130), ...range(16_250, 16_390)];
    const record = (i: number) =>
      `{"id":"e${i}","timestamp":"2026-11-23T12:34:56.789Z","action":"policy.update",` +
      `"note":"${'é'.repeat((lengths[i % lengths.length] ?? 0) >> 1)}\\n","deep":{"er":[{"x":"${'x'.repeat(i % 140)}y"}]},` +
      `"count":${[0, 127, 128, 16_384, 2 ** 31, 2 ** 40 + 1, -1, -129, 0.5, -2.25][i % 10]}}`;
    const pages = Array.from({ length: 4 }, (_, page) =>
      pageOf(Array.from({ length: 100 }, (_, i) => record(page * 100 + i))),
    );
    for (const body of ['map', 'json', 'message']) {
      const found = await compare(pages, makeFormat('otel', { body }), context);
      expect(found.differences).toEqual([]);
      expect(found.written).toBeGreaterThan(found.records * 0.9);
    }
  });

  test('for messages that GELF shortens or takes for none, and texts that it has within JSON', async () => {
    const message = (i: number) =>
      [' ', '\u00a0 ', '\u3000', '\\n', '', `é${'m'.repeat(i)}`, 'n'.repeat(300), '\\\\'][i % 8];
    const record = (i: number) =>
      `{"id":"e${i}","timestamp":"2026-11-23T12:34:5${i % 10}.${100 + (i % 20) * 10}Z","action":"policy.update",` +
      (i < 200 ? `"message":"${message(i)}",` : '') +
      `"actor":{"type":"user","name":"${'é'.repeat(1 + (i % 120))}","email":"p${i}@example.com"},` +
      `"target":{"type":"policy","name":"${i % 3 ? 'plain' : 'a \\"quote\\"'}"},"list":["x${i}","${i % 5 ? 'y' : '\\\\'}"]}`;
    const pages = Array.from({ length: 4 }, (_, page) =>
      pageOf(Array.from({ length: 100 }, (_, i) => record(page * 100 + i))),
    );
    const found = await compare(pages, makeFormat('gelf', { host: 'h' }), context);
    expect(found.differences).toEqual([]);
    expect(found.written).toBeGreaterThan(100);
  });

  test('once a config that was read again reads records differently', async () => {
    const record = (i: number) =>
      `{"id":"e${i}","timestamp":"2026-11-23T12:34:56.789Z","time":"2025-01-0${1 + (i % 9)}T00:00:00Z","action":"policy.update"}`;
    const pages = [...manyOf(record), ...manyOf(record)];
    for (const make of Object.values(formats)) {
      const found = await compare(pages, make(), context, [['timestamp'], ['time']]);
      expect(found.differences).toEqual([]);
      expect(found.written).toBeGreaterThan(found.records * 0.9);
    }
  });

  vectorTest("for other people's audit trails", async () => {
    const lines = readFileSync(
      new URL('../../../shared/data/samples/audit.ndjson', import.meta.url),
      'utf8',
    )
      .split('\n')
      .filter((line) => line !== '');
    // Each comes three times, so that what is learned is used.
    const pages = Array.from({ length: 10 }, (_, i) => {
      const some = lines.slice(i * 100, i * 100 + 100);
      return pageOf([...some, ...some, ...some]);
    });
    const found = await compare(pages, makeFormat('syslog', { message: 'cef' }), context);
    expect(found.differences).toEqual([]);
    // Few are alike: the transcoder rests for most of them.
    expect(found.written).toBeGreaterThan(50);
  });

  test('for lists of changes, nearly all of which are transcoded', async () => {
    const record = (i: number) =>
      usual(
        i,
        `"actor":{"name":"p${i}"},"source_ip":"192.0.2.1","target":{"type":"rule","id":"r${i}"},` +
          `"changes":[{"field":"owner","from":"a${i}","to":"b\\"${i}"},{"field":"count","from":${i},"to":${i + 1}},` +
          `{"field":"enabled","from":true,"to":false}]`,
      );
    // Other formats write a list as one text, which decides.
    for (const make of [formats.JSON, formats['JSON in syslog'], formats.ECS]) {
      const found = await compare(manyOf(record), make(), context);
      expect(found.differences).toEqual([]);
      expect(found.written).toBeGreaterThan(found.records * 0.9);
    }
  });

  const usual = (i: number, more: string) => `{"id":"e${i}","action":"x.update",${more}}`;
  const cef = formats['CEF in syslog'];
  for (const [what, before, then] of [
    [
      'two values that are now equal',
      '"actor":{"name":"ann","email":"a@b.example"}',
      '"actor":{"name":"c@d.example","email":"c@d.example"}',
    ],
    [
      'two values that a format writes the same',
      '"actor":{"name":"ann","email":"a@b.example"}',
      '"actor":{"name":"c¦d@e.example","email":"c|d@e.example"}',
    ],
    [
      'a line break in what a sentence says',
      '"actor":{"name":"ann"},"target":{"type":"policy","name":"x"}',
      '"actor":{"name":"an\\nn"},"target":{"type":"policy","name":"\\nx"}',
    ],
    [
      'a time with too many digits',
      '"timestamp":"2026-11-23T12:34:56Z"',
      '"timestamp":"2296-11-23T12:34:56Z"',
    ],
    ['a blank at the end', '"note":"plain"', '"note":"plain "'],
    ['a value that is now too long', '"actor":{"id":"u1"}', `"actor":{"id":"${'u'.repeat(1024)}"}`],
    [
      'a number that is no port any more',
      '"source":{"ip":"192.0.2.1"},"network":{"dst_port":443}',
      '"source":{"ip":"192.0.2.1"},"network":{"dst_port":70000}',
    ],
    [
      'a time that is none any more',
      '"timestamp":"2026-11-23T12:34:56Z"',
      '"timestamp":"2026-11-31T12:34:56Z"',
    ],
    [
      'a leap second',
      '"timestamp":"2026-11-23T12:34:56.789Z"',
      '"timestamp":"2026-11-23T12:34:60.789Z"',
    ],
    ['an address that is none any more', '"source_ip":"192.0.2.1"', '"source_ip":"192.0.2.256"'],
    ['an outcome that another word tells', '"result":"success"', '"result":"failed"'],
    ['a character that cannot be seen', '"note":"plain"', '"note":"pl\u2028ain"'],
    [
      'a name that is an e-mail address',
      '"actor":{"name":"ann"}',
      '"actor":{"name":"a@b.example"}',
    ],
    ['an escape that is written otherwise', '"note":"plain"', '"note":"\\u0070lain"'],
    ['a number that is written otherwise', '"count":5', '"count":5.10'],
    [
      'a list of changes for another field',
      '"target":{"type":"rule","id":"x"},"ip":"192.0.2.1","changes":[{"field":"enabled","from":"a","to":"b"}]',
      '"target":{"type":"rule","id":"x"},"ip":"192.0.2.1","changes":[{"field":"action","from":"a","to":"b"}]',
    ],
    [
      'a list that names a field twice',
      '"target":{"type":"rule","id":"x"},"ip":"192.0.2.1","changes":[{"field":"b","to":"1"},{"field":"c","to":"2"}]',
      '"target":{"type":"rule","id":"x"},"ip":"192.0.2.1","changes":[{"field":"b","to":"1"},{"field":"b","to":"2"}]',
    ],
    [
      'a change that changes nothing',
      '"target":{"type":"rule","id":"x"},"ip":"192.0.2.1","changes":[{"field":"enabled","from":"a","to":"b"}]',
      '"target":{"type":"rule","id":"x"},"ip":"192.0.2.1","changes":[{"field":"enabled","from":"b","to":"b"}]',
    ],
    [
      'a kind of target',
      '"target":{"type":"policy","id":"x"}',
      '"target":{"type":"user","id":"x"}',
    ],
  ] as const) {
    test(`where there is ${what}`, async () => {
      const pages = manyOf((i) => usual(i, i > 40 && i % 3 === 0 ? then : before));
      for (const make of Object.values(formats)) {
        const format = make();
        const found = await compare(pages, format, context);
        expect(found.differences).toEqual([]);
        expect(found.written).toBeGreaterThan(40);
      }
    });
  }

  test('if a page has bytes that are not UTF-8', async () => {
    const pages = manyOf((i) => usual(i, '"note":"plain"'));
    const last = pages[3] as Buffer;
    last[last.indexOf('plain')] = 0xff;
    const found = await compare(pages, cef(), context);
    expect(found.differences).toEqual([]);
    expect(found.written).toBeGreaterThan(40);
  });
});

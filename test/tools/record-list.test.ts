// A list's body as it is read: accepted exactly if the whole body is JSON, its records found where parsing finds them, its
// envelope unchanged, and each id with the text that upstream wrote.

import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Json } from '../../src/contracts/json.ts';
import { cutRecords, scanBody } from '../../src/tools/record-list.ts';
import { sourceTextAt, valueAt } from '../../src/tools/records.ts';

const scan = (text: string, items = 'data', id: string | null = 'id') =>
  scanBody(Buffer.from(text), items, id);

test('scanBody finds the records and the envelope that parsing gives', () => {
  const body = fc.record({
    data: fc.array(fc.jsonValue({ maxDepth: 3 }), { maxLength: 5 }),
    next: fc.jsonValue({ maxDepth: 1 }),
    page: fc.record({ data: fc.jsonValue() }),
  });
  fc.assert(
    fc.property(body, fc.constantFrom(0, 2), (value, indent) => {
      const text = JSON.stringify(value, null, indent);
      const parsed = JSON.parse(text) as { data: Json[]; [key: string]: Json };

      const { envelope, records } = scan(text);

      expect(envelope).toEqual({ ...parsed, data: [] });
      expect(records?.length).toBe(parsed.data.length);
      parsed.data.forEach((record, i) => {
        expect(records?.at(i)).toEqual(record);
        expect(JSON.parse(Buffer.from(records?.raw(i) ?? []).toString())).toEqual(record);
      });
      expect(records?.at(-1)).toEqual(parsed.data.at(-1));
      expect(records?.at(parsed.data.length)).toBeUndefined();
    }),
  );
});

test('cutRecords finds the ranges that scanBody finds, of one record or of many', () => {
  for (const count of [0, 1, 127, 128, 129, 700]) {
    const data = Array.from({ length: count }, (_, i) => ({ id: i, n: [i, { x: '}]' }] }));
    for (const indent of [0, 2]) {
      const body = Buffer.from(JSON.stringify({ data, next: 'data' }, null, indent));

      expect(cutRecords(body, 'data')).toEqual(scanBody(body, 'data', null).records?.slices);
    }
  }
  expect(cutRecords(Buffer.from('{"data":7}'), 'data').length).toBe(0);
  expect(cutRecords(Buffer.from('{"data":[1],"data":{}}'), 'data').length).toBe(0);
  expect(cutRecords(Buffer.from('[1,1e400]'), '').exact).toBe(false);
});

test('scanBody takes a body that was damaged anywhere exactly when JSON.parse does', () => {
  const whole = ' {"data":[{"id":"a","n":[1,{"x":2}]}, 7 ,"t"],"next":{"data":[]},"u":null} ';
  const marks = [...'{}[]",:0a\\ '];
  for (let at = 0; at < whole.length; at += 1) {
    for (const text of [
      whole.slice(0, at),
      whole.slice(0, at) + whole.slice(at + 1),
      ...marks.map((mark) => whole.slice(0, at) + mark + whole.slice(at)),
      ...marks.map((mark) => whole.slice(0, at) + mark + whole.slice(at + 1)),
    ]) {
      let expected: Json | undefined;
      try {
        expected = valueAt(JSON.parse(text) as Json, 'data');
      } catch {
        expect(() => scan(text), text).toThrow(SyntaxError);
        continue;
      }
      const length = Array.isArray(expected) ? expected.length : undefined;
      expect(scan(text).records?.length, text).toBe(length);
    }
  }
});

test.each([
  ['a body that is the array', '[{"id":1}]', 'data', ['1']],
  ['a byte order mark', '\ufeff{"data":[{"id":"é"}]}', 'data', ['"é"']],
  ['a nested path', '{"a":{"b":[{"id":"x"}]}}', 'a.b', ['"x"']],
  ['the list twice', '{"data":[{"id":1},{"id":2}],"data":[{"id":3}]}', 'data', ['3']],
  ['the id twice', '{"data":[{"id":1,"id":2}]}', 'data', ['2']],
  ['digits beyond 2^53', '{"data":[{"id": 9007199254740993 }]}', 'data', ['9007199254740993']],
  [
    'records without id',
    '{"data":[{"x":{"id":1}},[],"id",null]}',
    'data',
    [null, null, null, null],
  ],
  ['an id that is an object', '{"data":[{"id":{"id":1}}]}', 'data', ['{"id":1}']],
  ['an id written with escapes', '{"data":[{"\\u0069d":7},{"id":8}]}', 'data', ['7', '8']],
  ['an id before it is told again with escapes', '{"data":[{"id":8,"i\\u0064":9}]}', 'data', ['9']],
])('idText returns the id of %s', (_, text, items, expected) => {
  const { records } = scan(text, items);

  expect(Array.from({ length: records?.length ?? 0 }, (_, i) => records?.idText(i))).toEqual(
    expected,
  );
});

test('idText agrees with the text at the path, for plain paths and dotted ones', () => {
  const key = fc.constantFrom('id', 'a', 'a.id', 'id.a', 'é');
  const record = fc.dictionary(key, fc.oneof(fc.jsonValue(), fc.dictionary(key, fc.nat())));
  fc.assert(
    fc.property(record, fc.constantFrom('id', 'a.id', 'é', 'nowhere'), (value, path) => {
      const { records } = scan(JSON.stringify({ data: [value] }), 'data', path);

      expect(records?.idText(0)).toBe(sourceTextAt(Buffer.from(JSON.stringify(value)), path));
    }),
  );
});

test.each(['{"data":null}', '{"data":{}}', '{"data":"[]"}', '{"dat":[]}', '{}', '"data"', '7'])(
  'scanBody finds no records in %s',
  (text) => {
    const found = scan(text);

    expect(found).toMatchObject({ envelope: JSON.parse(text), records: null });
    expect(Buffer.from(found.text).toString()).toBe(text);
  },
);

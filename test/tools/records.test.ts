// The byte scan against JSON.parse: whatever a page looks like, the ranges that are cut are the
// records that parsing gives, and the text of a value is what upstream wrote.

import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Json } from '../../src/contracts/json.ts';
import { isObject } from '../../src/contracts/json.ts';
import { heldNestingMax } from '../../src/tools/json-scan.ts';
import { cutRecords } from '../../src/tools/record-list.ts';
import { parseBody, sourceTextAt, valueAt } from '../../src/tools/records.ts';
import { anyText } from '../support/any-text.ts';

const bom = Buffer.from([0xef, 0xbb, 0xbf]);

/** Keys that meet each other, that look like paths, or that need escapes. */
const key = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.constantFrom('data', 'a', 'b', 'a.b', 'data.a', '', '.', 'é', '__proto__'),
  },
  { weight: 1, arbitrary: anyText() },
);
const path = fc.oneof(
  fc.constantFrom('', 'data', 'a', 'a.b', 'data.a', 'data.a.b', 'a.b.a', '.', 'é', '__proto__'),
  fc.array(key, { maxLength: 3 }).map((keys) => keys.join('.')),
);

/** How JSON text may be written: white space anywhere, characters of strings escaped. */
interface Hand {
  readonly gap: string;
  readonly escapes: boolean;
}
const hand: fc.Arbitrary<Hand> = fc.record({
  gap: fc.constantFrom('', ' ', '\n  ', '\r\n\t'),
  escapes: fc.boolean(),
});

/** A member list may hold the same key twice, which no JavaScript object can. */
type Tree =
  | { readonly members: readonly (readonly [string, Tree])[] }
  | { readonly items: readonly Tree[] }
  | { readonly leaf: string };

const leaf = fc.oneof(
  anyText({ maxLength: 8 }).map((text) => JSON.stringify(text)),
  fc.constantFrom(
    '"\\""',
    '"\\\\"',
    '"\\\\\\""',
    '"]}"',
    '"[{,"',
    '"\\ud83d"',
    'null',
    'true',
    '-0',
    '1e3',
    '9007199254740993',
    '""',
  ),
  fc.double({ noNaN: true, noDefaultInfinity: true }).map((number) => JSON.stringify(number)),
);

const { tree } = fc.letrec<{ tree: Tree }>((tie) => ({
  tree: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    leaf.map((text) => ({ leaf: text })),
    fc.array(tie('tree'), { maxLength: 4 }).map((items) => ({ items })),
    fc.array(fc.tuple(key, tie('tree')), { maxLength: 5 }).map((members) => ({ members })),
  ),
}));

function written(node: Tree, { gap, escapes }: Hand): string {
  const string = (text: string) => {
    const plain = JSON.stringify(text);
    if (!escapes) return plain;
    return `"${[...text]
      .flatMap((c) => c.split(''))
      .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
      .join('')}"`;
  };
  const go = (at: Tree): string => {
    if ('leaf' in at) return at.leaf;
    if ('items' in at) return `[${gap}${at.items.map(go).join(`${gap},${gap}`)}${gap}]`;
    const members = at.members.map(([name, value]) => `${string(name)}${gap}:${gap}${go(value)}`);
    return `{${gap}${members.join(`${gap},${gap}`)}${gap}}`;
  };
  return `${gap}${go(node)}${gap}`;
}

function textsOf(body: Uint8Array, at: string): string[] {
  const { starts, ends, length } = cutRecords(body, at);
  return Array.from({ length }, (_, i) =>
    Buffer.from(body.subarray(starts[i], ends[i])).toString(),
  );
}

function recordsAt(parsed: Json, at: string): readonly Json[] {
  const found = valueAt(parsed, at);
  return Array.isArray(found) ? found : [];
}

test('cutRecords gives the records that JSON.parse gives, at any path of any page', () => {
  fc.assert(
    fc.property(tree, path, hand, fc.boolean(), (node, at, how, marked) => {
      const text = Buffer.from(written(node, how));
      const body = marked ? Buffer.concat([bom, text]) : text;

      const cut = textsOf(body, at);

      const expected = recordsAt(parseBody(body), at);
      expect(cut.map((record) => JSON.parse(record))).toEqual(expected);
      expect(cut.every((record) => record === record.trim())).toBe(true);
    }),
    { numRuns: 2_000 },
  );
});

test('sourceTextAt gives the text of the value that JSON.parse gives, at any path of any record', () => {
  fc.assert(
    fc.property(tree, path, hand, (node, at, how) => {
      const record = Buffer.from(written(node, how));

      const text = sourceTextAt(record, at);

      const value = valueAt(parseBody(record), at);
      expect(text === null ? undefined : JSON.parse(text)).toEqual(value);
    }),
    { numRuns: 1_000 },
  );
});

test('cutRecords gives each record byte for byte', () => {
  const records = ['{ "id" : 1e3 }', '"\\u0041\\/"', '12345678901234567890', '[ ]', 'Zürich 😀'];
  records[4] = JSON.stringify(records[4]);
  const body = Buffer.from(`{"total": 5, "data": [ ${records.join(' ,\n')} ], "next": null}`);

  const cut = textsOf(body, 'data');

  expect(cut).toEqual(records);
});

test.each([
  ['a bare array', '[{"a":1},{"a":2}]', '', ['{"a":1}', '{"a":2}']],
  ['a nested path', '{"r":{"x":[0],"items":[1,2]}}', 'r.items', ['1', '2']],
  ['a key that holds dots, before the path', '{"a":{"b":[1]},"a.b":[2]}', 'a.b', ['2']],
  ['a key that holds dots, after the path', '{"a.b":[2],"a":{"b":[1]}}', 'a.b', ['2']],
  ['the last of two members', '{"data":[1],"data":[2,3]}', 'data', ['2', '3']],
  ['the last of two heads', '{"a":{"b":[1]},"a":{}}', 'a.b', []],
  ['a member that is no array any more', '{"data":[1],"data":null}', 'data', []],
  ['an escaped key', '{"d\\u0061ta":[1]}', 'data', ['1']],
  ['no such member', '{"items":[1]}', 'data', []],
  ['an empty array', '{"data":[ ]}', 'data', []],
])('cutRecords finds %s', (_, text, at, expected) => {
  expect(textsOf(Buffer.from(text), at)).toEqual(expected);
  expect(recordsAt(JSON.parse(text), at)).toEqual(expected.map((each) => JSON.parse(each)));
});

test('cutRecords refuses text in which a record is cut off', () => {
  const whole = '{"data":[{"a":"b\\"c"},[1,{"x":2}],"tail"]';

  for (let length = '{"data":['.length; length < whole.length; length += 1) {
    expect(() => cutRecords(Buffer.from(whole.slice(0, length)), 'data')).toThrow(SyntaxError);
  }
  expect(cutRecords(Buffer.from(whole), 'data').length).toBe(3);
});

test('cutRecords reports whether a number among the records may lose digits, and accepts sluice’s wrappers', () => {
  const deep = '['.repeat(heldNestingMax) + ']'.repeat(heldNestingMax);

  expect(cutRecords(Buffer.from('{"n":12345678901234567,"data":[1.5]}'), 'data').exact).toBe(true);
  expect(cutRecords(Buffer.from('{"data":[1,12345678901234567]}'), 'data').exact).toBe(false);
  expect(cutRecords(Buffer.from(`{"data":[${deep}]}`), 'data').length).toBe(1);
});

test('sourceTextAt keeps every digit of a number beyond 2^53', () => {
  const record = Buffer.from('{"n":{"id": 123456789012345678901 ,"x":0.10}}');

  expect(sourceTextAt(record, 'n.id')).toBe('123456789012345678901');
  expect(sourceTextAt(record, 'n.x')).toBe('0.10');
  expect(sourceTextAt(record, 'n.y')).toBeNull();
});

test('valueAt reads only the value’s own members', () => {
  const parsed = JSON.parse('{"a":{"b":1}}') as Json;

  expect(valueAt(parsed, 'constructor')).toBeUndefined();
  expect(valueAt(parsed, 'a.toString')).toBeUndefined();
  expect(isObject(valueAt(parsed, 'a'))).toBe(true);
});

// Canonical JSON and what differs by it.

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { canonicalText, contentHash, parseExact } from '../../src/poll/canonical.ts';
import { addedFields, changedPaths } from '../../src/poll/diff.ts';

const plain = { ignore: [], unordered: [] };
const text = (json: string, comparison: Parameters<typeof canonicalText>[1] = plain) =>
  canonicalText(parseExact(json), comparison);

describe('canonical', () => {
  test('is the same for any order of keys and any white space', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), (value) => {
        const turned = Object.fromEntries(Object.entries(value).toReversed());

        expect(text(JSON.stringify(turned, null, 3))).toBe(text(JSON.stringify(value)));
      }),
    );
  });

  test('has the value’s content', () => {
    fc.assert(
      fc.property(fc.jsonValue({ noUnicodeString: false }), (value) => {
        const json = JSON.stringify(value);

        expect(JSON.parse(text(json))).toEqual(JSON.parse(json));
      }),
    );
  });

  test('numbers are their source text', () => {
    expect(text('[9007199254740993001,1.0,1e3,-0]')).toBe('[9007199254740993001,1.0,1e3,-0]');
  });

  test('paths are ignored at any depth, also within arrays', () => {
    const comparison = { ignore: ['at', 'members.at'], unordered: [] };

    expect(text('{"at":1,"members":[{"at":2,"id":3}],"x":{"at":4}}', comparison)).toBe(
      '{"members":[{"id":3}],"x":{"at":4}}',
    );
  });

  test('arrays have an order unless the config says otherwise', () => {
    const comparison = { ignore: [], unordered: ['tags'] };

    expect(text('{"tags":["b","a"]}', comparison)).toBe(text('{"tags":["a","b"]}', comparison));
    expect(text('{"rules":["b","a"]}', comparison)).not.toBe(
      text('{"rules":["a","b"]}', comparison),
    );
  });

  test('keys like __proto__ are keys', () => {
    expect(text('{"__proto__":{"a":1}}')).toBe('{"__proto__":{"a":1}}');
  });
});

describe('changedPaths', () => {
  test('names each path that differs, arrays as a whole', () => {
    const before = '{"a":1,"b":{"c":1,"d":2},"e":[1,2],"gone":0}';
    const after = '{"a":1,"b":{"c":2,"d":2},"e":[1,3],"new":{}}';

    expect(changedPaths(before, after, plain)).toEqual(['b.c', 'e', 'gone', 'new']);
  });

  test('is empty exactly where the contents are the same', () => {
    const value = fc.dictionary(fc.string(), fc.jsonValue(), { maxKeys: 5 });
    const pairs = fc.oneof(
      value.map((one) => [one, one]),
      fc.tuple(value, value),
    );

    fc.assert(
      fc.property(pairs, (pair) => {
        const [before = '', after = ''] = pair.map((one) => JSON.stringify(one));
        const isSame = contentHash(before, plain) === contentHash(after, plain);

        expect(changedPaths(before, after, plain).length === 0).toBe(isSame);
      }),
    );
  });
});

test('addedFields: top-level fields that are new', () => {
  expect(addedFields('{"a":1}', '{"a":2,"b":3,"toString":4}')).toEqual(['b', 'toString']);
});

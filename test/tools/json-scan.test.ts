// The scan against JSON.parse: it takes what that takes and nothing else, ends where the value
// ends, and finds a member where it stands. Its digest of the content is the same however a record
// is printed, and another when anything in it has changed.

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { canonicalText, parseExact } from '../../src/poll/canonical.ts';
import { IgnoredPaths } from '../../src/tools/json-keys.ts';
import { JsonScan, nestingMax, TooDeep } from '../../src/tools/json-scan.ts';

const noRules = { ignore: [], unordered: [] };

function walk(text: string, ignore: readonly string[] = []): { digest: string; end: number } {
  const scan = new JsonScan(Buffer.from(text), null, new IgnoredPaths(ignore));
  const end = scan.value(0);
  return { digest: `${scan.digest1}.${scan.digest2}`, end };
}
const digestOf = (text: string, ignore?: readonly string[]) => walk(text, ignore).digest;

/** The value with the keys of all its objects in reverse order. */
function turned(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(turned);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .reverse()
      .map(([key, inner]) => [key, turned(inner)]),
  );
}

test('the digest does not depend on the order of keys or on white space', () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 4 }), (value) => {
      const plain = digestOf(JSON.stringify(value));

      expect(digestOf(JSON.stringify(turned(value)))).toBe(plain);
      expect(digestOf(JSON.stringify(value, null, 2))).toBe(plain);
      expect(digestOf(JSON.stringify(turned(value), null, '\t'))).toBe(plain);
    }),
  );
});

test('the scan reports whether a number may lose digits, and ignores digits within a string', () => {
  const exact = (text: string) => {
    const scan = new JsonScan(Buffer.from(text), null);
    scan.value(0);
    return scan.tokens.exact;
  };

  for (const text of ['1e400', '-2E5', '1234567890123456', '0.123456789012345678']) {
    expect(exact(`{"a":[1,${text}],"b":2}`)).toBe(false);
    expect(exact(`{"${text}":["${text}",true,false,null]}`)).toBe(true);
  }
  expect(exact('[123456789012345,-1.5,true,false,null]')).toBe(true);
});

test('the scan ends where the value ends, whatever follows', () => {
  fc.assert(
    fc.property(
      fc.jsonValue(),
      fc.constantFrom('', ',', ' ]', '}', ',{"x":"y"}'),
      (value, rest) => {
        const text = JSON.stringify(value);

        expect(walk(text + rest).end).toBe(Buffer.byteLength(text));
      },
    ),
  );
});

const record = {
  id: 'evt-1',
  actor: { id: 'alice', role: 'admin' },
  target: { name: 'bob' },
  before: 'deny',
  after: 'allow',
  ports: [22, 443],
  ok: true,
};

test.each([
  ['a letter', { ...record, id: 'evt-2' }],
  ['digits in another order', { ...record, ports: [22, 434] }],
  ['a word', { ...record, ok: false }],
  ['values of two keys swapped', { ...record, before: 'allow', after: 'deny' }],
  ['a key', { ...record, ok: undefined, fine: true }],
  ['a member more', { ...record, note: '' }],
  ['a member less', { ...record, target: undefined }],
  ['a value moved to another key', { ...record, actor: { id: 'admin', role: 'alice' } }],
  ['a number as text', { ...record, ports: [22, '443'] }],
  ['the case of a letter', { ...record, before: 'Deny' }],
  ['the order of an array', { ...record, ports: [443, 22] }],
  ['an element once more', { ...record, ports: [22, 443, 443] }],
  ['an array around one', { ...record, ports: [[22, 443]] }],
  [
    'members swapped between objects',
    { ...record, actor: { id: 'alice' }, target: { name: 'bob', role: 'admin' } },
  ],
  ['null for what was not there', { ...record, note: null }],
])('the digest sees a change of %s', (_, changed) => {
  expect(digestOf(JSON.stringify(changed))).not.toBe(digestOf(JSON.stringify(record)));
});

test('the digest distinguishes values of one key in different objects, and empty things', () => {
  const texts = [
    '{"a":{"x":1},"b":{"x":2}}',
    '{"a":{"x":2},"b":{"x":1}}',
    '{"a":{"x":1,"y":2},"b":{}}',
    '{"a":{},"b":{"x":1,"y":2}}',
    ...['{"a":[]}', '{"a":{}}', '{"a":null}', '{"a":""}', '{"a":0}', '{"a":[[]]}', '{"a":[{}]}'],
    ...['{"a":[null]}', '{"a":[0]}', '{"a":["0"]}', '{"a":[0,0]}', '{}', '[]', '[{}]', '[{},{}]'],
    ...['[{"a":1},{"b":2}]', '[{"a":1,"b":2}]', '[{"b":2},{"a":1}]', '[[1],[2]]', '[[1,2]]'],
    ...['1', '1.0', '1e0', '"1"', '"1.0"', '10', '-1', '{"1":1}'],
  ];

  expect(new Set(texts.map((text) => digestOf(text))).size).toBe(texts.length);
});

test('the digest treats a string by its content, however it is escaped, and halves of pairs as themselves', () => {
  const same = [
    ['"A/"', '"\\u0041\\/"', '"\\u0041\\u002f"'],
    ['"\u00e9\u20ac\u{1f600}"', '"\\u00e9\\u20AC\\ud83d\\uDE00"'],
    ['"\\n\\t\\b\\f\\r\\\\\\""', '"\\u000a\\u0009\\u0008\\u000C\\u000d\\u005c\\u0022"'],
    ['{"key":1}', '{"\\u006bey":1}'],
  ];
  const others = [
    ...['"\\ud800"', '"\\ud801"', '"\\udc00"', '"\ufffd"', '"\\ud800\\ud800"', '"\\\\ud800"'],
    ...['"\\u0000"', '"\\\\u0000"', '""', '"0"'],
  ];

  for (const [first = '', ...rest] of same) {
    for (const text of rest) expect(digestOf(text), text).toBe(digestOf(first));
  }
  expect(new Set(others.map((text) => digestOf(text))).size).toBe(others.length);
});

test('the digest of two texts is the same exactly when their canonical forms are', () => {
  const value = fc.jsonValue({ maxDepth: 3 });
  fc.assert(
    fc.property(value, value, (one, other) => {
      const text = (of: unknown) => canonicalText(parseExact(JSON.stringify(of)), noRules);

      expect(digestOf(JSON.stringify(one)) === digestOf(JSON.stringify(other))).toBe(
        text(one) === text(other),
      );
    }),
    { numRuns: 500 },
  );
});

test('the digest leaves out ignored fields, as the canonical form does', () => {
  const key = fc.constantFrom('a', 'b', 'c', 'a.b');
  const { tree } = fc.letrec((tie) => ({
    tree: fc.oneof(
      { maxDepth: 3 },
      fc.constantFrom(0, 1, 'x', null),
      fc.dictionary(key, tie('tree'), { maxKeys: 3 }),
      fc.array(tie('tree'), { maxLength: 2 }),
    ),
  }));
  const path = fc.constantFrom('a', 'b', 'a.b', 'a.a', 'b.c', 'a.b.c', 'c.a.b');
  fc.assert(
    fc.property(tree, tree, fc.array(path, { maxLength: 3 }), (one, other, ignore) => {
      const text = (of: unknown) =>
        canonicalText(parseExact(JSON.stringify(of)), { ignore, unordered: [] });

      expect(
        digestOf(JSON.stringify(one), ignore) === digestOf(JSON.stringify(other), ignore),
      ).toBe(text(one) === text(other));
    }),
    { numRuns: 1_000 },
  );
});

test('the digest distinguishes all of many records that differ in one value', () => {
  const digests = new Set(
    Array.from({ length: 100_000 }, (_, n) =>
      digestOf(`{"id":"x","seq":${n},"b":{"seq":${n * 7}}}`),
    ),
  );

  // With 64 bits there is no pair in common; with 32 there would be one.
  expect(digests.size).toBe(100_000);
});

test('the scan says where an object has a key twice, in objects of any size, and forgets it for the next value', () => {
  const wide = Array.from({ length: 300 }, (_, n) => `"k${n}":${n}`).join();
  const twice = [
    '{"a":1,"a":1}',
    '{"a":1,"b":{"c":1,"c":2}}',
    `{${wide},"k7":1}`,
    '[{"a":1,"\\u0061":1}]',
  ];
  const once = [
    '{"a":{"a":{"a":1}}}',
    '[{"a":1},{"a":1}]',
    `{${wide}}`,
    '{"a":1,"b":[{"a":1,"b":2}],"c":1}',
  ];
  const isRepeated = (text: string) => {
    const scan = new JsonScan(Buffer.from(`{"x":1,"x":1}${text}`), null);
    scan.value(scan.value(0));
    return scan.repeatedKeys;
  };

  expect(twice.map(isRepeated)).toEqual(twice.map(() => true));
  expect(once.map(isRepeated)).toEqual(once.map(() => false));
});

test('the digest of a record never changes: uids are derived from the digest', () => {
  expect(digestOf(JSON.stringify(record))).toBe('-208093688.365021307');
});

/** True where the scan takes the whole text. */
function takes(text: string): boolean {
  const bytes = Buffer.from(text);
  try {
    return new JsonScan(bytes, 'a').value(0) === bytes.length;
  } catch (error) {
    expect(error).toBeInstanceOf(SyntaxError);
    return false;
  }
}

function parses(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

test.each([
  ...['{}', '[]', '""', '0', '-0', '0.0', '1e5', '1E+5', '-1.5e-7', 'true', 'false', 'null'],
  ...['01', '-', '1.', '.5', '1e', '1e+', '+1', '--1', '0x1', 'NaN', 'Infinity', '1_0', '\u00b2'],
  ...['tru', 'truee', 'True', 'nul', 'nulll', 'undefined', ''],
  ...['[1,]', '[,1]', '[1 2]', '[,]', '[1,,2]', '[', ']', '[1', '[1}', '[]]', '{]'],
  ...[
    '{"a"}',
    '{"a":}',
    '{"a":1,}',
    '{,}',
    '{"a" 1}',
    '{a:1}',
    '{1:1}',
    '{"a":1 "b":2}',
    '{"a"::1}',
  ],
  ...['{"a":1', '{"a"', '{"', '{', '{"a":1}}', '"', '"a', '"\\', '"\\"', '"\\u"', '"\\u12"'],
  ...[
    '"\\x"',
    '"\\u12g4"',
    '"\\u12aF"',
    '"\n"',
    '"\t"',
    '"\u0000"',
    '"\u007f"',
    '"\u2028"',
    '"\\ud800"',
  ],
  ...['[1,\u00a02]', '[1,\u000b2]', '[1,\ufeff2]', '[ 1 ,\t2\r\n]', "{'a':1}", '[1]//', '/**/1'],
])('the scan takes %j exactly when JSON.parse does', (text) => {
  expect(takes(text)).toBe(parses(text));
});

test('the scan takes a text with one character changed, added or gone exactly when JSON.parse does', () => {
  const marks = [...'{}[]",:\\/ -+.0123456789aeltrufnsE\n\u0001\u00e9'];
  fc.assert(
    fc.property(
      fc.jsonValue({ maxDepth: 3 }),
      fc.nat(),
      fc.constantFrom(...marks, ''),
      fc.nat({ max: 1 }),
      (value, place, mark, gone) => {
        const text = JSON.stringify(value);
        const at = place % (text.length + 1);
        const changed = text.slice(0, at) + mark + text.slice(at + gone);
        // White space around the value is the caller's.
        fc.pre(changed.trim() === changed);

        expect(takes(changed), changed).toBe(parses(changed));
      },
    ),
    { numRuns: 2_000 },
  );
});

test('the scan refuses values nested too deeply, and accepts those just within the limit', () => {
  const nested = (levels: number) => '['.repeat(levels) + ']'.repeat(levels);

  expect(takes(nested(nestingMax))).toBe(true);
  expect(() => walk(nested(nestingMax + 1))).toThrow(TooDeep);
  expect(() => walk('[{"a":'.repeat(1e6))).toThrow(TooDeep);
});

test.each([
  ['{"id":"x"}', '"x"'],
  ['{"a":{"id":1},"id": 12.50 ,"b":2}', '12.50'],
  ['{"id":{"id":1},"b":[2]}', '{"id":1}'],
  ['{"id":1,"id":[2]}', '[2]'],
  ['{"ids":1,"i":2,"xid":3}', null],
  ['[{"id":1}]', null],
  ['"id"', null],
])('the scan finds the member id of %s', (text, expected) => {
  const scan = new JsonScan(Buffer.from(text), 'id');
  scan.value(0);

  const found = scan.memberStart < 0 ? null : text.slice(scan.memberStart, scan.memberEnd);
  expect(found).toBe(expected);
  expect(scan.escapedKeys).toBe(false);
});

test('the scan says where a key is written with escapes, and forgets it for the next value', () => {
  const texts = ['{"\\u0069d":1}', '{"a":{"\\u0069d":1}}', '{"a":"\\u0069d"}'];
  const escaped = texts.map((text) => {
    const scan = new JsonScan(Buffer.from(`${texts[0]}${text}`), 'id');
    scan.value(scan.value(0));
    return scan.escapedKeys;
  });

  expect(escaped).toEqual([true, false, false]);
});

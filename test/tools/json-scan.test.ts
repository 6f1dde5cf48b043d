// The scan against JSON.parse: it takes what that takes and nothing else, ends where the value ends, and finds a member where it stands.
// Its check over the content is the same however a record is printed, and another when anything in it has changed.

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { JsonScan, nestingMax, TooDeep } from '../../src/tools/json-scan.ts';

function walk(text: string): { check: number; end: number } {
  const scan = new JsonScan(Buffer.from(text), null);
  const end = scan.value(0);
  return { check: scan.check, end };
}
const checkOf = (text: string) => walk(text).check;

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

test('the check does not depend on the order of keys or on white space', () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 4 }), (value) => {
      const plain = checkOf(JSON.stringify(value));

      expect(checkOf(JSON.stringify(turned(value)))).toBe(plain);
      expect(checkOf(JSON.stringify(value, null, 2))).toBe(plain);
      expect(checkOf(JSON.stringify(turned(value), null, '\t'))).toBe(plain);
    }),
  );
});

test('the scan tells whether a number may lose digits, and takes none for it that stands in a string', () => {
  const exact = (text: string) => {
    const scan = new JsonScan(Buffer.from(text), null);
    scan.value(0);
    return scan.exact;
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
])('the check sees a change of %s', (_, changed) => {
  expect(checkOf(JSON.stringify(changed))).not.toBe(checkOf(JSON.stringify(record)));
});

test('the check tells apart all of many records that differ in one character', () => {
  const checks = new Set(
    Array.from({ length: 5_000 }, (_, n) => checkOf(JSON.stringify({ ...record, seq: n }))),
  );

  // With 32 bits, 5,000 records have 0.003 pairs in common on average.
  expect(checks.size).toBeGreaterThan(4_995);
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

test('the scan refuses what is nested too deeply, and takes what is not quite', () => {
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

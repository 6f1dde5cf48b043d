// The check over a record's content: the same however the record is printed, another when anything in it has changed.

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { checkValue } from '../../src/fetch/content-check.ts';

function walk(text: string): { check: number; end: number } {
  const bytes = Buffer.from(text);
  const checks: number[] = [];
  const end = checkValue(bytes, 0, (check) => checks.push(check));
  expect(checks).toHaveLength(1);
  return { check: checks[0] ?? 0, end };
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

test('checkValue does not depend on the order of keys or on white space', () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 4 }), (value) => {
      const plain = checkOf(JSON.stringify(value));

      expect(checkOf(JSON.stringify(turned(value)))).toBe(plain);
      expect(checkOf(JSON.stringify(value, null, 2))).toBe(plain);
      expect(checkOf(JSON.stringify(turned(value), null, '\t'))).toBe(plain);
    }),
  );
});

test('checkValue ends where the value ends, whatever follows', () => {
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
])('checkValue sees a change of %s', (_, changed) => {
  expect(checkOf(JSON.stringify(changed))).not.toBe(checkOf(JSON.stringify(record)));
});

test('checkValue tells apart all of many records that differ in one character', () => {
  const checks = new Set(
    Array.from({ length: 5_000 }, (_, n) => checkOf(JSON.stringify({ ...record, seq: n }))),
  );

  // With 32 bits, 5,000 records have 0.003 pairs in common on average.
  expect(checks.size).toBeGreaterThan(4_995);
});

test('checkValue ends on text that is cut off', () => {
  const text = '{"a":"b\\"c","d":[1,{"e":"é"}]}';
  const bytes = Buffer.from(text);

  for (let length = 1; length < bytes.length; length += 1) {
    const end = checkValue(bytes.subarray(0, length), 0, (check) =>
      expect(check).toBeGreaterThan(0),
    );
    expect(end).toBeGreaterThan(0);
  }
});

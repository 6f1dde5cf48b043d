// Records scanned many in one call, in WebAssembly: what is found is what json-scan.ts finds, and what is committed is what
// its source says. That bodies are accepted exactly if they are JSON is shown by the tests of record-list.ts, which use both.

import { hash } from 'node:crypto';
import { join } from 'node:path';
import fc from 'fast-check';
import { expect, test, vi } from 'vitest';
import { readArray } from '../../src/tools/found-records.ts';
import { JsonScan } from '../../src/tools/json-scan.ts';
import { openScan } from '../../src/tools/scan-memory.ts';
import { isAsBuilt } from '../support/wasm-build.ts';

const room = join(import.meta.dirname, '../../src/tools');
const escapedKeys = -2;

test('scan.wasm is the output of `npm run wasm` from its source', { tags: ['long'] }, async () => {
  expect(await isAsBuilt(room, 'scan.wasm')).toBe(true);
});

test('a runtime that cannot have it does without', () => {
  expect(openScan(new URL('./absent.wasm', import.meta.url))).toBeNull();
  expect(openScan(new URL(import.meta.url))).toBeNull();
});

/** What is found about the records, apart from positions. */
function found(records: readonly string[], member: string, between = ',') {
  const body = Buffer.from(`[${records.join(between)}]`);
  const { ids, idDigests, contents, starts, ends, exact, end } = readArray(
    new JsonScan(body, member),
    0,
  );
  expect(end).toBe(body.length);
  const rows = records.map((_, i) => {
    const start = starts[i] ?? 0;
    const idStart = ids[i * 2] ?? 0;
    return {
      text: body.toString('utf8', start, ends[i]),
      digest: [...contents.slice(i * 2, i * 2 + 2)],
      id:
        idStart < 0
          ? idStart
          : [body.toString('utf8', idStart, ids[i * 2 + 1]), ...idDigests.slice(i * 2, i * 2 + 2)],
    };
  });
  return { rows, exact };
}

/** The same by json-scan.ts alone; for a record with a repeated key the digest is of its bytes. */
function expected(records: readonly string[], member: string) {
  let exact = true;
  const rows = records.map((text) => {
    const body = Buffer.from(text);
    const scan = new JsonScan(body, member);
    expect(scan.value(0)).toBe(body.length);
    exact &&= scan.tokens.exact;
    const { digest1, digest2, memberStart, memberEnd, member1, member2 } = scan;
    const id = [body.toString('utf8', memberStart, memberEnd), member1, member2];
    return {
      text,
      digest: scan.repeatedKeys ? [...bytesDigest(text)] : [digest1, digest2],
      id: scan.escapedKeys ? escapedKeys : memberStart < 0 ? -1 : id,
    };
  });
  return { rows, exact };
}

function bytesDigest(text: string): Int32Array {
  const digest = hash('sha256', text, 'buffer');
  return Int32Array.of(digest.readInt32BE(0), digest.readInt32BE(4));
}

/** Text with any escape that JSON has, and with characters of any length in UTF-8. */
const anyString = fc
  .array(
    fc.oneof(
      fc
        .string({ unit: 'grapheme-composite', maxLength: 6 })
        .map((text) => JSON.stringify(text).slice(1, -1)),
      fc.constantFrom('\\"', '\\\\', '\\/', '\\b', '\\f', '\\n', '\\r', '\\t', '€', '𝒳', 'é'),
      fc.constantFrom(
        '\\u0000',
        '\\u0041',
        '\\u00e9',
        '\\u20AC',
        '\\ud835\\udcb3',
        '\\udbff\\udfff',
        '\\ud800',
        '\\udc00x',
        '\\ud800\\u0041',
      ),
    ),
    { maxLength: 5 },
  )
  .map((parts) => `"${parts.join('')}"`);
const anyNumber = fc.oneof(
  fc.integer().map(String),
  fc.double({ noNaN: true, noDefaultInfinity: true }).map(String),
  fc.constantFrom(
    '0',
    '-0',
    '1e3',
    '1E+2',
    '0.5',
    '123456789012345',
    '1234567890123456',
    '-1.25e-7',
  ),
);
const space = fc.constantFrom('', '', ' ', '\n\t', '\r ');
const { value } = fc.letrec<{ value: string }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4, depthSize: 'small' },
    fc.oneof(anyString, anyNumber, fc.constantFrom('true', 'false', 'null')),
    fc
      .tuple(fc.array(tie('value'), { maxLength: 4 }), space)
      .map(([values, blank]) => `[${blank}${values.join(`${blank},${blank}`)}${blank}]`),
    fc
      .tuple(
        fc.array(
          fc.tuple(fc.oneof(anyString, fc.constantFrom('"id"', '"a"', '"\\u0069d"')), tie('value')),
          { maxLength: 6 },
        ),
        space,
      )
      .map(
        ([members, blank]) =>
          `{${blank}${members.map(([key, of]) => `${key}${blank}:${blank}${of}`).join(`${blank},`)}${blank}}`,
      ),
  ),
}));

test('it finds what json-scan.ts finds, in any records', () => {
  fc.assert(
    fc.property(fc.array(value, { minLength: 1, maxLength: 12 }), space, (records, blank) => {
      expect(found(records, 'id', `${blank},${blank}`)).toEqual(expected(records, 'id'));
    }),
    { numRuns: 1_000 },
  );
});

test('records across any border of the loaded bytes, and larger than these, are found whole', () => {
  const sizes = [
    60_000,
    5_400,
    200_000,
    1,
    65_530,
    65_536,
    70_000,
    3,
    ...Array.from({ length: 900 }, (_, i) => i),
  ];
  const records = sizes.map((size, i) => `{"id":"r${i}","text":"${'x'.repeat(size)}\\n","n":${i}}`);

  expect(found(records, 'id')).toEqual(expected(records, 'id'));
});

test('records with more levels or keys than it takes are found all the same', () => {
  const deep = (levels: number) => `${'['.repeat(levels)}1${']'.repeat(levels)}`;
  const wide = (keys: number) => `{${Array.from({ length: keys }, (_, i) => `"k${i}":${i}`)}}`;
  const records = [...[1, 63, 64, 65, 190].map(deep), ...[31, 64, 65, 600].map(wide), wide(3)];
  for (const keys of [31, 64, 65, 600]) records.push(wide(keys).replace('"k0"', `"k${keys - 1}"`));

  expect(found(records, 'k2')).toEqual(expected(records, 'k2'));
});

test('a member with an empty name is found', () => {
  const records = ['{"":"a","id":"b"}', '{"id":"c"}'];

  expect(found(records, '')).toEqual(expected(records, ''));
});

test('records that are not certain do not load the bytes after them again and again', () => {
  const body = Buffer.from(`[${Array(40_000).fill('"\\ud800"').join()}]`);
  const load = vi.spyOn(body, 'subarray');

  expect(readArray(new JsonScan(body, 'id'), 0).starts).toHaveLength(40_000);

  expect(load.mock.calls.length).toBeLessThanOrEqual(Math.ceil(body.length / (32 * 1024)));
});

test('a body that ends anywhere is no array', () => {
  const body = Buffer.from('[{"id":"a\\u0041\\n","n":[1.5e3,true,{"k":null}]},"x"]');

  for (let length = 1; length < body.length; length += 1) {
    const scan = new JsonScan(body.subarray(0, length), 'id');
    expect(() => readArray(scan, 0)).toThrow(SyntaxError);
  }
});

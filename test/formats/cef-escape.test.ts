// Escaping for CEF against the vectors that two other decoders have read back byte for byte.

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { escapeHeader, escapeValue } from '../../formats/cef-escape.ts';
import { hostileText } from './arbitrary-events.ts';
import { carriedHeader, carriedValue } from './carried.ts';
import { decodeCef } from './decoders.ts';
import { readLines, vectorTest } from './vectors.ts';

interface RoundTrip {
  readonly case: string;
  readonly where: 'ext' | 'ext_last' | 'header';
  readonly value: string;
  readonly cef: string;
}

// What sluice replaces on purpose, so that a line stays a line: these cases differ from the vectors.
const replaced = [
  ...['crlf', 'tab', 'nel', 'ls', 'vt', 'ff', 'ctl1', 'nul', 'del'],
  ...['lead_sp', 'trail_sp', 'only_sp', 'empty'],
];

describe('escapeValue', () => {
  vectorTest('writes the vectors as two other decoders have read them back', () => {
    const vectors = readLines<RoundTrip>('vectors/cef-roundtrip-own.ndjson').filter(
      (vector) => vector.where === 'ext' && !replaced.includes(vector.case),
    );

    for (const { cef, value } of vectors) {
      expect(cef).toContain(` cs1=${escapeValue(value, 100_000)} cs1Label=L `);
    }

    expect(vectors.length).toBe(28);
  });

  test('gives back any text, the documented replacements aside', () => {
    fc.assert(
      fc.property(hostileText, hostileText, (one, two) => {
        const written = [escapeValue(one, 100_000), escapeValue(two, 100_000)] as const;

        const decoded = decodeCef(`CEF:0|v|p|1|id|name|5|cs1=${written[0]} cs2=${written[1]}`);

        const given = [...decoded.extension];
        expect(given).toEqual([
          ['cs1', carriedValue(one)],
          ['cs2', carriedValue(two)],
        ]);
      }),
    );
  });

  test('never passes its limit in code points, nor splits an escape pair or a character', () => {
    fc.assert(
      fc.property(hostileText, fc.nat({ max: 40 }), (text, lengthMax) => {
        const written = escapeValue(text.toWellFormed(), lengthMax);

        expect([...written].length).toBeLessThanOrEqual(lengthMax);
        expect(written.isWellFormed()).toBe(true);
        const decoded = decodeCef(`CEF:0|v|p|1|id|name|5|cs1=${written}`).extension.get('cs1');
        expect(carriedValue(text.toWellFormed())).toContain(decoded);
      }),
    );
  });

  test.each([
    ['a=b', 3, 'a\\='],
    ['a=b', 2, 'a'],
    ['a\\\\b', 4, 'a\\\\'],
    ['a\nb', 2, 'a'],
    ['😀😀😀', 2, '😀😀'],
    ['ab cd', 3, 'ab'],
  ])('cuts %j to %d characters as %j', (text, lengthMax, expected) => {
    expect(escapeValue(text, lengthMax)).toBe(expected);
  });
});

describe('escapeHeader', () => {
  vectorTest('writes the vectors as two other decoders have read them back', () => {
    const vectors = readLines<RoundTrip>('vectors/cef-roundtrip-own.ndjson').filter(
      (vector) => vector.where === 'header' && !replaced.includes(vector.case),
    );

    for (const { cef, value } of vectors) {
      expect(cef).toContain(`|100|${escapeHeader(value, 100_000)}|5|`);
    }

    expect(vectors.length).toBe(28);
  });

  test('gives back any text, the documented replacements aside', () => {
    fc.assert(
      fc.property(hostileText, (text) => {
        const decoded = decodeCef(`CEF:0|v|p|1|id|${escapeHeader(text, 100_000)}|5|`);

        expect(decoded.name).toBe(carriedHeader(text));
        expect(decoded.extension.size).toBe(0);
      }),
    );
  });
});

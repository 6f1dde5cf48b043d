// The scan without a digest against the one with: it accepts the same texts, and ends at the same byte.

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { JsonCheck } from '../../src/tools/json-check.ts';
import { heldNestingMax, JsonScan, TooDeep } from '../../src/tools/json-scan.ts';

type Scanned = { readonly end: number; readonly exact: boolean } | 'malformed' | 'too deep';

function scanned(scan: Pick<JsonScan, 'value' | 'tokens'>): Scanned {
  try {
    return { end: scan.value(0), exact: scan.tokens.exact };
  } catch (error) {
    if (error instanceof TooDeep) return 'too deep';
    if (error instanceof SyntaxError) return 'malformed';
    throw error;
  }
}

function both(text: string): readonly [check: Scanned, scan: Scanned] {
  const bytes = Buffer.from(text);
  const scan = new JsonScan(bytes, null);
  scan.levelsMax = heldNestingMax;
  return [scanned(new JsonCheck(bytes)), scanned(scan)];
}

test('any value, and any damage to it', () => {
  const marks = [...'{}[]",:0-.eE\\ tu\n', '\\u00e9', '\u0001', 'é', 'null', '12345678901234567'];
  fc.assert(
    fc.property(
      fc.jsonValue({ maxDepth: 4 }),
      fc.constantFrom(0, 2),
      fc.array(fc.tuple(fc.double({ min: 0, max: 1, noNaN: true }), fc.constantFrom('', ...marks))),
      (value, indent, damages) => {
        let text = JSON.stringify(value, null, indent);
        for (const [share, mark] of damages.slice(0, 3)) {
          const at = Math.floor(share * text.length);
          text = text.slice(0, at) + mark + text.slice(mark === '' ? at + 1 : at);
        }

        const [check, scan] = both(text);

        expect(check).toEqual(scan);
      },
    ),
    { numRuns: 2_000 },
  );
});

test.each([
  ['as deep as accepted', heldNestingMax, 'end'],
  ['deeper', heldNestingMax + 1, 'too deep'],
])('a value that is %s', (_, levels, expected) => {
  for (const [open, close] of [
    ['[', ']'],
    ['{"a":', '}'],
  ]) {
    const text = `${open?.repeat(levels)}[]${close?.repeat(levels - 1)}${close}`;
    const inner = text.replace('[]', '0');

    const [check, scan] = both(inner);

    expect(check).toEqual(scan);
    expect(typeof check === 'string' ? check : 'end').toBe(expected);
  }
});

test.each(['', '"', '"abc', '{"a', '{"a"', '{"a":', '[1', '[1,', '{,}', '[,]', '{"a":1,}', '[1}'])(
  'a cut or wrong text: %s',
  (text) => {
    const [check, scan] = both(text);

    expect(check).toBe('malformed');
    expect(scan).toBe('malformed');
  },
);

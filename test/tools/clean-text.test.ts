import fc from 'fast-check';
import { expect, test } from 'vitest';
import { cleanText } from '../../src/tools/clean-text.ts';
import { anyText } from '../support/any-text.ts';

test('cleanText: any text becomes one bounded, well-formed, printable line', () => {
  fc.assert(
    fc.property(anyText({ maxLength: 400 }), fc.integer({ min: 1, max: 80 }), (text, max) => {
      const clean = cleanText(`${text}\ud800\r\n\u202e`, max);

      expect(clean.length).toBeLessThanOrEqual(max);
      expect(clean.isWellFormed()).toBe(true);
      expect(clean).not.toMatch(
        /[\u0000-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/,
      );
    }),
  );
});

test('cleanText: hidden values go, as they are and percent-encoded, also where the text is then cut', () => {
  const hidden = ['to/ken=='];

  expect(cleanText('a to/ken== b to%2Fken%3D%3D c', 80, hidden)).toBe('a [hidden] b [hidden] c');
  expect(cleanText(`${'x'.repeat(20)}to/ken==`, 24, hidden)).toBe(`${'x'.repeat(20)}[hi…`);
});

test('cleanText: short values are left alone, since every text holds them', () => {
  expect(cleanText('limit 100 is too much', 80, ['100', ''])).toBe('limit 100 is too much');
});

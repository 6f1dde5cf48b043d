// Lines in one buffer: each is what the format gave, an LF stands behind each, and cutting or joining copies no line wrong.

import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Event } from '../../src/contracts/event.ts';
import type { EncodedLines, Format } from '../../src/contracts/format.ts';
import { encodeLines, indexAt, joinLines, pickLines, subLines } from '../../src/send/encode.ts';
import { anEvent } from '../support/an-event.ts';
import { anyText } from '../support/any-text.ts';

/** A format that gives these, by offset. */
function giving(texts: readonly (string | Uint8Array)[]): { events: Event[]; format: Format } {
  const plain = anEvent();
  return {
    events: texts.map((_, offset) => ({ ...plain, offset })),
    format: { name: 'test', contentType: 'x', encode: ({ offset }) => texts[offset] ?? '' },
  };
}

function encoded(texts: readonly (string | Uint8Array)[]): EncodedLines {
  const { events, format } = giving(texts);
  return encodeLines(events, format);
}

function linesOf({ bytes, starts, ends, length }: EncodedLines): Buffer[] {
  return Array.from({ length }, (_, i) => Buffer.from(bytes.subarray(starts[i], ends[i])));
}

const line = fc.oneof(
  anyText({ maxLength: 40 }),
  fc.constantFrom('', 'é', '😀'.repeat(50), '\ud800', 'a\ud83d'),
  fc.uint8Array({ maxLength: 40 }),
);

test('encodeLines returns each line as UTF-8, or as its bytes, followed by an LF', () => {
  fc.assert(
    fc.property(fc.array(line, { maxLength: 20 }), (texts) => {
      const lines = encoded(texts);

      expect(linesOf(lines)).toEqual(texts.map((text) => Buffer.from(text as string)));
      expect([...lines.ends].every((end) => lines.bytes[end] === 0x0a)).toBe(true);
      expect(lines.bytes.length).toBe((lines.ends.at(-1) ?? -1) + 1);
    }),
  );
});

test('encodeLines grows to pages larger than any before, and leaves earlier ones as they were', () => {
  const before = encoded(['first', 'second']);
  const texts = Array.from({ length: 40 }, (_, i) => '€'.repeat(20_000) + i);

  const lines = encoded(texts);
  const after = encoded(['other']);

  expect(linesOf(lines).map(String)).toEqual(texts);
  expect(linesOf(before).map(String)).toEqual(['first', 'second']);
  expect(linesOf(after).map(String)).toEqual(['other']);
});

test('subLines, pickLines and joinLines give the lines that an array would', () => {
  fc.assert(
    fc.property(
      fc.array(fc.array(fc.string({ maxLength: 10 }), { maxLength: 8 }), {
        minLength: 1,
        maxLength: 4,
      }),
      fc.nat(),
      fc.nat(),
      fc.array(fc.nat(), { maxLength: 6 }),
      (pages, a, b, picks) => {
        const parts = pages.map((texts) => {
          const [from, to] = [a % (texts.length + 1), b % (texts.length + 1)].sort((x, y) => x - y);
          return {
            texts: texts.slice(from, to),
            lines: subLines(encoded(texts), from ?? 0, to ?? 0),
          };
        });
        const expected = parts.flatMap(({ texts }) => texts);
        const indices = expected.length === 0 ? [] : picks.map((pick) => pick % expected.length);

        const joined = joinLines(parts.map(({ lines }) => lines));

        expect(linesOf(joined).map(String)).toEqual(
          expected.map((text) => Buffer.from(text).toString()),
        );
        expect([...joined.ends].every((end) => joined.bytes[end] === 0x0a)).toBe(true);
        expect(linesOf(pickLines(joined, indices)).map(String)).toEqual(
          indices.map((index) => Buffer.from(expected[index] ?? '').toString()),
        );
      },
    ),
  );
});

test('indexAt finds the first event at or after an offset', () => {
  const events = [3, 5, 9].map((offset) => anEvent({ offset }));

  expect([0, 3, 4, 5, 6, 9, 10].map((offset) => indexAt(events, offset))).toEqual([
    0, 0, 1, 1, 2, 2, 3,
  ]);
});

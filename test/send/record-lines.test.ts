// A page's records as lines of their own bytes: what is copied together is, to the byte, what the format writes of each
// record by itself, whatever the page looks like; and the page stays as it is.

import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { HeldPage } from '../../src/contracts/spool.ts';
import { encodeLines } from '../../src/send/encode.ts';
import { DecodedPage } from '../../src/send/held-event.ts';
import { makeFormat } from '../formats/make-format.ts';
import { aPage } from '../support/a-page.ts';
import { anyText } from '../support/any-text.ts';

const original = makeFormat('json', { schema: 'original' });

/** White space between tokens, and more than one byte between records. */
const gap = fc.constantFrom('', '', ' ', '\n', '\r\n', '\t', ' \r\r ', '\n\n  ');
const record = fc.oneof(
  fc.json({ maxDepth: 3 }),
  fc
    .record({ id: anyText({ maxLength: 20 }), n: fc.double() })
    .map((value) => JSON.stringify(value)),
  fc.constantFrom(
    '{}',
    '[]',
    '1e400',
    '"\\n"',
    '{"a":"\\u000a\\r"}',
    '{"é":"漢 😀"}',
    'null',
    '""',
  ),
);

function pretty(json: string, indent: string): string {
  return indent === '' ? json : JSON.stringify(JSON.parse(json), null, 2).replaceAll('\n', indent);
}

function held(body: Buffer, kept: readonly number[] | null, count: number): HeldPage {
  const page = aPage({ ids: Array.from({ length: count }, (_, i) => `${i}`) });
  return { ...page, body, items: 'data', kept: kept && Uint32Array.from(kept), first: 0, count };
}

function textsOf({
  bytes,
  starts,
  ends,
  length,
}: ReturnType<DecodedPage['recordLines']>): string[] {
  return Array.from({ length }, (_, i) => {
    expect(bytes[ends[i] ?? 0]).toBe(0x0a);
    return Buffer.from(bytes.subarray(starts[i], ends[i])).toString('latin1');
  });
}

test('copied lines are those that the format writes of each record, whatever stands between them', () => {
  const indent = fc.constantFrom('', '\n', '\r\n', '\r');
  const item = fc.record({ json: record, before: gap, behind: gap, indent, isKept: fc.boolean() });
  fc.assert(
    fc.property(fc.array(item, { maxLength: 12 }), fc.boolean(), gap, (items, some, configEnv) => {
      const list = items.map(
        ({ json, before, behind, indent }) => before + pretty(json, indent) + behind,
      );
      const body = Buffer.from(`{"data":${configEnv}[${list.join(',')}]${configEnv},"next":\n"x"}`);
      const kept = some ? items.flatMap(({ isKept }, i) => (isKept ? [i] : [])) : null;
      const page = held(body, kept, kept?.length ?? items.length);
      const decoded = new DecodedPage(page, () => {
        throw new Error('a record was parsed');
      });
      const before = Buffer.from(body);

      const copied = decoded.recordLines();

      const written = encodeLines(decoded.events, original);
      expect(textsOf(copied)).toEqual(textsOf(written));
      expect(Buffer.from(copied.bytes).equals(written.bytes)).toBe(true);
      expect(body.equals(before)).toBe(true);
    }),
    { numRuns: 500 },
  );
});

// Text that keeps bytes that are not UTF-8: whatever the bytes, they come back, and what a decoder shows is the same.

import { expect, test } from 'vitest';
import { Random } from '../../src/sandbox/random.ts';
import {
  losslessBytes,
  losslessText,
  shownText,
  unescapedBytes,
} from '../../src/tools/lossless-text.ts';

const cases: readonly (readonly [what: string, bytes: Buffer])[] = [
  ['ASCII', Buffer.from('{"a":1}')],
  ['UTF-8 of each length', Buffer.from('é€𝄞\u{10ffff}')],
  ['Latin-1', Buffer.from('caf\u00e9 \u00e8t\u00e9', 'latin1')],
  ['overlong', Buffer.from([0xc0, 0xaf, 0xe0, 0x80, 0xaf, 0xf0, 0x80, 0x80, 0xaf])],
  ['a surrogate in UTF-8', Buffer.from([0xed, 0xa0, 0x80, 0xed, 0xb3, 0xa9])],
  ['beyond Unicode', Buffer.from([0xf4, 0x90, 0x80, 0x80, 0xf8, 0xff])],
  ['cut sequences', Buffer.from([0x41, 0xe2, 0x82, 0x42, 0xf0, 0x9d, 0x84])],
];

test.for(cases)('%s', ([, bytes]) => {
  const text = losslessText(bytes);

  expect(losslessBytes(text)).toEqual(bytes);
  expect(shownText(text)).toBe(bytes.toString());
  expect(unescapedBytes(JSON.stringify(text))).toBe(`"${text.replaceAll('"', '\\"')}"`);
});

test('any bytes come back', () => {
  const random = new Random(7);
  for (let n = 0; n < 2_000; n += 1) {
    const bytes = Buffer.from(Array.from({ length: random.below(12) }, () => random.below(256)));
    const text = losslessText(bytes);
    expect(losslessBytes(text)).toEqual(bytes);
    expect(shownText(text)).toBe(new TextDecoder('utf-8').decode(losslessBytes(text)));
    expect(JSON.parse(unescapedBytes(JSON.stringify(text)))).toBe(text);
  }
});

test('an escape that stands in a text is left as it is', () => {
  const text = 'C:\\udce9 and \\\\udce9';

  expect(JSON.parse(unescapedBytes(JSON.stringify(text)))).toBe(text);
});

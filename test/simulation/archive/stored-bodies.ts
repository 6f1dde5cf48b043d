// Compares the page bodies of a segment with the pages of upstream, without erased records.

import { zstdDecompressSync } from 'node:zlib';
import type { Branch } from './truth.ts';
import { bodyOf, type TrueRecord } from './upstream.ts';

/**
 * How a page stands in the bytes of its segment: as it is to be, with records that were erased, or as upstream has never
 * sent it.
 */
export function statusOf(
  branch: Branch,
  index: number,
  whole: Buffer,
): 'right' | 'back' | 'forged' {
  const { records } = branch.pages.get(index) ?? {};
  if (records === undefined) return 'forged';
  const erased = branch.erased.get(index) ?? new Set<number>();
  const versions = branch.parsed.filter((one) => one.t === 'erased' && one.page.index === index);
  const texts = [branch.parsed[index], ...versions].flatMap(({ body }) => textAt(whole, body));
  const left = bodyOf(records, erased);
  if (texts.some((text) => text.equals(left))) return 'right';
  return texts.some((text) => isMadeOf(text, records, erased)) ? 'back' : 'forged';
}

function textAt(whole: Buffer, { at, length }: { at: number; length: number }): Buffer[] {
  try {
    return [zstdDecompressSync(whole.subarray(at, at + length))];
  } catch {
    return [];
  }
}

/** True for the body as it was sent, or without some of what may be erased from it. */
function isMadeOf(
  text: Buffer,
  records: readonly TrueRecord[],
  erased: ReadonlySet<number>,
): boolean {
  const places = [...erased];
  for (let choice = 0; choice < 2 ** places.length; choice += 1) {
    const some = new Set(places.filter((_, bit) => (choice >> bit) % 2 === 1));
    if (bodyOf(records, some).equals(text)) return true;
  }
  return false;
}

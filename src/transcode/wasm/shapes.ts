// Finds the shape of a record, as ../shape-tree.ts does, sixteen bytes at a time.

import {
  atCare,
  cares,
  digitsMax,
  ends,
  escapeCare,
  fractionCare,
  highCare,
  isDigit,
  markCare,
  rareEscapeCare,
  same,
  starts,
} from './memory';

/** The shape of a record, noting the byte ranges of its values; 0: unknown shape. */
export function find(root: usize, from: usize, end: usize): usize {
  let node = root;
  let at = from;
  let leaf: usize = 0;
  while (node !== 0) {
    const start = at + load<u32>(node, 4);
    if (start <= end && same(at, load<u32>(node), load<u32>(node, 4))) {
      const kind = load<u32>(node, 8);
      if (kind === 2) {
        if (start === end) return load<u32>(node, 20);
      } else {
        const to = kind === 0 ? text(start, leaf) : number(start, leaf);
        if (to !== start) {
          store<u32>(starts + leaf * 4, <u32>start);
          store<u32>(ends + leaf * 4, <u32>to);
          leaf += 1;
          at = to;
          node = load<u32>(node, 12);
          continue;
        }
      }
    }
    node = load<u32>(node, 16);
  }
  return 0;
}

/** The end of the text that starts here. */
function text(from: usize, leaf: usize): usize {
  // By the high and the low half of a byte: a bit for each of `"`, `\`, `=`, `@`, `|`, `^` and DEL.
  const high = i8x16(0, 0, 1, 4, 8, 2 | 32, 0, 16 | 64, 0, 0, 0, 0, 0, 0, 0, 0);
  const low = i8x16(8, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2 | 16, 4, 32, 64);
  const nibble = i8x16.splat(15);
  let found: u32 = 0;
  let at = from;
  while (true) {
    const bytes = v128.load(at);
    const classes = v128.and(
      i8x16.swizzle(high, i8x16.shr_u(bytes, 4)),
      i8x16.swizzle(low, v128.and(bytes, nibble)),
    );
    const special = i8x16.bitmask(v128.or(i8x16.ne(classes, i8x16.splat(0)), bytes));
    if (special === 0) {
      at += 16;
      continue;
    }
    const stops = i8x16.bitmask(
      v128.or(i8x16.eq(classes, i8x16.splat(1)), i8x16.eq(classes, i8x16.splat(2))),
    );
    const count = ctz(stops | 0x10000);
    const before = special & ((1 << count) - 1);
    if (before !== 0) {
      const highs = i8x16.bitmask(bytes) & before;
      const ats = i8x16.bitmask(i8x16.eq(classes, i8x16.splat(8))) & before;
      if (highs !== 0) found |= highCare;
      if (ats !== 0) found |= atCare;
      if ((before & ~(highs | ats)) !== 0) found |= markCare;
    }
    at += count;
    if (count === 16) continue;
    if (load<u8>(at) === 0x22) {
      store<u32>(cares + leaf * 4, found);
      return at;
    }
    const mark = load<u8>(at, 1);
    found |= mark === 0x22 || mark === 0x5c || mark === 0x6e ? escapeCare : rareEscapeCare;
    at += 2;
  }
}

/** The end of the number that starts here; `from` if it would be written differently. */
function number(from: usize, leaf: usize): usize {
  const start = load<u8>(from) === 0x2d ? from + 1 : from;
  let at = start;
  while (isDigit(load<u8>(at))) at += 1;
  const whole = at;
  if (load<u8>(at) === 0x2e) {
    at += 1;
    while (isDigit(load<u8>(at))) at += 1;
    if (load<u8>(at - 1) === 0x30) return from;
    if (load<u8>(start) === 0x30 && load<u8>(start, 2) === 0x30) return from;
  }
  const isMinusZero = start !== from && whole === at && load<u8>(start) === 0x30;
  if (at - start > digitsMax || isMinusZero) return from;
  store<u32>(cares + leaf * 4, whole === at ? 0 : fractionCare);
  return at;
}

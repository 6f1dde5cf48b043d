// The content of a message's gaps: its length in bytes, and the bytes. Invariant: the number of
// written bytes equals the length computed before.

import type { NumberTags } from '../contracts/index.ts';
import { escapesIn, unescaped } from './escaping.ts';
import type { MessageGap } from './items.ts';
import { nanosBytes, nanosMaxMs, numberBytes, writeNanos, writeNumber } from './protobuf.ts';
import { care } from './shape-tree.ts';
import {
  clockBytes,
  clockText,
  copy,
  digitsOf,
  leafTime,
  numberOf,
  secondsText,
  stampBytes,
  uidDigits,
  type Work,
  writeAscii,
  writeDigits,
  writeHex,
  writeStamp,
} from './values.ts';

const kinds = {
  ...{ value: 0, json: 1, number: 2, 'time number': 3, nanos: 4 },
  ...{ milliseconds: 5, seconds: 6, stamp: 7, clock: 8, uid: 9, record: 10 },
} as const;

/** A gap in the form in which it is filled. */
export interface Filling {
  readonly kind: (typeof kinds)[keyof typeof kinds];
  readonly leaf: number;
  readonly tags: NumberTags;
  /** The value of the last found record, if it is a number. */
  number: number;
}

/** The filling for a gap. */
export function fillingOf(gap: MessageGap): Filling {
  const leaf = 'leaf' in gap ? gap.leaf : 0;
  const tags = 'tags' in gap ? gap.tags : { int: 0, double: 0 };
  return { kind: kinds[gap.kind], leaf, tags, number: Number.NaN };
}

/** Bytes of the gap's content; -1: it cannot be filled. */
export function bytesOfGap(filling: Filling, work: Work): number {
  const { kind, leaf } = filling;
  switch (kind) {
    case kinds.value:
    case kinds.json: {
      const start = work.starts[leaf] as number;
      const end = work.ends[leaf] as number;
      const isSame = kind === kinds.json || ((work.cares[leaf] as number) & care.escape) === 0;
      return end - start - (isSame ? 0 : escapesIn(work.bytes, start, end));
    }
    case kinds.number:
      filling.number = numberOf(work, leaf);
      return numberBytes(filling.number);
    case kinds['time number']:
      filling.number = leafTime(work, leaf);
      return numberBytes(filling.number);
    case kinds.nanos:
      return leafTime(work, leaf) > nanosMaxMs ? -1 : nanosBytes;
    case kinds.milliseconds:
      return digitsOf(leafTime(work, leaf));
    case kinds.seconds:
      return secondsText(leafTime(work, leaf)).length;
    case kinds.stamp:
      return stampBytes;
    case kinds.clock:
      return clockBytes;
    case kinds.uid:
      return uidDigits;
    default:
      return work.to - work.from;
  }
}

/** Fills the gap and returns its end. */
export function writeGap(
  { kind, leaf, tags, number }: Filling,
  work: Work,
  uidAt: number,
  out: DataView,
  at: number,
): number {
  switch (kind) {
    case kinds.value:
    case kinds.json: {
      const start = work.starts[leaf] as number;
      const end = work.ends[leaf] as number;
      const isSame = kind === kinds.json || ((work.cares[leaf] as number) & care.escape) === 0;
      return isSame ? copy(work, start, end, out, at) : unescaped(work.bytes, start, end, out, at);
    }
    case kinds.number:
    case kinds['time number']:
      return writeNumber(number, tags, out, at);
    case kinds.nanos:
      return writeNanos(leafTime(work, leaf), out, at);
    case kinds.milliseconds:
      return writeDigits(leafTime(work, leaf), out, at);
    case kinds.seconds:
      return writeAscii(secondsText(leafTime(work, leaf)), out, at);
    case kinds.stamp:
      return writeStamp(work, leaf, out, at);
    case kinds.clock:
      return writeAscii(clockText(leafTime(work, leaf)), out, at);
    case kinds.uid:
      return writeHex(work.uids, uidAt, out, at);
    default:
      return copy(work, work.from, work.to, out, at);
  }
}

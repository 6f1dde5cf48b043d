// What must hold of a record's values beyond their guards, since the format looks at it: how long they
// are, that they differ, and what kind of text they are. What must stay true: where it holds, the
// format writes the values as it wrote the stand-ins.

import type { TextLook } from '../contracts/copying.ts';
import { hasAlikes, isLine } from './escaping.ts';
import { care } from './shape-tree.ts';
import type { Work } from './values.ts';

/** What must hold for lines of one kind. */
export interface Conditions {
  /** The most bytes of each value. */
  readonly bytesMax: readonly number[];
  /** The most bytes of several values together. */
  readonly together: readonly { readonly leaves: readonly number[]; readonly bytesMax: number }[];
  /** Values, two and two, that must differ. */
  readonly distinct: readonly number[];
  /** Values that must be written as they are, since what they become may be another's text. */
  readonly written: readonly number[];
  /** Values that must be such texts. */
  readonly texts: readonly { readonly leaf: number; readonly as: TextLook }[];
}

/** True where it holds of the record found last. */
export function conditionsHold(conditions: Conditions, work: Work): boolean {
  const { bytesMax, together, distinct, written, texts } = conditions;
  const { bytes, starts, ends, cares } = work;
  for (let i = 0; i < bytesMax.length; i += 1) {
    const length = (ends[i] as number) - (starts[i] as number);
    if (length * (cares[i] === 0 ? 1 : 2) > (bytesMax[i] as number)) return false;
  }
  for (const sum of together) {
    let bytes = 0;
    for (const leaf of sum.leaves) bytes += (ends[leaf] as number) - (starts[leaf] as number);
    if (bytes > sum.bytesMax) return false;
  }
  for (let i = 0; i < distinct.length; i += 2) {
    const one = distinct[i] as number;
    const two = distinct[i + 1] as number;
    const start = starts[two] as number;
    const isSame = bytes.compare(bytes, start, ends[two], starts[one], ends[one]) === 0;
    if (isSame) return false;
  }
  for (const leaf of written) {
    const isCared = ((cares[leaf] as number) & (care.escape | care.mark)) !== 0;
    if (isCared && hasAlikes(bytes, starts[leaf] as number, ends[leaf] as number)) return false;
  }
  for (const { leaf, as } of texts) if (!isText(leaf, as, work)) return false;
  return true;
}

function isText(leaf: number, as: TextLook, { bytes, starts, ends, cares }: Work): boolean {
  const start = starts[leaf] as number;
  const found = cares[leaf] as number;
  switch (as) {
    case 'line':
      return (
        (found & (care.escape | care.high | care.mark)) === 0 ||
        isLine(bytes, start, ends[leaf] as number)
      );
    case 'plain':
      return (found & care.escape) === 0;
  }
}

// Conditions on a record's values in addition to their guards, because the format inspects the
// values: their length, that they differ, and their kind of text. Invariant: if the conditions
// hold, the format writes the values as it wrote the sentinels.

import type { TextLook } from '../contracts/index.ts';
import { hasAlikes, isLine } from './escaping.ts';
import { care } from './shape-tree.ts';
import type { Work } from './values.ts';

/** Conditions for lines of one kind. */
export interface Conditions {
  /** Maximum bytes of each value. */
  readonly bytesMax: readonly number[];
  /** Maximum bytes of several values together. */
  readonly together: readonly { readonly leaves: readonly number[]; readonly bytesMax: number }[];
  /** Pairs of values that must differ. */
  readonly distinct: readonly number[];
  /**
   * Values that must be written verbatim, because their converted form may be another value's text.
   */
  readonly written: readonly number[];
  /** Values that must be texts of these kinds. */
  readonly texts: readonly { readonly leaf: number; readonly as: TextLook }[];
}

/** True if the conditions hold for the last found record. */
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

// A line with gaps: constant bytes, and the record's values between them. Writing is the hottest
// loop of transcoding: bytes are moved four at a time, nothing is allocated. Invariant: the output
// equals the output of the format, or nothing is written.

import type { Copying, TextLook } from '../contracts/index.ts';
import { escapedCef, escapedJson, hasAlikes, isLine, isPlain, writePlainText } from './escaping.ts';
import { care } from './shape-tree.ts';
import {
  clockText,
  copy,
  leafTime,
  secondsText,
  spill,
  type Work,
  writeAscii,
  writeDigits,
  writeHex,
  writeStamp,
} from './values.ts';

/** The content of a gap. Leaf -1 is the page's read time. */
export type TemplateGap =
  | {
      readonly kind: 'value' | 'milliseconds' | 'seconds' | 'stamp' | 'clock';
      readonly leaf: number;
    }
  | { readonly kind: 'uid' | 'record' };

/** A gap and the text before it. */
export interface TemplateStep {
  readonly before: string;
  readonly gap: TemplateGap;
}

/** A learned line. */
export interface LearnedLine {
  readonly steps: readonly TemplateStep[];
  readonly after: string;
}

/** The kinds of gaps as numbers. */
export const gapKinds = {
  value: 0,
  milliseconds: 1,
  stamp: 2,
  clock: 3,
  uid: 4,
  record: 5,
  seconds: 6,
} as const;
/** LEEF recognises a time by its 13 digits. */
const leefTimeMax = 1e13;
/** Maximum bytes written per byte of a text. */
const growthMax = 2;
/** Maximum bytes in a gap of any other kind. */
export const gapBytesMax = 64;

/** Writes lines of one kind. */
export interface LineTemplate {
  /** The learned line; null: it is not text. */
  readonly line: LearnedLine | null;
  /** Required space for the line of the last found record; called before the write. */
  roomFor(work: Work): number;
  /** Writes the line of the last found record and returns its end; -1 if it cannot. */
  write(work: Work, uidAt: number, out: DataView, from: number): number;
}

/** Writes lines of text. */
export class TextTemplate implements LineTemplate {
  /** The learned line. */
  readonly line: LearnedLine;
  readonly #form: Copying['form'];
  /** The constant bytes before each gap and after the last, each aligned to four bytes. */
  readonly #words: Int32Array;
  readonly #lengths: Uint16Array;
  readonly #kinds: Uint8Array;
  readonly #leaves: Int16Array;
  readonly #stillBytes: number;

  constructor(line: LearnedLine, form: Copying['form']) {
    const { steps, after } = line;
    this.line = line;
    this.#form = form;
    const still = [...steps.map(({ before }) => before), after].map((text) => Buffer.from(text));
    this.#lengths = Uint16Array.from(still, ({ length }) => length);
    const padded = still.map((bytes) => Buffer.concat([bytes, Buffer.alloc(-bytes.length & 3)]));
    const all = Buffer.concat(padded);
    this.#words = Int32Array.from({ length: all.length / 4 }, (_, i) => all.readInt32LE(i * 4));
    this.#kinds = Uint8Array.from(steps, ({ gap }) => gapKinds[gap.kind]);
    this.#leaves = Int16Array.from(steps, ({ gap }) => ('leaf' in gap ? gap.leaf : 0));
    this.#stillBytes = all.length + steps.length * gapBytesMax + spill;
  }

  /** Maximum length of a constant text in a template. */
  static readonly stillMax = 0xffff;

  roomFor({ starts, ends, from, to }: Work): number {
    let bytes = this.#stillBytes + (this.#form === 'record' ? to - from : 0);
    for (let i = 0; i < this.#kinds.length; i += 1) {
      const leaf = this.#leaves[i] as number;
      if (this.#kinds[i] === gapKinds.value) {
        bytes += ((ends[leaf] as number) - (starts[leaf] as number)) * growthMax;
      }
    }
    return bytes;
  }

  write(work: Work, uidAt: number, out: DataView, from: number): number {
    const words = this.#words;
    const lengths = this.#lengths;
    const gaps = this.#kinds.length;
    let at = from;
    let word = 0;
    for (let i = 0; ; i += 1) {
      const length = lengths[i] as number;
      for (let done = 0; done < length; done += 4) {
        out.setInt32(at + done, words[word] as number, true);
        word += 1;
      }
      at += length;
      if (i === gaps) return at;
      at = this.#gap(i, work, uidAt, out, at);
      if (at < 0) return -1;
    }
  }

  #gap(i: number, work: Work, uidAt: number, out: DataView, at: number): number {
    const leaf = this.#leaves[i] as number;
    switch (this.#kinds[i]) {
      case gapKinds.value:
        return this.#value(leaf, work, out, at);
      case gapKinds.uid:
        return writeHex(work.uids, uidAt, out, at);
      case gapKinds.record:
        return this.#record(work, out, at);
      case gapKinds.milliseconds: {
        const time = leafTime(work, leaf);
        return this.#form === 'leef' && time >= leefTimeMax ? -1 : writeDigits(time, out, at);
      }
      case gapKinds.seconds:
        return writeAscii(secondsText(leafTime(work, leaf)), out, at);
      case gapKinds.clock:
        return writeAscii(clockText(leafTime(work, leaf)), out, at);
      default:
        return writeStamp(work, leaf, out, at);
    }
  }

  #record(work: Work, out: DataView, at: number): number {
    const { bytes, from, to, allCares } = work;
    const isSeen = (allCares & (care.high | care.mark)) === 0 || isPlain(bytes, from, to);
    return isSeen ? copy(work, from, to, out, at) : -1;
  }

  #value(leaf: number, work: Work, out: DataView, at: number): number {
    const start = work.starts[leaf] as number;
    const end = work.ends[leaf] as number;
    const cares = (work.cares[leaf] as number) & ~(care.at | care.fraction);
    const form = this.#form;
    const { bytes } = work;
    // Keys and values of pairs are written without blanks at their ends.
    const isPair = form === 'cef' || form === 'leef';
    if (isPair && (bytes[start] === 0x20 || bytes[end - 1] === 0x20)) return -1;
    if (cares === 0) return copy(work, start, end, out, at);
    switch (form) {
      case 'cef':
        return escapedCef(bytes, start, end, out, at);
      case 'leef':
        return writePlainText(bytes, start, end, out, at, 'look-alikes');
      case 'text':
        return writePlainText(bytes, start, end, out, at, 'as it is');
      default:
        return escapedJson(bytes, start, end, out, at, form === 'visible json');
    }
  }
}

// Conditions on a record's values in addition to their guards, because the format inspects the
// values: their length, that they differ, and their kind of text. Invariant: if the conditions
// hold, the format writes the values as it wrote the sentinels.

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

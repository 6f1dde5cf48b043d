// A line in Protocol Buffers with gaps. Nested messages and texts have their lengths in front, so a
// line is written in two passes: first the bytes of each value and from that, from the innermost
// message outwards, each length; then constant bytes, lengths and values in order. Invariant: the
// output equals the output of the format, or nothing is written.

import type { Item } from './items.ts';
import { bytesOfGap, writeGap } from './message-gaps.ts';
import { type LengthGroup, type MessageStep, MessageSteps } from './message-steps.ts';
import { oneByteMax, varintLength, writeVarint } from './protobuf.ts';
import type { LineTemplate } from './template.ts';
import { spill, type Work } from './values.ts';

/** Writes messages of one kind. */
export class MessageTemplate implements LineTemplate {
  readonly line = null;
  readonly #steps: readonly MessageStep[];
  readonly #groups: readonly LengthGroup[];
  readonly #words: Int32Array;
  readonly #stillBytes: number;
  /** Length for the last found record; -1: it cannot be written. */
  #bytes = -1;

  constructor(items: readonly Item[]) {
    const { steps, groups, words, stillBytes } = new MessageSteps(items);
    this.#steps = steps;
    this.#groups = groups;
    this.#words = words;
    this.#stillBytes = stillBytes;
  }

  roomFor(work: Work): number {
    this.#bytes = this.#measure(work);
    return this.#bytes + spill;
  }

  write(work: Work, uidAt: number, out: DataView, from: number): number {
    if (this.#bytes < 0) return -1;
    const steps = this.#steps;
    const words = this.#words;
    let at = from;
    let word = 0;
    for (let i = 0; i < steps.length; i += 1) {
      const { bytes, group, filling } = steps[i] as MessageStep;
      for (let done = 0; done < bytes; done += 4) {
        out.setInt32(at + done, words[word] as number, true);
        word += 1;
      }
      at += bytes;
      if (group !== null) at = writeLengths(group, out, at);
      if (filling !== null) at = writeGap(filling, work, uidAt, out, at);
    }
    return at;
  }

  /** Computes all lengths and returns the line's; -1 if it cannot be written. */
  #measure(work: Work): number {
    const groups = this.#groups;
    for (let i = 0; i < groups.length; i += 1) {
      const group = groups[i] as LengthGroup;
      group.innermost = group.stillBytes;
    }
    const steps = this.#steps;
    let line = this.#stillBytes;
    for (let i = 0; i < steps.length; i += 1) {
      const { filling, parent } = steps[i] as MessageStep;
      if (filling === null) continue;
      const bytes = bytesOfGap(filling, work);
      if (bytes < 0) return -1;
      if (parent === null) line += bytes;
      else parent.innermost += bytes;
    }
    for (let i = 0; i < groups.length; i += 1) {
      const group = groups[i] as LengthGroup;
      const bytes = measured(group);
      if (group.parent === null) line += bytes;
      else group.parent.innermost += bytes;
    }
    return line;
  }
}

/**
 * Computes the lengths of a group and returns the bytes of the outermost with its length prefix.
 */
function measured(group: LengthGroup): number {
  const outermost = group.innermost + group.beyondMost;
  group.isShort = outermost <= oneByteMax;
  if (group.isShort) return 1 + outermost;
  const { between, lengths } = group;
  let bytes = group.innermost;
  for (let i = between.length; i >= 0; i -= 1) {
    bytes += between[i]?.length ?? 0;
    lengths[i] = bytes;
    bytes += varintLength(bytes);
  }
  return bytes;
}

/** Writes lengths into the constant bytes that end at `at`, and returns their new end. */
function writeLengths(group: LengthGroup, out: DataView, at: number): number {
  const { beyond, innermost, lengths, between } = group;
  if (group.isShort) {
    for (let i = 0; i < beyond.length; i += 1) {
      const more = beyond[i] as number;
      out.setUint8(at - 1 - more, innermost + more);
    }
    return at;
  }
  let to = at - 1 - group.beyondMost;
  for (let i = 0; i < lengths.length; i += 1) {
    to = writeVarint(lengths[i] as number, out, to);
    const still = between[i];
    if (still === undefined) continue;
    for (let j = 0; j < still.length; j += 1) out.setUint8(to + j, still[j] as number);
    to += still.length;
  }
  return to;
}

// A line in Protocol buffers with gaps. Messages within messages, and texts, have their lengths in
// front, so a line is written in two passes: first how many bytes each value takes, and from that,
// from the innermost message outwards, each length; then still bytes, lengths and values in order.
// What must stay true: what is written is what the ordinary path would write, or nothing is.

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
  /** Of the record found last; -1: it cannot be written. */
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

  /** Finds all lengths, and returns that of the line; -1 where it cannot be written. */
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

/** Finds the lengths of a group, and returns the bytes of the outermost with what it is of. */
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

/** Puts lengths into the still bytes that end at `at`, and returns where they end then. */
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

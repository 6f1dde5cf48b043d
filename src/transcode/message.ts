// A line in Protocol Buffers with gaps. Nested messages and texts have their lengths in front, so a
// line is written in two passes: first the bytes of each value and from that, from the innermost
// message outwards, each length; then constant bytes, lengths and values in order. Invariant: the
// output equals the output of the format, or nothing is written.

import type { Item } from './items.ts';
import { bytesOfGap, type Filling, fillingOf, writeGap } from './message-gaps.ts';
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

// A line in Protocol Buffers, prepared for writing. Lengths that end at the same position, such as
// those of a text, of its value and of its attribute, form one group: as long as each of them fits
// one byte, their differences are constant.

/** Lengths that end at the same position, the outermost first. */
interface LengthGroup {
  /** The bytes between each length and the next one. */
  readonly between: readonly Buffer[];
  /** If each fits one byte: the difference of each to the innermost, and that of the outermost. */
  readonly beyond: Uint32Array;
  readonly beyondMost: number;
  readonly parent: LengthGroup | null;
  /** The constant bytes inside the innermost message. */
  stillBytes: number;
  /**
   * Of the last found record: the innermost length, whether each fits one byte, and if not, all
   * lengths.
   */
  innermost: number;
  isShort: boolean;
  readonly lengths: Uint32Array;
}

/**
 * Constant bytes, optionally with the lengths of a group at their end, and the gap or group after
 * them.
 */
interface MessageStep {
  readonly bytes: number;
  readonly group: LengthGroup | null;
  /** The group that contains the value; null: the line itself. */
  readonly parent: LengthGroup | null;
  /** Null: another group or the end. */
  filling: Filling | null;
}

/** The steps of a line, and its groups, each inner one before the outer one. */
class MessageSteps {
  readonly steps: MessageStep[] = [];
  readonly groups: LengthGroup[] = [];
  /** Constant bytes of the line outside all groups. */
  stillBytes = 0;
  readonly #blocks: Buffer[] = [];
  /** Constant bytes that belong to no step yet. */
  #still: Buffer = Buffer.alloc(0);

  constructor(items: readonly Item[]) {
    this.#add(items, null);
    this.#step({ group: null, parent: null, filling: null });
  }

  /** The constant bytes of all steps, each aligned to four bytes; a length has one byte. */
  get words(): Int32Array {
    const all = Buffer.concat(this.#blocks);
    return Int32Array.from({ length: all.length / 4 }, (_, i) => all.readInt32LE(i * 4));
  }

  #add(items: readonly Item[], parent: LengthGroup | null): void {
    for (const item of items) {
      const last = this.steps.at(-1);
      if (Buffer.isBuffer(item)) {
        this.#still = Buffer.concat([this.#still, item]);
        if (parent === null) this.stillBytes += item.length;
        else parent.stillBytes += item.length;
      } else if ('message' in item) {
        this.#addMessage(item.message, parent);
      } else if (this.#still.length === 0 && last?.filling === null) {
        last.filling = fillingOf(item);
      } else {
        this.#step({ group: null, parent, filling: fillingOf(item) });
      }
    }
  }

  #addMessage(message: readonly Item[], parent: LengthGroup | null): void {
    const between: Buffer[] = [];
    let items = message;
    for (let last = lastOf(items); last !== null; last = lastOf(items)) {
      between.push(last.before);
      items = last.message;
    }
    const group = groupOf(between, parent);
    const lengths = [...between, Buffer.alloc(0)].flatMap((bytes) => [Buffer.alloc(1), bytes]);
    this.#still = Buffer.concat([this.#still, ...lengths]);
    this.#step({ group, parent: group, filling: null });
    this.#add(items, group);
    this.groups.push(group);
  }

  #step(step: Omit<MessageStep, 'bytes'>): void {
    this.steps.push({ bytes: this.#still.length, ...step });
    this.#blocks.push(this.#still, Buffer.alloc(-this.#still.length & 3));
    this.#still = Buffer.alloc(0);
  }
}

function groupOf(between: readonly Buffer[], parent: LengthGroup | null): LengthGroup {
  // Between two lengths are the first one's own byte and the bytes between them.
  const beyond = new Uint32Array(between.length + 1);
  for (let i = between.length - 1; i >= 0; i -= 1) {
    beyond[i] = (beyond[i + 1] ?? 0) + 1 + (between[i]?.length ?? 0);
  }
  return {
    ...{ between, beyond, beyondMost: beyond[0] ?? 0, parent, stillBytes: 0 },
    ...{ innermost: 0, isShort: true, lengths: new Uint32Array(beyond.length) },
  };
}

/** The message that ends at the end of these items, if only constant bytes precede it. */
function lastOf(items: readonly Item[]): { before: Buffer; message: readonly Item[] } | null {
  const last = items.at(-1);
  const before = items.length === 1 ? Buffer.alloc(0) : items[0];
  if (items.length > 2 || last === undefined || !('message' in last)) return null;
  return Buffer.isBuffer(before) ? { before, message: last.message } : null;
}

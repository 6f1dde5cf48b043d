// A line in Protocol Buffers, prepared for writing. Lengths that end at the same position, such as
// those of a text, of its value and of its attribute, form one group: as long as each of them fits
// one byte, their differences are constant.

import type { Item } from './items.ts';
import { type Filling, fillingOf } from './message-gaps.ts';

/** Lengths that end at the same position, the outermost first. */
export interface LengthGroup {
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
export interface MessageStep {
  readonly bytes: number;
  readonly group: LengthGroup | null;
  /** The group that contains the value; null: the line itself. */
  readonly parent: LengthGroup | null;
  /** Null: another group or the end. */
  filling: Filling | null;
}

/** The steps of a line, and its groups, each inner one before the outer one. */
export class MessageSteps {
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

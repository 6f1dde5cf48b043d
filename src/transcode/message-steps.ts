// A line in Protocol buffers, taken apart for writing it. Lengths that end at the same place, such
// as those of a text, of the value that it is and of the attribute that has it, are one group: as
// long as each of them takes one byte, they differ in constants.

import type { Item } from './items.ts';
import { type Filling, fillingOf } from './message-gaps.ts';

/** Lengths that end at the same place, the outermost first. */
export interface LengthGroup {
  /** The bytes between each length and the next one. */
  readonly between: readonly Buffer[];
  /** If each takes one byte: what each is beyond the innermost, and the outermost of them. */
  readonly beyond: Uint32Array;
  readonly beyondMost: number;
  readonly parent: LengthGroup | null;
  /** The bytes behind the innermost that stand still. */
  stillBytes: number;
  /** Of the record found last: the innermost, whether each takes one byte, and if not, all. */
  innermost: number;
  isShort: boolean;
  readonly lengths: Uint32Array;
}

/** Still bytes, which end with the lengths of a group or not, and what is behind them. */
export interface MessageStep {
  readonly bytes: number;
  readonly group: LengthGroup | null;
  /** What the value is within; null: the line itself. */
  readonly parent: LengthGroup | null;
  /** Null: another group or the end. */
  filling: Filling | null;
}

/** The steps of a line, and its groups, those within another one before it. */
export class MessageSteps {
  readonly steps: MessageStep[] = [];
  readonly groups: LengthGroup[] = [];
  /** The still bytes of the line that are in no group. */
  stillBytes = 0;
  readonly #blocks: Buffer[] = [];
  /** Still bytes that no step has yet. */
  #still: Buffer = Buffer.alloc(0);

  constructor(items: readonly Item[]) {
    this.#add(items, null);
    this.#step({ group: null, parent: null, filling: null });
  }

  /** The still bytes of all steps, each from a multiple of four on; a length has one byte. */
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
  // From a length to the next one there are its own byte and those between.
  const beyond = new Uint32Array(between.length + 1);
  for (let i = between.length - 1; i >= 0; i -= 1) {
    beyond[i] = (beyond[i + 1] ?? 0) + 1 + (between[i]?.length ?? 0);
  }
  return {
    ...{ between, beyond, beyondMost: beyond[0] ?? 0, parent, stillBytes: 0 },
    ...{ innermost: 0, isShort: true, lengths: new Uint32Array(beyond.length) },
  };
}

/** The message that ends where these items end, where there are only still bytes before it. */
function lastOf(items: readonly Item[]): { before: Buffer; message: readonly Item[] } | null {
  const last = items.at(-1);
  const before = items.length === 1 ? Buffer.alloc(0) : items[0];
  if (items.length > 2 || last === undefined || !('message' in last)) return null;
  return Buffer.isBuffer(before) ? { before, message: last.message } : null;
}

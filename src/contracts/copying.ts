// How a format's lines can be put together by copying values into what was written before
// (src/transcode): how a value stands in a line, and what besides is looked at of it. What must
// stay true: of two events that differ in values only which nothing here looks at, and in those
// with the same answers, a format writes the same but for the values.

import type { Event } from './event.ts';

/**
 * What is looked at of one value that is written: whether it is an `address`, a `mac`, a `port` or
 * a whole number from 0 (`count`), or something that nothing but the format knows. `text`: only how
 * long it is.
 */
export interface Look {
  readonly value: unknown;
  readonly as: 'text' | 'address' | 'mac' | 'port' | 'count' | 'other';
  /** The most bytes that are written of it; a longer one is cut. */
  readonly bytesMax: number;
  /** Another value that it is compared with; `undefined`: none. */
  readonly rival: unknown;
}

/** How values stand in a text. */
export interface CopiedValues {
  /**
   * How a text stands in a line: as in JSON, as in JSON without characters that cannot be seen, or
   * escaped as CEF has it. `record`: none does, but the record whole, as it came, where all of its
   * characters can be seen.
   */
  readonly form: 'json' | 'visible json' | 'cef' | 'record';
  /** What is looked at of the values of this event; left out: nothing is of any. */
  looks?(event: Event): readonly Look[];
}

/** How lines are put together by copying. */
export interface Copying extends CopiedValues {
  /** A longer line is shortened. */
  readonly lineBytesMax: number;
  /** The line, never shortened. */
  write(event: Event): string;
}

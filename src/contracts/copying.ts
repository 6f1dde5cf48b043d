// How a format's lines can be put together by copying values into what was written before
// (src/transcode): how a value stands in a line, and what besides is looked at of it. What must
// stay true: of two events that differ in values only which nothing here looks at, and in those
// with the same answers, a format writes the same but for the values.

import type { Event } from './event.ts';

/**
 * What is looked at of one value that is written: whether it is an `address`, a `mac`, a `port`, a
 * whole number (`integer`) or one from 0 (`count`), whether it is a `line`, of characters that can
 * all be seen, or `plain`, the same in JSON as by itself, or something
 * that nothing but the format knows. `text`: only how long it is. `together`: how long texts are in
 * sum, of which the value is a list.
 */
export interface Look {
  readonly value: unknown;
  readonly as:
    | ('text' | 'together' | TextLook)
    | ('address' | 'mac' | 'port' | 'integer' | 'count' | 'other');
  /** The most bytes that are written of it; a longer one is cut. */
  readonly bytesMax: number;
  /** Another value that it is compared with; `undefined`: none. */
  readonly rival: unknown;
}

/** What a text may have to be. */
export type TextLook = 'line' | 'plain';

/** How values stand in a text. */
export interface CopiedValues {
  /**
   * How a text stands in a line: as in JSON, as in JSON without characters that cannot be seen,
   * escaped as CEF has it, with look-alikes as LEEF has it, or as it is (`text`), where all of its
   * characters can be seen. `record`: none does, but the record whole, as it came, on the same
   * condition.
   */
  readonly form: 'json' | 'visible json' | 'cef' | 'leef' | 'text' | 'record';
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

/** How lines in Protocol buffers are, in which texts stand as they are, whatever is in them. */
export interface PieceCopying extends Pick<Copying, 'looks' | 'lineBytesMax'> {
  readonly form: 'protobuf';
  /** The line in pieces. */
  write(event: Event): readonly Piece[];
}

/**
 * A piece of a line in Protocol buffers: bytes that stand still; a text, which may be of JSON; a
 * number under the tag that it has whole, as a varint, or with a fraction, as a double; epoch
 * milliseconds as a fixed64 of nanoseconds; or what has its length in front.
 */
export type Piece =
  | Uint8Array
  | { readonly text: string; readonly isJson: boolean }
  | { readonly number: number; readonly tags: NumberTags }
  | { readonly nanosOf: number }
  | { readonly message: readonly Piece[] };

/** The tags of a whole number and of one with a fraction. */
export interface NumberTags {
  readonly int: number;
  readonly double: number;
}

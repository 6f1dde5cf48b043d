// The description of a format's lines that lets src/transcode build a line by copying values into
// an earlier one: the form of values in a line, and the properties of the event that the format
// inspects. Invariant: if two events differ only in copied values and have the same inspected
// properties, the format writes the same line except for those values.

import type { Event } from './event.ts';

/**
 * The inspected property of one written value: an `address`, a `mac`, a `port`, a whole number
 * (`integer`), a whole number from 0 (`count`), a `line` (visible characters only), `plain` (the
 * same text in JSON and outside), or a test that only the format knows. `text`: only its length.
 * `together`: the summed length of the texts in a list.
 */
export interface Look {
  readonly value: unknown;
  readonly as:
    | ('text' | 'together' | TextLook)
    | ('address' | 'mac' | 'port' | 'integer' | 'count' | 'other');
  /** Maximum bytes written of the value; a longer one is cut. */
  readonly bytesMax: number;
  /** Another value that this one is compared with; `undefined`: none. */
  readonly rival: unknown;
}

/** Required properties of a text. */
export type TextLook = 'line' | 'plain';

/** The form of values in a text. */
export interface CopiedValues {
  /**
   * The form of a text in a line: as in JSON, as in JSON without invisible characters, escaped as
   * in CEF, with look-alikes as in LEEF, or verbatim (`text`), if all of its characters are
   * visible. `record`: no single value, but the whole record as received, on the same condition.
   */
  readonly form: 'json' | 'visible json' | 'cef' | 'leef' | 'text' | 'record';
  /** The inspected properties of this event's values. Default: none. */
  looks?(event: Event): readonly Look[];
}

/** How lines are built by copying. */
export interface Copying extends CopiedValues {
  /** Maximum bytes of a line; a longer one is shortened. */
  readonly lineBytesMax: number;
  /** The line, never shortened. */
  write(event: Event): string;
}

/** Lines in Protocol Buffers, where any text stands verbatim. */
export interface PieceCopying extends Pick<Copying, 'looks' | 'lineBytesMax'> {
  readonly form: 'protobuf';
  /** The line in pieces. */
  write(event: Event): readonly Piece[];
}

/**
 * A piece of a line in Protocol Buffers: constant bytes; a text, which may contain JSON; a number
 * under one of two tags, as a varint if whole and as a double otherwise; epoch milliseconds as a
 * fixed64 of nanoseconds; or a piece with its length in front.
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

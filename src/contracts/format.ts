// What a format is to sluice: a pure, total function from an event to text or bytes. It has no I/O,
// no clock and no state that shows. It must not throw on any event, and no content of an event may
// end the line, the field or the frame that it stands in. The engine encodes an event once per
// distinct format, however many sinks want it.

import type { Copying, PieceCopying } from './copying.ts';
import type { Event } from './event.ts';

/** Encoded events side by side: event i is `bytes[starts[i], ends[i])`, at `ends[i]` is an LF. */
export interface EncodedLines {
  readonly bytes: Uint8Array;
  readonly starts: Uint32Array;
  readonly ends: Uint32Array;
  readonly length: number;
}

/** Turns events into what sinks carry. */
export interface Format {
  /** `json`, `syslog`, `cef` or `otel`. */
  readonly name: string;
  /** Media type of one encoded event. */
  readonly contentType: string;
  /** One event, without CR or LF where the format's shape is lines. Pure and total. */
  encode(event: Event): string | Uint8Array;
  /**
   * What stands for an event in batches of a sink that makes its own of events, and takes of lines
   * no more than how long they are; left out: `encode`.
   */
  batched?(event: Event): Uint8Array;
  /**
   * True where the line is the record's own bytes, with blanks for line breaks, and no other escapes
   * are expected: whole pages are then copied, and `encode` is not asked.
   */
  readonly verbatim?: boolean;
  /** How its lines can be put together by copying; left out: they cannot. */
  readonly copying?: Copying | PieceCopying;
  /** Many events in one document, for formats that have such a form (OTLP). */
  readonly document?: DocumentForm;
}

/** Documents are joined from events encoded singly: cutting and retrying only copy. */
export interface DocumentForm {
  readonly contentType: string;
  /** One event as it stands in a document. Pure and total; the next call may reuse its bytes. */
  encode(event: Event): string | Uint8Array;
  /** How what stands in a document can be put together by copying; left out: it cannot. */
  readonly copying?: Copying | PieceCopying;
  /** The document of the records `from` up to, not including, `to`. */
  join(records: EncodedLines, range: { readonly from: number; readonly to: number }): Uint8Array;
}

// The interface of a format: a pure, total function from an event to text or bytes. It has no I/O,
// no clock and no visible state. Invariants: it throws on no event; no content of an event can end
// the line, field or frame that contains it. The engine encodes an event once per distinct format,
// however many sinks use that format.

import type { Copying, PieceCopying } from './copying.ts';
import type { Event } from './event.ts';

/** Encoded events side by side: event i is `bytes[starts[i], ends[i])`; an LF is at `ends[i]`. */
export interface EncodedLines {
  readonly bytes: Uint8Array;
  readonly starts: Uint32Array;
  readonly ends: Uint32Array;
  readonly length: number;
}

/** Encodes events for sinks. */
export interface Format {
  /** `json`, `syslog`, `cef` or `otel`. */
  readonly name: string;
  /** Media type of one encoded event. */
  readonly contentType: string;
  /** One event, without CR or LF where the format's shape is lines. Pure and total. */
  encode(event: Event): string | Uint8Array;
  /**
   * True for sinks that build their own objects from events and use only the length of a line: the
   * record's own bytes stand for it, where they are, without an LF.
   */
  readonly isBuilt?: true;
  /**
   * True if the line is the record's own bytes, with blanks for line breaks, and needs no other
   * escapes: whole pages are then copied without a call of `encode`.
   */
  readonly verbatim?: boolean;
  /** How its lines can be built by copying. Default: not possible. */
  readonly copying?: Copying | PieceCopying;
  /** The form of many events in one document, for formats that have one (OTLP). */
  readonly document?: DocumentForm;
}

/**
 * Documents are joined from events that were encoded singly: splitting and retrying only copy
 * bytes.
 */
export interface DocumentForm {
  readonly contentType: string;
  /** One event as part of a document. Pure and total; the next call may reuse its bytes. */
  encode(event: Event): string | Uint8Array;
  /** How a document's parts can be built by copying. Default: not possible. */
  readonly copying?: Copying | PieceCopying;
  /** The document of the records `from` up to, not including, `to`. */
  join(records: EncodedLines, range: { readonly from: number; readonly to: number }): Uint8Array;
}

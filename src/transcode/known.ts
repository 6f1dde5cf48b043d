// The knowledge of a transcoder: known shapes of records, and for each the kinds with a learned
// line.

import type { PageContext } from '../contracts/index.ts';
import type { ShapeLeaf } from './guards.ts';
import type { Learned } from './learn.ts';
import type { RecordShape } from './record-shape.ts';

/** Records of a shape with the same deciding values and guard answers. */
export interface Kind {
  /** The deciding values and the answers. */
  readonly key: Buffer;
  /** Null: cannot be learned. */
  readonly learned: Learned | null;
  uses: number;
}

/** A shape of records, with its known kinds. */
export interface KnownShape {
  readonly shape: RecordShape;
  leaves: readonly ShapeLeaf[];
  readonly kinds: Map<number, Kind>;
  uses: number;
}

/** A page whose records are written. */
export interface TranscodedPage {
  readonly body: Uint8Array;
  /** 32 bytes for each record. */
  readonly uids: Uint8Array;
  readonly context: Pick<PageContext, 'fetchedAt'>;
}

/** Byte ranges of a page's records in its body, in order. */
export interface RecordSpans {
  readonly events: { readonly length: number };
  startOf(index: number): number;
  endOf(index: number): number;
}

/** Output buffer for consecutive lines. */
export interface LineBuffer {
  /** Makes space for `bytes` after the lines so far, and returns their start. */
  room(bytes: number): { readonly view: DataView; readonly at: number };
  /** A line was written up to here. */
  wrote(end: number): void;
  /** Copies lines from `bytes` at `start`, with an LF at each end; an end of 0 is no line. */
  take(bytes: Buffer, start: number, ends: Uint32Array): void;
}

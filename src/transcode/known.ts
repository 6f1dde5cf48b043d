// What a transcoder knows of records: their shapes, and of each the kinds whose lines were learned.

import type { PageContext } from '../contracts/event.ts';
import type { ShapeLeaf } from './guards.ts';
import type { Learned } from './learn.ts';
import type { RecordShape } from './record-shape.ts';

/** Records of a shape with the same deciding values and answers. */
export interface Kind {
  /** The deciding values and the answers. */
  readonly key: Buffer;
  /** Null: cannot be learned. */
  readonly learned: Learned | null;
  uses: number;
}

export interface KnownShape {
  readonly shape: RecordShape;
  leaves: readonly ShapeLeaf[];
  readonly kinds: Map<number, Kind>;
  uses: number;
}

/** A page whose records are to be written. */
export interface TranscodedPage {
  readonly body: Uint8Array;
  /** 32 bytes for each record. */
  readonly uids: Uint8Array;
  readonly context: Pick<PageContext, 'fetchedAt'>;
}

/** Where the records of a page stand in its body, in their order. */
export interface RecordSpans {
  readonly events: { readonly length: number };
  startOf(index: number): number;
  endOf(index: number): number;
}

/** Where lines are written, one behind the other. */
export interface LineBuffer {
  /** Makes room for so many bytes behind the lines so far, and tells where they begin. */
  room(bytes: number): { readonly view: DataView; readonly at: number };
  /** A line was written up to here. */
  wrote(end: number): void;
  /** Takes lines that stand in `bytes` from `start` on, an LF at each end; an end of 0 is none. */
  take(bytes: Buffer, start: number, ends: Uint32Array): void;
}

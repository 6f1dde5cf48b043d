// The settings that the parts of a segment file share.

import type { Json, Log, Numbering } from '../../../src/contracts/index.ts';

/** Options for opening a segment file. */
export interface SegmentFileSettings {
  readonly path: string;
  /** Name of the sink that writes. */
  readonly sink: string;
  readonly numbering: Numbering;
  readonly mark: Json | null;
  readonly rotateBytes?: number | undefined;
  readonly rotateEveryMs?: number | undefined;
  /** False: flushing is left to the system, and a power cut may lose delivered events. */
  readonly flush: boolean;
  readonly log: Log;
  /** Called with the path of each newly finished segment. */
  readonly onFinished: (path: string) => void;
}

// The settings that the parts of a segment file share.

import type { Json } from '../../../src/contracts/json.ts';
import type { Numbering } from '../../../src/contracts/numbering.ts';
import type { Log } from '../../../src/contracts/tools.ts';

/** Options for opening a segment file. */
export interface SegmentFileSettings {
  readonly path: string;
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

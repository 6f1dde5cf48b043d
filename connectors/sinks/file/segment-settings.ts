// What the parts of a file sink's segment file work with.

import type { Json } from '../../../src/contracts/json.ts';
import type { Numbering } from '../../../src/contracts/numbering.ts';
import type { Log } from '../../../src/contracts/tools.ts';

/** What a segment file is opened with. */
export interface SegmentFileSettings {
  readonly path: string;
  readonly numbering: Numbering;
  readonly mark: Json | null;
  readonly rotateBytes?: number | undefined;
  readonly rotateEveryMs?: number | undefined;
  /** False: flushing is left to the system, and a power cut may take what was delivered. */
  readonly flush: boolean;
  readonly log: Log;
  /** Called with the path of each segment that is finished from now on. */
  readonly onFinished: (path: string) => void;
}

// Entry point of src/archive for the sinks that write it.

export { type Anchor, Anchors } from './anchors/anchors.ts';
export { type StampSettings, timeStamper } from './anchors/stamper.ts';
export type { Published } from './log.ts';
export { checkArchive } from './recovery.ts';
export type { SiblingPlace } from './siblings.ts';
export { type ArchiveWriter, openWriter, segmentBytesMax } from './writer.ts';

// The entry point of src/transcode: records copied into lines without parsing.

export type { Choosing } from './learn.ts';
export { Credit, type LineFate, type TranscodeCounts, Transcoder } from './transcoder.ts';

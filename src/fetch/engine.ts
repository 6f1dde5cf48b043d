// The second entry point of src/fetch: the polling engine and backfill.

export { forgetLeft } from '../collection/index.ts';
export type { BackfillState } from '../list/index.ts';
export type { PlannedParents } from '../parents/index.ts';
export { asksAnHour } from '../parents/index.ts';
export { timetable } from '../poll/index.ts';
export type { PlannedSource } from './polled-stream.ts';
export { type FailedStream, Polling, type PollingDeps } from './polling.ts';
export { type KnownRecord, knownRecords, servedRecords } from './served.ts';
export type { RunnerState } from './stream-runner.ts';

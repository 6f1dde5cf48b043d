// The second entry point of src/fetch: the polling engine and backfill.

export type { BackfillState } from './backfill.ts';
export { forgetLeft } from './collection/left.ts';
export type { PlannedParents } from './parents/feed.ts';
export { asksAnHour } from './parents/next-turn.ts';
export { type FailedStream, type PlannedSource, Polling, type PollingDeps } from './polling.ts';
export { type Schedule, timetable } from './schedule.ts';
export { type KnownRecord, keptRecords, servedRecords } from './served.ts';
export type { RunnerState } from './stream-runner.ts';

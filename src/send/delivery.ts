// The second entry point of src/send: senders and what they encode.

export { encodeLines } from './encode.ts';
export type { FilterFailuresOf } from './filter-failures.ts';
export { selectionOf } from './page-encoder.ts';
export { type SenderState, sinkFacts } from './sender.ts';
export { type PlannedSink, Senders } from './sending.ts';
export { sinkConditionPage } from './sink-conditions.ts';
export type { TranscodedOf } from './transcoders.ts';
export type { UnreadTimesOf } from './unread-times.ts';

// The entry point of src/hold: locks and queries on a state directory.

export { hasState } from './database.ts';
export type { HeldDeadLetter } from './dead-letters.ts';
export { fileInUse, lockFile } from './file-lock.ts';
export type { KnownSink, Released, SinkGap } from './known-sinks.ts';
export { holderOf, isBrieflyHeld, type Lock, takeLock } from './lock.ts';
export { deadLetterTable, keyLengths, type OutboxRow, pageTable } from './outbox.ts';
export type { Cutover } from './pair-cutover.ts';
export { replacePrivateFile } from './private-files.ts';
export type { ReachedMoment, SinkHistory } from './receipts.ts';
export {
  endedFirst,
  type OperatorRequest,
  operatorRequestOf,
  parsedObject,
  type Request,
} from './requests.ts';
export { databaseName } from './schema.ts';
export { changeState, lookInto, openForLooking, Store } from './store.ts';
export type { StreamExtent } from './streams.ts';

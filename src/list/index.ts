// The entry point of src/list: reads a list without loss, forward and backward.

export { Backfill, type BackfillDeps, type BackfillState, type PastTime } from './backfill.ts';
export {
  nonsense,
  partialError,
  partialObjectSign,
  partialSign,
  type Reported,
  readJson,
} from './body.ts';
export {
  type CheckpointChange,
  freshCheckpoint,
  joinedChange,
  type ListCheckpoint,
  noHorizon,
  parseListCheckpoint,
  rewound,
  unitOf,
  withBlocksMoved,
} from './checkpoint.ts';
export { fetchPage } from './fetch-page.ts';
export { follow } from './follow.ts';
export { type Identified, Identifier } from './identity.ts';
export {
  type FetchedPage,
  firstPosition,
  isFirst,
  isPartialPage,
  type ListPosition,
  nameOfPosition,
  type Page,
  partialPage,
  type Resume,
  wholeSecond,
} from './page.ts';
export { PageAsker } from './page-asker.ts';
export { doubtError, doubtOfFirst, doubtOfPosition, nonePassed } from './paging-doubt.ts';
export { ListPoller } from './poller.ts';
export { ListReader } from './reader.ts';
export { recordTime } from './record-time.ts';
export { asWords, identityWords, keyBytes, Repeats } from './repeats.ts';
export type { Stage, Taken } from './stage.ts';
export type { Walked, WalkReader } from './walk.ts';

// The entry point of src/fetch: checkpoints and single polls. Loads no polling engine.

export { askSingle } from './collection/reader.ts';
export { parseCollectionCheckpoint } from './collection/state.ts';
export { cronFault, parseCron } from './cron.ts';
export { type HeldLookups, lookedUpAt, parseLookups } from './held-lookups.ts';
export {
  joinedChange,
  type ListCheckpoint,
  parseListCheckpoint,
  rewound,
  unitOf,
  withBlocksMoved,
} from './list/checkpoint.ts';
export { fetchPage } from './list/fetch-page.ts';
export { noHorizon } from './list/horizon.ts';
export { Identifier } from './list/identity.ts';
export {
  firstPosition,
  type ListPosition,
  nameOfPosition,
  type Page,
  wholeSecond,
} from './list/page.ts';
export { doubtError, doubtOfFirst, doubtOfPosition } from './list/paging-doubt.ts';
export { Lookups } from './lookups.ts';
export { passingMsMax } from './outcome.ts';
export {
  conditionRecord,
  type Finding,
  type FindingRecord,
  type OnFinding,
  ownPage,
  pageContext,
} from './own-pages.ts';
export { askObject } from './parents/ask-object.ts';
export { parseParentsCheckpoint, readParentState } from './parents/state.ts';
export { silenceKey, silentSince } from './silence.ts';
export { deadPredecessor, earliestOf } from './succession/first-walk.ts';
export type { Succession } from './succession/pairing.ts';
export { givenUpNext, settlePairs } from './succession/settle.ts';

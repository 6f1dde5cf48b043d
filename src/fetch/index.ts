// The entry point of src/fetch, and for the packages above also of the pollers below it: checkpoints and single polls.
// Loads no polling engine.

export { askSingle, parseCollectionCheckpoint } from '../collection/index.ts';
export {
  doubtError,
  doubtOfFirst,
  doubtOfPosition,
  fetchPage,
  firstPosition,
  Identifier,
  joinedChange,
  type ListCheckpoint,
  type ListPosition,
  nameOfPosition,
  noHorizon,
  type Page,
  parseListCheckpoint,
  rewound,
  unitOf,
  wholeSecond,
  withBlocksMoved,
} from '../list/index.ts';
export { askObject, parseParentsCheckpoint, readParentState } from '../parents/index.ts';
export {
  conditionRecord,
  type Finding,
  type FindingRecord,
  type OnFinding,
  ownPage,
  pageContext,
  passingMsMax,
} from '../poll/index.ts';
export { deadPredecessor, earliestOf, givenUpNext, settlePairs } from '../succession/index.ts';
export { type HeldLookups, Lookups, lookedUpAt, parseLookups } from './lookups.ts';
export { silenceKey, silentSince } from './silence.ts';

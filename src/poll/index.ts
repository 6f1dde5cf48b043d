// The entry point of src/poll: the parts that every poller shares (outcome, schedule, own pages, comparison of records).

export {
  type ComparisonRules,
  canonicalText,
  childPath,
  contentHash,
  type ExactJson,
  isExactObject,
  parseExact,
} from './canonical.ts';
export { addedFields, changedPaths } from './diff.ts';
export {
  checkpointMismatch,
  deniedWaitMsMax,
  type FailedPoll,
  isPatience,
  mismatch,
  type PollResult,
  passingMs,
  passingMsMax,
} from './outcome.ts';
export {
  conditionRecord,
  type Finding,
  type FindingRecord,
  type OnFinding,
  ownPage,
  pageContext,
  violation,
} from './own-pages.ts';
export { type Timetable, timetable } from './schedule.ts';

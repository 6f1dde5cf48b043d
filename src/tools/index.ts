// The entry point of src/tools: clocks, texts, records and backoff for every package above.

export { BackOff, LastingBackOff } from './back-off.ts';
export { Callers } from './callers.ts';
export { cleanText } from './clean-text.ts';
export { systemClock } from './clock.ts';
export { CountedMemory, free, GrowingBody } from './counted-memory.ts';
export { cronFault, parseCron } from './cron.ts';
export { type EnvironmentProxy, environmentProxy } from './environment-proxy.ts';
export {
  compileFilter,
  type EventPath,
  type Filter,
  type FilterComparison,
  filterParts,
  pathsRead,
  valuesNeeded,
} from './filter.ts';
export { fingerprintOf, otherThan, refreshSecrets } from './fingerprint.ts';
export { foldedName, foldedPath } from './folded-name.ts';
export { contentWithout } from './found-records.ts';
export { boundHeapGrowth } from './heap.ts';
export { IgnoredPaths } from './json-keys.ts';
export { heldNestingMax, JsonScan, nestingMax, TooDeep } from './json-scan.ts';
export { digitsKept, skipSpace } from './json-tokens.ts';
export { losslessBytes, losslessText, shownText, unescapedBytes } from './lossless-text.ts';
export { lastLineOf, NoRecord } from './ndjson.ts';
export { hint, nearest, unknownKey } from './nearest.ts';
export {
  type DescribeProblem,
  describeProblem,
  type Problem,
  parseObject,
  problemDescriber,
  problemDetails,
  problemOf,
  readProblem,
  requestIdOf,
} from './problem.ts';
export { cutRecords, idDigest, type RecordList, scanBody, scanLines } from './record-list.ts';
export { bomEnd, parseBody, sourceBytesAt, sourceTextAt, valueAt } from './records.ts';
export { notRegular, readRegularFile } from './regular-file.ts';
export { SharedCall } from './shared-call.ts';
export {
  agoText,
  epochOf,
  exactSpanText,
  roughSpanText,
  spanText,
  startText,
  timeText,
  untilText,
} from './time-text.ts';
export { tlsAgent } from './tls-agent.ts';
export { type Build, build, buildText, version } from './version.ts';

// The entry point of src/contracts: the types that stages, connectors and formats share. Loads no zod.

export type { Answer, Failure, Wait } from './answer.ts';
export type { ChangeRecord, Condition, ConditionRecord } from './change.ts';
export { partOfChange, sidesOf } from './change-list.ts';
export type {
  CopiedValues,
  Copying,
  Look,
  NumberTags,
  Piece,
  PieceCopying,
  TextLook,
} from './copying.ts';
export { flushNames, makeDirectory, realPathOf } from './directory.ts';
export {
  asExportError,
  type ErrorCode,
  type ErrorDetails,
  ExportError,
  errorCodeOf,
  errorCodes,
  errorText,
  invariant,
  isFileLimit,
  UsageError,
} from './errors.ts';
export type {
  AnswerFacts,
  Event,
  OcsfActor,
  OcsfEndpoint,
  OcsfEvent,
  OcsfMetadata,
  OcsfUser,
  Offset,
  PageContext,
  ParsedRecord,
  RecordKind,
  Uid,
} from './event.ts';
export type { DocumentForm, EncodedLines, Format } from './format.ts';
export { parseHttpDate } from './http-date.ts';
export { isObject, type Json, type JsonObject } from './json.ts';
export type { EventAt, LogEvent } from './log-events.ts';
export {
  type Epoch,
  epochBegin,
  type Numbering,
  type PositionReach,
  presentEpoch,
  reachOf,
  type SinkPosition,
} from './numbering.ts';
export { retryAfterMs, serverTimeMs, wholeNumbers } from './retry-after.ts';
export { isDay, parseRfc3339 } from './rfc3339.ts';
export { headerValue, proxyFlaw, proxyOfEnvironment, Secret } from './secret.ts';
export type {
  Assurance,
  Batch,
  Delivery,
  Notice,
  Refusal,
  Sink,
  SinkOpening,
  SinkReport,
  Verdict,
} from './sink.ts';
export type {
  CollectionStream,
  DeliveryRules,
  EntityDetail,
  EntityKind,
  ListEndpoint,
  ListenAddress,
  ListStream,
  Order,
  Pagination,
  ParentsStream,
  PushStream,
  ServerTls,
  Stream,
  TimeWindows,
} from './source.ts';
export {
  type Acknowledgement,
  type Append,
  type Aside,
  type AsideDestination,
  type AsideEvent,
  type AsideSettled,
  backlog,
  type ComparedRecord,
  type DeadLetter,
  type EntityChange,
  type EntityChoice,
  type FetchSpool,
  type HeldAside,
  type HeldPage,
  type HeldParents,
  identityBytes,
  type NewPage,
  neverDue,
  type PairStore,
  type ParentChange,
  type ParentCounts,
  type ParentRow,
  type SendSpool,
  type SettledEvent,
  type SharedMemory,
  type SinkProgress,
  type Slices,
  type Spool,
  type SpoolGauge,
  type StreamMemory,
  type TrailEntry,
  uidBytes,
} from './spool.ts';
export {
  type DriftSettings,
  type ExpectedVolume,
  type LogLevel,
  logLevels,
  type MaskKind,
  type Masks,
  type MatchPaths,
  maskKinds,
  type OtlpCollector,
  type Route,
  type Schedule,
  type Succession,
  usualReadyShare,
} from './stage-settings.ts';
export {
  type PairAlone,
  type PairPhase,
  type PairPlan,
  type PairRecord,
  type PairReport,
  type PairScan,
  type PairSide,
  pairTypeNames,
  type WaitingRecord,
} from './succession.ts';
export { plainText, shownLines, visibleLines, visibleOutput, visibleText } from './text.ts';
export { compileTimeFormats, parseOtherForm, timeFormatFlaw } from './time-forms.ts';
export {
  type MissingIssuer,
  missingIssuer,
  type TlsFault,
  type TlsFileKey,
  tlsFaults,
  tlsFileKeys,
  tlsNotices,
} from './tls-files.ts';
export { formEncoded, type GrantedToken, tokenIn } from './token-answer.ts';
export {
  type Clock,
  type FileLock,
  type FileWriter,
  type HttpClient,
  HttpFailure,
  type HttpRequest,
  type HttpResponse,
  type InFlight,
  type Log,
  type SendTurn,
  type TlsSettings,
  type Tools,
} from './tools.ts';
export { untilAborted } from './until-aborted.ts';
export type { Body, Received, Upstream, UpstreamRequest } from './upstream.ts';

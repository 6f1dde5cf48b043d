// The second entry point of src/watch: status of a running process, its page and metrics.

export { attentionLines, attentionOf } from './attention.ts';
export type {
  ClusterSight,
  ClusterStatus,
  FencedProcess,
  ProcessStatus,
} from './cluster-status.ts';
export type { CollectorLog } from './collector-log.ts';
export { Findings } from './findings.ts';
export { joinedMoment, joinedSinks, joinedStatus } from './joined.ts';
export { joinedTap } from './joined-tail.ts';
export { type ClusterFacts, idleMoment, type StatusMoment, watching } from './live.ts';
export { askRunning, metricsOfRunning, type StatusReply, whyUnhealthy } from './running.ts';
export type { StatusServer, StatusSettings } from './status-server.ts';
export type { EventTap, TailLine, TailTake, TailView, TailWish } from './tail.ts';
export type { Telemetry } from './telemetry.ts';

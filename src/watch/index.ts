// The entry point of src/watch: status from a state directory.

export { concernedUpstreams, movedSources } from './moved-sources.ts';
export { joinedRemoved, removedSinksOf } from './removed-sinks.ts';
export {
  type CheckpointFacts,
  cursorDigest,
  emptyState,
  notHere,
  readState,
  type State,
  type StreamState,
  settledBefore,
} from './state.ts';
export {
  type LastError,
  type LiveStatus,
  type LiveStream,
  type RemovedSink,
  roomInSpool,
  type ShardShare,
  type StatusFacts,
  type StoredStatus,
  type StoredStream,
  type StoredUpstream,
  shardShare,
} from './status-facts.ts';
export { announcedOf, statusElsewhere, storedEnds, streamsAndSinks } from './stored.ts';
export { settledStreams, settledUpTo } from './up-to.ts';
export { endFacts, endMatters, endText, originText } from './upstream-ends.ts';

// Reads a partition to its end. Invariants: everything committed before the given end is read, or the reading fails; a log
// that makes no progress fails within the deadline, because of an open transaction or of an end that went back.

import { type Clock, ExportError } from '../../contracts/index.ts';
import type { LogClient, TopicPartition } from './client.ts';
import type { LogRecord } from './committed.ts';

/** Options of reading. */
export interface LogReading {
  readonly clock: Clock;
  /** The first offset to read; default: the first that exists. */
  readonly from?: bigint;
  /** Reads up to before this offset; default: the present end of the log. */
  readonly end?: bigint;
  /** Limit without progress. */
  readonly stalledMs: number;
}

const waitMs = 500;

/**
 * The committed records of a partition, in order, some at a time. Throws `sink_unreachable` where
 * it gets no further, and a KafkaFailure where the cluster refuses.
 */
export async function* committedRecords(
  client: LogClient,
  of: TopicPartition,
  { clock, stalledMs, ...given }: LogReading,
): AsyncGenerator<readonly LogRecord[]> {
  const end = given.end ?? (await client.end(of));
  let position = given.from ?? (await client.start(of));
  let movedAt = clock.monotonic();
  while (position < end) {
    const fetched = await client.fetch(of, position, waitMs);
    if (fetched.records.length > 0) yield fetched.records;
    if (fetched.position > position) movedAt = clock.monotonic();
    else if (clock.monotonic() - movedAt > stalledMs) throw stalled(of, position, end);
    position = fetched.position;
  }
}

function stalled({ topic, partition }: TopicPartition, position: bigint, end: bigint): ExportError {
  return new ExportError(
    'sink_unreachable',
    `reading ${topic}, partition ${partition}: nothing after offset ${position} can be read, and ${end} was to be reached`,
    {
      next: 'Look for a transaction that hangs (kafka-transactions.sh find-hanging) and for an unclean change of leader; nothing was written.',
    },
  );
}

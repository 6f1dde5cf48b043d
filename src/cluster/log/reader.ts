// Reads a partition up to where it ends. What must stay true: it has read everything that was
// committed before the end that it was given, or it fails; a log that gets no further fails within
// the deadline, whether a transaction is open in it or its end has fallen behind.

import { type Clock, ExportError } from '../../contracts/index.ts';
import type { LogClient, TopicPartition } from './client.ts';
import type { LogRecord } from './committed.ts';

/** How reading goes. */
export interface LogReading {
  readonly clock: Clock;
  /** The first offset that is wanted; left out: the first that is there. */
  readonly from?: bigint;
  /** Up to before it, or to the end of the log as it is now. */
  readonly end?: bigint;
  /** So long without getting any further is too long. */
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

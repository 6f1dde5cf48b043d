// Uids of the records in a topic, read back by kafkajs with either driver, as a consumer of committed records sees them.
// Used only if the state does not know which events were sent. What must stay true: all that was committed by then is
// read, and nothing else, so that no event is skipped that a consumer cannot see.

import { randomUUID } from 'node:crypto';
import type { Consumer, Kafka } from 'kafkajs';
import type { Ranges } from './port.ts';

/** Newest records that are read if no offset to start at is known. */
const recordsMax = 1_000_000n;

/** What is read. */
export interface ReadBackOptions {
  readonly topic: string;
  /** The reader's group begins with it. */
  readonly group: string;
  /** Stored digits of a uid. */
  readonly digits: number;
  /** Gives up. */
  readonly signal: AbortSignal;
}

/**
 * The ranges of records in the topic at and after these offsets; of a partition that is not
 * named, the newest records. Rejects with what kafkajs throws, also where there is no such topic.
 */
export async function rangesFrom(
  kafka: Kafka,
  topic: string,
  from: Readonly<Record<string, string>>,
): Promise<Ranges> {
  const admin = kafka.admin();
  try {
    await admin.connect();
    const partitions = await admin.fetchTopicOffsets(topic);
    const share = recordsMax / BigInt(Math.max(1, partitions.length));
    return Object.fromEntries(
      partitions.flatMap(({ partition, low, high }) => {
        const requested = BigInt(from[partition] ?? BigInt(high) - share);
        const begin = requested < BigInt(low) ? BigInt(low) : requested;
        return begin < BigInt(high) ? [[partition, [`${begin}`, high]] as const] : [];
      }),
    );
  } finally {
    await admin.disconnect().catch(() => {});
  }
}

/** What is kept of the uids committed in these ranges. Rejects with what kafkajs throws. */
export async function uidsIn(
  kafka: Kafka,
  ranges: Ranges,
  { topic, group, digits, signal }: ReadBackOptions,
): Promise<ReadonlySet<string>> {
  const known = new Set<string>();
  const open = new Map(Object.entries(ranges).map(([name, [, to]]) => [Number(name), BigInt(to)]));
  if (open.size === 0) return known;
  const consumer = kafka.consumer({
    // Of its own: the member of a process that was killed would have to be waited for.
    groupId: `${group}-${randomUUID()}`,
    maxWaitTimeInMs: 100,
    allowAutoTopicCreation: false,
  });
  try {
    const done = reached(consumer, open, signal);
    done.catch(() => {}); // awaited below, or not needed after an earlier failure
    await consumer.connect();
    await consumer.subscribe({ topics: [topic], fromBeginning: true });
    await consumer.run({
      autoCommit: false,
      eachBatch: async ({ batch }) => {
        const range = ranges[batch.partition];
        for (const { offset, headers } of batch.messages) {
          const isWithin = range !== undefined && BigInt(offset) < BigInt(range[1]);
          if (isWithin) known.add(String(headers?.uid ?? '').slice(0, digits));
        }
      },
    });
    for (const [partition, [offset]] of Object.entries(ranges)) {
      consumer.seek({ topic, partition: Number(partition), offset });
    }
    await done;
    return known;
  } finally {
    await consumer.disconnect().catch(() => {});
  }
}

/** Resolves when every partition was read to its end. */
function reached(
  consumer: Consumer,
  open: Map<number, bigint>,
  signal: AbortSignal,
): Promise<void> {
  return new Promise((resolve, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
    consumer.on(consumer.events.CRASH, ({ payload }) => reject(payload.error));
    // Told also for batches of which a consumer sees nothing: aborted records, marks.
    consumer.on(consumer.events.END_BATCH_PROCESS, ({ payload: { partition, lastOffset } }) => {
      const end = open.get(partition);
      if (end !== undefined && BigInt(lastOffset) + 1n >= end) open.delete(partition);
      if (open.size === 0) resolve();
    });
  });
}

// Reads back the uids of a topic's records with kafkajs, for either driver, as a consumer of committed records sees
// them. Used only if the state does not know which events were sent. Invariant: exactly the records committed by then
// are read, so no event is skipped that a consumer cannot see.

import { randomUUID } from 'node:crypto';
import type { Consumer, Kafka } from 'kafkajs';
import type { Ranges } from './port.ts';

/** Limit of newest records that are read if no start offset is known. */
const recordsMax = 1_000_000n;

/** The parameters of reading back. */
export interface ReadBackOptions {
  readonly topic: string;
  /** Prefix of the reader's group. */
  readonly group: string;
  /** Stored digits of a uid. */
  readonly digits: number;
  /** Aborts the reading. */
  readonly signal: AbortSignal;
}

/**
 * The ranges of records at and after these offsets; for a partition that is not named, the newest records. Rejects with
 * kafkajs's error, also if the topic does not exist.
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

/** The stored digits of the uids committed in these ranges. Rejects with kafkajs's error. */
export async function uidsIn(
  kafka: Kafka,
  ranges: Ranges,
  { topic, group, digits, signal }: ReadBackOptions,
): Promise<ReadonlySet<string>> {
  const known = new Set<string>();
  const open = new Map(Object.entries(ranges).map(([name, [, to]]) => [Number(name), BigInt(to)]));
  if (open.size === 0) return known;
  const consumer = kafka.consumer({
    // A group of its own: joining an existing one could wait for the member of a killed process.
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
    // Emitted also for batches without visible records: aborted records, control records.
    consumer.on(consumer.events.END_BATCH_PROCESS, ({ payload: { partition, lastOffset } }) => {
      const end = open.get(partition);
      if (end !== undefined && BigInt(lastOffset) + 1n >= end) open.delete(partition);
      if (open.size === 0) resolve();
    });
  });
}

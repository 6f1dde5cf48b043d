// Selects the committed records of one partition in a fetch response, by the filter of Apache's Java client
// (`CompletedFetch`). @platformatic/kafka 2.12.1 keeps one range for each producer id. All owners of a shard share one id,
// because the transactional id is stable, so that client shows aborted records and hides committed ones. Invariant: a record
// is returned if and only if its transaction was committed, whatever other transactions are beside it.

import type { fetchV15 } from '@platformatic/kafka';

/** One partition's part of an answer to a fetch with read_committed. */
export type FetchedPartition = Pick<
  fetchV15.FetchResponsePartition,
  'abortedTransactions' | 'records'
>;

/** A record as it stands in a partition. */
export interface LogRecord {
  readonly offset: bigint;
  readonly key: Buffer | null;
  /** Null: what the key named is gone. */
  readonly value: Buffer | null;
}

/** Committed records, and the next position. */
export interface CommittedRecords {
  readonly records: readonly LogRecord[];
  /** The offset of the next fetch: behind markers and aborted records as well. */
  readonly position: bigint;
}

/** Attributes of a record batch (Kafka protocol, "Record Batch"). */
const transactionalBit = 1 << 4;
const controlBit = 1 << 5;
/** Type of a control record, the second 16 bits of its key. */
const abortMarker = 0;

/** The committed records at or after `position`. */
export function committedIn(
  { abortedTransactions, records: batches }: FetchedPartition,
  position: bigint,
): CommittedRecords {
  const aborted = (abortedTransactions ?? []).toSorted((a, b) =>
    a.firstOffset < b.firstOffset ? -1 : 1,
  );
  const open = new Set<bigint>();
  const records: LogRecord[] = [];
  let next = position;
  for (const batch of batches ?? []) {
    const last = batch.firstOffset + BigInt(batch.lastOffsetDelta);
    while ((aborted[0]?.firstOffset ?? last + 1n) <= last) {
      open.add(aborted.shift()?.producerId ?? -1n);
    }
    next = last + 1n > next ? last + 1n : next;
    if ((batch.attributes & controlBit) !== 0) {
      const type = batch.records[0]?.key?.readInt16BE(2);
      if (type === abortMarker) open.delete(batch.producerId);
      continue;
    }
    if ((batch.attributes & transactionalBit) !== 0 && open.has(batch.producerId)) continue;
    for (const { offsetDelta, key, value } of batch.records) {
      const offset = batch.firstOffset + BigInt(offsetDelta);
      if (offset >= position) records.push({ offset, key, value });
    }
  }
  return { records, position: next };
}

// Hides the records of aborted transactions in a fetch response of kafkajs 2.2.4, by the rule of Apache's Java client
// (`CompletedFetch`). Kafkajs's own filter takes aborted transactions in the order of the response, and at most one per record.
// A broker lists them in the order of their ends. So records of several writers that were killed together, and whose
// transactions ended in another order than they began, passed as committed. Invariant: a consumer of committed records gets a
// record if and only if its transaction was committed.

/** One partition's part of a fetch response, as far as it is used. Offsets and producer ids are decimal. */
export interface KafkajsPartition {
  /** Absent or null: the consumer reads uncommitted records too. */
  abortedTransactions?:
    | readonly { readonly producerId: string; readonly firstOffset: string }[]
    | null;
  readonly messages: readonly KafkajsRecord[];
}

/** A record of a fetch response. */
export interface KafkajsRecord {
  readonly offset: string;
  readonly key: Buffer | null;
  /** Consumers of kafkajs get no such record, and continue after it. */
  isControlRecord?: boolean;
  /** Absent: a record of an old format, which has no transactions. */
  readonly batchContext?: { readonly producerId: string; readonly inTransaction: boolean };
}

/** The type of a control record that ends an aborted transaction: the second 16 bits of its key. */
const abortMarker = 0;

/** Marks the records of aborted transactions as control records, and empties the list that kafkajs filters by. */
export function hideAborted(partition: KafkajsPartition): void {
  const aborted = (partition.abortedTransactions ?? []).toSorted((a, b) =>
    BigInt(a.firstOffset) < BigInt(b.firstOffset) ? -1 : 1,
  );
  if (aborted.length === 0) return;
  const open = new Set<string>();
  for (const record of partition.messages) {
    const offset = BigInt(record.offset);
    for (let [first] = aborted; first && BigInt(first.firstOffset) <= offset; [first] = aborted) {
      open.add(first.producerId);
      aborted.shift();
    }
    const { producerId = '', inTransaction = false } = record.batchContext ?? {};
    if (record.isControlRecord === true) {
      if (record.key?.readInt16BE(2) === abortMarker) open.delete(producerId);
    } else if (inTransaction && open.has(producerId)) record.isControlRecord = true;
  }
  partition.abortedTransactions = [];
}

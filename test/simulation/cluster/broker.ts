// Kafka's logs and its coordinator of transactions, as far as a shard's log depends on them (Kafka
// protocol guide; KIP-98, KIP-360, KIP-890): partitions of batches and markers, the high watermark
// and the last stable offset, fencing by the producer's epoch, markers that are written some time
// after the decision about a transaction, time-outs of transactions, and compaction.

import { ResponseError } from '../../../node_modules/@platformatic/kafka/dist/index.js';
import type { Course } from './course.ts';

/** A record as a producer sends it. */
export interface Sent {
  readonly key: Buffer;
  readonly value: Buffer | null;
}

interface Batch {
  readonly first: number;
  readonly last: number;
  readonly producerId: bigint;
  /** In a marker: whether the transaction was committed. */
  readonly commits: boolean | null;
  records: readonly (Sent & { readonly offset: number })[];
}

/** A producer's session: the response of InitProducerId. */
export interface Producing {
  readonly id: string;
  readonly producerId: bigint;
  readonly epoch: number;
}

interface Transactional {
  readonly id: string;
  readonly producerId: bigint;
  epoch: number;
  /** Null: no transaction is open. */
  open: { readonly partitions: Set<Log>; readonly number: number } | null;
  /** Until its markers are written; null: they are written. */
  ending: Promise<void> | null;
}

/** The events that the oracle receives. */
export interface Witness {
  /** A producer has received its epoch. */
  began(by: Producing): void;
  accepted(by: Producing): void;
  /** A transaction is decided as committed. */
  committed(records: readonly Sent[]): void;
}

/** Time-out of an open transaction; sluice requests the same. */
const transactionMs = 30_000;
const codes = { INVALID_PRODUCER_EPOCH: 47, INVALID_TXN_STATE: 48 } as const;

/** An error response, as the library throws it. */
export function refused(code: number, response: unknown = {}): ResponseError {
  return new ResponseError(0, 0, { '/': [code, null] }, response);
}

/** A partition. */
export class Log {
  readonly topic: string;
  readonly partition: number;
  end = 0;
  start = 0;
  batches: Batch[] = [];
  readonly aborted: { producerId: bigint; first: number; last: number }[] = [];
  /** First offset of each producer's open transaction in this partition. */
  readonly open = new Map<bigint, number>();

  constructor(topic: string, partition: number) {
    this.topic = topic;
    this.partition = partition;
  }

  /** All transactions before this offset are decided. */
  get stable(): number {
    return Math.min(this.end, ...this.open.values());
  }

  append(producerId: bigint, records: readonly Sent[]): number {
    const first = this.end;
    this.end += records.length;
    if (!this.open.has(producerId)) this.open.set(producerId, first);
    const placed = records.map((record, at) => ({ ...record, offset: first + at }));
    this.batches.push({ first, last: this.end - 1, producerId, commits: null, records: placed });
    return first;
  }

  mark(producerId: bigint, commits: boolean): void {
    const first = this.open.get(producerId) ?? this.end;
    if (!commits && this.open.has(producerId)) {
      this.aborted.push({ producerId, first, last: this.end });
    }
    this.open.delete(producerId);
    const at = this.end;
    this.batches.push({ first: at, last: at, producerId, commits, records: [] });
    this.end += 1;
  }

  isAborted({ producerId, first, commits }: Batch): boolean {
    if (commits !== null) return false;
    return this.aborted.some(
      (one) => one.producerId === producerId && one.first <= first && first < one.last,
    );
  }

  /** Compacts: of the decided records, the newest of each key remain, and no aborted record. */
  compact(): void {
    const { stable } = this;
    const newest = new Map<string, number>();
    for (const batch of this.batches) {
      if (batch.last >= stable || this.isAborted(batch)) continue;
      for (const { key, offset } of batch.records) newest.set(String(key), offset);
    }
    // The newest segment is not compacted.
    const kept = this.batches.slice(-3);
    const old = this.batches.slice(0, -3).filter((batch) => {
      if (batch.last >= stable || batch.commits !== null) return true;
      const isKept = ({ key, offset }: { key: Buffer; offset: number }) =>
        newest.get(String(key)) === offset;
      batch.records = this.isAborted(batch) ? [] : batch.records.filter(isKept);
      return batch.records.length > 0;
    });
    this.batches = [...old, ...kept];
  }
}

/** All brokers. */
export class Brokers {
  readonly #logs: readonly Log[];
  isOut = false;
  readonly #course: Course;
  readonly #witnessOf: (id: string) => Witness | null;
  readonly #transactional = new Map<string, Transactional>();
  #opened = 0;

  /** `topics`: the partitions of each. `witnessOf`: the oracle that receives the events of a transactional id. */
  constructor(
    course: Course,
    witnessOf: (id: string) => Witness | null,
    topics: Readonly<Record<string, number>>,
  ) {
    this.#course = course;
    this.#witnessOf = witnessOf;
    this.#logs = Object.entries(topics).flatMap(([topic, count]) =>
      Array.from({ length: count }, (_, partition) => new Log(topic, partition)),
    );
  }

  log(name: string, number = 0): Log {
    const log = this.#logs.find(({ topic, partition }) => topic === name && partition === number);
    if (log === undefined) throw refused(3);
    return log;
  }

  /** Numbers of a topic's partitions; empty if there is no topic with this name. */
  partitionsOf(name: string): readonly number[] {
    return this.#logs.filter(({ topic }) => topic === name).map(({ partition }) => partition);
  }

  /** Ends the open transaction of the id, and fences its previous producer. */
  async begin(id: string): Promise<Producing> {
    const producerId = BigInt(1_000 + this.#transactional.size);
    const held = this.#transactional.get(id);
    const of = held ?? { id, producerId, epoch: -1, open: null, ending: null };
    this.#transactional.set(id, of);
    of.epoch += 1;
    if (of.open !== null) this.#end(of, false);
    while (of.ending !== null) await of.ending;
    of.epoch += 1;
    const by = { id, producerId: of.producerId, epoch: of.epoch };
    this.#witnessOf(id)?.began(by);
    return by;
  }

  async addPartitions(by: Producing, logs: readonly Log[]): Promise<void> {
    let of = this.#known(by);
    while (of.ending !== null) {
      await of.ending;
      of = this.#known(by);
    }
    if (of.open === null) {
      this.#opened += 1;
      const number = this.#opened;
      of.open = { partitions: new Set(), number };
      this.#course.after(transactionMs, null, () => {
        if (of.open?.number !== number) return;
        this.#course.tell(`a transaction of ${by.id} times out`);
        of.epoch += 1;
        this.#end(of, false);
      });
    }
    for (const log of logs) of.open.partitions.add(log);
  }

  produce(by: Producing, log: Log, records: readonly Sent[]): number {
    // The partition queries the coordinator whether it is part of the transaction (KIP-890).
    if (!this.#known(by).open?.partitions.has(log)) throw refused(codes.INVALID_TXN_STATE);
    this.#witnessOf(by.id)?.accepted(by);
    return log.append(by.producerId, records);
  }

  /** Decides a transaction; its markers follow later. */
  commit(by: Producing): void {
    const of = this.#known(by);
    if (of.open === null) throw refused(codes.INVALID_TXN_STATE);
    const records = [...of.open.partitions].flatMap((log) => {
      const from = log.open.get(of.producerId) ?? log.end;
      const own = log.batches.filter(
        ({ producerId, first }) => producerId === of.producerId && first >= from,
      );
      return own.flatMap((batch) => batch.records);
    });
    this.#witnessOf(by.id)?.committed(records);
    this.#end(of, true);
  }

  #known(by: Producing): Transactional {
    const of = this.#transactional.get(by.id);
    if (of === undefined || of.epoch !== by.epoch) throw refused(codes.INVALID_PRODUCER_EPOCH);
    return of;
  }

  #end(of: Transactional, commits: boolean): void {
    const { random } = this.#course;
    const partitions = [...(of.open?.partitions ?? [])];
    of.open = null;
    const isSlow = random.chance(0.05);
    const written = partitions.map(async (log) => {
      await this.#course.wait(1 + random.below(isSlow ? 2_000 : 20), null);
      log.mark(of.producerId, commits);
    });
    of.ending = Promise.all(written).then(() => {
      of.ending = null;
    });
  }
}

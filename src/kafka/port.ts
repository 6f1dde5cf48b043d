// The port to a Kafka client: everything that the Kafka sink uses. Only a driver (kafkajs.ts, platformatic.ts) knows
// its client. Invariant: a producer ends at its first failure, because after a failed request only the broker knows
// which sequence numbers it has accepted, and a wrong guess makes it drop new records as repeats. So after any failure
// the sink destroys the producer and creates a new one.

import type { Compression, HostPort } from '../contracts/config.ts';
import type { Log, Offset, Secret, TlsSettings, Tools, Uid } from '../contracts/index.ts';

/** One record for the topic; its uid header identifies sluice's records in shared clients. */
export class KafkaRecord {
  readonly key: Buffer | null;
  /** Shares the batch's memory. */
  readonly value: Uint8Array;
  /** The only header. */
  readonly uid: Uid;
  /** Chosen at the first send, and kept: a repeated request must not move a record. */
  partition: number | undefined = undefined;

  constructor(key: Buffer | null, value: Uint8Array, uid: Uid) {
    this.key = key;
    this.value = value;
    this.uid = uid;
  }
}

/** A SASL identity with a password, which is read at each authentication. */
export interface KafkaPassword {
  readonly mechanism: 'plain' | 'scram-sha-256' | 'scram-sha-512';
  readonly username: string;
  readonly password: Secret;
}

/** A SASL identity with a token, which is requested at each authentication. */
export interface KafkaToken {
  readonly mechanism: 'oauthbearer';
  /** The current token. Rejects with the ExportError that explains why there is none. */
  token(): Promise<string>;
  /** The brokers rejected the account: the next token is a new one. */
  drop(): void;
}

/** The SASL identity. */
export type KafkaSasl = KafkaPassword | KafkaToken;

/** The settings of a transactional producer. */
export interface KafkaTransactions {
  /** The transactional id: stable over restarts, and used by this sink only. */
  readonly id: string;
  /** The consumer group under which the sink's position in the spool is committed. */
  readonly group: string;
  /** Milliseconds after which the broker aborts an unfinished transaction. */
  readonly timeoutMs: number;
  /**
   * Resolves while this process may use the id. Called before a producer registers with the id, which fences the id's
   * present producer, and again after that and before the first write: by then a later process may not have registered
   * yet, but will.
   */
  readonly confirm?: Tools['confirm'];
}

/** Dependencies of a producer. */
export interface KafkaOptions {
  readonly brokers: readonly HostPort[];
  readonly topic: string;
  readonly clientId: string;
  readonly compression: Compression;
  /** Limit for one response, milliseconds. */
  readonly timeoutMs: number;
  readonly sasl?: KafkaSasl | undefined;
  readonly tls?: TlsSettings | undefined;
  /** Undefined: an idempotent producer without transactions. */
  readonly transactions?: KafkaTransactions | undefined;
  /** Whether records may be sent now: a look before each request. A transaction needs none: it fences by itself. */
  readonly sendTurn?: Tools['sendTurn'];
  readonly log: Log;
}

/** The sink's position, as committed with its records. */
export interface CommittedPosition {
  readonly position: Offset;
  /** Stored with the position; brokers accept 4,096 bytes. */
  readonly note: string;
}

/** By partition, the offset after sluice's last record. */
export type WrittenOffsets = ReadonlyMap<number, bigint>;

/** By partition: from the first offset to the one after the last. */
export type Ranges = Readonly<Record<string, readonly [from: string, to: string]>>;

/** Reads the topic back. */
export interface TopicReader {
  /**
   * Ranges of the records at and after these offsets, by partition; for other partitions, the newest records. Rejects with the
   * reason of the signal as soon as it aborts, as `uidsIn` does, whatever the broker does.
   */
  rangesFrom(offsets: Readonly<Record<string, string>>, signal: AbortSignal): Promise<Ranges>;
  /** The first digits of the uids of committed records. */
  uidsIn(ranges: Ranges, signal: AbortSignal): Promise<ReadonlySet<string>>;
}

/** Creates a producer, without I/O. */
export type KafkaDriver = (options: KafkaOptions) => KafkaProducer;

/**
 * A producer for one topic. It connects and authenticates at its first request. With transactions, that fences every
 * older producer with the transactional id, and waits until a transaction left open by one is committed or aborted.
 * Every failure rejects with a KafkaFailure, or with the ExportError of an unreadable secret.
 */
export interface KafkaProducer {
  /**
   * Sends in one request per broker; resolves when all in-sync replicas have every record. `topic`: in place of the
   * options' topic, without transactions.
   */
  produce(records: readonly KafkaRecord[], topic?: string): Promise<void>;
  /** Sends `requests` and commits `place` in one transaction: all or nothing. */
  transact(
    requests: readonly (readonly KafkaRecord[])[],
    place: CommittedPosition,
  ): Promise<WrittenOffsets>;
  /**
   * Sends `requests` in a transaction and aborts it: resolves if the brokers accepted everything; they keep nothing.
   */
  tryOut(requests: readonly (readonly KafkaRecord[])[]): Promise<void>;
  /**
   * The position of this group's last committed transaction; null if there is none, or if the brokers have expired it
   * (`offsets.retention.minutes` after the last commit, 7 days by default).
   */
  committed(): Promise<CommittedPosition | null>;
  /** Connects, authenticates and requests the topic's metadata; changes and creates nothing. Null: of no topic. */
  checkTopic(topic?: string | null): Promise<void>;
  /** Disconnects; nothing may be in flight. */
  close(): Promise<void>;
  /** Cuts every connection at once; requests in flight reject. */
  destroy(): void;
}

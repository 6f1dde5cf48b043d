// The port to a Kafka client: all that the Kafka sink uses of one. Only a driver (kafkajs.ts, platformatic.ts) knows its
// client; another client is another driver. A producer ends at its first failure: after a failed request only the broker
// knows which sequence numbers it has accepted, and a client that guesses wrong makes the broker drop new records as
// repeats. So after any failure the sink destroys the producer and makes a new one.

import type { Compression } from '../contracts/compression.ts';
import type { Offset, Uid } from '../contracts/event.ts';
import type { Secret } from '../contracts/secret.ts';
import type { HostPort } from '../contracts/settings.ts';
import type { Log, TlsSettings, Tools } from '../contracts/tools.ts';

/** One record for the topic; clients that are shared with others know ours by its uid. */
export class KafkaRecord {
  readonly key: Buffer | null;
  /** Shares the batch's memory. */
  readonly value: Uint8Array;
  /** The only header. */
  readonly uid: Uid;
  /** Chosen when first sent, and kept: a repeated request must not put a record elsewhere. */
  partition: number | undefined = undefined;

  constructor(key: Buffer | null, value: Uint8Array, uid: Uid) {
    this.key = key;
    this.value = value;
    this.uid = uid;
  }

  /** For a client that encodes it by itself: it must not lose its uid there. */
  get headers(): { readonly uid: Uid } {
    return { uid: this.uid };
  }
}

/** Who we are, for SASL. The password is read at each authentication. */
export interface KafkaSasl {
  readonly mechanism: 'plain' | 'scram-sha-256' | 'scram-sha-512';
  readonly username: string;
  readonly password: Secret;
}

/** What makes a producer transactional. */
export interface KafkaTransactions {
  /** The transactional id: stable over restarts, and of this sink only. */
  readonly id: string;
  /** The consumer group that the sink's position in the spool is committed under. */
  readonly group: string;
  /** After this time the broker aborts a transaction that is not ended. */
  readonly timeoutMs: number;
  /**
   * Resolves while this process may use the id. Called before a producer registers with the id, which fences the
   * producer that has it, and again after that and before anything is written: a later process has not registered by
   * then, and will.
   */
  readonly confirm?: Tools['confirm'];
}

/** What a driver makes a producer from. */
export interface KafkaOptions {
  readonly brokers: readonly HostPort[];
  readonly topic: string;
  readonly clientId: string;
  readonly compression: Compression;
  /** Bound on one answer. */
  readonly timeoutMs: number;
  readonly sasl?: KafkaSasl | undefined;
  readonly tls?: TlsSettings | undefined;
  /** Left out: an idempotent producer without transactions. */
  readonly transactions?: KafkaTransactions | undefined;
  readonly log: Log;
}

/** How far the sink has come, as it is committed with its records. */
export interface CommittedPosition {
  readonly position: Offset;
  /** Stored with the position; brokers accept 4,096 bytes. */
  readonly note: string;
}

/** By partition, the offset behind the records of ours. */
export type WrittenOffsets = ReadonlyMap<number, bigint>;

/** By partition: from the first offset to the one after the last. */
export type Ranges = Readonly<Record<string, readonly [from: string, to: string]>>;

/** Reads the topic back. */
export interface TopicReader {
  /** Ranges of the records at and after these offsets, by partition; of others, the newest. */
  rangesFrom(offsets: Readonly<Record<string, string>>): Promise<Ranges>;
  /** The first digits of the uids of committed records. */
  uidsIn(ranges: Ranges, signal: AbortSignal): Promise<ReadonlySet<string>>;
}

/** Makes a producer, without I/O. */
export type KafkaDriver = (options: KafkaOptions) => KafkaProducer;

/**
 * A producer for one topic. It connects and authenticates when it first has to. With transactions,
 * that fences every older user of the transactional id, and waits until a transaction left behind
 * by one is committed or aborted. Everything that fails rejects with a KafkaFailure, or with the
 * ExportError of a secret that cannot be read.
 */
export interface KafkaProducer {
  /** Sends in one request per broker; resolves when all in-sync replicas have every record. */
  produce(records: readonly KafkaRecord[]): Promise<void>;
  /** Sends `requests` and commits `place` in one transaction: all of it or nothing. */
  transact(
    requests: readonly (readonly KafkaRecord[])[],
    place: CommittedPosition,
  ): Promise<WrittenOffsets>;
  /** Sends `requests` in a transaction and aborts it: resolves when the brokers accepted all of it, and keep nothing. */
  tryOut(requests: readonly (readonly KafkaRecord[])[]): Promise<void>;
  /**
   * What the last committed transaction of this group left; null if there is none, or if the
   * brokers have forgotten it (`offsets.retention.minutes` after the last commit, 7 days unless set
   * otherwise).
   */
  committed(): Promise<CommittedPosition | null>;
  /** Connects, authenticates and asks for the topic; changes nothing, creates nothing. */
  checkTopic(): Promise<void>;
  /** Disconnects; nothing may be in flight. */
  close(): Promise<void>;
  /** Cuts every connection at once; what is in flight rejects. */
  destroy(): void;
}

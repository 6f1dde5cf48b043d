// The status of a state in Kafka as a whole, from the processes' group metadata and the committed positions: printed by
// `sluice cluster` and shown on every process's page. Names and addresses come from any client that may join the
// groups, so they are treated as text and cut to a readable length.

import type { StoredStatus } from './status-facts.ts';

type StoredSinks = StoredStatus['sinks'];

/** A working or standby process. */
export interface ProcessStatus {
  /** `state.kafka.instance`; null: not set. */
  readonly instance: string | null;
  readonly host: string | null;
  readonly pid: number | null;
  /** Its address as the brokers see it. */
  readonly address: string;
  /** `starting`: it owns shards and works on none of them yet. */
  readonly state: 'working' | 'starting' | 'standing by' | 'drained';
  /** The shards on which it works; undefined: there is only one. */
  readonly shards?: readonly number[];
  /** Owned shards on which it does not work yet; undefined: none. */
  readonly not_running?: readonly number[];
  readonly started_at: string | null;
  readonly works_since: string | null;
  /** The sinks of its shards, by committed positions. */
  readonly sinks: StoredSinks;
}

/** A process that was replaced without a clean shutdown: its further writes are rejected. */
export interface FencedProcess extends Pick<ProcessStatus, 'instance' | 'shards'> {
  readonly host: string;
  readonly pid: number;
  /** Since when another process has its shards. */
  readonly at: string;
}

/** The whole cluster. */
export interface ClusterStatus extends Pick<StoredStatus, 'streams' | 'sinks'> {
  readonly prefix: string;
  /** Undefined: one. */
  readonly shards?: number;
  readonly processes: readonly ProcessStatus[];
  /** Differences between the configs of processes and the present one, a sentence for each. */
  readonly config_differences: readonly string[];
  readonly takeovers: number;
  /** Of the last takeover of each shard. */
  readonly fenced: readonly FencedProcess[];
  /** Shards without a process; null: none. */
  readonly unowned: { readonly shards: readonly number[]; readonly sinks: StoredSinks } | null;
}

/** A view of the cluster. Each look continues from the previous one, until closed. */
export interface ClusterSight {
  /** Throws an ExportError if Kafka does not answer. */
  look(): Promise<ClusterStatus>;
  /** Releases the data kept between looks. */
  close(): void;
}

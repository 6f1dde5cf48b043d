// How a state in Kafka stands as a whole, by what its processes have told their groups and what is
// committed: what `sluice cluster` prints, and the page of every process shows. Names and addresses
// come from whoever may join the groups, so they are text, and no longer than is worth reading.

import type { StoredStatus } from './status-facts.ts';

type StoredSinks = StoredStatus['sinks'];

/** A process that works or stands by. */
export interface ProcessStatus {
  /** `state.kafka.instance`; null: it was given none. */
  readonly instance: string | null;
  readonly host: string | null;
  readonly pid: number | null;
  /** From where it speaks to the brokers. */
  readonly address: string;
  /** `starting`: it owns shards and has not begun to work on any of them. */
  readonly state: 'working' | 'starting' | 'standing by' | 'drained';
  /** Those that it works on; left out: there is but one. */
  readonly shards?: readonly number[];
  /** Of the shards that it owns, the ones on which it has not begun to work; left out: none. */
  readonly not_running?: readonly number[];
  readonly started_at: string | null;
  readonly works_since: string | null;
  /** Those of its shards, by the positions that are committed. */
  readonly sinks: StoredSinks;
}

/** A process that was replaced without having ended in order: what it may still write is refused. */
export interface FencedProcess extends Pick<ProcessStatus, 'instance' | 'shards'> {
  readonly host: string;
  readonly pid: number;
  /** Since when another one has what it had. */
  readonly at: string;
}

/** All of it. */
export interface ClusterStatus extends Pick<StoredStatus, 'streams' | 'sinks'> {
  readonly prefix: string;
  /** Left out: one. */
  readonly shards?: number;
  readonly processes: readonly ProcessStatus[];
  /** How the configs of processes differ from the one that is looked by, a sentence for each. */
  readonly config_differences: readonly string[];
  readonly takeovers: number;
  /** Of the last takeover of each shard. */
  readonly fenced: readonly FencedProcess[];
  /** What no process works on; null: there is none. */
  readonly unowned: { readonly shards: readonly number[]; readonly sinks: StoredSinks } | null;
}

/** Whoever can look at it. Each look goes on from the one before, until closed. */
export interface ClusterSight {
  /** Throws an ExportError where Kafka does not tell. */
  look(): Promise<ClusterStatus>;
  /** Lets go of all that is kept from one look to the next. */
  close(): void;
}

// The settings of reading and writing the log of a shard, and the names in Kafka.

import { hostname } from 'node:os';
import type { HostPort } from '../../contracts/config.ts';
import { Secret, type TlsSettings } from '../../contracts/index.ts';
import type { KafkaSasl } from '../../kafka/index.ts';
import type { ConnectionsOptions } from '../../kafka/log-client.ts';
import type { ConfigPrint } from '../config-print.ts';

/** The cluster, and the names of the topics there. */
export interface StateLogSettings {
  readonly brokers: readonly HostPort[];
  /** Topics are `<prefix>.shards`, `.pages`, `.state`, `.dead` and `.control`. */
  readonly prefix: string;
  /** Replicas of new topics; default: the setting of the brokers (`default.replication.factor`). */
  readonly replicationFactor?: number | undefined;
  /** Number of shards, which is the number of partitions; default: 1. */
  readonly shards?: number | undefined;
  /** The shard that is written and read, from 0; default: 0. */
  readonly shard?: number | undefined;
  readonly tls?: TlsSettings | undefined;
  readonly sasl?: KafkaSasl | undefined;
}

/** The same for a process that may own shards. */
export interface MemberSettings extends StateLogSettings {
  /** A process that is silent for so long loses its shards. */
  readonly sessionMs: number;
  /** A name that the process keeps through restarts; default: a new one at each start. */
  readonly instance?: string | undefined;
  /** Whether the process leaves the group when it stops in order; default: true. */
  readonly leavesAtEnd?: boolean;
  /** The process that has started this one, and is the member of the group. */
  readonly starter?: { readonly instance: string | undefined; readonly pid: number };
  /** The deployment: a digest of each upstream's address and client. */
  readonly deployment: () => readonly string[];
  /** `state.kafka.deployment`; default: derived from the upstreams. */
  readonly deploymentName?: string | undefined;
  /** By upstreams' names: addresses, and digests of address and client id. Throws if a secret cannot be read. */
  readonly upstreams?: () => {
    readonly addresses: Readonly<Record<string, string>>;
    readonly digests: Readonly<Record<string, string>>;
  };
  /** The fingerprint of the running config, for other processes; another object after a reload. Default: none. */
  readonly config?: () => ConfigPrint | null;
}

/** The topics and partitions of a shard, and its transactional id. */
export function shardNames({ prefix, shard = 0 }: Omit<StateLogSettings, 'brokers'>) {
  return {
    pages: { topic: `${prefix}.pages`, partition: shard },
    state: { topic: `${prefix}.state`, partition: shard },
    dead: { topic: `${prefix}.dead`, partition: shard },
    transactionalId: `${prefix}.shard.${shard}`,
  };
}

/** The group of the processes that share the shards. */
export function ownersOf({ prefix }: Pick<StateLogSettings, 'prefix'>): string {
  return `${prefix}.owners`;
}

/** The groups of the shards in older versions, which have one for each shard. */
export function oldOwnersOf({ prefix, shards = 1 }: Pick<StateLogSettings, 'prefix' | 'shards'>) {
  return shards === 1 ? [] : Array.from({ length: shards }, (_, n) => `${prefix}.owners.${n}`);
}

/** The name of this process in the group. */
export function processName({ instance }: Pick<MemberSettings, 'instance'>): string {
  return instance ?? `${hostname()} ${process.pid}`;
}

const connectTimeoutMs = 10_000;
const requestTimeoutMs = 30_000;

/** The options of connections to the brokers. */
export function connectionOf({ tls, sasl }: StateLogSettings): ConnectionsOptions {
  const limits = { connectTimeout: connectTimeoutMs, requestTimeout: requestTimeoutMs };
  return { clientId: 'sluice', tls, sasl: sasl && refreshed(sasl), connection: limits };
}

function refreshed(sasl: KafkaSasl): KafkaSasl {
  if (sasl.mechanism === 'oauthbearer') return sasl;
  const password = new Secret(() => {
    // For the next authentication: a command must not delay this one for longer than a session.
    void sasl.password.refresh();
    return sasl.password.reveal();
  });
  return { ...sasl, password };
}

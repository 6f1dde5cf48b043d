// What reading and writing the log of a shard are made from.

import { hostname } from 'node:os';
import type { HostPort } from '../../contracts/config.ts';
import type { TlsSettings } from '../../contracts/index.ts';
import type { KafkaSasl } from '../../kafka/index.ts';
import type { ConnectionsOptions } from '../../kafka/log-client.ts';
import type { ConfigPrint } from '../config-print.ts';

/** The cluster, and what its topics are called there. */
export interface StateLogSettings {
  readonly brokers: readonly HostPort[];
  /** Topics are `<prefix>.shards`, `.pages`, `.state`, `.dead` and `.control`. */
  readonly prefix: string;
  /** Of the topics that are made; left out: as the brokers are set (`default.replication.factor`). */
  readonly replicationFactor?: number | undefined;
  /** How many shards the state has, as many as partitions; left out: one. */
  readonly shards?: number | undefined;
  /** Which of them, from 0, is written and read; left out: the first. */
  readonly shard?: number | undefined;
  readonly tls?: TlsSettings | undefined;
  readonly sasl?: KafkaSasl | undefined;
}

/** As well, who takes part in owning it. */
export interface MemberSettings extends StateLogSettings {
  /** A process that was silent for so long is taken for dead. */
  readonly sessionMs: number;
  /** A name that stays the process's through restarts; left out: it gets a new one at each start. */
  readonly instance?: string | undefined;
  /** Whether its place is free as soon as it has ended in order; left out: it is. */
  readonly leavesAtEnd?: boolean;
  /** Who is in the group, where that process has started this one for a shard. */
  readonly starter?: { readonly instance: string | undefined; readonly pid: number };
  /** Whose work it does: what stands for each upstream's address and client. */
  readonly deployment: () => readonly string[];
  /** `state.kafka.deployment`; left out: the name is made of the upstreams. */
  readonly deploymentName?: string | undefined;
  /** By upstreams' names: their addresses, and what stands for address and client id. Throws where a secret cannot be read. */
  readonly upstreams?: () => {
    readonly addresses: Readonly<Record<string, string>>;
    readonly digests: Readonly<Record<string, string>>;
  };
  /** The print of the config that runs, for the other processes: another object after a reload. Left out: none. */
  readonly config?: () => ConfigPrint | null;
}

/** What stands for a shard in logs and topics: its topics, and the id that it is written under. */
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

/** What this process says in the group that it is. */
export function processName({ instance }: Pick<MemberSettings, 'instance'>): string {
  return instance ?? `${hostname()} ${process.pid}`;
}

const connectTimeoutMs = 10_000;
const requestTimeoutMs = 30_000;
const mechanisms = {
  plain: 'PLAIN',
  'scram-sha-256': 'SCRAM-SHA-256',
  'scram-sha-512': 'SCRAM-SHA-512',
} as const;

/** How its brokers are connected to. */
export function connectionOf({ tls, sasl }: StateLogSettings): ConnectionsOptions {
  const password =
    sasl === undefined
      ? undefined
      : () => {
          // For the next authentication: a command must not delay this one for longer than a session.
          void sasl.password.refresh();
          return sasl.password.reveal();
        };
  return {
    clientId: 'sluice',
    tls,
    connection: {
      connectTimeout: connectTimeoutMs,
      requestTimeout: requestTimeoutMs,
      ...(sasl === undefined || password === undefined
        ? {}
        : { sasl: { mechanism: mechanisms[sasl.mechanism], username: sasl.username, password } }),
    },
  };
}

// The start options of a sandbox: amounts, growth, access, and faults.

import type { SecureVersion } from 'node:tls';
import type { FaultScript } from './faults.ts';
import type { ClientCredentials } from './tokens.ts';
import type { WebhookOptions } from './webhooks/webhooks.ts';

/** The start options. Every option has a default. */
export interface SandboxOptions {
  /** Default 0: any free port. */
  readonly port?: number;
  /** Decides all data, random faults, and the cursors. Default 1. */
  readonly seed?: number;
  /** Audit events that exist at the epoch. Default 500. */
  readonly events?: number;
  /** Log records per company and log list at the epoch. Default as `events`. */
  readonly logs?: number;
  /** New audit events per second; logs grow three times as fast, over all companies. Default 2. */
  readonly rate?: number;
  /** Default c-1 and c-2; with `earlier` 1001 and 1002. */
  readonly companies?: readonly string[];
  /** The highest `limit` of any list; default 1000. Default page size: 100. */
  readonly pageMax?: number;
  /** For both APIs. Default 3600 for unified, 43200 for services. */
  readonly tokenLifetimeS?: number;
  readonly faults?: FaultScript;
  /** Milliseconds since 1970. Default the system's clock. */
  readonly now?: () => number;
  /**
   * When the lists had `events` records, in milliseconds since 1970; default: now. With the same seed and epoch a
   * restarted sandbox has the same records, and those added meanwhile.
   */
  readonly epochMs?: number;
  /** Interval of scheduled firewall changes per company, seconds; 0 for none. Default 120. */
  readonly firewallEveryS?: number;
  /**
   * Each n-th new audit event reports a change of sites, hosts, tickets and others, which happens with it; 0 for none.
   * Default: one in two seconds at the start `rate`.
   */
  readonly changeEvery?: number;
  /**
   * Also serves the earlier form of the same ledger, on its own port (default: any free one). Ids of audit events,
   * tickets and hosts, and companies, then are digits in every form.
   */
  readonly earlier?: { readonly port?: number };
  /**
   * Plants attacks and near misses in the audit events (attacks.ts): `events` is rounded up to whole blocks, and each block
   * reports one change of a collection. Default: none.
   */
  readonly attacks?: boolean;
  /** Number of entities of a collection at the start, by kind, such as `host` or `ticket`. */
  readonly entities?: Readonly<Record<string, number>>;
  readonly credentials?: Partial<ClientCredentials>;
  readonly webhooks?: WebhookOptions;
  /** Serves https instead of http. PEM texts. */
  readonly tls?: {
    readonly cert: string;
    readonly key: string;
    readonly ca?: string;
    readonly requestCert?: boolean;
    readonly minVersion?: SecureVersion;
    readonly maxVersion?: SecureVersion;
  };
  /** Bytes of served pages cached for a second reader. Default 64 MiB, 0 for none. */
  readonly pageCacheBytes?: number;
}

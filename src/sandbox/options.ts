// How a sandbox is started: how much there is, how it grows, how it is reached, and what goes wrong.

import type { SecureVersion } from 'node:tls';
import type { FaultScript } from './faults.ts';
import type { ClientCredentials } from './tokens.ts';
import type { WebhookOptions } from './webhooks/webhooks.ts';

/** How a sandbox starts. Everything has a default. */
export interface SandboxOptions {
  /** Default 0: any free port. */
  readonly port?: number;
  /** Decides all data, chance in faults, and the cursors. Default 1. */
  readonly seed?: number;
  /** Audit events that exist at the epoch. Default 500. */
  readonly events?: number;
  /** Log records that exist per company and log list at the epoch. Default as `events`. */
  readonly logs?: number;
  /** New audit events per second; logs grow three times as fast, over all companies. Default 2. */
  readonly rate?: number;
  /** Default c-1 and c-2; with `earlier` 1001 and 1002. */
  readonly companies?: readonly string[];
  /** The highest `limit` of any list; default 1000. Without `limit` a page has 100. */
  readonly pageMax?: number;
  /** For both APIs. Default 3600 for unified, 43200 for services. */
  readonly tokenLifetimeS?: number;
  readonly faults?: FaultScript;
  /** Milliseconds since 1970. Default the system's clock. */
  readonly now?: () => number;
  /**
   * When the lists held `events` records, in milliseconds since 1970; default: now. With the same
   * seed and epoch a restarted sandbox has the same records, and those that came meanwhile.
   */
  readonly epochMs?: number;
  /** One scheduled firewall change per company this often; 0 for none. Default 120. */
  readonly firewallEveryS?: number;
  /**
   * Each so many-th new audit event tells of a change to sites, hosts, tickets and the like, which
   * happens with it; 0 for none. Default: one in two seconds at the `rate` of the start.
   */
  readonly changeEvery?: number;
  /**
   * Also serves the earlier form of the same ledger, on a port of its own (default: any free one).
   * Ids of audit events, tickets and hosts are then digits in every form, and so are companies.
   */
  readonly earlier?: { readonly port?: number };
  /** How many entities a collection starts with, by kind, such as `host` or `ticket`. */
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
  /** Bytes of served pages kept for a second reader. Default 64 MiB, 0 keeps none. */
  readonly pageCacheBytes?: number;
}

// Which deployment a state in Kafka belongs to: its name and its upstreams, stored in the control topic by the first process.
// Another deployment would continue at cursors of upstreams that it does not read. Invariant: of several
// processes that start at once on an empty state, those of one deployment win. Each writes a claim under a key of its own;
// the first claim in the topic decides, and who has won stores that for good.

import { createHash } from 'node:crypto';
import type { JsonObject } from '../contracts/index.ts';
import type { MemberSettings } from './log/settings.ts';

/** A deployment as it is stored. */
export interface Deployment {
  readonly name: string;
  /** By each upstream's name: stands for its address and client id, and is no secret. */
  readonly upstreams: Readonly<Record<string, string>>;
}

/** The deployment of a config; null: it has neither a name nor upstreams, and nothing can be compared. */
export function deploymentOf(
  kafka: Pick<MemberSettings, 'deploymentName' | 'upstreams'>,
): (Deployment & { readonly isNamed: boolean }) | null {
  const { addresses = {}, digests: upstreams = {} } = kafka.upstreams?.() ?? {};
  if (kafka.deploymentName !== undefined) {
    return { name: kafka.deploymentName, upstreams, isNamed: true };
  }
  const digests = Object.values(upstreams).sort();
  if (digests.length === 0) return null;
  const [first = ''] = Object.values(addresses).map(hostOf).sort();
  const digest = createHash('sha256').update(digests.join(' ')).digest('hex').slice(0, 12);
  return { name: `${first}-${digest}`, upstreams, isNamed: false };
}

/** In the characters that `state.kafka.deployment` accepts. */
function hostOf(address: string): string {
  const host = URL.parse(address)?.hostname ?? 'sluice';
  return host.replaceAll(/[^A-Za-z0-9.-]/g, '-').slice(0, 100);
}

/** How a config compares with the stored deployment. */
export interface DeploymentComparison {
  /** Another deployment's config. */
  readonly isForeign: boolean;
  /** Upstreams of the config that are not stored, by name. */
  readonly added: readonly string[];
  /** Stored upstreams that the config does not have, by name. */
  readonly missing: readonly string[];
  /** Upstreams that have another address or client id now, by name. */
  readonly changed: readonly string[];
}

/** A name decides where the config has one; else it is enough to share an upstream. */
export function compareDeployments(
  stored: Deployment,
  own: Deployment & { readonly isNamed: boolean },
): DeploymentComparison {
  const namesOnlyIn = (one: Deployment, other: Deployment) => {
    const known = new Set(Object.values(other.upstreams));
    return Object.keys(one.upstreams).filter((name) => !known.has(one.upstreams[name] ?? ''));
  };
  const here = namesOnlyIn(own, stored);
  const there = namesOnlyIn(stored, own);
  const isShared =
    here.length < Object.keys(own.upstreams).length || Object.keys(stored.upstreams).length === 0;
  return {
    isForeign: own.isNamed ? own.name !== stored.name : !isShared,
    added: here.filter((name) => !there.includes(name)),
    missing: there.filter((name) => !here.includes(name)),
    changed: here.filter((name) => there.includes(name)),
  };
}

/** How the upstreams differ, for a message; empty: they do not. */
export function differenceText({ added, missing, changed }: DeploymentComparison): string {
  const parts = { added, missing, changed };
  return Object.entries(parts)
    .flatMap(([what, names]) => (names.length === 0 ? [] : [`${what}: ${names.join(', ')}`]))
    .join('; ');
}

/** A stored deployment from its record; null: it is not as we write it. */
export function readDeployment({ name, upstreams }: JsonObject): Deployment | null {
  if (typeof name !== 'string' || typeof upstreams !== 'object' || upstreams === null) return null;
  const entries = Object.entries(upstreams).filter(([, digest]) => typeof digest === 'string');
  return { name, upstreams: Object.fromEntries(entries) as Record<string, string> };
}

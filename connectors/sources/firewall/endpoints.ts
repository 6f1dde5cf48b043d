// The firewall endpoints of one company, as the two streams of it ask them.

import type { Answer } from '../../../src/contracts/answer.ts';
import { ExportError } from '../../../src/contracts/errors.ts';
import type { Body, Upstream } from '../../../src/contracts/upstream.ts';
import { filledPath } from '../../shared/upstream-path.ts';
import { type Listing, readListing } from './listing.ts';

/** Whose firewall is read, and through what. */
export interface FirewallScope {
  /** Name of the source in the config. */
  readonly source: string;
  readonly company: string;
  readonly upstream: Upstream;
  /** False where shared objects are told by another company's stream. */
  readonly withShared: boolean;
}

const firewallPath = '/api/firewall/v1/companies/{company_id}';
/** Members that a policy's own id may stand in. */
export const policyIds: readonly string[] = ['id', 'policy_id'];

/** Name, fingerprint and the like of one resource's stream. */
export function streamFacts({ source, company, upstream }: FirewallScope, resource: string) {
  const template = `${firewallPath}/${resource}`;
  return {
    kind: 'snapshot' as const,
    name: `${source}/${company}/${resource}`,
    source,
    paths: [filledPath(template, { company_id: company }) ?? template, template],
    company,
    resource,
    fingerprint: JSON.stringify([upstream.baseUrl, company, resource]),
  };
}

/** The list of objects or of policies. */
export function readFirewallList(
  { upstream, company, source }: FirewallScope,
  { resource, ids }: { readonly resource: string; readonly ids: readonly string[] },
  signal: AbortSignal,
): Promise<Answer<Listing>> {
  const template = `${firewallPath}/${resource}`;
  const path = filledPath(template, { company_id: company }) ?? template;
  return readListing({
    doing: `reading ${source}/${company}/${resource}`,
    ids,
    ask: (query) => upstream.get({ path, template, query, company }, signal),
  });
}

/** One policy with all its rules. */
export async function askPolicy(
  { upstream, company, source }: FirewallScope,
  id: string,
  signal: AbortSignal,
): Promise<Answer<Body>> {
  const template = `${firewallPath}/policies/{policy_id}`;
  const path = filledPath(template, { company_id: company, policy_id: id });
  if (path !== null) return await upstream.get({ path, template, query: [], company }, signal);
  const cause = new ExportError(
    'upstream_nonsense',
    `reading ${source}/${company}/policies: a policy has an id that no path can hold`,
    { next: 'Report it to upstream; its other policies are read, and none is told as removed.' },
  );
  return { outcome: 'refused', status: 400, cause };
}

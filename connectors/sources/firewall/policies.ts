// The policies of one company and each policy's rules: the list, then every listed policy by its id. The two can disagree
// while somebody works on the policies: one that is listed and cannot be read is looked for in the list once more; if
// it is still there, nothing is known of it in this reading.

import type { ExportError } from '../../../src/contracts/errors.ts';
import type { Entity, SnapshotStream } from '../../../src/contracts/source.ts';
import { nonsense, readJson } from '../../../src/fetch/list/body.ts';
import {
  askPolicy,
  type FirewallScope,
  policyIds,
  readFirewallList,
  streamFacts,
} from './endpoints.ts';
import { detailOf, keyParts, policyEntities } from './entities.ts';
import type { Row } from './listing.ts';

const policyList = { resource: 'policies', ids: policyIds };

/** The stream `<source>/<company>/policies`. */
export function policiesStream(scope: FirewallScope): SnapshotStream {
  const facts = streamFacts(scope, 'policies');
  const doing = `reading ${facts.name}`;
  return {
    ...facts,
    async readEverything(signal) {
      const listing = await readFirewallList(scope, policyList, signal);
      if (listing.outcome !== 'ok') return listing;
      const entities: Entity[] = [];
      const missing: string[] = [];
      let flaw = listing.flaw;
      for (const row of listing.rows) {
        const read = await readPolicy(scope, row, { doing, signal });
        if (read.outcome === 'read') entities.push(...read.entities);
        else if (read.outcome === 'gone') missing.push(row.id ?? '');
        else flaw ??= read.cause;
      }
      if (missing.length > 0) {
        flaw ??= await stillListed(scope, missing, { doing, signal });
      }
      return {
        outcome: 'ok',
        complete: flaw === null,
        entities,
        ...(flaw === null ? {} : { cause: flaw }),
      };
    },

    async stillThere({ key }, signal) {
      const [, policy = '', list, rule] = keyParts(key);
      const answer = await askPolicy(scope, policy, signal);
      if (answer.outcome === 'refused') return answer.status === 404 ? 'gone' : 'unknown';
      if (answer.outcome !== 'ok') return 'unknown';
      const row: Row = { value: {}, bytes: Buffer.from('{}'), id: policy };
      const entities = entitiesIn(answer.body, row, doing);
      if (entities === null) return 'unknown';
      if (entities.some((entity) => entity.key === key)) return 'there';
      // A list of rules that is not there at all says nothing about the rules in it.
      const holder = JSON.parse(entities[0]?.text ?? '{}') as Record<string, unknown>; // made from parsed JSON
      return rule !== undefined && Array.isArray(holder[list ?? '']) ? 'gone' : 'unknown';
    },
  };
}

type PolicyRead =
  | { readonly outcome: 'read'; readonly entities: readonly Entity[] }
  | { readonly outcome: 'gone' }
  | { readonly outcome: 'unknown'; readonly cause: ExportError };

interface Doing {
  readonly doing: string;
  readonly signal: AbortSignal;
}

async function readPolicy(
  scope: FirewallScope,
  row: Row,
  { doing, signal }: Doing,
): Promise<PolicyRead> {
  if (row.id === null) {
    return { outcome: 'unknown', cause: nonsense(doing, 'a policy is listed without an id') };
  }
  const answer = await askPolicy(scope, row.id, signal);
  if (answer.outcome === 'refused' && answer.status === 404) return { outcome: 'gone' };
  if (answer.outcome !== 'ok') return { outcome: 'unknown', cause: answer.cause };
  const entities = entitiesIn(answer.body, row, doing);
  return entities === null
    ? {
        outcome: 'unknown',
        cause: nonsense(doing, `policy ${JSON.stringify(row.id)} cannot be read`),
      }
    : { outcome: 'read', entities };
}

function entitiesIn(body: Uint8Array, row: Row, doing: string): readonly Entity[] | null {
  const parsed = readJson(body, doing);
  const detail = parsed.good ? detailOf(parsed.value, body) : null;
  return detail === null ? null : policyEntities(row, row.id ?? '', detail);
}

/** A policy that was deleted while the list was read is gone from it by now; one that is still listed is unknown. */
async function stillListed(
  scope: FirewallScope,
  missing: readonly string[],
  { doing, signal }: Doing,
): Promise<ExportError | null> {
  const again = await readFirewallList(scope, policyList, signal);
  if (again.outcome !== 'ok') return again.cause;
  const listed = new Set(again.rows.map(({ id }) => id));
  return (
    again.flaw ??
    (missing.some((id) => listed.has(id))
      ? nonsense(doing, 'a policy is listed, and answered with 404 by its id')
      : null)
  );
}

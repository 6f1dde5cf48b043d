// Investigations, at `/v1/intelligence/investigations/{id}`: one object each, whose evidence grows while the
// investigation goes from open to closed. The document has no list: their ids come from audit events.
import { failed, ok } from '../answers.ts';
import type { CollectionPlan, EntityContext } from '../collection.ts';
import { ADMINS, privateAddress, publicAddress, SITES } from '../company.ts';
import { lifeOf } from '../life.ts';
import type { Random } from '../random.ts';
import { type SandboxRoute, sandboxCollectionOf } from '../routes.ts';

const PATH = '/v1/intelligence/investigations';

const STATUS = ['open', 'in_progress', 'contained', 'closed'] as const;
const VERBS = ['opened', 'triaged', 'contained', 'closed'];

/** The investigations; `start` of them at the start. */
export function investigationsPlan(start = 10): CollectionPlan {
  return {
    kind: 'investigation',
    path: PATH,
    company: null,
    life: lifeOf({ core: 0, start, ages: [0, 1, 2] }),
    ids: { prefix: 'inv_', first: 700_000 },
    record: investigationRecord,
    verb: (op, version) => (op === 'deleted' ? 'purged' : (VERBS[version] ?? 'updated')),
  };
}

/** `GET /v1/intelligence/investigations/{id}`. */
export const INVESTIGATION_ROUTE: SandboxRoute = {
  path: `${PATH}/{id}`,
  scope: 'intelligence:read',
  about: 'An investigation with its evidence',
  answer(ask, { id = '' }, world) {
    const investigations = sandboxCollectionOf(world, PATH);
    const index = investigations.indexOf(id);
    return index === null || !investigations.stands(index)
      ? failed(ask.api, { status: 404, message: 'no such investigation' })
      : ok(investigations.entity(index));
  },
};

function investigationRecord({ id, index, version, times, base }: EntityContext): object {
  const site = base.pick(SITES);
  const severity = base.pick(['critical', 'high', 'medium', 'low']);
  const name = `${base.pick(['Beaconing', 'Lateral movement', 'Data staging', 'Credential spraying'])} at ${site.name}`;
  const status = STATUS[Math.min(version, 3)];
  return {
    id,
    name,
    status,
    severity,
    ...(index % 5 !== 3 && { confidence: Math.round(base.next() * 1_000) / 1_000 }),
    verdict: status === 'closed' ? base.pick(['true_positive', 'false_positive', 'benign']) : null,
    site_id: site.id,
    assignee: version === 0 ? null : base.pick(ADMINS).email,
    created_at: times[0],
    updated_at: times.at(-1),
    evidence: times.flatMap((observed_at, n) => [
      { id: `${id}-e${2 * n + 1}`, observed_at, ...flowEvidence(base) },
      { id: `${id}-e${2 * n + 2}`, observed_at, ...domainEvidence(base) },
    ]),
  };
}

function flowEvidence(random: Random): object {
  return {
    type: 'network_flow',
    source: { ip: privateAddress(random), host: `ws-${random.hex(4)}` },
    destination: { ip: publicAddress(random), port: random.pick([443, 8_443, 53, 4_444]) },
    bytes: random.below(9_000_000),
    technique: { id: 'T1071.001', name: 'Web Protocols' },
  };
}

function domainEvidence(random: Random): object {
  return {
    type: 'domain',
    value: `${random.hex(6)}.${random.pick(['example.net', 'example.org'])}`,
    score: random.below(101) / 100,
    raw: `q="${random.hex(8)}" | answers=0 \\ ttl=5`,
  };
}

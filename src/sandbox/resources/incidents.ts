// Incidents of the operations desk. The document has no list: their ids come from audit events and webhooks. Each has a
// timeline at `/v1/mc/incidents/{id}/timeline`, which only grows. Incidents named by audit events before the epoch have
// a finished timeline.
import { failed } from '../answers.ts';
import type { CollectionPlan, EntityContext } from '../collection.ts';
import { ADMINS, AGENTS, SITES } from '../company.ts';
import { lifeOf } from '../life.ts';
import { fixedList } from '../lists.ts';
import { Random, saltOf } from '../random.ts';
import { cursorAnswer, type SandboxRoute, sandboxCollectionOf } from '../routes.ts';

const PATH = '/v1/mc/incidents';

/** The stages of an incident's life. */
const STAGES = ['created', 'acknowledged', 'fix_proposed', 'resolved'] as const;

/** How many clock steps an incident's timeline stays after it was archived. */
const STEPS_KEPT = 12;

/** The incidents; `start` of them at the start. */
export function incidentsPlan(start = 12): CollectionPlan {
  return {
    kind: 'incident',
    path: PATH,
    company: null,
    life: lifeOf({ core: 0, start, ages: [0, 1, 1] }),
    ids: { prefix: 'INC-', first: 30_000 },
    record: incidentRecord,
    verb: (op, version) => (op === 'deleted' ? 'archived' : (STAGES[version] ?? 'noted')),
  };
}

/** `GET /v1/mc/incidents/{id}/timeline`. */
export const TIMELINE_ROUTE: SandboxRoute = {
  path: `${PATH}/{id}/timeline`,
  scope: 'mc:read',
  about: 'The timeline of an incident, immutable',
  query: ['limit', 'cursor'],
  answer(ask, { id = '' }, world) {
    if (/^INC-2\d{4}$/.test(id)) {
      return cursorAnswer(ask, fixedList(ask.path, endedTimeline(world.seed, id)), world);
    }
    const incidents = sandboxCollectionOf(world, PATH);
    const index = incidents.indexOf(id);
    const moment = index === null ? null : incidents.moment(index);
    if (index === null || moment === null || incidents.stepsGone(index) > STEPS_KEPT) {
      return failed(ask.api, { status: 404, message: 'no such incident' });
    }
    return cursorAnswer(ask, fixedList(ask.path, incidentTimeline(moment)), world);
  },
};

/** The entries of an incident's timeline, oldest first. */
export function incidentTimeline({ id, times, base }: EntityContext): readonly object[] {
  return times.map((timestamp, n) => entryOf(id, n, { timestamp, random: base }));
}

function incidentRecord({ id, index, version, times, base }: EntityContext): object {
  const site = base.pick(SITES);
  const severity = base.pick(['sev1', 'sev2', 'sev3', 'sev3']);
  return {
    id,
    name: `${severity}: ${base.pick(['packet loss', 'beaconing host', 'BGP session lost'])} at ${site.name}`,
    severity,
    status: STAGES[Math.min(version, 3)],
    ...(index % 4 !== 1 && { site_id: site.id }),
    owner: base.pick(ADMINS).email,
    ack_eta_sec: 60 * (1 + base.below(15)),
    created_at: times[0],
  };
}

function endedTimeline(seed: number, id: string): readonly object[] {
  const random = new Random(seed, saltOf(id));
  const startMs = Date.UTC(2026, 0, 1) + random.below(80_000_000) * 100;
  return Array.from({ length: 2 + random.below(3) }, (_, n) =>
    entryOf(id, n, { timestamp: new Date(startMs + n * 420_000).toISOString(), random }),
  );
}

// The draws have one order for any length of the timeline, so entries never change.
function entryOf(
  id: string,
  n: number,
  { timestamp, random }: { readonly timestamp: string; readonly random: Random },
): object {
  const [admin, agent, byAgent] = [random.pick(ADMINS), random.pick(AGENTS), random.chance(0.3)];
  const entry = STAGES[n] ?? 'note';
  return {
    id: `${id}-${n + 1}`,
    incident_id: id,
    timestamp,
    entry,
    author: byAgent ? { type: 'agent', id: agent.id } : { type: 'admin', email: admin.email },
    ...(n % 2 === 0 && { text: `${entry} by ${byAgent ? agent.name : admin.name}` }),
  };
}

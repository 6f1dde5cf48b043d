// The unified API's read endpoints (the exporter only reads): audit events, sites, an incident's
// timeline and the OpenAPI description. Paths, parameters and envelopes are those of the document;
// where it shows no body, the shape is a plausible one and clients must not depend on it.
import { ok } from './answers.ts';
import { ADMINS, SITES } from './company.ts';
import { fixedList } from './lists.ts';
import { Random, saltOf } from './random.ts';
import { cursorAnswer, type Route } from './routes.ts';

/** Where audit events are served. */
export const AUDIT_PATH = '/v1/audit/events';

/** The unified API's endpoints, token endpoint excepted. */
export const UNIFIED_ROUTES: readonly Route[] = [
  {
    path: AUDIT_PATH,
    scope: 'events:read',
    answer(ask, _params, world) {
      const list = world.lists.get(AUDIT_PATH);
      return list === undefined
        ? ok({ data: [], next_cursor: null })
        : cursorAnswer(ask, list, world);
    },
  },
  {
    path: '/v1/sites',
    scope: 'platform:read',
    answer(ask, _params, world) {
      const [status, region] = [ask.query.get('status'), ask.query.get('region')];
      const sites = SITES.filter((site) => {
        return (status ?? site.status) === site.status && (region ?? site.region) === site.region;
      });
      return cursorAnswer(ask, fixedList(ask.path, sites), world);
    },
  },
  {
    path: '/v1/mc/incidents/{id}/timeline',
    scope: 'mc:read',
    answer: (_ask, { id = '' }, world) => ok({ data: timeline(world.seed, id) }),
  },
  {
    path: '/v1/openapi.json',
    answer: () => ok(OPENAPI),
  },
];

function timeline(seed: number, incident: string): readonly object[] {
  const random = new Random(seed, saltOf(incident));
  const startMs = Date.UTC(2026, 0, 1) + random.below(80_000_000) * 100;
  const steps = ['opened', 'acknowledged', 'agent_proposed_fix', 'fix_approved', 'resolved'];
  return steps.slice(0, 2 + random.below(4)).map((entry, n) => ({
    id: `${incident}-${n + 1}`,
    timestamp: new Date(startMs + n * 420_000).toISOString(),
    entry,
    author: random.pick(ADMINS).email,
  }));
}

const LIST_PARAMETERS = [
  { name: 'limit', in: 'query', schema: { type: 'integer' } },
  { name: 'cursor', in: 'query', schema: { type: 'string' } },
];

const OPENAPI = {
  openapi: '3.1.0',
  info: { title: 'Unified Platform REST API (sandbox)', version: '1' },
  paths: {
    '/oauth/token': { post: { summary: 'client credentials' } },
    '/audit/events': {
      get: { summary: 'every admin and agent action', parameters: LIST_PARAMETERS },
    },
    '/sites': { get: { summary: 'sites', parameters: LIST_PARAMETERS } },
    '/mc/incidents/{id}/timeline': { get: { summary: 'an incident from first sign to end' } },
  },
};

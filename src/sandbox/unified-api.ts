// The endpoints of the unified API: all GETs of its document, with the document's paths, parameters and envelopes.
// Where it shows no body, the shape is plausible, and clients must not depend on it.
import { ok } from './answers.ts';
import { TIMELINE_ROUTE } from './resources/incidents.ts';
import { INVESTIGATION_ROUTE } from './resources/investigations.ts';
import { SITES_ROUTE } from './resources/sites.ts';
import { WEB_CATEGORIES_ROUTE } from './resources/web-categories.ts';
import { cursorAnswer, type SandboxRoute } from './routes.ts';

/** The path of audit events. */
export const AUDIT_PATH = '/v1/audit/events';

/** The endpoints of the unified API, without tokens and description. */
export const UNIFIED_ROUTES: readonly SandboxRoute[] = [
  {
    path: AUDIT_PATH,
    scope: 'events:read',
    about: 'Every admin and agent action, immutable',
    query: ['limit', 'cursor'],
    answer(ask, _params, world) {
      const list = world.lists.get(AUDIT_PATH);
      return list === undefined
        ? ok({ data: [], next_cursor: null })
        : cursorAnswer(ask, list, world);
    },
  },
  SITES_ROUTE,
  WEB_CATEGORIES_ROUTE,
  INVESTIGATION_ROUTE,
  TIMELINE_ROUTE,
];

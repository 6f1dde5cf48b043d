// The unified API's endpoints: all GETs of its document. Paths, parameters and envelopes are those
// of the document; where it shows no body, the shape is a plausible one and clients must not depend
// on it.
import { ok } from './answers.ts';
import { TIMELINE_ROUTE } from './resources/incidents.ts';
import { INVESTIGATION_ROUTE } from './resources/investigations.ts';
import { SITES_ROUTE } from './resources/sites.ts';
import { WEB_CATEGORIES_ROUTE } from './resources/web-categories.ts';
import { cursorAnswer, type SandboxRoute } from './routes.ts';

/** Where audit events are served. */
export const AUDIT_PATH = '/v1/audit/events';

/** The unified API's endpoints, those for tokens and the description excepted. */
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

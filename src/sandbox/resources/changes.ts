// Changes of the self-service: each write is one, and its output has a status: RUNNING, then COMPLETED or FAILED; a few
// begin with a status that the document does not name. The document does not show the search's path; the list at
// `…/changes` is the sandbox's own. Block-list entries name changes as well.
import { failed, ok } from '../answers.ts';
import type { CollectionPlan, EntityContext } from '../collection.ts';
import { entityList } from '../entity-list.ts';
import { lifeOf } from '../life.ts';
import { cursorAnswer, forCompany, type SandboxRoute, sandboxCollectionOf } from '../routes.ts';

const CHANGES = '/api/self-service/v1/companies/{company_id}/changes';
const FINISHED = 3;

const IDS = { prefix: '7c9e6679-7425-40de-944b-', first: 100_000_000_000 };

/** The id of a change; `no` counts companies. */
export function changeIdOf(no: number, index: number): string {
  return `${IDS.prefix}${IDS.first + no * 10_000_000 + index}`;
}

function changesPath(company: string): string {
  return CHANGES.replace('{company_id}', encodeURIComponent(company));
}

/** A company's changes; `start` of them at the start. */
export function changesPlan(company: string, no: number, start = 60): CollectionPlan {
  return {
    kind: 'change',
    path: changesPath(company),
    company,
    life: lifeOf({ core: 0, start, ages: [0, 0, 0] }),
    ids: { ...IDS, first: IDS.first + no * 10_000_000 },
    record: changeRecord,
    verb: (op, version) =>
      ({
        created: 'submitted',
        updated: version < FINISHED ? 'progressed' : 'finished',
        deleted: 'purged',
      })[op],
  };
}

/** The endpoints of changes. */
export const CHANGE_ROUTES: readonly SandboxRoute[] = [
  forCompany({
    path: CHANGES,
    about: null,
    answer(ask, { company_id: company = '' }, world) {
      return cursorAnswer(ask, entityList(sandboxCollectionOf(world, changesPath(company))), world);
    },
  }),
  forCompany({
    path: `${CHANGES}/{change_id}/output`,
    about: 'The output of a change',
    answer(ask, { company_id: company = '', change_id: id = '' }, world) {
      const changes = sandboxCollectionOf(world, changesPath(company));
      const index = changes.indexOf(id);
      return index === null || !changes.stands(index)
        ? failed(ask.api, { status: 404, message: 'no such change' })
        : ok(changes.entity(index));
    },
  }),
];

function changeRecord({ id, index, version, times }: EntityContext): object {
  const output = times
    .slice(0, FINISHED + 1)
    .map((at, n) => `${at} ${['accepted', 'validated', 'rolling out', 'done'][n]}`);
  return { change_id: id, status: statusOf(index, version), output };
}

function statusOf(index: number, version: number): string {
  if (version >= FINISHED) return index % 8 === 5 ? 'FAILED' : 'COMPLETED';
  return version === 0 && index % 9 === 4 ? 'QUEUED' : 'RUNNING';
}

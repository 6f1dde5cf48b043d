// Block lists and exclusion lists of a company: IPs, domains and URLs, entered for a while. The same records are at two
// paths, one with offsets and one with cursors. An entry names its change, if one is known.
import type { CollectionPlan, EntityContext } from '../collection.ts';
import { ADMINS, publicAddress } from '../company.ts';
import { entityList } from '../entity-list.ts';
import { lifeOf } from '../life.ts';
import {
  cursorAnswer,
  forCompany,
  offsetAnswer,
  type SandboxRoute,
  sandboxCollectionOf,
} from '../routes.ts';
import { changeIdOf } from './changes.ts';

/** The two lists. */
export type ListName = 'block-list-entries' | 'exclusion-list-entries';

const KINDS = {
  'block-list-entries': { kind: 'block_list_entry', start: 60, first: 70_000 },
  'exclusion-list-entries': { kind: 'exclusion_list_entry', start: 24, first: 90_000 },
} as const;

const COMPANY = '/api/threat-protection/v1/companies/{company_id}';

/** The path of one of a company's lists. */
export function listPath(company: string, list: ListName): string {
  return `${COMPANY.replace('{company_id}', encodeURIComponent(company))}/${list}`;
}

/** A company's block list or exclusion list; `start` entries at the start. */
export function threatListPlan(
  list: ListName,
  {
    company,
    no,
    start,
  }: { readonly company: string; readonly no: number; readonly start?: number | undefined },
): CollectionPlan {
  const { kind, first, start: usual } = KINDS[list];
  return {
    kind,
    path: listPath(company, list),
    company,
    life: lifeOf({ core: 0, start: start ?? usual, ages: [1, 2, 4] }),
    ids: { prefix: '', first: first + no * 10_000_000 },
    record: (moment) => entryRecord(moment, { company, no, list }),
  };
}

/** The endpoints of both lists. */
export const THREAT_LIST_ROUTES: readonly SandboxRoute[] = [
  forCompany({
    path: `${COMPANY}/block-list-entries`,
    about: 'Block-list entries',
    query: ['limit', 'offset'],
    answer: (ask, { company_id: company = '' }, world) =>
      offsetAnswer(
        ask,
        entityList(sandboxCollectionOf(world, listPath(company, 'block-list-entries'))),
        world,
      ),
  }),
  forCompany({
    path: `${COMPANY}/exclusion-list-entries`,
    about: 'Exclusion-list entries',
    query: ['limit', 'cursor'],
    answer: (ask, { company_id: company = '' }, world) =>
      cursorAnswer(
        ask,
        entityList(sandboxCollectionOf(world, listPath(company, 'exclusion-list-entries'))),
        world,
      ),
  }),
];

function entryRecord(
  { id, index, version, times, base, fresh }: EntityContext,
  { company, no, list }: { readonly company: string; readonly no: number; readonly list: ListName },
): object {
  const type = base.pick(['ip', 'domain', 'domain', 'url'] as const);
  const host = `${base.hex(6)}.${base.pick(['example.net', 'example.org', 'xn--bcher-kva.example'])}`;
  const value = { ip: publicAddress(base), domain: host, url: `https://${host}/a?b=c|d&e=%2F` }[
    type
  ];
  return {
    entry_id: id,
    company_id: company,
    type,
    value,
    ...(list === 'block-list-entries' && {
      category: base.pick(['MALWARE', 'PHISHING', 'SPAM', 'COMMAND_AND_CONTROL']),
    }),
    scope: index % 8 === 3 ? null : base.pick(['GLOBAL', 'SITE']),
    comment:
      version === 0
        ? `entered by ${base.pick(ADMINS).name}`
        : `reviewed, round ${version}: ${fresh.hex(4)}`,
    enabled: version === 0 || fresh.chance(0.8),
    ...(index % 4 !== 1 && { expires_at: index % 4 === 0 ? null : '2027-01-01T00:00:00Z' }),
    change_id: index % 5 === 2 ? null : changeIdOf(no, index),
    created_at: times[0],
    updated_at: times.at(-1),
  };
}

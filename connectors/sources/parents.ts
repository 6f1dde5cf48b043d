// The common part of all sources that read a small list, or an object, per parent: the timeline of
// each ticket, an investigation for each id. The document shows their paths, and no list of the ids
// for them: these come from a collection, from the records of another source, or from the config.

import { z } from 'zod';
import {
  defineSource,
  duration,
  type Mapping,
  type Settings,
  type SourceDefinition,
} from '../../src/contracts/config.ts';
import type { JsonObject, ParentsStream } from '../../src/contracts/index.ts';
import { requestAdvice, requestFlaw } from '../shared/pagination.ts';
import { endpointPath, filledPath, isPerCompany } from '../shared/upstream-path.ts';
import {
  type ListSourceSettings,
  listFields,
  listReading,
  listStreamOf,
  mappingField,
  orders,
} from './list.ts';

const placeholder = '{parent_id}';
const dottedPath = () => z.string().min(1);

/** The list or object per parent, as the author of its source declares it. */
export interface OfParents {
  readonly type: string;
  readonly summary: string;
  readonly api: 'unified' | 'services';
  /** With `{parent_id}`, and `{company_id}` if parents belong to a company. */
  readonly path: string;
  /** The name of a parent. */
  readonly parent: string;
  /** True if upstream declares its records immutable. */
  readonly immutable?: boolean;
  /** Default: a list. */
  readonly object?: ParentsStream['object'];
  /** The default mapping of its records. */
  readonly mapping: Mapping;
  /** Of an object, if not `id`. */
  readonly id?: string;
}

const eachField = z
  .union([
    z.strictObject({
      of: z.string().min(1).describe('name of the source that shows the parents'),
      id: dottedPath().describe('path of a parent’s id within its entities or records'),
      where: z
        .string()
        .min(1)
        .optional()
        .describe(
          'CEL expression over `event` (OCSF), `source` and `stream`: only records that match; a record on which the expression fails is not used',
        ),
    }),
    z.strictObject({
      ids: z.array(z.string().min(1)).min(1).describe('ids of the parents'),
    }),
  ])
  .describe('parents: from another source, or a list of ids');

const fieldsOf = ({ path, object, id }: OfParents) => {
  const { ignore, time, ...rest } = listFields({
    ...(object && { style: 'none' as const }),
    ...(id && { id }),
  });
  const times = ['updated_at', 'timestamp', 'time', 'created_at'];
  return {
    path: endpointPath(placeholder)
      .refine(
        (path) => path.includes(placeholder),
        `expected ${placeholder} at the position of a parent’s id`,
      )
      .default(path)
      .describe(
        `path of the records of a parent, below base_url; ${placeholder} is replaced by its id`,
      ),
    each: eachField,
    sweep: duration()
      .prefault('24h')
      .describe(
        'longest time of a rotation over all parents; new and changed ones are requested first',
      ),
    order: orders
      .default('auto')
      .describe('order in which upstream lists the records; auto: learned'),
    ...rest,
    ignore: object
      ? ignore
          .unwrap()
          .default(['updated_at'])
          .describe(ignore.description ?? '')
      : ignore,
    time: object
      ? time
          .unwrap()
          .default(times)
          .describe(time.description ?? '')
      : time,
    mapping: mappingField('record').describe(
      'OCSF class and fields of the records; fields without a mapping go to unmapped',
    ),
  };
};

type ParentsSettings = Settings<ReturnType<typeof fieldsOf>>;

/** Declares a source per parent. */
export function defineParents(facts: OfParents): SourceDefinition {
  const { type, summary, api, immutable = false, object, parent } = facts;
  return defineSource({
    ...{ type, summary, apis: [api], fields: () => fieldsOf(facts) },
    flaw: (settings, { companies }) => flawOf(settings, companies),
    advice: requestAdvice,
    streams(settings, opening) {
      const { name: source, upstream } = opening;
      const companies = isPerCompany(settings.path) ? upstream.companies : [null];
      return companies.map((company) => ({
        kind: 'parents' as const,
        name: company === null ? source : `${source}/${company}`,
        ...{ source, records: 'log' as const, ...(company !== null && { company }) },
        paths: [settings.path],
        fingerprint: JSON.stringify([
          ...[upstream.baseUrl, settings.path, company, Object.entries(settings.params)],
        ]),
        listOf: (id: string) =>
          listStreamOf(
            settings as ListSourceSettings,
            opening,
            { records: 'log', immutable, sorting: [] },
            { company, parent: id },
          ),
        ...(object && { object }),
      }));
    },
    reading: ({ id, time, time_formats: timeFormats, mapping }) => ({
      ...{ id, time, timeFormats, parent },
      mapping: mapping ?? facts.mapping,
    }),
    list: (settings) => listReading(settings as ListSourceSettings),
    parents: ({ each, sweep }) => ({ each, sweepMs: sweep }),
  });
}

function flawOf(settings: ParentsSettings, companies: readonly string[]): string | null {
  const { path, each } = settings;
  if (isPerCompany(path) && companies.length === 0) {
    return 'path holds {company_id}, so the upstream needs companies';
  }
  const ids = 'ids' in each ? each.ids : [];
  const odd = ids.find((id) => filledPath('/{id}', { id }) === null);
  return odd === undefined
    ? requestFlaw(settings)
    : `${JSON.stringify(odd)} under each.ids cannot be part of a path`;
}

/** True for a change that was executed or has failed. */
export function isSettled({ status }: JsonObject): boolean {
  return status === 'COMPLETED' || status === 'FAILED';
}

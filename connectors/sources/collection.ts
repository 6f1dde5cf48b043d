// What every source has in common that reads collections of a company, each served whole and told
// as its changes. The documents do not say how such lists are paged, so they are asked for without
// parameters, of which none can be refused, and followed as they show themselves to be paged. A
// source says where its collections are and what is in them.

import { z } from 'zod';
import {
  defineSource,
  type Fields,
  type Settings,
  type SourceDefinition,
  type SourceOpening,
} from '../../src/contracts/definition.ts';
import { count, duration } from '../../src/contracts/settings.ts';
import type {
  CollectionStream,
  EntityDetail,
  EntityKind,
  Pagination,
} from '../../src/contracts/source.ts';
import type { UpstreamRequest } from '../../src/contracts/upstream.ts';
import { filledPath } from '../shared/upstream-path.ts';

const paths = () => z.array(z.string().min(1));

/**
 * The keys that all collections have: when a change or an absence is believed, and what is
 * compared.
 */
export const collectionFields = {
  confirm_after: duration()
    .prefault('30s')
    .describe('a change is read a second time after this, before it is told (0s: at once)'),
  settle: duration().prefault('10m').describe('how long an absence must last to be a removal'),
  removals_after: count(1, 100)
    .default(2)
    .describe('complete readings in a row that an entity must be missing from'),
  brake: z
    .strictObject({
      share: z.number().min(0).max(1).default(0.3).describe('share of all entities'),
      count: count(0, 1_000_000).default(10).describe('number of entities'),
    })
    .prefault({})
    .describe(
      'more removals at once than both of these are held until three complete readings show them',
    ),
  baseline: z
    .enum(['summary', 'full'])
    .default('summary')
    .describe('the first reading: one summary event per resource, or each entity in full'),
  ignore: paths().default(['updated_at']).describe('paths within an entity that are not compared'),
  unordered: paths().default([]).describe('paths of arrays whose order says nothing'),
};

/** One collection of a company. */
export interface CollectionFacts {
  /** What it is called in the stream's name. */
  readonly resource: string;
  readonly entity: EntityKind;
  /** Where its list is; `{company_id}` stands for the company. */
  readonly path: string;
  /** Where an entity is asked for, its id at `placeholder`; left out: the list shows it whole. */
  readonly detail?: Pick<EntityDetail, 'parts'> & {
    readonly path: string;
    readonly placeholder: string;
  };
  readonly holds?: NonNullable<CollectionStream['holds']>;
}

/** A source of collections, as its author writes it. */
export interface CollectionSource<F extends Fields> {
  readonly type: string;
  readonly summary: string;
  /** Its keys, `collectionFields` among them. */
  readonly fields: F;
  /** The collections of a company, the `index`-th of its upstream. */
  collections(settings: Settings<F>, index: number): readonly CollectionFacts[];
}

/** Declares one. */
export function defineCollections<F extends Fields & typeof collectionFields>({
  collections,
  ...rest
}: CollectionSource<F>): SourceDefinition {
  return defineSource<typeof collectionFields>({
    ...rest,
    apis: ['services'],
    flaw: (_settings, { companies }) =>
      companies.length === 0
        ? `a ${rest.type} is read per company, so the upstream needs companies`
        : null,
    streams: (settings, opening) =>
      opening.upstream.companies.flatMap((company, index) =>
        collections(settings as unknown as Settings<F>, index).map((facts) =>
          streamOf(opening, company, { ...facts, ignore: settings.ignore }),
        ),
      ),
    reading: () => ({ id: null, time: [] }),
    collection: (settings) => ({
      confirmAfterMs: settings.confirm_after,
      settleMs: settings.settle,
      removalsAfter: settings.removals_after,
      brake: settings.brake,
      baseline: settings.baseline,
      ignore: settings.ignore,
      unordered: settings.unordered,
    }),
  });
}

/** Where lists have what the documents show of them. */
const pagination: Pagination = {
  style: 'shown',
  ...{ cursor_param: 'cursor', limit_param: 'limit', offset_param: 'offset' },
  ...{ items: 'data', next: 'next_cursor', total: 'total' },
};

/** The stream `<source>/<company>/<resource>`. */
function streamOf(
  { name: source, upstream }: SourceOpening,
  company: string,
  {
    resource,
    entity,
    path,
    detail,
    holds,
    ignore,
  }: CollectionFacts & { readonly ignore: readonly string[] },
): CollectionStream {
  const name = `${source}/${company}/${resource}`;
  const requestFor = (template: string, ids: Readonly<Record<string, string>>) => {
    const filled = filledPath(template, { company_id: company, ...ids });
    return filled === null ? null : { path: filled, template, query: [], company };
  };
  const request: UpstreamRequest = requestFor(path, {}) ?? {
    ...{ path, template: path, query: [], company },
  };
  const byId = detail && {
    ...detail,
    request: (id: string) => requestFor(detail.path, { [detail.placeholder]: id }),
  };
  return {
    kind: 'collection',
    ...{ name, source, company, resource, entity, paths: [request.path, path] },
    fingerprint: JSON.stringify([upstream.baseUrl, company, resource]),
    list: {
      ...{ name, upstream, request, pagination, ignore },
      ...{ sorting: [], pageLimit: null, id: entity.ids[0] ?? null },
    },
    ...(holds && { holds }),
    ...(byId && { detail: byId }),
  };
}

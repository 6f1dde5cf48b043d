// The common part of all sources that read collections, each returned as a whole and reported as
// its changes: per company of its upstream if the path has a company, otherwise per upstream. The
// documents do not describe the paging of these lists, so without a configured paging they are
// requested without parameters, which cannot be rejected, and paged as the first response shows. A
// source declares the location and content of its collections.

import { z } from 'zod';
import {
  count,
  defineSource,
  duration,
  type Fields,
  type RecordReading,
  type Settings,
  type SourceDefinition,
  type SourceOpening,
} from '../../src/contracts/config.ts';
import type { CollectionStream, EntityDetail, UpstreamRequest } from '../../src/contracts/index.ts';
import {
  paginationOf,
  requestAdvice,
  requestFlaw,
  requestOf,
  wholeRequestFields,
} from '../shared/pagination.ts';
import { filledPath, isPerCompany } from '../shared/upstream-path.ts';
import { partialField } from './list.ts';

const paths = () => z.array(z.string().min(1));

/** Defaults that differ between sources. */
interface Defaults {
  readonly baseline?: 'summary' | 'full';
  readonly removals?: boolean;
}

/** The keys of all collections: the confirmation of changes and absences, and exceptions. */
export const collectionFields = ({ baseline = 'summary', removals = true }: Defaults = {}) => ({
  confirm_after: duration()
    .prefault('30s')
    .describe('a change is confirmed by a second reading after this time (0s: reported at once)'),
  settle: duration().prefault('10m').describe('how long an absence must last to be a removal'),
  removals: z
    .boolean()
    .default(removals)
    .describe('reports missing entities as deleted; false: they are forgotten'),
  removals_after: count(1, 100)
    .default(2)
    .describe('number of consecutive complete readings without the entity'),
  brake: z
    .strictObject({
      share: z.number().min(0).max(1).default(0.3).describe('share of all entities'),
      count: count(0, 1_000_000).default(10).describe('number of entities'),
    })
    .prefault({})
    .describe(
      'if more entities disappear at once than both limits, three complete readings must confirm the removals',
    ),
  baseline: z
    .enum(['summary', 'full'])
    .default(baseline)
    .describe('the first reading: one summary event per resource, or each entity in full'),
  ignore: paths().default(['updated_at']).describe('paths within an entity that are not compared'),
  never_ignore: paths()
    .default([])
    .describe('paths within an entity that are always compared, and never learned as volatile'),
  unordered: paths().default([]).describe('paths of arrays whose order has no meaning'),
  partial: partialField(),
  sweep: duration()
    .prefault('24h')
    .describe(
      'with requests by id: longest time of a rotation over all entities; new and changed ones are requested at once, and all if they are few',
    ),
});

type CollectionFields = ReturnType<typeof collectionFields>;

/** The config keys for requests of a list of entities. */
export const endpointFields = () => ({
  params: z
    .record(z.string().min(1), z.string())
    .default({})
    .describe('fixed query parameters, sent with each request for the list'),
  page_limit: count(1, 100_000)
    .nullable()
    .default(null)
    .describe(
      'entities per page, sent as limit=; lowered automatically if refused; null: not sent',
    ),
  ...wholeRequestFields(),
});

type EndpointSettings = Settings<ReturnType<typeof endpointFields>>;

/** One collection. */
export interface CollectionFacts extends Pick<CollectionStream, 'entity' | 'single' | 'holds'> {
  /**
   * Its part of the stream's name, if a source has several collections with fixed paths; its stream
   * is then named `<source>/<company>/<resource>`, otherwise `<source>/<company>`, or `<source>` if
   * the path has no `{company_id}`.
   */
  readonly resource?: string;
  /** The name of its entities in a baseline. Default: `resource`, otherwise the entity's kind. */
  readonly called?: string;
  /** The path of its list; `{company_id}` stands for the company. */
  readonly path: string;
  /** The requests of the list. Default: without parameters, paged as the first response shows. */
  readonly endpoint?: EndpointSettings;
  /**
   * The path of one entity, with its id at `placeholder`. Default: the list shows entities
   * completely.
   */
  readonly detail?: Pick<EntityDetail, 'parts'> & {
    readonly path: string;
    readonly placeholder: string;
  };
}

/** A source of collections, as its author declares it. */
export interface CollectionSource<F extends Fields> {
  readonly type: string;
  readonly summary: string;
  readonly apis: SourceDefinition['apis'];
  /** Its keys, including `collectionFields`. */
  readonly fields: () => F;
  /** How changes are normalised. Default: as changes, at their observation time. */
  reading?(settings: Settings<F>): Omit<RecordReading, 'id'>;
  /** The collections, for the `index`-th company of its upstream if they belong to companies. */
  collections(settings: Settings<F>, index: number): readonly CollectionFacts[];
}

/** Declares a source of collections. */
export function defineCollections<F extends Fields & CollectionFields>({
  collections,
  reading,
  ...rest
}: CollectionSource<F>): SourceDefinition {
  const facts = (settings: unknown, index: number) => collections(settings as Settings<F>, index);
  return defineSource<CollectionFields>({
    ...rest,
    flaw(settings, { companies }) {
      const both = settings.never_ignore.find((path) => settings.ignore.includes(path));
      if (both !== undefined) {
        return `never_ignore and ignore both name ${both}: remove it from one of the two`;
      }
      const declared = facts(settings, 0);
      if (companies.length === 0 && declared.some(({ path }) => isPerCompany(path))) {
        return `${rest.type} is read per company, so the upstream needs companies`;
      }
      const loose = declared.some(
        ({ path, detail }) => detail && isPerCompany(detail.path) && !isPerCompany(path),
      );
      if (loose) return 'detail holds {company_id}, so path must hold it, too';
      if (declared.some(({ entity, detail }) => detail && entity.ids.length === 0)) {
        return 'detail needs an id, by which each entity is requested';
      }
      if (declared.some(({ single, detail }) => single && detail)) {
        return 'detail does not go with single: the answer is the whole object';
      }
      return (
        declared.map(({ endpoint }) => endpoint && requestFlaw(endpoint)).find(Boolean) ?? null
      );
    },
    advice: (settings) =>
      facts(settings, 0).flatMap(({ endpoint }) => (endpoint ? requestAdvice(endpoint) : [])),
    streams: (settings, opening) =>
      [null, ...opening.upstream.companies].flatMap((company, index) =>
        facts(settings, Math.max(0, index - 1)).flatMap((declared) =>
          isPerCompany(declared.path) === (company !== null)
            ? streamOf(opening, company, {
                ...declared,
                ...{ ignore: settings.ignore, partial: settings.partial },
              })
            : [],
        ),
      ),
    reading: (settings) => ({
      time: [],
      ...reading?.(settings as unknown as Settings<F>),
      id: null,
    }),
    collection: (settings) => ({
      confirmAfterMs: settings.confirm_after,
      settleMs: settings.settle,
      removals: settings.removals,
      removalsAfter: settings.removals_after,
      sweepMs: settings.sweep,
      brake: settings.brake,
      baseline: settings.baseline,
      ignore: settings.ignore,
      unordered: settings.unordered,
      neverIgnore: settings.never_ignore,
    }),
  });
}

/** Requests of a collection whose source has no keys for them. */
const undeclared = () => z.strictObject(endpointFields()).parse({});

function streamOf(
  { name: source, upstream }: SourceOpening,
  company: string | null,
  facts: CollectionFacts & Pick<Settings<CollectionFields>, 'ignore' | 'partial'>,
): CollectionStream {
  const { resource, entity, path, detail, holds, ignore, partial, single = false } = facts;
  const endpoint = facts.endpoint ?? undeclared();
  const { params, page_limit: pageLimit } = endpoint;
  const whose = company === null ? {} : { company };
  const name = [source, company, resource].filter((part) => part != null).join('/');
  const requestFor = (template: string, ids: Readonly<Record<string, string>>) => {
    const filled = filledPath(template, { company_id: company ?? '', ...ids });
    return filled === null ? null : { path: filled, template, query: [], ...whose };
  };
  const query = Object.entries(params);
  const request: UpstreamRequest = {
    path,
    template: path,
    ...whose,
    ...requestFor(path, {}),
    query,
    ...requestOf(endpoint),
  };
  const byId = detail && {
    ...detail,
    request: (id: string) => requestFor(detail.path, { [detail.placeholder]: id }),
  };
  return {
    kind: 'collection',
    ...{ name, source, ...whose, entity, single, paths: [request.path, path] },
    resource: facts.called ?? resource ?? entity.kind,
    fingerprint: JSON.stringify([
      ...[
        upstream.baseUrl,
        ...(resource === undefined ? [request.path, query, entity] : [company, resource]),
      ],
    ]),
    list: {
      ...{
        name,
        upstream,
        request,
        ignore,
        partial,
        pageLimit,
        pagination: paginationOf(endpoint),
      },
      ...{ sorting: [], id: entity.ids[0] ?? null },
    },
    ...(holds && { holds }),
    ...(byId && { detail: byId }),
  };
}

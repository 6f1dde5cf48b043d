// A company's collection as the engine reads it. The documents do not say how such lists are paged, so they are asked for
// without parameters, of which none can be refused, and followed as they show themselves to be paged.

import type { SourceOpening } from '../../../src/contracts/definition.ts';
import type {
  CollectionStream,
  EntityDetail,
  EntityKind,
  Pagination,
} from '../../../src/contracts/source.ts';
import type { UpstreamRequest } from '../../../src/contracts/upstream.ts';
import { filledPath } from '../../shared/upstream-path.ts';

/** What a source knows of its collection. */
export interface CollectionFacts {
  /** What its entities are called, as in the stream's name. */
  readonly resource: string;
  readonly entity: EntityKind;
  /** Where the list is; `{company_id}` stands for the company. */
  readonly path: string;
  /** Where an entity is asked for, its id at `placeholder`; left out: the list shows it whole. */
  readonly detail?: Pick<EntityDetail, 'parts'> & {
    readonly path: string;
    readonly placeholder: string;
  };
  readonly holds?: NonNullable<CollectionStream['holds']>;
}

/** Where lists have what the documents show of them. */
const pagination: Pagination = {
  style: 'shown',
  ...{ cursor_param: 'cursor', limit_param: 'limit', offset_param: 'offset' },
  ...{ items: 'data', next: 'next_cursor', total: 'total' },
};

/** The stream `<source>/<company>/<resource>`. */
export function collectionStream(
  { name: source, upstream }: SourceOpening,
  company: string,
  { resource, entity, path, detail, holds }: CollectionFacts,
  ignore: readonly string[],
): CollectionStream {
  const name = `${source}/${company}/${resource}`;
  const requestFor = (template: string, ids: Readonly<Record<string, string>>) => {
    const filled = filledPath(template, { company_id: company, ...ids });
    return filled === null ? null : { path: filled, template, query: [], company };
  };
  const request: UpstreamRequest = requestFor(path, {}) ?? {
    path,
    template: path,
    query: [],
    company,
  };
  return {
    kind: 'snapshot',
    ...{ name, source, company, resource, entity },
    paths: [request.path, path],
    fingerprint: JSON.stringify([upstream.baseUrl, company, resource]),
    list: {
      ...{ name, upstream, request, pagination, ignore },
      ...{ sorting: [], pageLimit: null, id: entity.ids[0] ?? null },
    },
    ...(holds === undefined ? {} : { holds }),
    ...(detail === undefined
      ? {}
      : {
          detail: {
            ...detail,
            request: (id) => requestFor(detail.path, { [detail.placeholder]: id }),
          },
        }),
  };
}

// A list endpoint as the engine reads it: one stream, or one per company where the path says so. A stream asks for one page
// and forgets it; the order of its query parameters never changes, since a cursor may be bound to the query that
// it came from.

import type { SourceOpening } from '../../../src/contracts/definition.ts';
import type { RecordKind } from '../../../src/contracts/event.ts';
import type { ListStream, PageQuery } from '../../../src/contracts/source.ts';
import type { UpstreamRequest } from '../../../src/contracts/upstream.ts';
import { filledPath, isPerCompany } from '../../shared/upstream-path.ts';
import { interpret } from './answer.ts';
import type { ListSettings } from './fields.ts';

type Parameters = readonly (readonly [name: string, value: string])[];

/** What a source knows of its records besides its settings. */
export interface ListFacts {
  readonly records: RecordKind;
  readonly immutable: boolean;
  /** Fixed query parameters in the order they are sent. */
  readonly fixed: Parameters;
  /** Those that ask for an order, sent behind them; upstream may refuse these. */
  readonly sorting?: Parameters;
}

/** The streams of a list source. */
export function listStreams(
  settings: ListSettings,
  { name, upstream }: SourceOpening,
  facts: ListFacts,
): readonly ListStream[] {
  const { path: template, pagination, id, time, ignore } = settings;
  const { fixed, sorting = [] } = facts;
  const companies = isPerCompany(template) ? upstream.companies : [null];
  return companies.flatMap((company) => {
    const path = filledPath(template, { company_id: company ?? '' });
    if (path === null) return [];
    const streamName = company === null ? name : `${name}/${company}`;
    const request = (query: PageQuery): UpstreamRequest => ({
      path,
      template,
      query: [
        ...fixed,
        ...(query.unsorted === true ? [] : sorting),
        ...pageParameters(query, pagination),
      ],
      ...(company === null ? {} : { company }),
    });
    return {
      kind: 'list' as const,
      name: streamName,
      source: name,
      paths: [path, template],
      ...(company === null ? {} : { company }),
      records: facts.records,
      immutable: facts.immutable,
      paging: pagination.style,
      fingerprint: JSON.stringify([
        upstream.baseUrl,
        path,
        [...fixed, ...sorting],
        pagination.style,
        [pagination.items, pagination.next, pagination.cursor_param, pagination.offset_param],
      ]),
      id,
      time,
      ignore,
      sorted: sorting.length > 0,
      pageLimit: pagination.style === 'none' ? null : settings.page_limit,
      fetchPage: async (query: PageQuery, signal: AbortSignal) =>
        interpret(await upstream.get(request(query), signal), {
          doing: `reading ${streamName}`,
          query,
          pagination,
          sorting: query.unsorted === true ? [] : sorting,
          id,
          ignore,
        }),
    };
  });
}

function pageParameters(
  { place, limit }: PageQuery,
  pagination: ListSettings['pagination'],
): Parameters {
  const { cursor_param, limit_param, offset_param, style } = pagination;
  const size: Parameters = limit === null ? [] : [[limit_param, String(limit)]];
  if (style === 'none') return size;
  if (place.by === 'offset') return [...size, [offset_param, String(place.offset)]];
  return place.cursor === null ? size : [...size, [cursor_param, place.cursor]];
}

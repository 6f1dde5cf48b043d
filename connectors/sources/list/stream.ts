// A list endpoint as the engine reads it: one stream, or one per company where the path says so.

import type { SourceOpening } from '../../../src/contracts/definition.ts';
import type { RecordKind } from '../../../src/contracts/event.ts';
import type { ListStream } from '../../../src/contracts/source.ts';
import { filledPath, isPerCompany } from '../../shared/upstream-path.ts';
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
    return {
      kind: 'list' as const,
      name: streamName,
      source: name,
      paths: [path, template],
      ...(company === null ? {} : { company }),
      records: facts.records,
      immutable: facts.immutable,
      upstream,
      request: { path, template, query: fixed, ...(company === null ? {} : { company }) },
      sorting,
      pagination,
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
      pageLimit: pagination.style === 'none' ? null : settings.page_limit,
    };
  });
}

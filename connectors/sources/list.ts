// The common part of all sources that read list endpoints: the config keys for the location of
// records, the paging and the reading; and its streams, one or, if the path has a company, one per
// company. Where the upstream documents are silent there is a default that suits most servers, and
// a key for the others.

import { z } from 'zod';
import {
  count,
  defineSource,
  duration,
  type Fields,
  type ListReading,
  type RecordReading,
  type Settings,
  type SourceDefinition,
  type SourceOpening,
} from '../../src/contracts/config.ts';
import {
  type ListStream,
  parseRfc3339,
  type RecordKind,
  timeFormatFlaw,
  type UpstreamRequest,
} from '../../src/contracts/index.ts';
import {
  fingerprintParts,
  paginationOf,
  requestAdvice,
  requestFields,
  requestFlaw,
  requestOf,
  type Style,
} from '../shared/pagination.ts';
import { filledPath, isPerCompany } from '../shared/upstream-path.ts';

const dottedPath = () => z.string().min(1);

/** Defaults that differ between endpoints. */
interface Defaults {
  readonly id?: string;
  readonly style?: Style;
}

/** The meaning of records, as a config declares it. */
export const mappingField = (record: string) =>
  z
    .strictObject({
      class: z.string().min(1).describe('OCSF class, e.g. network_activity'),
      fields: z
        .record(z.string().min(1), z.string().min(1))
        .default({})
        .describe(`OCSF attribute: path within the ${record}`),
    })
    .optional();

/** The default treatment of a 200 that reports errors beside its data. */
export const partialField = () =>
  z
    .enum(['retry', 'accept'])
    .default('retry')
    .describe(
      'a 200 that reports errors beside its data (errors, partial: true, timed_out: true, success: false). retry: its records are delivered, the request is repeated, and no record counts as deleted; accept: the response counts as complete',
    );

/** The keys of all list sources; `path` is each source's own. */
export const listFields = ({ id = 'id', style = 'cursor' }: Defaults = {}) => ({
  params: z
    .record(z.string().min(1), z.string())
    .default({})
    .describe('fixed query parameters, sent with each request'),
  page_limit: count(1, 100_000)
    .nullable()
    .default(100)
    .describe('records per page, sent as limit=; lowered automatically if refused; null: not sent'),
  start: z
    .string()
    .refine(
      (text) => startOf(text) !== null,
      'expected beginning, now or an RFC 3339 time such as 2026-01-31T00:00:00Z',
    )
    .transform((text) => startOf(text) ?? 'beginning')
    .prefault('beginning')
    .describe(
      'where a new stream starts: beginning; now: existing records are skipped, except those that appear late, within lookback; or an RFC 3339 time: older records are skipped',
    ),
  lookback: duration().prefault('10m').describe('how late a record may appear and still be found'),
  rewind_every: duration().prefault('15m').describe('interval of the search for late records'),
  reconcile_every: duration()
    .prefault('1h')
    .describe('interval of a full scan while the order or the end of the list is not proven'),
  on_cursor_invalid: z
    .enum(['rewalk', 'halt', 'from_now'])
    .default('rewalk')
    .describe(
      'when upstream refuses a cursor for good: read the list again without repeats, halt, or resume from now and report the gap to the sinks. If upstream only seems to answer with another position, the list is always read again',
    ),
  id: dottedPath()
    .nullable()
    .default(id)
    .describe('path of a record’s id; null: records have none'),
  ignore: z
    .array(dottedPath())
    .default([])
    .describe(
      'paths within a record that are not compared, such as an age or a counter that differs at each reading',
    ),
  time: z
    .array(dottedPath())
    .default(['timestamp', 'time', 'created_at'])
    .describe('paths of a record’s time; the first that parses counts'),
  time_formats: timeFormatsField(),
  partial: partialField(),
  ...requestFields(style),
});

/** Time formats that cannot be parsed without a declaration. */
export function timeFormatsField() {
  const format = z.string().superRefine((text, context) => {
    const message = timeFormatFlaw(text);
    if (message !== null) context.addIssue({ code: 'custom', message });
  });
  return z
    .array(format)
    .default([])
    .describe(
      'more forms of a record’s time, in the directives of strptime, such as `%d/%m/%Y %H:%M:%S`; without `%z` a time is in UTC',
    );
}

/** The order of a list if none is requested. */
export const orders = z.enum(['auto', 'oldest_first', 'newest_first']);

type BaseFields = ReturnType<typeof listFields> & {
  readonly path: z.ZodType<string>;
  readonly order: z.ZodType<ListReading['order']>;
};

/** The settings of a list. */
export type ListSourceSettings = Settings<BaseFields>;

/** A source of one list, as its author declares it. */
export interface ListSource<F extends Fields> {
  readonly type: string;
  readonly summary: string;
  readonly apis: SourceDefinition['apis'];
  readonly records: RecordKind;
  /** True if upstream declares its records immutable. */
  readonly immutable: boolean;
  /** Its keys, including `path`, `order` and those of `listFields`. */
  readonly fields: () => F;
  /** A flaw in its own keys that are valid each by itself (`null`: none). */
  flaw?(settings: Settings<F>): string | null;
  /** Query parameters that request an order; upstream may reject them. */
  sorting?(settings: Settings<F>): UpstreamRequest['query'];
  /** How its records are normalised, if not by their kind. */
  reading?(settings: Settings<F>): Pick<RecordReading, 'mapping' | 'records'>;
}

/** Declares a source of one list. */
export function defineList<F extends Fields & BaseFields>(source: ListSource<F>): SourceDefinition {
  const { type, summary, apis, fields } = source;
  // The parsed values of `fields`; the engine guarantees their type.
  const own = (settings: ListSourceSettings) => settings as unknown as Settings<F>;
  const sortingOf = (settings: ListSourceSettings) => source.sorting?.(own(settings)) ?? [];
  return defineSource<BaseFields>({
    ...{ type, summary, apis, fields },
    flaw: (settings, { companies }) =>
      isPerCompany(settings.path) && companies.length === 0
        ? 'path holds {company_id}, so the upstream needs companies'
        : (source.flaw?.(own(settings)) ?? requestFlaw(settings)),
    advice: requestAdvice,
    streams: (settings, opening) =>
      listStreams(settings, opening, { ...source, sorting: sortingOf(settings) }),
    reading(settings) {
      const { id, time, time_formats: timeFormats } = settings;
      const asAudit = source.records === 'audit' && { records: source.records };
      return { id, time, timeFormats, ...asAudit, ...source.reading?.(own(settings)) };
    },
    list: (settings) => {
      const reading = listReading(settings);
      // A server may accept the sorting and ignore it: the records show their order.
      const isSorted = sortingOf(settings).length > 0 && settings.pagination.style !== 'window';
      return isSorted ? { ...reading, order: 'auto' } : reading;
    },
  });
}

/** The reading options in its settings. */
export function listReading(settings: ListSourceSettings): ListReading {
  return {
    order: settings.pagination.style === 'window' ? 'oldest_first' : settings.order,
    start: settings.start,
    lookbackMs: settings.lookback,
    rewindEveryMs: settings.rewind_every,
    reconcileEveryMs: settings.reconcile_every,
    onCursorInvalid: settings.on_cursor_invalid,
  };
}

/** The kind of a list's records, and the parameters that request an order. */
export type ListKind = Pick<ListStream, 'records' | 'immutable' | 'sorting'>;

function listStreams(
  settings: ListSourceSettings,
  opening: SourceOpening,
  kind: ListKind,
): readonly ListStream[] {
  const companies = isPerCompany(settings.path) ? opening.upstream.companies : [null];
  return companies.flatMap((company) => listStreamOf(settings, opening, kind, { company }) ?? []);
}

/** The list of a company, or of one of its parents; null for an id that a path cannot contain. */
export function listStreamOf(
  settings: ListSourceSettings,
  { name: source, upstream }: SourceOpening,
  { records, immutable, sorting }: ListKind,
  { company, parent }: { readonly company: string | null; readonly parent?: string },
): ListStream | null {
  const { path: template, params, id, time, ignore, partial } = settings;
  const query = Object.entries(params);
  const pagination = paginationOf(settings);
  const { query: asked, paging } = fingerprintParts(settings);
  const path = filledPath(template, { company_id: company ?? '', parent_id: parent ?? '' });
  if (path === null) return null;
  const whose = company === null ? {} : { company };
  const name = company === null ? source : `${source}/${company}`;
  return {
    kind: 'list',
    name: parent === undefined ? name : `${name}:${encodeURIComponent(parent)}`,
    ...{ source, ...whose, records, immutable, upstream, sorting, pagination, id, time, ignore },
    ...{ partial },
    paths: [path, template],
    request: { path, template, query, ...whose, ...requestOf(settings) },
    fingerprint: JSON.stringify([
      ...[upstream.baseUrl, path, [...query, ...asked, ...sorting]],
      ...paging,
    ]),
    pageLimit: pagination.style === 'none' ? null : settings.page_limit,
  };
}

function startOf(text: string): ListReading['start'] | null {
  if (text === 'beginning' || text === 'now') return text;
  return parseRfc3339(text);
}

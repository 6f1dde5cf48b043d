// The index template for sluice's events. Without one, the first event of an index decides the type
// of each field, and upstream's own members use up the 1,000 fields that an index may have. So
// unmapped members are one field that is searched by member name (`flattened`, in OpenSearch
// `flat_object`), texts are keywords, addresses are addresses, and times are dates. All other
// fields get Elasticsearch's dynamic mapping.

import { isDaily } from './bulk-record.ts';

/** Input of a template. */
export interface TemplateInput {
  /** The setting `index`. */
  readonly index: string;
  readonly format: 'ecs' | 'json';
  readonly isOpenSearch: boolean;
}

const lengthMax = 1024;
/** Deeper than any record: the responses of upstream have up to 200 levels. */
const depthMax = 256;
const fieldsMax = 2000;
const keyword = { type: 'keyword', ignore_above: lengthMax };
/** Searched without regard to case, as detection rules expect. */
const anyCase = { ...keyword, normalizer: 'lowercase' };
/** In characters; a term has at most 32,766 bytes. */
const urlLengthMax = 8_191;
/** Kept in the document and not searched. */
const stored = { type: 'keyword', index: false, doc_values: false };
/** The long values of flat fields (long-values.ts). */
const longValues = { type: 'object', enabled: false };

/** Its name, the pattern of its indices, and the body of `_index_template`. */
export function templateFor(input: TemplateInput): {
  readonly name: string;
  readonly pattern: string;
  readonly body: object;
} {
  const { index, format, isOpenSearch } = input;
  const open = isOpenSearch
    ? { type: 'flat_object' }
    : { type: 'flattened', depth_limit: depthMax, ignore_above: lengthMax };
  const mappings = format === 'ecs' ? ecsMappings(open, isOpenSearch) : ocsfMappings(open);
  // Only ECS events have the time under the name that a data stream needs.
  const isStream = format === 'ecs' && !isDaily(index);
  const pattern = index.replace(/\{(?:class|date|company|source)\}/g, '*');
  return {
    pattern,
    name: `${index.replace(/[-._]*\{(?:class|date|company|source)\}/g, '') || 'sluice'}-${format === 'ecs' ? 'ecs' : 'ocsf'}`,
    body: {
      index_patterns: [pattern],
      priority: 300,
      ...(isStream && { data_stream: {} }),
      template: {
        settings: { 'index.mapping.total_fields.limit': fieldsMax },
        mappings: { date_detection: false, ...mappings },
      },
      _meta: { description: `events of sluice as ${format}`, managed_by: 'sluice' },
    },
  };
}

/** ECS's types for the fields of the format `ecs`. */
function ecsMappings(open: object, isOpenSearch: boolean): object {
  // OpenSearch finds nothing by a wildcard of `query_string` in a field of type `wildcard`.
  const url = isOpenSearch ? { type: 'keyword', ignore_above: urlLengthMax } : { type: 'wildcard' };
  return {
    dynamic_templates: [rule('addresses', '*.ip', { type: 'ip' }), rule('texts', '*', keyword)],
    properties: {
      '@timestamp': { type: 'date' },
      message: { type: 'match_only_text' },
      event: {
        properties: {
          ...Object.fromEntries(
            ['created', 'start', 'end', 'ingested'].map((name) => [name, { type: 'date' }]),
          ),
          action: anyCase,
          code: anyCase,
          original: stored,
          risk_score: { type: 'float' },
        },
      },
      url: { properties: { original: url, full: url, path: url, domain: anyCase } },
      sluice: {
        properties: {
          target: { properties: { type: anyCase, uid: keyword, name: anyCase } },
          actor: { properties: { kind: keyword } },
          change: anyCase,
          run: keyword,
          conflicts: { type: 'long' },
          long: longValues,
          ocsf: open,
          unmapped: open,
        },
      },
    },
  };
}

/** OCSF's types: times are epoch milliseconds, and `data` is anything. */
function ocsfMappings(open: object): object {
  return {
    dynamic_templates: [
      { data: { match: 'data', match_mapping_type: 'object', mapping: open } },
      {
        times: {
          match: '*time',
          match_mapping_type: 'long',
          mapping: { type: 'date', format: 'epoch_millis' },
        },
      },
      rule('addresses', '*.ip', { type: 'ip', ignore_malformed: true }),
      rule('texts', '*', keyword),
    ],
    properties: {
      time: { type: 'date', format: 'epoch_millis' },
      message: { type: 'match_only_text' },
      raw_data: stored,
      sluice: { properties: { long: longValues } },
      unmapped: open,
    },
  };
}

function rule(name: string, path: string, mapping: object): object {
  return { [name]: { path_match: path, match_mapping_type: 'string', mapping } };
}

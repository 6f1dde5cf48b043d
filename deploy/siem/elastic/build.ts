// `node deploy/siem/elastic/build.ts`: writes the content for Elastic and OpenSearch from the rules, the panels and the index
// template of the program. A test compares the files with what this makes of the present sources.

import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { templateFor } from '../../../connectors/sinks/elasticsearch/template.ts';
import { attackTactics, tagsOfRule } from '../attack.ts';
import { type Dashboard, dashboards, type Panel } from './panels.ts';

const here = new URL('./', import.meta.url);
const sigma = new URL('../sigma/', here);
const index = 'sluice-{class}-{date}';
const pattern = 'sluice-*';
const patternId = 'sluice-index-pattern';
const daysKept = '90d';
const risk: Readonly<Record<string, number>> = { low: 21, medium: 47, high: 73, critical: 99 };

interface StoredRule {
  readonly id: string;
  readonly title: string;
  readonly level: string;
  readonly description: string;
  readonly falsepositives: readonly string[];
}

/** All files by name. */
export function elasticFiles(): ReadonlyMap<string, string> {
  const template = (isOpenSearch: boolean) =>
    templateFor({ index, format: 'ecs', isOpenSearch }).body;
  return new Map([
    ['index-template.elasticsearch.json', jsonText(template(false))],
    ['index-template.opensearch.json', jsonText(template(true))],
    ['ilm-policy.json', jsonText(ilmPolicy)],
    ['ism-policy.json', jsonText(ismPolicy)],
    ['ingest-pipeline.json', jsonText(ingestPipeline)],
    ['detection-rules.ndjson', ndjsonText(detectionRules())],
    ['dashboards.kibana.ndjson', ndjsonText(savedObjects('8.8.0'))],
    ['dashboards.opensearch.ndjson', ndjsonText(savedObjects('7.9.3'))],
  ]);
}

/** Daily indices are only deleted: they are never written again. */
const ilmPolicy = {
  policy: {
    _meta: { description: 'events of sluice', managed_by: 'sluice' },
    phases: {
      hot: { actions: {} },
      delete: { min_age: daysKept, actions: { delete: {} } },
    },
  },
};

const ismPolicy = {
  policy: {
    description: 'events of sluice',
    default_state: 'kept',
    states: [
      {
        name: 'kept',
        actions: [],
        transitions: [{ state_name: 'deleted', conditions: { min_index_age: daysKept } }],
      },
      { name: 'deleted', actions: [{ delete: {} }], transitions: [] },
    ],
    ism_template: [{ index_patterns: [pattern], priority: 300 }],
  },
};

/** The time of indexing, for a rule that looks back by it although the sink was down. */
const ingestPipeline = {
  description: 'events of sluice: event.ingested is the time of indexing',
  processors: [{ set: { field: 'event.ingested', value: '{{{_ingest.timestamp}}}' } }],
};

function detectionRules(): readonly object[] {
  const { rules } = JSON.parse(
    readFileSync(new URL('converted/elasticsearch.json', sigma), 'utf8'),
  );
  const converted = Object.entries<{ query: string } & StoredRule>(rules).map(([name, rule]) =>
    detectionRule(name, rule, tagsOfRule(name), {
      type: 'query',
      language: 'lucene',
      query: rule.query,
      index: [pattern],
    }),
  );
  const written = readdirSync(new URL('written/', sigma))
    .toSorted()
    .map((file) => {
      const rule = JSON.parse(readFileSync(new URL(`written/${file}`, sigma), 'utf8'));
      const query = { type: 'esql', language: 'esql', query: rule.elasticsearch };
      return detectionRule(file.slice(0, -5), rule, rule.tags, query);
    });
  return [...converted, ...written];
}

function detectionRule(
  name: string,
  rule: StoredRule,
  attackTags: readonly string[],
  query: object,
): object {
  return {
    rule_id: rule.id,
    name: rule.title,
    description: rule.description ?? `${rule.title}. See deploy/siem/sigma/rules/${name}.yml.`,
    severity: rule.level,
    risk_score: risk[rule.level],
    enabled: false,
    interval: '5m',
    from: 'now-10m',
    to: 'now',
    // A record that upstream shows late is found by the time at which it was read.
    timestamp_override: 'event.ingested',
    tags: ['sluice', name],
    threat: attackTactics(attackTags).map(({ techniques, ...tactic }) => ({
      framework: 'MITRE ATT&CK',
      tactic: { ...tactic, reference: `https://attack.mitre.org/tactics/${tactic.id}/` },
      technique: techniques.map((one) => ({
        ...one,
        reference: `https://attack.mitre.org/techniques/${one.id}/`,
        subtechnique: [],
      })),
    })),
    false_positives: rule.falsepositives ?? [],
    author: ['sluice'],
    license: 'Apache-2.0',
    version: 1,
    max_signals: 100,
    ...query,
  };
}

interface SavedObject {
  readonly type: string;
  readonly id: string;
  readonly attributes: Readonly<Record<string, unknown>>;
  readonly references: readonly {
    readonly name: string;
    readonly type: string;
    readonly id: string;
  }[];
  readonly migrationVersion?: Readonly<Record<string, string>>;
}

/** Index pattern, panels and dashboards; classic visualizations, which both products read. */
function savedObjects(version: string): readonly SavedObject[] {
  const indexPattern: SavedObject = {
    type: 'index-pattern',
    id: patternId,
    attributes: { title: pattern, timeFieldName: '@timestamp' },
    references: [],
  };
  const made = dashboards.flatMap((dashboard) => [
    ...dashboard.panels.map((panel, at) => visualization(panelId(dashboard, at), panel)),
    dashboardOf(dashboard, version),
  ]);
  return [indexPattern, ...made];
}

function panelId({ id }: Dashboard, at: number): string {
  return `${id}-${at + 1}`;
}

function visualization(id: string, { title, query, field }: Panel): SavedObject {
  const count = { id: '1', enabled: true, type: 'count', schema: 'metric', params: {} };
  const split =
    field === null
      ? {
          type: 'date_histogram',
          schema: 'segment',
          params: { field: '@timestamp', interval: 'auto', min_doc_count: 1 },
        }
      : {
          type: 'terms',
          schema: 'bucket',
          params: { field, size: 20, order: 'desc', orderBy: '1' },
        };
  const type = field === null ? 'histogram' : 'table';
  const visState = { title, type, params: {}, aggs: [count, { id: '2', enabled: true, ...split }] };
  return {
    type: 'visualization',
    id,
    attributes: {
      title,
      description: '',
      visState: JSON.stringify(visState),
      uiStateJSON: '{}',
      kibanaSavedObjectMeta: { searchSourceJSON: searchSource(query) },
    },
    references: [
      {
        name: 'kibanaSavedObjectMeta.searchSourceJSON.index',
        type: 'index-pattern',
        id: patternId,
      },
    ],
  };
}

function searchSource(query: string): string {
  return JSON.stringify({
    query: { query, language: 'lucene' },
    filter: [],
    indexRefName: 'kibanaSavedObjectMeta.searchSourceJSON.index',
  });
}

function dashboardOf(dashboard: Dashboard, version: string): SavedObject {
  const { id, title, panels } = dashboard;
  const placed = panels.map((_, at) => ({
    version,
    gridData: { x: (at % 2) * 24, y: Math.floor(at / 2) * 15, w: 24, h: 15, i: String(at + 1) },
    panelIndex: String(at + 1),
    embeddableConfig: {},
    panelRefName: `panel_${at + 1}`,
  }));
  return {
    type: 'dashboard',
    id,
    attributes: {
      title,
      description: 'events of sluice',
      hits: 0,
      panelsJSON: JSON.stringify(placed),
      optionsJSON: JSON.stringify({ hidePanelTitles: false, useMargins: true }),
      version: 1,
      timeRestore: true,
      timeFrom: 'now-24h',
      timeTo: 'now',
      kibanaSavedObjectMeta: {
        searchSourceJSON: JSON.stringify({ query: { query: '', language: 'lucene' }, filter: [] }),
      },
    },
    references: panels.map((_, at) => ({
      name: `panel_${at + 1}`,
      type: 'visualization',
      id: panelId(dashboard, at),
    })),
  };
}

function jsonText(value: object): string {
  return `${JSON.stringify(value, null, 2)}\n`;
}

function ndjsonText(values: readonly object[]): string {
  return values.map((value) => `${JSON.stringify(value)}\n`).join('');
}

if (import.meta.main) {
  for (const [name, text] of elasticFiles()) writeFileSync(new URL(name, here), text);
}

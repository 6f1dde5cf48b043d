// The stored queries against a real OpenSearch: 13,000 events of a sandbox with attacks, delivered by the `elasticsearch`
// sink under its index template. Each rule finds every planted attack, and nothing among 10,000 ordinary events and near
// misses. And the command of the docs leads from nothing to an alert.

import { fileURLToPath } from 'node:url';
import { beforeAll, describe, expect, test } from 'vitest';
import { elasticsearchSink } from '../../connectors/sinks/elasticsearch.ts';
import { elasticFiles } from '../../deploy/siem/elastic/build.ts';
import { dashboards } from '../../deploy/siem/elastic/panels.ts';
import { queryRules } from '../../deploy/siem/query-rules.ts';
import { deliver } from '../contracts/deliver.ts';
import { makeFormat } from '../formats/make-format.ts';
import { runProgram } from '../support/children.ts';
import { sharedOpenSearch } from '../support/opensearch.ts';
import { openSink, parseSettings, testTools } from '../support/sink-opening.ts';
import { type JudgedEvent, judgedEvents } from './planted-events.ts';

const prefix = `siem-${process.pid}`;
const rules = queryRules();

describe('in OpenSearch', () => {
  let events: readonly JudgedEvent[];
  let cluster: Awaited<ReturnType<typeof sharedOpenSearch>>;

  beforeAll(async () => {
    events = await judgedEvents(13_000);
    cluster = await sharedOpenSearch();
    const config = { url: cluster.url, index: `${prefix}-{class}-{date}` };
    await elasticsearchSink.setup?.(parseSettings(elasticsearchSink, config), makeFormat('ecs'), {
      tools: testTools(),
      signal: new AbortController().signal,
    });
    const opened = await openSink(elasticsearchSink, config);
    const { refused } = await deliver(
      opened,
      events.map(({ event }) => event),
      1_000,
    );
    expect(refused).toEqual([]);
    await cluster.ask('POST', `/${prefix}-*/_refresh`);
  });

  test('all events are stored, 10,000 of them ordinary', async () => {
    const { count } = await cluster.ask('GET', `/${prefix}-*/_count`);

    expect(count).toBe(events.length);
    expect(events.filter(({ rule }) => rule === null).length).toBeGreaterThan(10_000);
  });

  test.each(rules.map(({ name }) => name))(
    '%s finds its attacks and nothing else',
    async (name) => {
      const rule = rules.find((one) => one.name === name);
      const planted = events.filter((one) => one.rule === name);
      const expected = planted.map(({ event, group }) => (group === null ? event.uid : group));

      const alerts = await rule?.run(cluster.ask, { index: `${prefix}-*`, since: null });
      const found = alerts?.map(({ uid, key }) => uid ?? key.slice(name.length + 1));

      expect(expected.length).toBeGreaterThan(0);
      expect(found?.toSorted()).toEqual([...new Set(expected)].toSorted());
    },
  );

  test.each(
    dashboards.flatMap(({ panels }) => panels.map((panel) => [panel.title, panel] as const)),
  )('the panel "%s" has values of a field that can be aggregated', async (_, { query, field }) => {
    const name = field ?? '@timestamp';
    const caps = await cluster.ask('GET', `/${prefix}-*/_field_caps?fields=${name}`);
    for (const one of Object.values<{ aggregatable: boolean }>(caps.fields[name]))
      expect(one.aggregatable).toBe(true);

    const { aggregations } = await cluster.ask('POST', `/${prefix}-*/_search`, {
      size: 0,
      query: { query_string: { query } },
      aggs: {
        values:
          field === null
            ? { date_histogram: { field: '@timestamp', fixed_interval: '1h' } }
            : { terms: { field, size: 20 } },
      },
    });
    expect(aggregations.values.buckets.length).toBeGreaterThan(0);
  });

  test('the Elastic rules that are Lucene find the same events as those for OpenSearch', async () => {
    const rules = elasticFiles().get('detection-rules.ndjson')?.trim().split('\n') ?? [];
    for (const line of rules) {
      const { type, query, tags } = JSON.parse(line);
      if (type !== 'query') continue;
      const { count } = await cluster.ask('POST', `/${prefix}-*/_count`, {
        query: { query_string: { query } },
      });
      expect(count, tags[1]).toBe(events.filter(({ rule }) => rule === tags[1]).length);
    }
  });

  test('no rule finds an event that was read before the searched time', async () => {
    for (const rule of rules)
      expect(await rule.run(cluster.ask, { index: `${prefix}-*`, since: 'now-15m' })).toEqual([]);
  });

  test('every event with a change has a type, and each kind of actor is there', async () => {
    const { hits } = await cluster.ask('POST', `/${prefix}-*/_search`, {
      size: 0,
      track_total_hits: true,
      query: {
        bool: {
          filter: [{ exists: { field: 'sluice.change' } }],
          must_not: [{ exists: { field: 'event.type' } }],
        },
      },
    });
    const kept = await cluster.ask('POST', `/${prefix}-*/_search`, {
      size: 0,
      aggs: {
        kinds: { terms: { field: 'sluice.actor.kind' } },
        target: { terms: { field: 'sluice.target.type' } },
      },
    });

    expect(hits.total.value).toBe(0);
    const kinds = kept.aggregations.kinds.buckets.map(({ key }: { key: string }) => key);
    expect(kinds.toSorted()).toEqual(['agent', 'system', 'user']);
    expect(kept.aggregations.target.buckets.length).toBeGreaterThan(5);
  });
});

test('a search in no index is an error, and not "no alert"', async () => {
  const { ask } = await sharedOpenSearch();

  for (const rule of rules)
    await expect(rule.run(ask, { index: 'siem-none-*', since: null })).rejects.toThrow(/no index/);
});

test('one command leads from nothing to an alert for each attack of the audit trail', async () => {
  const { url } = await sharedOpenSearch();
  const script = fileURLToPath(new URL('../../deploy/siem/first-alert.ts', import.meta.url));

  const { exitCode, output, errors } = await runProgram(process.execPath, [
    script,
    ...['--url', url, '--within', '600'],
  ]);

  expect(exitCode, errors).toBe(0);
  expect(output.match(/ALERT/g)).toHaveLength(11);
});

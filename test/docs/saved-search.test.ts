// The search of the OpenSearch recipe on a real OpenSearch: it finds every change of the audit trail and nothing else.

import { expect, test } from 'vitest';
import { elasticsearchSink } from '../../connectors/sinks/elasticsearch.ts';
import { blocksOf, pages } from '../../docs/generate/page.ts';
import type { Event } from '../../src/contracts/event.ts';
import { compileNormaliser } from '../../src/normalise/normalise.ts';
import { deliver } from '../contracts/deliver.ts';
import { makeFormat } from '../formats/make-format.ts';
import { anEvent } from '../support/an-event.ts';
import { sharedOpenSearch } from '../support/opensearch.ts';
import { openSink, parseSettings, testTools } from '../support/sink-opening.ts';

/** Actions as upstream calls them, and whether somebody has changed something by it. */
const actions: readonly (readonly [action: string, isChange: boolean])[] = [
  ['policy.create', true],
  ['policy.update', true],
  ['api_key.revoked', true],
  ['policy.rollback', true],
  ['agent.action.executed', true],
  ['policy.read', false],
  ['report.viewed', false],
  ['session.login', false],
];

function audited(action: string, offset: number): Event {
  const event = anEvent({ offset });
  const record = {
    id: `evt-${offset}`,
    timestamp: '2026-03-04T05:06:07Z',
    action,
    actor: { id: 'usr-17', email: 'anna.schmidt@example.com' },
    source_ip: '203.0.113.7',
  };
  const normalise = compileNormaliser('audit', { id: 'id', time: ['timestamp'] });
  return { ...event, ocsf: normalise(record, event.uid, event.context) };
}

test('the saved search: changes by admins and agents', async () => {
  const cluster = await sharedOpenSearch();
  const index = `saved-${process.pid}-{class}-{date}`;
  const config = { url: cluster.url, index };
  await elasticsearchSink.setup?.(parseSettings(elasticsearchSink, config), makeFormat('ecs'), {
    tools: testTools(),
    signal: new AbortController().signal,
  });
  const events = actions.map(([action], offset) => audited(action, offset));
  await deliver(await openSink(elasticsearchSink, config), events, 100);
  const indices = `saved-${process.pid}-*`;
  await cluster.ask('POST', `/${indices}/_refresh`);

  // The same words in the language that the cluster itself reads.
  const query = search().replace(/\b(?:and|or|not)\b/g, (word) => word.toUpperCase());
  const { hits } = await cluster.ask('POST', `/${indices}/_search`, {
    size: 100,
    query: { query_string: { query } },
  });

  const found = hits.hits.map(
    ({ _source }: { _source: { event: { action: string } } }) => _source.event.action,
  );
  expect(found.sort()).toEqual(
    actions.flatMap(([action, isChange]) => (isChange ? action : [])).sort(),
  );
});

function search(): string {
  const page = pages().find(({ path }) => path === 'recipes/elastic.md');
  const block = page && blocksOf(page).find(({ text }) => text.trim().startsWith('event.category'));
  if (block === undefined) throw new Error('the recipe has no search');
  return block.text.trim();
}

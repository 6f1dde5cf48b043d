// The stored files for OpenSearch in a real one: the index template and the ingest pipeline are accepted and have their effect.
// The cluster of the tests has no plugin for policies, so their states are checked here.

import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { sharedOpenSearch } from '../support/opensearch.ts';

const stored = (name: string) =>
  JSON.parse(readFileSync(new URL(`../../deploy/siem/elastic/${name}`, import.meta.url), 'utf8'));

test('the index template is accepted, and its fields have their types', async () => {
  const { ask } = await sharedOpenSearch();
  const name = `stored-${process.pid}`;
  const template = stored('index-template.opensearch.json');

  await ask('PUT', `/_index_template/${name}`, {
    ...template,
    index_patterns: [`${name}-*`],
  });
  await ask('PUT', `/${name}-a/_doc/1?refresh=true`, {
    '@timestamp': '2026-11-26T10:00:00Z',
    event: { code: 'DLP.Rule.Disable' },
    sluice: { change: ['enabled=false'] },
  });

  const { hits } = await ask('POST', `/${name}-a/_search`, {
    query: {
      bool: {
        filter: [
          { term: { 'event.code': 'dlp.rule.disable' } },
          { term: { 'sluice.change': 'enabled=false' } },
        ],
      },
    },
  });
  expect(hits.total.value).toBe(1);
});

test('the ingest pipeline sets event.ingested to the time of indexing', async () => {
  const { ask } = await sharedOpenSearch();
  const name = `ingest-${process.pid}`;
  const before = Date.now();

  await ask('PUT', `/_ingest/pipeline/${name}`, stored('ingest-pipeline.json'));
  await ask('PUT', `/${name}-a/_doc/1?refresh=true&pipeline=${name}`, {
    event: { ingested: '2020-01-01T00:00:00Z' },
  });

  const { _source: document } = await ask('GET', `/${name}-a/_doc/1`);
  expect(Date.parse(document.event.ingested)).toBeGreaterThanOrEqual(before - 1_000);
});

test('the policies delete after one time, and lead to states that they have', () => {
  const { policy: ilm } = stored('ilm-policy.json');
  const { policy: ism } = stored('ism-policy.json');
  const states = ism.states.map(({ name }: { name: string }) => name);

  expect(states).toContain(ism.default_state);
  for (const { transitions } of ism.states)
    for (const { state_name } of transitions) expect(states).toContain(state_name);
  expect(ism.states.at(-1).actions).toEqual([{ delete: {} }]);
  const [{ conditions }] = ism.states[0].transitions;
  expect(ilm.phases.delete.min_age).toBe(conditions.min_index_age);
  expect(ism.ism_template[0].index_patterns).toEqual(['sluice-*']);
});

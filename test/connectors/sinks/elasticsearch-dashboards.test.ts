// `check --setup` with `dashboards`: the index template in a real OpenSearch, and the saved objects in a scripted Kibana or
// OpenSearch Dashboards. Neither product runs here.

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { elasticsearchSink } from '../../../connectors/sinks/elasticsearch.ts';
import { aSetup } from '../../commands/a-setup.ts';
import { makeFormat } from '../../formats/make-format.ts';
import { runHere } from '../../support/cli.ts';
import { startHttpReceiver } from '../../support/http-receiver.ts';
import { sharedOpenSearch } from '../../support/opensearch.ts';
import { startDashboards } from '../../support/saved-objects.ts';
import { parseSettings, testTools } from '../../support/sink-opening.ts';
import { tempDir } from '../../support/temp.ts';

const fileOf = (product: string) => `deploy/siem/elastic/dashboards.${product}.ndjson`;
const linesOf = (file: string) => readFileSync(file, 'utf8').trim().split('\n');

async function setUp(dashboards: object, more: object = {}) {
  const { url } = await sharedOpenSearch();
  const index = `boards-${process.pid}-{class}-{date}`;
  const settings = parseSettings(elasticsearchSink, { url, index, dashboards, ...more });
  return await elasticsearchSink.setup?.(settings, makeFormat('ecs'), {
    tools: testTools(),
    signal: new AbortController().signal,
  });
}

test.each(['kibana', 'opensearch'] as const)(
  '%s has every object, and its index pattern is that of the sink, also at a second import',
  async (product) => {
    const server = await startDashboards(product, 'ApiKey a-key');
    const file = fileOf(product);
    const dashboards = { url: server.url, file };

    const first = await setUp(dashboards, { auth: { api_key: 'a-key' } });
    await setUp(dashboards, { auth: { api_key: 'a-key' } });

    const sent = linesOf(file).map((line) => JSON.parse(line));
    expect(first).toBe(
      `index template boards-${process.pid}-ecs, ${sent.length} saved objects of ${file}`,
    );
    expect([...server.objects.keys()]).toEqual(sent.map(({ type, id }) => `${type} ${id}`));
    const pattern = server.objects.get('index-pattern sluice-index-pattern');
    expect(pattern?.attributes.title).toBe(`boards-${process.pid}-*`);
    const { ask } = await sharedOpenSearch();
    const { index_templates: made } = await ask(
      'GET',
      `/_index_template/boards-${process.pid}-ecs`,
    );
    expect(made).toHaveLength(1);
  },
);

test('check --setup reports the template and the saved objects', async () => {
  const { url } = await sharedOpenSearch();
  const server = await startDashboards('opensearch');
  const index = `boards-check-${process.pid}-{class}-{date}`;
  const board = `{ url: "${server.url}", file: ${fileOf('opensearch')} }`;
  const sinks = [
    `  search: { type: elasticsearch, url: "${url}", index: "${index}", dashboards: ${board} }`,
  ];
  const { config } = await aSetup({ sinks });

  const { stdout, exitCode } = await runHere(['check', '-c', config, '--setup']);

  expect(stdout).toMatch(/ok +sink search: index template \S+, \d+ saved objects of deploy/);
  expect([exitCode, server.objects.size > 20]).toEqual([0, true]);
});

test('a file of your own is imported as it is', async () => {
  const server = await startDashboards('kibana');
  const file = join(tempDir(), 'mine.ndjson');
  const mine = {
    type: 'index-pattern',
    id: 'mine',
    attributes: { title: 'logs-*' },
    references: [],
  };
  writeFileSync(file, `${JSON.stringify(mine)}\n\n`);

  await setUp({ url: server.url, file });

  expect([...server.objects.values()]).toEqual([mine]);
});

test('a missing credential and an object with a missing reference are refused with the reason', async () => {
  const guarded = await startDashboards('kibana', 'ApiKey a-key');
  const open = await startDashboards('kibana');
  const file = join(tempDir(), 'part.ndjson');
  writeFileSync(file, `${linesOf(fileOf('kibana'))[1]}\n`);

  await expect(setUp({ url: guarded.url, file: fileOf('kibana') })).rejects.toMatchObject({
    code: 'sink_refused',
    message: expect.stringContaining('401'),
  });
  await expect(setUp({ url: open.url, file })).rejects.toMatchObject({
    code: 'sink_refused',
    message:
      'importing dashboards: not every saved object was stored: missing_references of sluice-changes-1',
  });
});

test.each([
  ['a login page', '<html>sign in</html>'],
  ['fewer objects than sent', '{"success":true,"successCount":1}'],
  ['another service', '{"ok":true}'],
])('%s is no success', async (_, body) => {
  const receiver = await startHttpReceiver();
  receiver.answer({ answer: 'reply', status: 200, body });

  await expect(setUp({ url: receiver.url, file: fileOf('kibana') })).rejects.toMatchObject({
    code: 'sink_refused',
  });
});

test.each([
  ['a missing file', null, 'cannot read dashboards.file'],
  ['a file that is no NDJSON', '{"type":"dashboard"}\n[1]\n', 'line 2 of dashboards.file'],
])('%s is named', async (_, text, message) => {
  const file = join(tempDir(), 'some.ndjson');
  if (text !== null) writeFileSync(file, text);

  await expect(setUp({ url: 'http://127.0.0.1:1', file })).rejects.toMatchObject({
    code: 'config_invalid',
    message: expect.stringContaining(message),
  });
});

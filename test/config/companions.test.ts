// Sinks that come with others: an archive's lake.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parseConfig } from '../../src/config/config.ts';
import { planFrom } from '../../src/run/plan.ts';
import { openTools } from '../../src/run/tools.ts';
import { runHere } from '../support/cli.ts';
import { silent } from '../support/silent-log.ts';
import { tempDir } from '../support/temp.ts';

async function configWith(lake: string, routes = '') {
  const key = join(tempDir(), 'archive.key');
  expect((await runHere(['archive', 'keys', 'new', key])).exitCode).toBe(0);
  const text = `
upstreams: { edge: { api: unified, base_url: "https://edge.example/v1", auth: { api_key: k } } }
sources: { audit: { type: audit_events, upstream: edge, every: 30s } }
sinks:
  kept: { type: archive, location: /tmp/nowhere, signing_key: "\${file:${key}}"${lake} }
  screen: { type: stdout }
${routes}
`;
  const file = join(tempDir(), 'sluice.yaml');
  writeFileSync(file, text);
  return parseConfig(text, file, { env: {} });
}

test('an archive with a lake adds a sink, which gets the archive’s events', async () => {
  const route = 'routes: [{ from: [audit], to: [kept] }, { from: [audit], to: [screen] }]';
  const config = await configWith(', lake: { every: 5m }', route);
  const tools = openTools(silent);

  const { sinks } = planFrom(config, tools);

  expect(Object.keys(config.sinks)).toEqual(['kept', 'kept.lake', 'screen']);
  expect(config.routes.map(({ to }) => to)).toEqual([['kept', 'kept.lake'], ['screen']]);
  const lake = sinks.find(({ name }) => name === 'kept.lake');
  expect(lake?.settings).toMatchObject({ location: '/tmp/nowhere', every: 300_000 });
  expect(lake?.format.name).toBe('parquet');
  await tools.http.close();
});

test('an archive without one has none', async () => {
  expect(Object.keys((await configWith('')).sinks)).toEqual(['kept', 'screen']);
});

// A collection that leaves the config: the paths that were learned as volatile are forgotten, after a restart without it and
// after a reload that drops it. With the source in the config a restart keeps them (rule R3.3).

import { readFileSync, writeFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { readState } from '../../src/watch/state.ts';
import { aSetup, type Setup } from '../commands/a-setup.ts';
import { runSluice, startSluice } from '../support/cli.ts';
import { waitUntil } from '../support/temp.ts';

const sitesPath = '/v1/sites';
const source = '  sites: { type: sites, upstream: edge, every: 100ms, confirm_after: 0s }';

/** A source whose entities have a clock that moves with each reading. */
async function aSetupWithSites(): Promise<Setup> {
  const setup = await aSetup({ sources: [source] });
  edit(setup, (text) =>
    text.replace('scope: events:read', `scope: "${setup.sandbox.credentials.unifiedScope}"`),
  );
  setup.sandbox.control.setFaults({ rules: [{ path: sitesPath, fault: 'volatile_field' }] });
  return setup;
}

function edit({ config }: Setup, change: (text: string) => string): void {
  writeFileSync(config, change(readFileSync(config, 'utf8')));
}

const withoutSites = (setup: Setup) => edit(setup, (text) => text.replace(`${source}\n`, ''));
const withSites = (setup: Setup) =>
  edit(setup, (text) => text.replace('sources:\n', `sources:\n${source}\n`));

function learned({ stateDir }: Setup): readonly string[] {
  const streams = [...readState(stateDir).streams.values()];
  return streams.flatMap(({ checkpoint }) =>
    (checkpoint?.compared?.volatile ?? []).map(({ path }) => path),
  );
}

const untilLearned = (setup: Setup, stderr: readonly string[]) =>
  waitUntil(() => learned(setup).includes('last_seen'), {
    what: () => `last_seen to be learned; stderr: ${stderr.join('\n')}`,
  });

test('a restart without the source forgets them, and a restart with it does not', async () => {
  const setup = await aSetupWithSites();
  const sluice = startSluice(['run', '-c', setup.config]);
  await untilLearned(setup, sluice.stderr);
  await sluice.kill();
  const once = () => runSluice(['run', '-c', setup.config, '--once']);

  const exits = [(await once()).exitCode];
  const kept = learned(setup);
  withoutSites(setup);
  exits.push((await once()).exitCode);
  const left = learned(setup);
  withSites(setup);
  const again = startSluice(['run', '-c', setup.config]);
  await untilLearned(setup, again.stderr);
  await again.kill();

  expect(exits).toEqual([0, 0]);
  expect(kept).toEqual(['last_seen']);
  expect(left).toEqual([]);
});

test('a reload that drops the source forgets them', async () => {
  const setup = await aSetupWithSites();
  const sluice = startSluice(['run', '-c', setup.config, '--allow-removal']);
  await untilLearned(setup, sluice.stderr);
  const before = sluice.stderr.length;
  withoutSites(setup);
  process.kill(sluice.pid, 'SIGHUP');
  await waitUntil(
    () => sluice.stderr.slice(before).some((line) => line.includes('"config reloaded"')),
    { what: () => `a reload; stderr: ${sluice.stderr.slice(before).join('\n')}` },
  );

  // Killed: what a process does at its end or its start is not what forgets them.
  await sluice.kill();

  expect(learned(setup)).toEqual([]);
});

// A process that runs well, and a config file that is broken meanwhile, or out of sight: the commands that look still find the
// process and show it, and say what is wrong with the file.

import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { readConfig } from '../../src/config/config.ts';
import { buildText } from '../../src/tools/index.ts';
import { runHere, runSluice, startSluice } from '../support/cli.ts';
import { freePort, tempDir, waitUntil } from '../support/temp.ts';
import { aSetup } from './a-setup.ts';

async function aRunning({
  stateDir,
  env = {},
}: {
  stateDir?: string;
  env?: Record<string, string>;
} = {}) {
  const listen = `127.0.0.1:${await freePort()}`;
  const setup = await aSetup({
    sandbox: { events: 20 },
    more: [`status: { listen: ${listen} }`],
    ...(stateDir === undefined ? {} : { stateDir }),
  });
  const sluice = startSluice(['run', '-c', setup.config], { cwd: tempDir(), env });
  await sluice.waitForLine('"status page"');
  await waitUntil(() => readdirSync(setup.dir).includes('events.ndjson'), { what: 'events' });
  const json = async () => JSON.parse(await (await fetch(`http://${listen}/status.json`)).text());
  const metrics = async () => await (await fetch(`http://${listen}/metrics`)).text();
  return { ...setup, sluice, json, metrics };
}

const broken = 'state: {dir: [\nupstreams: x';

test('a broken config on disk does not hide a running process from any command', async () => {
  const { config, sluice, json, metrics } = await aRunning();
  const good = readFileSync(config, 'utf8');

  writeFileSync(config, broken);
  await sluice.waitForLine('config_not_reloaded');
  const cwd = tempDir();
  const look = (...words: string[]) => runSluice([...words, '-c', config], { cwd });
  const tap = startSluice(['tap', '-c', config], { cwd });
  const [status, asJson, top, explain, letters] = await Promise.all([
    look('status'),
    look('status', '--json'),
    look('top'),
    look('explain', 'audit'),
    look('dead-letters', 'list'),
    tap.waitForLine(`following process ${sluice.pid}`),
  ]);
  const report = await json();
  const refusing = await metrics();
  writeFileSync(config, good);
  await sluice.waitForLine('no change');
  const after = [await look('status', '--json'), await json(), await metrics()] as const;

  for (const { exitCode, stderr } of [status, asJson, top, explain, letters]) {
    expect(exitCode).toBe(0);
    expect(stderr).toContain('the config is invalid: ');
    expect(stderr).toContain(`process ${sluice.pid} on `);
  }
  expect(status.stdout).toContain(`version: ${buildText()}`);
  expect(status.stdout).toContain('The config was not loaded at');
  expect(status.stdout).toContain('disk');
  expect(JSON.parse(asJson.stdout)).toMatchObject({
    running: expect.stringContaining(String(sluice.pid)),
    reload_refused: { code: 'config_invalid', message: expect.stringContaining(config) },
    sinks: [{ name: 'disk', position: 20 }],
  });
  expect(top.stdout).toContain('The config was not loaded at');
  expect(explain.stdout).toContain('audit: ');
  expect(letters.stdout).toContain('no dead letters');
  expect(report.reload_refused).toMatchObject({ code: 'config_invalid' });
  expect(report.attention[0]).toMatchObject({ who: 'The config', mood: 'bad' });
  expect(refusing).toContain('\nsluice_config_reload_refused 1\n');
  expect(JSON.parse(after[0].stdout).reload_refused).toBeNull();
  expect(after[1].reload_refused).toBeNull();
  expect(after[2]).toContain('\nsluice_config_reload_refused 0\n');
});

test('where nothing runs a broken config is an error, as ever', async () => {
  const { config } = await aSetup();
  writeFileSync(config, broken);

  const { exitCode, stderr } = await runHere(['status', '-c', config]);

  expect([exitCode, stderr]).toEqual([
    2,
    expect.stringContaining(`${config}:1:14: this [ is not closed`),
  ]);
});

test('a process is found whose state directory this shell does not know', async () => {
  const service = tempDir();
  const { config, sluice, dir } = await aRunning({
    stateDir: '"${env:KEPT_IN}"',
    env: { KEPT_IN: join(service, 'state') },
  });

  const { stdout } = await runSluice(['status', '--json', '-c', config], { cwd: tempDir() });

  expect(JSON.parse(stdout)).toMatchObject({
    running: expect.stringContaining(`process ${sluice.pid} `),
    state_dir: join(service, 'state'),
    sinks: [{ position: 20 }],
  });
  expect(readdirSync(dir)).not.toContain('state');
});

test('the stored copy of a config has none of its secrets, and is the same config again', async () => {
  const { config } = await aSetup({
    more: [
      'status: { listen: 127.0.0.1:0, token: "a${env:X:-b}" }',
      'log: { level: "$${x" }'.replace('$${x', 'info'),
    ],
  });
  const env = { X: 'y' };
  const { kept, state, ...first } = readConfig(config, { env });
  const again = join(tempDir(), 'kept.yaml');
  writeFileSync(again, JSON.stringify(kept));

  const { kept: _, state: stateAgain, ...second } = readConfig(again, { env });

  expect(JSON.stringify(kept)).not.toContain('sandbox-secret');
  expect(JSON.stringify(kept)).toContain('a${env:X:-b}');
  expect(stateAgain.dir).toBe(state.dir);
  const texts = [second, first].map((one) =>
    JSON.parse(JSON.stringify({ ...one, file: '', notices: [] })),
  );
  expect(texts[0]).toEqual(texts[1]);
});

// `sluice preview --live`: one record from upstream, as each sink would get it, without a trace in state or sinks.

import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { runHere } from '../support/cli.ts';
import { aSetup } from './a-setup.ts';

const more = [
  'mask: { key: a-key-for-tests }',
  'routes:',
  '  - { from: [audit], to: [disk], mask: { actor.user.email_addr: hash, actor.user.name: hash } }',
];

test('shows a record of upstream at each sink, masked, and changes nothing', async () => {
  const { config, dir, stateDir, sandbox } = await aSetup({ more });

  const { stdout, stderr, exitCode } = await runHere([
    ...['preview', '-c', config, '--live', 'audit'],
  ]);

  expect({ stderr, exitCode }).toEqual({ stderr: '', exitCode: 0 });
  expect(stdout).toContain('disk (file, json)');
  expect(stdout).toMatch(/"email_addr": ?"[0-9a-f]{32}"/);
  expect(stdout).not.toMatch(/[a-z]@[a-z]/);
  expect(existsSync(stateDir)).toBe(false);
  expect(existsSync(join(dir, 'events.ndjson'))).toBe(false);
  expect(sandbox.unifiedBaseUrl).toContain('127.0.0.1');
});

test('ends with 3 if upstream refuses or is not reached, and with 64 for a wrong use', async () => {
  const { config } = await aSetup();
  const wrong = `${config}.wrong.yaml`;
  writeFileSync(wrong, readFileSync(config, 'utf8').replace('sandbox-secret', 'another'));
  const gone = `${config}.gone.yaml`;
  const text = readFileSync(config, 'utf8').replace(
    /base_url: http:\/\/127.0.0.1:\d+/,
    'base_url: http://127.0.0.1:1',
  );
  writeFileSync(gone, text);
  const preview = (...args: readonly string[]) => runHere(['preview', ...args]);

  const results = await Promise.all([
    preview('-c', wrong, '--live', 'audit'),
    preview('-c', gone, '--live', 'audit'),
    preview('-c', config, '--live', 'audt'),
    preview('-c', config),
    preview('-c', config, '--live', 'audit', 'record.json'),
  ]);

  expect(results.map(({ exitCode }) => exitCode)).toEqual([3, 3, 64, 64, 64]);
  expect(results[2]?.stderr).toContain('did you mean audit?');
  expect(results[0]?.stderr).not.toContain('another');
  expect(results[1]?.stderr).not.toMatch(/again by itself/);
});

test('the credential may come from a command', async () => {
  const { config } = await aSetup({ more });
  const text = readFileSync(config, 'utf8');
  const command = '"${exec:echo sandbox-secret}"';
  expect(text).toContain('sandbox-secret');
  writeFileSync(
    config,
    text.replace('sandbox-secret', () => command),
  );

  const { stdout, exitCode } = await runHere(['preview', '-c', config, '--live', 'audit']);

  expect(exitCode).toBe(0);
  expect(stdout).toContain('disk (file, json)');
});

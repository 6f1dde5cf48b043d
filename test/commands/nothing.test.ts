// The commands that look, where there is nothing to be seen: they say which directory they have looked in, and need no secret
// for it. Those that change a state make none.

import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { backfillList } from '../../src/commands/backfill-list.ts';
import { checkpoint, show } from '../../src/commands/checkpoint.ts';
import { deadLetterLines, deadLetterList } from '../../src/commands/dead-letters.ts';
import { explain } from '../../src/commands/explain.ts';
import type { CommandDeps, ExitCode } from '../../src/commands/shared/command.ts';
import { status } from '../../src/commands/status.ts';
import { cutover } from '../../src/commands/succession/turn.ts';
import { received } from '../run/run-command.ts';
import { tempDir } from '../support/temp.ts';

/** A config that nothing has run with, and whose secret is not here. */
function aConfig(stateDir: string): string {
  const file = join(tempDir(), 'sluice.yaml');
  writeFileSync(
    file,
    [
      `state: { dir: ${stateDir} }`,
      'upstreams: { a: { api: unified, ends: never, base_url: "https://a.example/v1", auth: { api_key: "${env:KEY}" } } }',
      'sources: { audit: { type: audit_events, upstream: a } }',
      'sinks: { screen: { type: stdout } }',
    ].join('\n'),
  );
  return file;
}

const commands: readonly [string, (config: string, deps: CommandDeps) => Promise<ExitCode>][] = [
  ['status', (config, deps) => status.run({ config }, deps)],
  ['explain', (config, deps) => explain.run({ stream: 'audit', config }, deps)],
  ['checkpoint show', (config, deps) => show.run({ config, stream: 'audit' }, deps)],
  ['dead-letters list', (config, deps) => deadLetterList.run({ config }, deps)],
  ['backfill list', (config, deps) => backfillList.run({ config }, deps)],
];

test.each(commands)('%s says where it has looked', async (_, command) => {
  const absolute = join(tempDir(), 'state');
  const config = aConfig('./not/here');

  const relative = await received((deps) => command(config, deps));
  const elsewhere = await received((deps) => command(aConfig(absolute), deps));

  expect(relative.code).toBe(0);
  const places = `${join(dirname(config), 'not/here')} or ${process.cwd()}/not/here`;
  expect(relative.out.join('\n')).toContain(`: there is no state in ${places}, so nothing has`);
  expect(elsewhere.out.join('\n')).toContain(`: there is no state in ${absolute}, so nothing has`);
  expect([...relative.out, ...elsewhere.out].join('\n')).not.toContain('nothing needs attention');
});

test.each(['reset', 'rewind'])(
  'checkpoint %s refuses to make a state that is not there',
  async (name) => {
    const stateDir = join(tempDir(), 'state');
    const command = checkpoint.commands.find((one) => one.name === name) as typeof show;
    const options = { config: aConfig(stateDir), stream: 'audit', to: '2026-01-01T00:00:00Z' };

    await expect(received(async (deps) => await command.run(options, deps))).rejects.toThrow(
      `there is no state in ${stateDir}`,
    );
    expect(existsSync(stateDir)).toBe(false);
  },
);

test('a cutover refuses to make a state that is not there', async () => {
  const stateDir = join(tempDir(), 'state');
  const config = aConfig(stateDir);
  const pair =
    'sources: { audit: { type: audit_events, upstream: a }, next: { type: audit_events, upstream: a, succeeds: { source: audit } } }';
  writeFileSync(config, readFileSync(config, 'utf8').replace(/^sources: .*$/m, pair));

  await expect(
    received(async (deps) => {
      const env = { ...deps.env, KEY: 'none' };
      return await cutover.run({ config, source: 'next', force: true }, { ...deps, env });
    }),
  ).rejects.toThrow(`there is no state in ${stateDir}`);
  expect(existsSync(stateDir)).toBe(false);
});

describe('dead letters', () => {
  const reason = 'upstream\u001b[2J said: this event is not wanted';
  const context = { source: 'audit', stream: 'audit/c-1' } as Parameters<
    typeof deadLetterLines
  >[0][number]['context'];
  const deadLetter = {
    id: 7,
    sink: 'siem',
    uid: 'ab'.repeat(32),
    offset: 0,
    reason,
    at: 0,
    context,
  };

  test('begin with the reason on a terminal, and fit 80 columns but for that', () => {
    const reported = deadLetterLines([deadLetter], true);

    expect(reported).toEqual([
      '7  siem: upstream [2J said: this event is not wanted',
      '   1970-01-01T00:00:00.000Z, stream audit/c-1, uid abababababab…',
    ]);
  });

  test('are a table with whole uids for a program', () => {
    const reported = deadLetterLines([deadLetter], false);

    expect(reported).toHaveLength(2);
    expect(reported[0]).toMatch(/^ID +SINK +TIME +STREAM +UID +REASON$/);
    expect(reported[1]).toContain(`  ${deadLetter.uid}  upstream`);
  });
});

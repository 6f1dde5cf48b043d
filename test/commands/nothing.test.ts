// The commands that look, where there is nothing to be seen: they say which directory they have looked in, and need no secret
// for it.

import { writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { backfillList } from '../../src/commands/backfill-list.ts';
import { show } from '../../src/commands/checkpoint.ts';
import { letterLines, letterList } from '../../src/commands/dead-letters.ts';
import { explain } from '../../src/commands/explain.ts';
import type { ExitCode, Means } from '../../src/commands/shared/command.ts';
import { status } from '../../src/commands/status.ts';
import { heard } from '../run/heard.ts';
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

const commands: readonly [string, (config: string, means: Means) => Promise<ExitCode>][] = [
  ['status', (config, means) => status.run({ config }, means)],
  ['explain', (config, means) => explain.run({ stream: 'audit', config }, means)],
  ['checkpoint show', (config, means) => show.run({ config, stream: 'audit' }, means)],
  ['dead-letters list', (config, means) => letterList.run({ config }, means)],
  ['backfill list', (config, means) => backfillList.run({ config }, means)],
];

test.each(commands)('%s says where it has looked', async (_, command) => {
  const absolute = join(tempDir(), 'state');
  const config = aConfig('./not/here');

  const relative = await heard((means) => command(config, means));
  const elsewhere = await heard((means) => command(aConfig(absolute), means));

  expect(relative.code).toBe(0);
  const places = `${join(dirname(config), 'not/here')} or ${process.cwd()}/not/here`;
  expect(relative.out.join('\n')).toContain(`: there is no state in ${places}, so nothing has`);
  expect(elsewhere.out.join('\n')).toContain(`: there is no state in ${absolute}, so nothing has`);
  expect([...relative.out, ...elsewhere.out].join('\n')).not.toContain('nothing needs attention');
});

describe('dead letters', () => {
  const reason = 'upstream\u001b[2J said: this event is not wanted';
  const context = { source: 'audit', stream: 'audit/c-1' } as Parameters<
    typeof letterLines
  >[0][number]['context'];
  const letter = { id: 7, sink: 'siem', uid: 'ab'.repeat(32), offset: 0, reason, at: 0, context };

  test('begin with the reason on a terminal, and fit 80 columns but for that', () => {
    const told = letterLines([letter], true);

    expect(told).toEqual([
      '7  siem: upstream [2J said: this event is not wanted',
      '   1970-01-01T00:00:00.000Z, stream audit/c-1, uid abababababab…',
    ]);
  });

  test('are a table with whole uids for a program', () => {
    const told = letterLines([letter], false);

    expect(told).toHaveLength(2);
    expect(told[0]).toMatch(/^ID +SINK +TIME +STREAM +UID +REASON$/);
    expect(told[1]).toContain(`  ${letter.uid}  upstream`);
  });
});

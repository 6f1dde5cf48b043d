// Two processes with separate states and one output file: the second writes nothing while the first lives, by whatever
// path it names the file, and takes over when the first is gone, also after SIGKILL.

import { linkSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { aSetup, auditPath, type Setup } from '../commands/a-setup.ts';
import { runHere, runSluice, startSluice } from '../support/cli.ts';
import { testSome } from '../support/long.ts';
import { waitUntil } from '../support/temp.ts';

/** The note beside a file that names its owner. */
function noteOf(file: string): string {
  return readFileSync(join(dirname(file), `.${basename(file)}.sluice.owner`), 'utf8');
}

/** The same config with a state of its own, and the file under another path. */
function second({ dir, config }: Setup, path: string, name = 'second'): string {
  const other = join(dir, `${name}.yaml`);
  const text = readFileSync(config, 'utf8')
    .replace(join(dir, 'state'), join(dir, `${name}-state`))
    .replace(/path: [^,}]+events\.ndjson/, `path: ${path}`);
  writeFileSync(other, text);
  return other;
}

test('a second process writes nothing to the file of the first, and takes over after SIGKILL', async () => {
  const setup = await aSetup({ sandbox: { events: 300 } });
  const file = join(setup.dir, 'events.ndjson');
  const first = startSluice(['run', '-c', setup.config]);
  await waitUntil(() => setup.delivered().length === 300, { what: '300 events in the file' });
  const other = second(setup, file);

  const own = await runHere(['check', '--connect', '-c', setup.config]);
  const checked = await runHere(['check', '--connect', '-c', other]);
  const noteBefore = noteOf(file);
  const plain = await runHere(['check', '-c', other]);
  const ownPlain = await runHere(['check', '-c', setup.config]);
  const noteAfter = noteOf(file);
  const beside = startSluice(['run', '-c', other]);
  await beside.waitForLine('writes to it');
  setup.sandbox.control.grow(auditPath, 50);
  await waitUntil(() => setup.delivered().length === 350, { what: 'events of the first' });
  const whileFirst = setup.delivered();
  await first.kill('SIGKILL');
  setup.sandbox.control.grow(auditPath, 1);
  await waitUntil(() => setup.delivered().length > 350, {
    what: 'the second process to take over',
  });
  await beside.kill();

  expect(own.exitCode).toBe(0);
  expect([checked.exitCode, checked.stdout]).toEqual([3, checked.stdout]);
  expect(checked.stdout).toContain(`process ${first.pid} on`);
  expect([plain.exitCode, ownPlain.exitCode]).toEqual([3, 0]);
  expect(plain.stdout).toMatch(
    new RegExp(`FAIL +sink disk: file: .*process ${first.pid} on .* writes to it`),
  );
  expect(noteAfter).toBe(noteBefore);
  expect(new Set(whileFirst).size).toBe(350);
});

testSome(1, [
  { what: 'a symbolic link', name: 'soft.ndjson', link: symlinkSync },
  { what: 'a hard link', name: 'hard.ndjson', link: linkSync },
  {
    what: 'a linked directory',
    name: 'there/events.ndjson',
    link: (file: string, path: string) => symlinkSync(join(file, '..'), join(path, '..')),
  },
])('a second process is refused the file by $what', async ({ name, link }) => {
  const setup = await aSetup({ sandbox: { events: 50 } });
  const file = join(setup.dir, 'events.ndjson');
  writeFileSync(file, '');
  link(file, join(setup.dir, name));
  const first = startSluice(['run', '-c', setup.config]);
  await waitUntil(() => setup.delivered().length === 50, { what: '50 events in the file' });

  const checked = await runHere(['check', '--connect', '-c', second(setup, join(setup.dir, name))]);
  const plain = await runHere(['check', '-c', second(setup, join(setup.dir, name))]);
  await first.kill();
  const plainAfter = await runHere(['check', '-c', second(setup, join(setup.dir, name))]);
  const after = await runHere(['check', '--connect', '-c', second(setup, join(setup.dir, name))]);

  expect([checked.exitCode, after.exitCode]).toEqual([3, 0]);
  expect([plain.exitCode, plainAfter.exitCode]).toEqual([3, 0]);
  expect(checked.stdout).toContain(`process ${first.pid} on`);
});

test('one config names a file twice, by a link', async () => {
  const setup = await aSetup();
  mkdirSync(join(setup.dir, 'a'));
  symlinkSync(join(setup.dir, 'a'), join(setup.dir, 'b'));
  const text = readFileSync(setup.config, 'utf8');
  const sink = (name: string) =>
    `  ${name}: { type: file, path: ${join(setup.dir, name, 'events.ndjson')} }\n`;
  writeFileSync(setup.config, text.replace('sinks:\n', `sinks:\n${sink('a')}${sink('b')}`));

  const checked = await runSluice(['check', '-c', setup.config]);

  expect(checked.exitCode).toBe(2);
  expect(checked.stderr).toContain('the sink a uses this path already; give each its own');
});

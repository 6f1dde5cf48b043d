// Access rights of the files that the program writes, with any umask: state (checkpoints, records, cursors) only for
// its own user; output for its user and group, or only for its user with a stricter umask; no access for any other
// user.

import { readdirSync, statSync } from 'node:fs';
import { join, relative } from 'node:path';
import { expect, test } from 'vitest';
import { signingKeyText } from '../../src/archive/note.ts';
import { aSetup } from '../commands/a-setup.ts';
import { startSluice } from '../support/cli.ts';
import { waitUntil } from '../support/temp.ts';

/** Permission bits of everything below a directory and of itself, by kind. */
function modesBelow(dir: string): { readonly files: object; readonly directories: object } {
  const below = readdirSync(dir, { recursive: true }).map((name) => join(dir, String(name)));
  const found = { files: new Map<string, string>(), directories: new Map<string, string>() };
  for (const path of [dir, ...below]) {
    const stat = statSync(path, { throwIfNoEntry: false });
    const kind = stat?.isDirectory() ? found.directories : found.files;
    if (stat) kind.set(relative(dir, path), (stat.mode & 0o777).toString(8));
  }
  return {
    files: Object.fromEntries(found.files),
    directories: Object.fromEntries(found.directories),
  };
}

const all = (modes: object, mode: string) => Object.values(modes).every((given) => given === mode);

test.each([
  { name: '000', umask: 0o000, file: '640', directory: '750' },
  { name: '077', umask: 0o077, file: '600', directory: '700' },
])('with umask $name output is $file, and state 600', async ({ umask, file, directory }) => {
  const { config, dir, stateDir } = await aSetup({
    sinks: [
      '  plain: { type: file, path: out/new/events.ndjson, format: json }',
      '  turned: { type: file, path: out/new/turned.ndjson, format: json, rotate: { bytes: 40KiB }, compress: gzip, batch: { events: 50 } }',
    ],
  });
  const before = process.umask(umask);
  const sluice = startSluice(['run', '-c', config], { cwd: dir });
  process.umask(before);
  const packed = () => Object.keys(modesBelow(join(dir, 'out')).files).filter((n) => /gz$/.test(n));
  await sluice.waitForLine('the stream');
  await waitUntil(() => existing(packed).length > 1, {
    what: 'packed segments',
  });
  const state = modesBelow(stateDir);
  const { exitCode } = await sluice.kill();
  const output = modesBelow(join(dir, 'out'));

  expect(exitCode).toBe(0);
  expect(all(state.files, '600'), JSON.stringify(state)).toBe(true);
  expect(all(state.directories, '700'), JSON.stringify(state)).toBe(true);
  expect(Object.keys(state.files)).toContain('sluice.db-wal');
  // Who writes a file is of no use to other users.
  const { true: owners = [], false: others = [] } = Object.groupBy(
    Object.entries(output.files),
    ([name]) => (name.endsWith('.owner') ? 'true' : 'false'),
  );
  expect(all(Object.fromEntries(owners), '600'), JSON.stringify(owners)).toBe(true);
  expect(all(Object.fromEntries(others), file), JSON.stringify(others)).toBe(true);
  expect(all(output.directories, directory), JSON.stringify(output)).toBe(true);
});

test.each([
  { name: '000', umask: 0o000, file: '640', directory: '750' },
  { name: '077', umask: 0o077, file: '600', directory: '700' },
])('with umask $name an archive and its lake are $file', async ({ umask, file, directory }) => {
  const key = signingKeyText('archive.test', Buffer.alloc(32, 1));
  const { config, dir } = await aSetup({
    sandbox: { events: 40 },
    sinks: [
      '  vault: { type: archive, location: vault/new, signing_key: "${env:KEY}", lake: { every: 1s } }',
    ],
  });
  const before = process.umask(umask);
  const sluice = startSluice(['run', '--once', '-c', config], { cwd: dir, env: { KEY: key } });
  process.umask(before);
  const { exitCode, stderr } = await sluice.exited;
  const archive = modesBelow(join(dir, 'vault'));

  expect([exitCode, stderr]).toEqual([0, expect.anything()]);
  expect(Object.keys(archive.files)).toEqual(
    expect.arrayContaining([
      expect.stringMatching(/checkpoint$/),
      expect.stringMatching(/\.zst$/),
      expect.stringMatching(/\.parquet$/),
    ]),
  );
  // What locks the directory is the process's own.
  const { files } = archive;
  const locks = Object.entries(files).filter(([path]) => path.includes('.sluice/'));
  for (const [, mode] of locks) expect(mode).toBe('600');
  const others = Object.entries(files).filter(([path]) => !path.includes('.sluice/'));
  expect(all(Object.fromEntries(others), file), JSON.stringify(archive)).toBe(true);
  expect(all(archive.directories, directory), JSON.stringify(archive)).toBe(true);
});

/** What may not be there yet. */
function existing(look: () => readonly string[]): readonly string[] {
  try {
    return look();
  } catch {
    return [];
  }
}

// Every shell command of the pages: run as a reader would, or marked with what it needs that is not here. The blocks of
// getting-started.md run in order in one directory, in a real shell.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { type Block, blocksOf, type Page, pages } from '../../docs/generate/page.ts';
import { aSetup } from '../commands/a-setup.ts';
import { unknownIn } from '../deploy/command-line.ts';
import { runHere, runSluice } from '../support/cli.ts';
import { findRsyslog } from '../support/rsyslog-program.ts';
import { tempDir } from '../support/temp.ts';
import { aReader, follow } from './a-reader.ts';

const root = join(import.meta.dirname, '..', '..');
const shell = (page: Page) => blocksOf(page).filter(({ info }) => info === 'sh');
const isRun = ({ comment }: Block) => !/^not run: \S/.test(comment);
const readme: Page = { path: '../README.md', text: readFileSync(join(root, 'README.md'), 'utf8') };
const written = [...pages(), readme];
/** Pages that are run as a whole: the latter in moving.test.ts. */
const ofTheirOwn = ['getting-started.md', 'moving.md'];

test.each(written)(
  '$path: sluice would understand each command, also within a sentence',
  ({ text }) => {
    const commands = [
      ...text.matchAll(/(?:npx sluice|(?<![\w-]|test\/simulation\/)main\.ts) ([^`\n#|&>]*)/g),
    ].map(([, words = '']) => words);

    for (const command of commands) {
      const words = command
        .trim()
        .split(/\s+/)
        .filter((word) => word !== 'COMMAND');
      if (words[0] === '' || words[0] === undefined) continue;
      expect([command, unknownIn(words)]).toEqual([command, []]);
    }
  },
);

describe('the commands run', () => {
  const runnable = pages().filter((page) => shell(page).some(isRun));

  test('of all that have no run of their own, on a config that has run', async () => {
    const { config, dir } = await aSetup({
      sinks: ['  siem: { type: file, path: events.ndjson }'],
    });
    const others = runnable.filter(({ path }) => !ofTheirOwn.includes(path));
    const lines = others.flatMap((page) =>
      shell(page)
        .filter(isRun)
        .flatMap(({ text }) => text.trim().split('\n')),
    );
    const run = ['run', '-c', config, '--once'];
    expect((await runSluice(run, { cwd: dir })).exitCode).toBe(0);

    for (const line of lines) {
      const words = line.replace('sluice.yaml', config).split(' ').slice(2);
      const { exitCode, stderr } = await runHere(words);
      expect([line, exitCode, stderr]).toEqual([line, 0, '']);
    }
    expect(lines.length).toBeGreaterThan(8);
  });

  test('getting-started.md, from nothing to events in rsyslog', async () => {
    const { command, moduleDirs, libraryDirs } = await findRsyslog();
    const rsyslogd = `LD_LIBRARY_PATH=${libraryDirs} exec ${command} -M ${moduleDirs} "$@"`;
    const reader = await aReader(tempDir('reader-'), { rsyslogd });

    await follow(reader, shell(pageOf('getting-started.md')).filter(isRun));

    const events = readFileSync(join(reader.dir, 'events.log'), 'utf8').split('\n').slice(0, -1);
    const other = events.filter((line) => !/^<\d+>1 .* CEF:0\|.*\|cs6=[0-9a-f]{64} /.test(line));
    expect(events.length).toBeGreaterThanOrEqual(200);
    expect(other.slice(0, 2)).toEqual([]);
    expect(reader.said).toContain('"ready":true');
  });
});

function pageOf(path: string): Page {
  const page = pages().find((candidate) => candidate.path === path);
  if (page === undefined) throw new Error(`there is no page ${path}`);
  return page;
}

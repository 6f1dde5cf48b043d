// `sluice archive search --raw`: records as upstream sent them from an archive without a lake.

import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { naiveArchive, writeNaive } from '../support/archive/naive-archive.ts';
import { runHere, runSluice } from '../support/cli.ts';
import { tempDir } from '../support/temp.ts';

const texts = ['{"id": 1.0, "who": "ünï\\u202e"}', '{\n  "id": 2\r\n}', '{"id":1e400}'];
const body = `{"data": [${texts.join(' ,')}],"next":null}`;
const archive = naiveArchive([
  {
    pages: [
      { stream: 'audit', texts, body, kept: [0, 1, 2] },
      { stream: 'audit', records: 0 },
    ],
  },
  { pages: [{ stream: 'logs/a', records: 3, kept: [0, 2] }] },
]);

function anArchive(at = tempDir()) {
  writeNaive(archive, at);
  return at;
}

const [key = ''] = archive.vkeys.slice(-1);

const raw = async (location: string, ...more: readonly string[]) =>
  await runSluice(['archive', 'search', location, '--raw', '--key', key, ...more]);

const linesOf = ({ stdout }: { readonly stdout: string }) => stdout.split('\n').slice(0, -1);

describe('search --raw', () => {
  test('shows each record byte for byte on a line, line breaks between tokens as blanks', async () => {
    const found = await raw(anArchive());

    const [one = '', two = '', three = '', ...others] = linesOf(found);
    expect([one, two, three]).toEqual([texts[0], '{   "id": 2  }', texts[2]]);
    expect(others.map((line) => JSON.parse(line).id)).toEqual(['logs/a-5-0', 'logs/a-5-2']);
    expect(found).toMatchObject({ exitCode: 0, stderr: '' });
  });

  test('takes a stream and a span of the time of reading', async () => {
    const location = anArchive();

    const stream = await raw(location, '--stream', 'logs/a');
    const late = await raw(location, '--from', '2026-01-31T08:01:00Z');
    const early = await raw(location, '--to', '2026-01-31T08:01:00Z');
    const unknown = await raw(location, '--stream', 'logs/b');

    expect(linesOf(stream).length).toBe(2);
    expect(late.stdout).toBe(stream.stdout);
    expect(linesOf(early).length).toBe(3);
    expect(unknown).toMatchObject({ exitCode: 64, stdout: '' });
    expect(unknown.stderr).toContain('did you mean logs/a?');
  });

  test('shows all shards of a location', async () => {
    const root = tempDir();
    anArchive(join(root, '0'));
    anArchive(join(root, '1'));

    expect(linesOf(await raw(root)).length).toBe(10);
  });

  test('fails where a segment is missing, and names it', async () => {
    const location = anArchive();
    rmSync(join(location, 'segments'), { recursive: true });

    const found = await raw(location);

    expect(found.exitCode).toBe(1);
    expect(found.stderr).toMatch(/segments\/.* is missing/);
  });

  test('refuses options that are for events, and --stream without --raw', async () => {
    const location = anArchive();

    for (const more of [
      ['--where', 'true'],
      ['--format', 'cef'],
      ['-c', 'x.yaml'],
    ]) {
      expect((await raw(location, ...more)).exitCode).toBe(64);
    }
    const events = await runSluice(['archive', 'search', location, '--stream', 'audit']);
    expect(events.exitCode).toBe(64);
  });
});

test('search of an archive without a lake and without a config names the missing options, exit code 1', async () => {
  const { exitCode, stderr, stdout } = await runSluice(['archive', 'search', anArchive()]);

  expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: '' });
  expect(stderr).toContain('the archive has no lake');
  expect(stderr).toContain('--raw');
});

test.each([
  ['search', ['--raw'], 1],
  ['prove', ['--uid', '0'.repeat(64)], 1],
  ['reconcile', ['--uids', '/dev/null'], 2],
])('%s of a location without archive says so, and blames no key', async (command, more, code) => {
  const location = tempDir();

  const result = await runHere(['archive', command, location, '--key', key, ...more]);

  expect(result).toMatchObject({ exitCode: code, stdout: '' });
  expect(result.stderr).toContain(`reading the archive at ${location}: there is no archive`);
  expect(result.stderr).toContain('Name the location of an archive.');
  expect(result.stderr).not.toContain('--key');
});

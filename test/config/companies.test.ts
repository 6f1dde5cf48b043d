// `companies: { file: PATH }`: which lines are ids, which files are errors, and that a stored copy of the config has the ids
// that were read.

import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parseCompanies } from '../../src/config/companies.ts';
import { parseConfig } from '../../src/config/config.ts';
import { tempDir } from '../support/temp.ts';
import { aConfig, configEnv, flawLines } from './config-text.ts';

const parse = (text: string) => parseCompanies(Buffer.from(text));

const written = (companies: string, sources?: string) =>
  aConfig({
    upstreams: `  ops: { api: services, base_url: "https://svc.example.com", companies: ${companies}, auth: { client_id: i, client_secret: s, scope: "urn:x" } }`,
    sources: sources ?? '  hosts: { type: hosts, upstream: ops }',
  });
const text = written('{ file: ids.txt }');
const withFile = (content: string) => configEnv({}, { 'ids.txt': content });

describe('a line', () => {
  test.each([
    ['c-1\nc-2\n', ['c-1', 'c-2']],
    ['c-1\nc-2', ['c-1', 'c-2']],
    ['c-1\r\nc-2\r\n', ['c-1', 'c-2']],
    ['\ufeffc-1\nc-2\n', ['c-1', 'c-2']],
    ['c-2\n\n  c-1  \n\tc-3\t\n', ['c-2', 'c-1', 'c-3']],
    ['# all\nc-1 # Acme\nc-2\t# Bolt\n#c-3\n  # none\n', ['c-1', 'c-2']],
    ['c-1\nc-2\nc-1 # again\n', ['c-1', 'c-2']],
    ['c#1\nc 2\nC-1\nc-1\n00123\n1e3\nä/ö\n', ['c#1', 'c 2', 'C-1', 'c-1', '00123', '1e3', 'ä/ö']],
  ])('%j gives %j', (content, ids) => {
    expect(parse(content)).toEqual(ids);
  });

  test.each([
    ['', 'has no company'],
    ['\ufeff \r\n# c-1\n', 'has no company'],
    ['c-1\n..\n', 'in line 2'],
    ['c-1\nc-2\0\n', 'in line 2'],
    ['c-1\tAcme\n', 'in line 1'],
  ])('%j is refused', (content, why) => {
    expect(parse(content)).toContain(why);
  });

  test('text in another encoding is refused', () => {
    expect(parseCompanies(Buffer.from('c-1\n', 'utf16le'))).toContain('in line 1');
    expect(parseCompanies(Buffer.from([0x63, 0xe4, 0x0a]))).toContain('not UTF-8');
  });
});

test('each id of the file has its streams, and the stored copy of the config has the ids', () => {
  const config = parseConfig(text, 'c.yaml', withFile('c-1\n${env:X}\nc-1\n'));
  const again = parseConfig(JSON.stringify(config.kept), 'c.yaml', configEnv());

  expect(config.upstreams.ops?.companies).toEqual(['c-1', '${env:X}']);
  expect(config.upstreams.ops?.companiesFile?.path).toBe('ids.txt');
  expect(again.upstreams.ops?.companies).toEqual(['c-1', '${env:X}']);
  expect(again.upstreams.ops?.companiesFile).toBeUndefined();
});

test.each([
  ['# none\n', 'has no company'],
  ['c-1\n.\n', 'in line 2'],
])('a file with %j is one error at its path', (content, why) => {
  const flaws = flawLines(text, withFile(content));

  expect(flaws).toEqual([expect.stringContaining('upstreams.ops.companies.file: ')]);
  expect(flaws[0]).toContain('ids.txt');
  expect(flaws[0]).toContain(why);
});

test('a missing file is one error, and with --without-secrets a note', () => {
  const config = parseConfig(text, 'c.yaml', { ...configEnv(), placeholders: 'all' });

  expect(flawLines(text)).toEqual([
    expect.stringMatching(/upstreams\.ops\.companies\.file: .*ids\.txt.*no such file/),
  ]);
  expect(config.notices.slice(0, 1)).toMatchObject([{ path: 'upstreams.ops.companies.file' }]);
});

test('a list, a file and nothing else', () => {
  expect(flawLines(written('{ path: ids.txt }'))[0]).toContain('companies');
  expect(flawLines(written('{ file: ids.txt, more: 1 }'), withFile('c\n'))[0]).toContain('more');
  expect(flawLines(written('ids.txt'))[0]).toContain('upstreams.ops.companies: ');
  expect(flawLines(written('[a, a]'))[0]).toContain('each company may be here once');
});

test('a pipe or a device as the file is an error, and blocks nothing', () => {
  const pipe = join(tempDir('companies-'), 'ids');
  expect(spawnSync('mkfifo', [pipe]).status).toBe(0);

  for (const path of [pipe, '/dev/zero']) {
    const parse = () => parseConfig(written(`{ file: ${path} }`), 'c.yaml', { env: {} });
    expect(parse).toThrow('it is a pipe, a device or a socket');
  }
});

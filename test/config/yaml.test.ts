// The text of a config: YAML 1.2 with locations, and the errors for YAML that cannot be read, or not safely.

import { expect, test } from 'vitest';
import { ConfigError, parseConfig, readConfig } from '../../src/config/config.ts';
import { tempDir } from '../support/temp.ts';
import { aConfig, configEnv, flawLines } from './config-text.ts';

test.each([
  ['', 'c.yaml: the config is empty; it needs upstreams, sources and sinks'],
  ['# only a comment\n', 'c.yaml: the config is empty'],
  ['just text', 'c.yaml:1:1: a config is a mapping'],
  ['- a\n- b\n', 'c.yaml:1:1: a config is a mapping'],
  ['state: {\n', 'c.yaml:1:8: this { is not closed'],
  ['state: { dir: [a, b\nlog: { level: info }\n', 'c.yaml:1:15: this [ is not closed'],
  ['state: "a\n', 'c.yaml:1:8: this " is not closed'],
  ["state:\n  dir: 'a\nlog:\n  level: info\n", "c.yaml:2:8: this ' is not closed"],
  ['state:\n  dir: a\n    sync: full\n', 'c.yaml:3:5: this line is indented deeper'],
  ['state:\n  dir: {}\n  - x\n', 'c.yaml:3:1: a list cannot be among keys'],
  ['state:\n  dir\n  sync: full\n', 'c.yaml:2:3: a key must be on one line'],
  ['state: [}\n', 'c.yaml:1:8: this [ is not closed'],
  ['state:\n\tdir: x\n', 'indentation is made of blanks, not tabs'],
  ['state: a: b\n', 'c.yaml:1:8: a second ": " in one line'],
  ['state: { dir: a max_bytes: 1 }\n', 'c.yaml:1:15: a second ": " within [ ] or { }'],
  ['state: { dir: "a\\qb" }\n', 'unknown escape in double quotes'],
  ['state: { dir: @x }\n', 'c.yaml:1:15: a value cannot begin with this character'],
  ['a: 1\n---\nb: 2\n', 'a config is one document'],
  [
    'state: { dir: *nowhere }\n',
    'c.yaml:1:15 state.dir: this alias (*name) has no anchor (&name) before it',
  ],
  ['state: &a { dir: *a }\n', 'c.yaml:1:18 state.dir: this alias (*name) is inside its own anchor'],
  ['state: { __proto__: { dir: x } }\n', 'c.yaml:1:10 state: a key cannot be called __proto__'],
  ['state: { [a]: b }\n', 'c.yaml:1:10 state: a key must be text'],
  ['\ud800', 'c.yaml: the file is not well-formed Unicode text'],
])('parseConfig reports the text %j', (text, flaw) => {
  expect(flawLines(text)).toContainEqual(expect.stringContaining(flaw));
});

test('parseConfig reports one flaw a line of broken YAML, not the chain that follows', () => {
  expect(flawLines(aConfig({ top: 'state: ]a: {b: ]}, c: d\n' }))).toHaveLength(1);
});

test('parseConfig reports a duplicate key beside all else', () => {
  const lines = flawLines(aConfig({ top: 'log: { level: info, level: debug }\nbogus: 1' }));

  expect(lines).toEqual([
    'c.yaml:1:21 log.level: this key is here a second time',
    expect.stringContaining('c.yaml:2:1 bogus: unknown key'),
  ]);
});

test('parseConfig refuses tags, which look as if a secret were looked up', () => {
  const lines = flawLines(aConfig({ top: 'status: { listen: "h:1", token: !secret abc }' }));

  expect(lines).toEqual([
    'c.yaml:1:33: unknown tag; secrets are written ${env:NAME}, ${file:/path} or ${exec:COMMAND}, without !',
  ]);
});

test('parseConfig follows aliases, and reports flaws in their values', () => {
  const sinks =
    '  a: { type: file, path: a, retry: &slow { min: 1m } }\n' +
    '  b: { type: file, path: b, retry: *slow, batch: &bad { evnts: 1 } }\n' +
    '  c: { type: file, path: c, batch: *bad }';

  const lines = flawLines(aConfig({ sinks }));
  const good = parseConfig(
    aConfig({ sinks: sinks.replaceAll('evnts', 'events') }),
    'c',
    configEnv(),
  );

  expect(lines).toEqual([
    'c.yaml:8:57 sinks.b.batch.evnts: unknown key; did you mean events?',
    'c.yaml:8:57 sinks.c.batch.evnts: unknown key; did you mean events?',
  ]);
  expect(good.sinks.b?.retry.minMs).toBe(60_000);
  expect(good.sinks.c?.batch.events).toBe(1);
});

test('parseConfig keeps words that YAML 1.1 would have taken for something else', () => {
  const config = parseConfig(aConfig({ top: 'state: { dir: yes }' }), 'c.yaml', configEnv());

  expect(config.state.dir).toBe(`${process.cwd()}/yes`);
});

test('parseConfig stops at an alias bomb', () => {
  const levels = Array.from({ length: 12 }, (_, i) => {
    const inner = i === 0 ? '"x"' : `*l${i - 1}`;
    return `l${i}: &l${i} [${Array.from({ length: 10 }, () => inner).join(', ')}]`;
  });

  expect(flawLines(levels.join('\n'))).toEqual([
    'c.yaml: the file holds more than 200000 values, aliases counted',
  ]);
});

test.each([
  ['{ within {', '{a: ', '}'],
  ['[ within [', '[', ']'],
])('parseConfig stops at depth, %s', (_, open, close) => {
  for (const depth of [60, 3_000]) {
    const lines = flawLines(`state: ${open.repeat(depth)}1${close.repeat(depth)}`);

    expect(lines).toContainEqual(expect.stringContaining('nested too deeply'));
  }
});

test('parseConfig reads thousands of entries without going over them again and again', () => {
  const companies = Array.from({ length: 20_000 }, (_, i) => `company-${i}`);
  const upstreams =
    '  edge: { api: unified, base_url: "https://api.example.com/v1", auth: { api_key: k } }\n' +
    `  ops: { api: services, base_url: "https://s", companies: [${companies.join(', ')}],` +
    ' auth: { client_id: i, client_secret: s, scope: u } }';

  const config = parseConfig(aConfig({ upstreams }), 'c.yaml', configEnv());

  expect(config.upstreams.ops?.companies).toHaveLength(20_000);
});

test('ConfigError has each flaw with its location, and none if there is none', () => {
  let caught: unknown;
  try {
    parseConfig('state: { dirr: x }', 'my config.yaml', configEnv());
  } catch (error) {
    caught = error;
  }

  expect(caught).toBeInstanceOf(ConfigError);
  expect(caught).toMatchObject({
    code: 'config_invalid',
    fault: 'config',
    next: expect.stringContaining("npx sluice check -c 'my config.yaml'"),
  });
  expect((caught as ConfigError).flaws).toContainEqual({
    line: 1,
    column: 10,
    path: 'state.dirr',
    message: 'unknown key; did you mean dir?',
  });
  expect((caught as ConfigError).flaws[0]).toMatchObject({ line: 0, column: 0 });
});

test('readConfig says why a file cannot be read', () => {
  const dir = tempDir();

  expect(() => readConfig(`${dir}/none.yaml`)).toThrow(
    'none.yaml: the config cannot be read: there is no such file; `sluice init` writes one, -c names another',
  );
  expect(() => readConfig(dir)).toThrow('it is a directory');
});

test('readConfig refuses text that is not UTF-8 and accepts a byte order mark', () => {
  const read = (bytes: Uint8Array) => () =>
    readConfig('c.yaml', { env: {}, readFile: () => bytes });

  expect(read(Buffer.from([0xff, 0xfe, 0x41]))).toThrow(
    'c.yaml: the config is not UTF-8 text; save it as UTF-8',
  );
  expect(read(Buffer.from(`\ufeff${aConfig()}`))().sinks.screen).toBeDefined();
});

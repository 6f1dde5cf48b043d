// Configs whose references have no value here: with --without-secrets each counts as right, and without it each is
// exactly one error, whatever else depends on the value.

import { expect, test } from 'vitest';
import { isMap, isPair, parseDocument, visit } from 'yaml';
import { ConfigError, parseConfig, type Surroundings } from '../../src/config/config.ts';
import { placeholderWord } from '../../src/config/placeholders.ts';
import { planFrom } from '../../src/run/plan.ts';
import { planMeans } from '../run/plan-deps.ts';
import { runHere } from '../support/cli.ts';
import { aConfig, configEnv, flawLines } from './config-text.ts';
import { publishedConfigs } from './published-yaml.ts';

const published = publishedConfigs();
const files = published.filter(({ name }) => name.endsWith('.yaml'));

test('there are configs of config/, docs/ and deploy/', () => {
  const folders = new Set(published.map(({ name }) => name.split('/')[0]));

  expect([...folders]).toEqual(expect.arrayContaining(['config', 'docs', 'deploy']));
});

test.each(files)(
  '`check --without-secrets` accepts $name, and shows no placeholder',
  async ({ name }) => {
    const { exitCode, stdout, stderr } = await runHere(['check', '--without-secrets', '-c', name]);

    expect(stderr).toBe('');
    expect(exitCode).toBe(0);
    expect(stdout).not.toContain(placeholderWord);
  },
);

test.each(['--connect', '--setup', '--send-test'])(
  '--without-secrets refuses %s',
  async (option) => {
    const args = ['check', '--without-secrets', option, '-c', 'config/s3.yaml'];
    const { exitCode, stderr } = await runHere(args);

    expect(exitCode).toBe(64);
    expect(stderr).toContain(`--without-secrets and ${option} do not go together`);
  },
);

const nothing = configEnv();

/** References of a text that have neither a value nor a default, as they are written. */
function unsetIn(text: string): readonly string[] {
  const own = text.replace(/(^|\s)#.*$/gm, '');
  const found = own.matchAll(/(?<!\$)\$\{(?:env:\w+|file:[^}]+)\}/g);
  return Array.from(found, ([reference]) => reference);
}

test.each(published)('each unset reference of $name is exactly one error', ({ text }) => {
  const flaws = flawLines(text, nothing).filter((line) => !line.includes('.tls.'));

  expect(flaws).toHaveLength(unsetIn(text).length);
  for (const flaw of flaws) expect(flaw).toMatch(/is not set|cannot be read/);
});

/** The values of a text in their order: by the keys above each, and what has a type by that as well. */
function pathsOf(text: string): readonly string[] {
  const paths: string[] = [];
  visit(parseDocument(text), {
    Scalar(key, _, parents) {
      if (key === 'key') return;
      const names = parents.flatMap((one) => {
        if (isPair(one)) return [String(one.key)];
        return isMap(one) && one.has('type') ? [`(${one.get('type')})`] : [];
      });
      paths.push(names.join('.'));
    },
  });
  return paths;
}

/** Paths that were tried, in this config or one before it. */
const tried = new Set<string>();

/** Each text with one of its values replaced by a reference; SLUICE_TEST_LONG=1 also replaces those with a known path. */
function* withOneUnset(text: string): Generator<{ readonly path: string; readonly text: string }> {
  for (const [requested, path] of pathsOf(text).entries()) {
    if (tried.has(path) && process.env.SLUICE_TEST_LONG !== '1') continue;
    tried.add(path);
    const document = parseDocument(text);
    let at = 0;
    visit(document, {
      Scalar(key, node) {
        if (key === 'key' || at++ !== requested) return;
        node.value = '${env:THE_UNSET_ONE}';
        node.type = 'QUOTE_DOUBLE';
      },
    });
    yield { path, text: String(document) };
  }
}

test.each(files)('any one value of $name may be unset', ({ text }) => {
  const set: Surroundings = { ...nothing, placeholders: 'all' };
  for (const one of withOneUnset(text)) {
    const config = configOf(one.text, set);
    if (config instanceof ConfigError) expect.fail(`${one.path}: ${config.message}`);
    if (!one.path.endsWith('.type')) planFrom(config, planMeans());

    const unset = flawLines(one.text, { ...nothing, env: valuesOf(text) }).filter(
      (line) => line.includes('THE_UNSET_ONE') || !/ file .* cannot be read/.test(line),
    );
    expect([one.path, ...unset]).toEqual([
      one.path,
      expect.stringContaining('the environment variable THE_UNSET_ONE is not set'),
    ]);
  }
});

function configOf(text: string, surroundings: Surroundings) {
  try {
    return parseConfig(text, 'c.yaml', surroundings);
  } catch (error) {
    if (error instanceof ConfigError) return error;
    throw error;
  }
}

function valuesOf(text: string): Record<string, string> {
  const names = [...text.matchAll(/\$\{env:(\w+)\}/g)].map(([, name = '']) => name);
  return Object.fromEntries(
    names.map((name) => [name, /URL/.test(name) ? 'https://x.example/v1' : name.toLowerCase()]),
  );
}

test('a part of a text, and several references in one, are one error each', () => {
  const text = aConfig({ top: 'state: { dir: "/a/${env:ONE}/${file:/two}" }' });

  expect(flawLines(text, configEnv())).toEqual([
    expect.stringMatching(/state\.dir: the environment variable ONE is not set/),
    expect.stringMatching(/state\.dir: the file \/two cannot be read/),
  ]);
});

test('a default is used, and judged', () => {
  const text = aConfig({ top: 'log: { level: "${env:LEVEL:-lowd}" }' });

  const error = configOf(text, { ...configEnv({ LEVEL: 'info' }), placeholders: 'all' });

  expect(String(error)).toMatch(/log\.level: .*\$\{env:LEVEL\}/);
});

test('a flaw beside an unset reference is reported as well', () => {
  const text = aConfig({ top: 'state: { dir: "${env:ONE}", kep: 1h }' });

  expect(flawLines(text, { ...configEnv(), placeholders: 'all' })).toEqual([
    expect.stringMatching(/state\.kep: unknown key; did you mean keep\?/),
  ]);
});

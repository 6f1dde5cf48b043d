// One number for everything that is released, and the changelog that the release command joins from fragments.

import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import {
  fragmentNames,
  fragmentOf,
  joined,
  newestVersion,
} from '../../deploy/release/changelog.ts';
import { tempDir } from '../support/temp.ts';

const root = join(import.meta.dirname, '../..');
const read = (path: string) => readFileSync(join(root, path), 'utf8');
const { version } = JSON.parse(read('package.json'));

test('the version is the newest of the changelog, and that of chart, lockfile and examples', () => {
  const chart = parse(read('deploy/helm/Chart.yaml'));
  const lock = JSON.parse(read('package-lock.json'));

  expect(newestVersion(read('CHANGELOG.md'))).toBe(version);
  expect([chart.version, chart.appVersion]).toEqual([version, version]);
  expect([lock.version, lock.packages[''].version]).toEqual([version, version]);
  expect(parse(read('deploy/kubernetes/kustomization.yaml')).images[0].newTag).toBe(version);
  const named = [
    'README.md',
    'deploy/compose/compose.yaml',
    'deploy/helm/README.md',
    'docs/deploying.md',
  ].flatMap((path) =>
    [...read(path).matchAll(/\bsluice(?:-chart)?[-:_](\d+\.\d+\.\d+)/g)].map(
      ([, one]) => `${path} ${one}`,
    ),
  );
  expect(named.length).toBeGreaterThan(5);
  expect(named.filter((one) => !one.endsWith(` ${version}`))).toEqual([]);
});

test('each fragment of the checkout is well formed', () => {
  const fragments = fragmentNames().map((name) => fragmentOf(name, read(`changelog.d/${name}`)));

  expect(fragments).toHaveLength(fragmentNames().length);
});

describe('`npm run changelog`', () => {
  function inACheckout(fragments: Readonly<Record<string, string>>) {
    const dir = tempDir();
    for (const part of ['package.json', 'CHANGELOG.md', 'src', 'deploy/release']) {
      cpSync(join(root, part), join(dir, part), { recursive: true });
    }
    symlinkSync(join(root, 'node_modules'), join(dir, 'node_modules'));
    mkdirSync(join(dir, 'changelog.d'));
    for (const [name, text] of Object.entries({ 'README.md': 'How.', ...fragments })) {
      writeFileSync(join(dir, 'changelog.d', name), text);
    }
    const args = [join(dir, 'deploy/release/changelog.ts')];
    const { status, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' });
    const left = readdirSync(join(dir, 'changelog.d')).toSorted();
    return { status, stderr, left, text: readFileSync(join(dir, 'CHANGELOG.md'), 'utf8') };
  }

  test('writes the fragments into the section of the version, and removes them', () => {
    const { status, stderr, left, text } = inACheckout({ 'canary.fixed.md': 'A canary sings.\n' });

    expect(status, stderr).toBe(0);
    expect(left).toEqual(['README.md']);
    expect(newestVersion(text)).toBe(version);
    expect(text.split(/^## /m)[1]).toContain('\n- A canary sings.\n');
  });

  test('changes nothing if a fragment is refused', () => {
    const wrong = { 'a.fixed.md': 'A canary sings.', 'b.feature.md': 'Text.' };
    const { status, stderr, left, text } = inACheckout(wrong);

    expect(status).toBe(1);
    expect(stderr).toContain('changelog.d/b.feature.md');
    expect(left).toEqual(['README.md', 'a.fixed.md', 'b.feature.md']);
    expect(text).toBe(read('CHANGELOG.md'));
  });
});

describe('joining fragments', () => {
  const before = `# Changelog

Text.

## 0.2.0

### Added
- One thing.

### Fixed
- A fault.

## 0.1.0

First version.
`;

  test('adds to the section of the version, and creates missing parts in order', () => {
    const fragments = [
      fragmentOf('b.added.md', 'Two things,\nin two lines.\n'),
      fragmentOf('c.changed.md', 'Another behaviour.\n'),
      fragmentOf('a.breaking.md', 'A key goes. Upgrade: write another one.\n'),
    ];

    expect(joined(before, fragments, '0.2.0')).toBe(`# Changelog

Text.

## 0.2.0

### Breaking
- A key goes. Upgrade: write another one.

### Added
- One thing.
- Two things,
  in two lines.

### Changed
- Another behaviour.

### Fixed
- A fault.

## 0.1.0

First version.
`);
  });

  test('creates the section of a new version above the others', () => {
    const text = joined(before, [fragmentOf('d.fixed.md', 'A fault less.')], '0.3.0');

    expect(newestVersion(text)).toBe('0.3.0');
    expect(text).toContain('## 0.3.0\n\n### Fixed\n- A fault less.\n\n## 0.2.0\n');
    expect(text.replace(/## 0\.3\.0[\s\S]*?(?=## 0\.2\.0)/, '')).toBe(before);
  });

  test.each([
    ['a.feature.md', 'Text.', 'kinds: breaking'],
    ['a b.added.md', 'Text.', 'TOPIC.KIND.md'],
    ['a.added.md', '- Text.', 'without a list mark'],
    ['a.added.md', '', 'one or two sentences'],
    ['a.breaking.md', 'A key goes.', 'Upgrade: '],
  ])('refuses %s with %j', (name, content, reason) => {
    expect(() => fragmentOf(name, content)).toThrow(reason);
  });
});

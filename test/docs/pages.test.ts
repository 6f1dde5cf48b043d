// The pages of docs/ and the READMEs as their readers find them: fresh, whole, with links that lead somewhere and configs
// that can be copied.

import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { sinks } from '../../connectors/index.ts';
import { sources } from '../../connectors/sources/index.ts';
import { blocksOf, isConfig, type Page, pages, readExample } from '../../docs/generate/page.ts';
import { filled } from '../../docs/generate.ts';
import { formats } from '../../formats/index.ts';
import { readTests } from '../../src/config/tests.ts';
import { planFrom } from '../../src/run/plan.ts';
import { planMeans } from '../run/plan-deps.ts';

const docs = join(import.meta.dirname, '..', '..', 'docs');
const all = pages();
const root = join(docs, '..');
const ofCode = globSync('src/**/README.md', { cwd: root }).toSorted();
const readmes = ['README.md', 'CONTRIBUTING.md', 'deploy/README.md', ...ofCode].map(
  (path): Page => ({ path: `../${path}`, text: readFileSync(join(root, path), 'utf8') }),
);
/** READMEs of hard mechanisms: a diagram, and a table that leads from each of its parts to the code. */
const mechanisms = ['list', 'cluster', 'archive', 'transcode'].map(
  (name) => `../src/${name}/README.md`,
);

test.each(all)('$path is fresh; else run: npx node docs/generate.ts', (page) => {
  expect(filled(page)).toBe(page.text);
});

test('each source, sink and format has its page, with its facts and settings', () => {
  const listed = [
    ...sources.map(({ type }) => `sources/${type}.md`),
    ...sinks.map(({ type }) => `sinks/${type}.md`),
    ...formats.map(({ type }) => `formats/${type}.md`),
  ];
  const written = all.filter(
    ({ path }) => /^(sources|sinks|formats)\//.test(path) && !path.endsWith('README.md'),
  );

  expect(written.map(({ path }) => path).toSorted()).toEqual(listed.toSorted());
  for (const { path, text } of written) {
    for (const part of ['facts', 'settings']) {
      expect([path, text]).toEqual([path, expect.stringContaining(`<!-- generated: ${part} -->`)]);
    }
  }
});

test('the index leads to every page', () => {
  const index = all.find(({ path }) => path === 'README.md')?.text ?? '';
  const recipes = all.find(({ path }) => path === 'recipes/README.md')?.text ?? '';
  const linked = new Set([
    ...linksOf(index),
    ...linksOf(recipes).map((link) => join('recipes', link)),
    'README.md',
  ]);

  expect(all.map(({ path }) => path).filter((path) => !linked.has(path))).toEqual([]);
});

/** Lines of a diagram that Mermaid would refuse: of states, or of a sequence. */
function badLinesOf(diagram: string): readonly string[] {
  const [kind = '', ...lines] = diagram.trim().split('\n');
  if (kind === 'sequenceDiagram') return badStepsOf(lines);
  const isTransition = (line: string) => /^ {2}(\[\*\]|\w+) --> (\[\*\]|\w+) : [^:;#]+$/.test(line);
  return [
    ...(kind === 'stateDiagram-v2' ? [] : [kind]),
    ...lines.filter((line) => !isTransition(line)),
  ];
}

/** Lines that are no step between declared participants, and blocks without an end or a start. */
function badStepsOf(lines: readonly string[]): readonly string[] {
  const names = new Set<string>();
  let depth = 0;
  const isStep = (line: string): boolean => {
    const [, participant] = /^participant (\w+)(?: as [^:;#]+)?$/.exec(line) ?? [];
    if (participant !== undefined) return names.size < names.add(participant).size;
    const [, from = '', to = ''] =
      /^(\w+)--?>>(\w+): [^:;#]+$/.exec(line) ??
      /^Note over (\w+)(?:,(\w+))?: [^:;#]+$/.exec(line) ??
      [];
    if (from !== '') return names.has(from) && (to === '' || names.has(to));
    if (/^(alt|opt|loop) [^:;#]+$/.test(line)) depth += 1;
    else if (line === 'end') depth -= 1;
    else return depth > 0 && /^else [^:;#]+$/.test(line);
    return depth >= 0;
  };
  const bad = lines.filter((line) => !isStep(line.trim()));
  return depth === 0 ? bad : [...bad, `${depth} blocks without an end`];
}

function linksOf(text: string): readonly string[] {
  // What stands in code leads nowhere.
  const prose = text.replace(/^```[\s\S]*?^```$/gm, '').replace(/`[^`\n]*`/g, '`');
  return [...prose.matchAll(/\]\(([^)\s]+)\)/g)].map(([, link = '']) => link);
}

describe.each([...all, ...readmes])('$path', ({ path, text }) => {
  const page = { path, text };

  test('has links that lead somewhere', () => {
    const dead = linksOf(text).filter((link) => {
      if (/^https?:/.test(link)) return false;
      const [file = '', anchor] = link.split('#');
      const target = file === '' ? join(docs, path) : join(docs, dirname(path), file);
      if (!existsSync(target)) return true;
      return anchor !== undefined && !anchorsOf(readFileSync(target, 'utf8')).has(anchor);
    });

    expect(dead).toEqual([]);
  });

  test('has configs that pass check', () => {
    for (const { text: example } of blocksOf(page).filter(isConfig)) {
      const config = readExample(example, path);

      // An example's secret may be a single character as a placeholder.
      const notices = config.notices.filter(({ message }) => !/is plain text/.test(message));
      expect(notices).toEqual([]);
      expect(() => planFrom(config, planMeans())).not.toThrow();
    }
  });

  test('has sources that pass check', () => {
    for (const { text: inside } of blocksOf(page).filter(({ info }) => info === 'yaml sources')) {
      const upstream =
        'api: services, base_url: "https://svc.example.com", auth: { client_id: a, client_secret: b, scope: c }';
      const lines = inside.replaceAll(/^/gm, '  ').trimEnd();
      const config = `upstreams: { ops: { ${upstream} } }\nsources:\n${lines}\nsinks: { out: { type: stdout } }\n`;

      expect(() => planFrom(readExample(config, path), planMeans())).not.toThrow();
    }
  });

  test('names the language of each other block', () => {
    for (const { info, text: inside } of blocksOf(page)) {
      expect(info).toMatch(/^(yaml|yaml \w+|json|sh|text|ini|mermaid)$/);
      if (info.startsWith('yaml ')) expect(() => parse(inside)).not.toThrow();
      if (info === 'json') expect(() => JSON.parse(inside)).not.toThrow();
      if (info === 'mermaid') expect(badLinesOf(inside)).toEqual([]);
    }
  });

  test('has tests of mappings that are read', () => {
    for (const { text: tests } of blocksOf(page).filter(({ info }) => info === 'yaml tests')) {
      const configEnv = { env: {}, readFile: () => Buffer.from(tests) };

      expect(readTests('tests.yaml', configEnv).tests.length).toBeGreaterThan(0);
    }
  });

  test('names no machine of ours', () => {
    expect(text).not.toMatch(/\/work\/|\/tmp\/team/);
  });
});

/** Headings as GitHub turns them into anchors. */
function anchorsOf(text: string): ReadonlySet<string> {
  const headings = text.matchAll(/^#+ (.*)$/gm);
  return new Set(
    Array.from(headings, ([, heading = '']) =>
      heading
        .toLowerCase()
        .replace(/[^\p{L}\p{N} _-]/gu, '')
        .replaceAll(' ', '-'),
    ),
  );
}

test('a recipe that was not tested on the real system says so in its first paragraph', () => {
  const recipes = all.filter(({ path }) => /^recipes\/(?!README|rsyslog|opentelemetry)/.test(path));

  for (const { path, text } of recipes) {
    expect([relative('recipes', path), text]).toEqual([
      relative('recipes', path),
      expect.stringMatching(
        /^# .*\n\n(?:.|\n(?!\n))*not tested(?:.|\n(?!\n))*\(\[tests\]\(README\.md\)\)/,
      ),
    ]);
  }
});

test('each state of the archive’s writer in the diagram has its row, and no other', () => {
  const text = all.find(({ path }) => path === 'archive.md')?.text ?? '';
  const [, diagram = ''] = /```mermaid\n([^`]*)```/.exec(text) ?? [];
  const states = new Set([...diagram.matchAll(/(\w+) (?:-->|:)/g)].map(([, state]) => state));
  const rows = [...text.matchAll(/^\| `([A-Z]\w+)` \| /gm)].map(([, state]) => state);

  expect(rows.length).toBeGreaterThan(5);
  expect(new Set(rows)).toEqual(states);
});

describe.each(mechanisms)('%s', (path) => {
  const page = readmes.find((one) => one.path === path) ?? { path, text: '' };
  const diagrams = blocksOf(page).filter(({ info }) => info === 'mermaid');
  const parts = partsOf(diagrams[0]?.text ?? '');
  const rows = [...page.text.matchAll(/^\| `(\w+)` \| .* \| `([\w./-]+)` `(\w+)` \|$/gm)].map(
    ([, part = '', file = '', name = '']) => ({ part, file, name }),
  );

  test('has one diagram, and at most 120 lines', () => {
    expect(diagrams.length).toBe(1);
    expect(page.text.split('\n').length).toBeLessThanOrEqual(121);
  });

  test('has a row for each part of its diagram, and no other', () => {
    expect(parts.length).toBeGreaterThan(5);
    expect(rows.map(({ part }) => part).toSorted()).toEqual(parts.toSorted());
  });

  test('has rows that lead to code that is there', () => {
    const isThere = (file: string, name: string) =>
      [join(root, 'src', file), join(root, file)]
        .filter(existsSync)
        .some((at) => new RegExp(`\\b${name}\\b`).test(readFileSync(at, 'utf8')));

    expect(rows.filter(({ file, name }) => !isThere(file, name))).toEqual([]);
  });

  test.each(['src/README.md', 'docs/architecture.md'])('is linked from %s', (from) => {
    const text = readFileSync(join(root, from), 'utf8');
    const linked = linksOf(text).map((link) => join(dirname(from), link));

    expect(linked).toContain(join('docs', path));
  });
});

/** The states or participants of a diagram. */
function partsOf(diagram: string): readonly string[] {
  const participants = [...diagram.matchAll(/^ *participant (\w+)/gm)].map(([, name = '']) => name);
  const states = [...diagram.matchAll(/(\w+)(?= -->| : )/g)].map(([, name = '']) => name);
  return participants.length > 0 ? participants : [...new Set(states)];
}

// The words of sluice against the dictionary. Pages, messages, help and alerts have none of its left column, and few
// `what` and `it`. Pages and packages that are not clean yet are listed in exceptions.json with their counts. Invariant:
// a count may fall and not rise; everything not listed is clean.

import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { isToRename, wordsIn } from './dictionary.ts';
import { densityOf, hashCommentsOf, partsOfFile, proseOf, proseOfHtml } from './texts.ts';

/** The counts of one page, message set or package. */
export type Counts = Readonly<Record<string, number>>;

/** exceptions.json. */
export interface Exceptions {
  /** By page: dictionary words, and the densities of `what` and `it`. */
  readonly pages: Readonly<Record<string, Counts>>;
  /** By package: dictionary words in strings, comments and identifiers. */
  readonly packages: Readonly<Record<string, Counts>>;
  /** By folder of tests or tools: dictionary words in comments and in names of tests. */
  readonly tests: Readonly<Record<string, Counts>>;
}

/** Per 1,000 words of a page. */
const densityMax = { what: 2, it: 8 } as const;
/** A short page has too few words for a density: so many are always right. */
const countMin = { what: 1, it: 3 } as const;

const root = join(import.meta.dirname, '..', '..');

/** The counts of everything, clean or not, and each finding as text. */
export function measured() {
  const findings: string[] = [];
  const pages: Record<string, Counts> = {};
  for (const path of pagePaths()) {
    const prose = proseOf(read(path));
    pages[path] = { words: countIn(prose, path, findings), ...densities(prose) };
  }
  for (const path of ['deploy/prometheus/alerts.yaml', 'deploy/grafana/dashboard.json']) {
    pages[path] = { words: countIn(visibleIn(path), path, findings) };
  }
  const statusPage = 'src/watch/page/index.html';
  pages[statusPage] = { words: countIn(proseOfHtml(read(statusPage)), statusPage, findings) };
  const packages: Record<string, { strings: number; comments: number; identifiers: number }> = {};
  for (const path of sourcePaths()) {
    const counts = packages[packageOf(path)] ?? { strings: 0, comments: 0, identifiers: 0 };
    packages[packageOf(path)] = counts;
    const { strings, comments, identifiers } = partsOfFile(read(path));
    // A string without a blank is a name, not a text.
    for (const { line, text } of strings) {
      if (/\S\s+\S/.test(text)) counts.strings += countIn(text, `${path}:${line}`, findings);
    }
    // In backticks a comment has names of code, as a page has.
    for (const { text } of comments) counts.comments += wordsIn(proseOf(text)).length;
    counts.identifiers += [...identifiers].filter((name) =>
      isToRename(name, packageOf(path)),
    ).length;
  }
  for (const path of commentedPaths()) {
    pages[path] = { words: countIn(proseOf(hashCommentsOf(read(path))), path, findings) };
  }
  const tests = testCounts(findings);
  return { pages, packages, tests, findings };
}

/** The measures above their limit; empty: none. */
export function flawsOf(
  { pages, packages, tests }: Record<'pages' | 'packages' | 'tests', Record<string, Counts>>,
  allowed: Exceptions,
): readonly string[] {
  return [
    ...worse(pages, allowed.pages, { what: densityMax.what, it: densityMax.it }),
    ...worse(packages, allowed.packages, {}),
    ...worse(tests, allowed.tests, {}),
  ];
}

/** Comments and test names of test/, bench/ and docs/generate, by folder. */
function testCounts(findings: string[]): Record<string, Counts> {
  const folders: Record<string, { comments: number; names: number }> = {};
  for (const path of testPaths()) {
    const counts = folders[folderOf(path)] ?? { comments: 0, names: 0 };
    folders[folderOf(path)] = counts;
    const { comments, tests } = partsOfFile(read(path));
    for (const { line, text } of comments) {
      // Benches and torture runs have rounds.
      const prose = /^bench|torture/.test(path) ? text.replace(/\brounds?\b/gi, '') : text;
      counts.comments += countIn(proseOf(prose), `${path}:${line}`, findings);
    }
    for (const { line, text } of tests) counts.names += countIn(text, `${path}:${line}`, findings);
  }
  return folders;
}

/** The exceptions that these measures need, and no more. */
export function neededFor(measures: ReturnType<typeof measured>): Exceptions {
  const kept = (all: Record<string, Counts>, free: Counts) =>
    Object.fromEntries(
      Object.entries(all).flatMap(([name, counts]) => {
        const over = Object.entries(counts).filter(([key, count]) => count > (free[key] ?? 0));
        return over.length === 0 ? [] : [[name, Object.fromEntries(over)]];
      }),
    );
  const { pages, packages, tests } = measures;
  return {
    pages: kept(pages, densityMax),
    packages: kept(packages, {}),
    tests: kept(tests, {}),
  };
}

function worse(
  all: Record<string, Counts>,
  allowed: Readonly<Record<string, Counts>>,
  free: Counts,
): string[] {
  return Object.entries(all).flatMap(([name, counts]) =>
    Object.entries(counts).flatMap(([key, count]) => {
      const most = Math.max(allowed[name]?.[key] ?? 0, free[key] ?? 0);
      return count > most ? [`${name}: ${key} ${count}, at most ${most}`] : [];
    }),
  );
}

function densities(prose: string): { readonly what: number; readonly it: number } {
  const of = (word: 'what' | 'it') => {
    const count = prose.match(new RegExp(`\\b${word}\\b`, 'gi'))?.length ?? 0;
    return count <= countMin[word] ? 0 : Math.round(densityOf(prose, word) * 10) / 10;
  };
  return { what: of('what'), it: of('it') };
}

function countIn(text: string, where: string, findings: string[]): number {
  const found = text.split('\n').flatMap((line, index) =>
    wordsIn(line).map(({ found: one, but }) => {
      const at = where.includes(':') ? where : `${where}:${index + 1}`;
      return `${at}: "${one}": ${but}: ${line.trim().slice(0, 120)}`;
    }),
  );
  findings.push(...found);
  return found.length;
}

/** Texts of alerts and panels: values that people read. */
function visibleIn(path: string): string {
  const texts: string[] = [];
  const visit = (value: unknown, key: string) => {
    if (typeof value === 'string' && /^(summary|description|title)$/.test(key)) texts.push(value);
    if (typeof value !== 'object' || value === null) return;
    for (const [name, inside] of Object.entries(value)) visit(inside, name);
  };
  visit(parse(read(path)), '');
  return texts.join('\n');
}

function pagePaths(): readonly string[] {
  const top = ['README.md', 'SECURITY.md', 'CONTRIBUTING.md', 'CHANGELOG.md'];
  top.push('.github/pull_request_template.md');
  const below = ['docs/**/*.md', 'src/**/README.md', 'deploy/**/*.md', 'changelog.d/*.md'];
  return [...top, ...globSync(below, { cwd: root })].toSorted();
}

/** Configs, manifests and scripts whose comments begin with `#`. */
function commentedPaths(): readonly string[] {
  const files = ['config/**/*.yaml', 'deploy/**/*.{yaml,yml,py,sh,conf,service,tpl}', '.ci/*'];
  files.push('.github/**/*.yml', 'bench/peers/*.{py,yaml,conf}', 'test/**/*.{py,sh,yaml,conf}');
  files.push('Dockerfile', '.gitattributes', '.gitignore', '.editorconfig');
  return globSync(files, { cwd: root }).toSorted();
}

/** The page's scripts as well; the other `.js` files are parts of the boot. */
function sourcePaths(): readonly string[] {
  const scripts = ['src/**/*.ts', 'src/watch/page/*.js'];
  return globSync([...scripts, 'connectors/**/*.ts', 'formats/**/*.ts'], { cwd: root })
    .filter((path) => !path.startsWith('src/transcode/wasm/'))
    .toSorted();
}

/** Source of tests and tools. The lint itself and its test quote the words. */
function testPaths(): readonly string[] {
  const others = ['docs/**/*.ts', 'deploy/**/*.{ts,js}', 'src/boot/*.js', 'vitest.config.ts'];
  return globSync(['{test,bench}/**/*.{ts,js}', ...others], { cwd: root })
    .filter((path) => path !== 'test/docs/words.test.ts' && !path.startsWith('docs/words/'))
    .toSorted();
}

/** `test/list`, `test/simulation/archive`, `bench`, `docs/generate`. */
function folderOf(path: string): string {
  return path.split('/').slice(0, -1).slice(0, 3).join('/') || '.';
}

/** `src/run`, `connectors/sinks`, `formats`, `src/watch/page`. */
function packageOf(path: string): string {
  const parts = path.split('/').slice(0, -1);
  return parts.slice(0, path.endsWith('.js') ? 3 : 2).join('/');
}

function read(path: string): string {
  return readFileSync(join(root, path), 'utf8');
}

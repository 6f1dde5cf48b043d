// A page of the documentation, and the configs that stand in it. Readers copy those, so they are read by the program's
// own config reader, with something in place of each secret and certificate they name.

import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Config, parseConfig } from '../../src/config/config.ts';

/** One Markdown file. */
export interface Page {
  /** Below docs/, such as `sinks/kafka.md`. */
  readonly path: string;
  readonly text: string;
}

const docs = join(import.meta.dirname, '..');

/** The pages, by their path below docs/. */
export function pages(): readonly Page[] {
  return globSync('**/*.md', { cwd: docs })
    .toSorted()
    .map((path) => ({ path, text: readFileSync(join(docs, path), 'utf8') }));
}

/** The pages beside an index that it does not lead to by hand, as a list. */
export function morePages({ text }: Page): string {
  const byHand = text.replace(/<!-- generated[\s\S]*?<!-- end -->/g, '');
  return pages()
    .filter(({ path }) => !path.includes('/') && path !== 'README.md')
    .filter(({ path }) => !byHand.includes(`](${path}`))
    .map(({ path, text: page }) => `- [${/^# (.*)$/m.exec(page)?.[1] ?? path}](${path})`)
    .join('\n');
}

/** A fenced block: what stands behind the fence, and its lines. */
export interface Block {
  readonly info: string;
  readonly text: string;
  /** The HTML comment right above it; empty where there is none. */
  readonly comment: string;
}

/** The fenced blocks of a page, in order. */
export function blocksOf({ text }: Page): readonly Block[] {
  const fences = text.matchAll(/(?:<!-- ([^>]*?) -->\n)?^```([^\n]*)\n([\s\S]*?)^```$/gm);
  return Array.from(fences, ([, comment = '', info = '', inside = '']) => ({
    info: info.trim(),
    text: inside,
    comment,
  }));
}

/** A block that holds a config, or some sections of one; other YAML says what it is: `yaml compose`. */
export function isConfig({ info }: Block): boolean {
  return info === 'yaml';
}

const usualSections = {
  upstreams: `upstreams:
  edge: { api: unified, base_url: "https://api.example.com/v1", auth: { api_key: k } }
  ops: { api: services, base_url: "https://svc.example.com", companies: [c-1], auth: { client_id: i, client_secret: s, scope: "urn:x" } }
`,
  sources: 'sources: { audit: { type: audit_events, upstream: edge } }\n',
  sinks: 'sinks: { screen: { type: stdout } }\n',
};

/** Reads a config of a page; sections that it leaves out are filled in. Throws a ConfigError with all its flaws. */
export function readExample(text: string, file: string): Config {
  const missing = Object.entries(usualSections).flatMap(([name, section]) =>
    new RegExp(`^${name}:`, 'm').test(text) ? [] : [section],
  );
  const names = [...text.matchAll(/\$\{env:(\w+)\}/g)].map(([, name = '']) => name);
  return parseConfig([text, ...missing].join(''), file, {
    env: Object.fromEntries(names.map((name) => [name, 'a-value'])),
    readFile: (path) => Buffer.from(`a value of ${path}\n`),
    // Each reference has its value; certificates are on the reader's machine and are not parsed here.
    placeholders: 'unset',
  });
}

// `npm run changelog`: joins the fragments of changelog.d into CHANGELOG.md, in the section of the version of package.json,
// and removes them. changelog.d/README.md describes a fragment. Invariant: a fragment with a wrong name or without the
// upgrade steps of its kind is refused, and nothing is changed then.

import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { version } from '../../src/tools/index.ts';
import { root } from './tree.ts';

const kinds = ['breaking', 'security', 'deprecated', 'added', 'changed', 'fixed'] as const;
type Kind = (typeof kinds)[number];

/** One change: its kind, and its text without a list mark. */
export interface Fragment {
  readonly kind: Kind;
  readonly text: string;
}

const dir = join(root, 'changelog.d');
const file = join(root, 'CHANGELOG.md');

/** File names of the fragments, sorted. */
export function fragmentNames(): readonly string[] {
  return readdirSync(dir)
    .filter((name) => name !== 'README.md')
    .toSorted();
}

/** A fragment from its file name and content. Throws if one of them is wrong. */
export function fragmentOf(name: string, content: string): Fragment {
  const kind = kinds.find((one) => new RegExp(`^[a-z0-9-]+\\.${one}\\.md$`).test(name));
  if (kind === undefined) {
    throw new Error(`changelog.d/${name}: the name is TOPIC.KIND.md; kinds: ${kinds.join(', ')}`);
  }
  const text = content.trim();
  if (text === '' || /^[-*#]/.test(text)) {
    throw new Error(`changelog.d/${name}: write one or two sentences without a list mark`);
  }
  if (kind === 'breaking' && !/\bUpgrade: \S/.test(text)) {
    throw new Error(`changelog.d/${name}: a breaking change needs "Upgrade: " with the steps`);
  }
  return { kind, text };
}

/** The newest version in a changelog, from its first heading; null: it has none. */
export function newestVersion(changelog: string): string | null {
  return /^## (\S+)/m.exec(changelog)?.[1] ?? null;
}

/** The changelog with the fragments in the section of a version, which is created if it is missing. */
export function joined(changelog: string, fragments: readonly Fragment[], to: string): string {
  const first = changelog.search(/^## /m);
  const [head, rest] = [changelog.slice(0, first), changelog.slice(first)];
  const isThere = newestVersion(changelog) === to;
  const next = isThere ? rest.slice(3).search(/^## /m) : -3;
  const end = isThere ? (next === -1 ? rest.length : next + 3) : 0;
  const section = isThere ? rest.slice(0, end) : `## ${to}\n`;
  const merged = kinds.reduce((text, kind) => {
    const lines = fragments
      .filter((one) => one.kind === kind)
      .map(({ text: line }) => lineOf(line));
    return lines.length === 0 ? text : withLines(text, titleOf(kind), lines);
  }, section);
  return `${head}${merged.trimEnd()}\n\n${rest.slice(end)}`.trimEnd().concat('\n');
}

function titleOf(kind: Kind): string {
  return `### ${kind.charAt(0).toUpperCase()}${kind.slice(1)}`;
}

function lineOf(text: string): string {
  return `- ${text.replaceAll('\n', '\n  ')}`;
}

/** Adds lines at the end of a part of a section; a missing part comes before the parts that follow it in order. */
function withLines(section: string, title: string, lines: readonly string[]): string {
  const parts = section.split(/^(?=### )/m).map((part) => part.trimEnd());
  const at = parts.findIndex((part) => part.startsWith(title));
  if (at >= 0) parts[at] = `${parts[at]}\n${lines.join('\n')}`;
  else {
    const order = kinds.map(titleOf);
    const after = parts.findIndex(
      (part, i) => i > 0 && order.indexOf(part.split('\n', 1)[0] ?? '') > order.indexOf(title),
    );
    parts.splice(after === -1 ? parts.length : after, 0, `${title}\n${lines.join('\n')}`);
  }
  const [head = '', ...rest] = parts;
  return `${[head, rest.join('\n\n')].filter((part) => part !== '').join('\n\n')}\n`;
}

/** CHANGELOG.md of the checkout with its fragments. Throws if a fragment is not well formed. */
export function changelog(): string {
  const fragments = fragmentNames().map((name) =>
    fragmentOf(name, readFileSync(join(dir, name), 'utf8')),
  );
  return joined(readFileSync(file, 'utf8'), fragments, version());
}

if (import.meta.main) {
  const names = fragmentNames();
  writeFileSync(file, changelog());
  for (const name of names) rmSync(join(dir, name));
  process.stdout.write(
    `joined ${names.length} fragments into CHANGELOG.md, version ${version()}\n`,
  );
}

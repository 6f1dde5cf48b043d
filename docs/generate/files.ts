// A table of the files of each folder of code, with the purpose that each file states in its first lines.

import { globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { table } from './settings-table.ts';

const root = join(import.meta.dirname, '..', '..');

/** The product, and the tools of the tests without the tests themselves. */
const code = ['{src,connectors,formats}/**/*.{ts,js}', 'test/{support,simulation,torture}/**/*.ts'];

/** A short first sentence says too little alone, in characters. */
const shortSentence = 60;

/** A section per folder, each with a table of its files. Throws if a file does not begin with its purpose. */
export function everyFile(): string {
  const files = globSync(code, { cwd: root, exclude: ['**/*.test.ts'] }).toSorted();
  const folders = Map.groupBy(files, (file) => dirname(file));
  return [...folders]
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([folder, paths]) => `## \`${folder}\`\n\n${tableOf(folder, paths)}`)
    .join('\n\n');
}

const tableOf = (folder: string, paths: readonly string[]) =>
  table(
    ['file', 'purpose'],
    paths.map((path) => [`\`${path.slice(folder.length + 1)}\``, purposeOf(path)]),
  );

/** The first sentence of the file's opening comment, and the second one if the first is short. A list ends it. */
function purposeOf(path: string): string {
  const text = readFileSync(join(root, path), 'utf8').replace(/^#!.*\n+/, '');
  const lines = /^(?:\/\/ \S.*\n)+/.exec(text)?.[0];
  if (lines === undefined) throw new Error(`${path} does not begin with a comment on its purpose`);
  const opening = lines
    .replace(/^\/\/ /gm, '')
    .replace(/\n/g, ' ')
    .trim();
  const [first = '', second = ''] = opening.split(/(?<=[^.]\.) (?=\S)/);
  const isAlone = first.length >= shortSentence || /^$|:$/.test(second);
  const purpose = isAlone ? first : `${first} ${second}`;
  return purpose.replace(/:$/, '.');
}

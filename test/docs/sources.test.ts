// The index of sources against the two documents, where they stand beside the checkout: each GET that they name is read
// by a source, or it is said why it is not.

import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { sources } from '../../connectors/sources/index.ts';

const root = join(import.meta.dirname, '..', '..');
const documents = join(root, '..', 'shared', 'upstream');
const index = readFileSync(join(root, 'docs', 'sources', 'README.md'), 'utf8');
const rows = new Map(
  [...index.matchAll(/^\| `(\/[^`]*)` \| (.+) \|$/gm)].map(([, path = '', reader = '']) => [
    path,
    reader,
  ]),
);

/** The paths of a document's GETs; some tables begin theirs with a short name that stands for a path. */
function pathsIn(name: string): readonly string[] {
  const text = readFileSync(join(documents, name), 'utf8');
  const short = new Map(
    [...text.matchAll(/`(\{\w+\})` stands for `([^`]+)`/g)].map(([, a = '', b = '']) => [a, b]),
  );
  return [...text.matchAll(/^\| GET \| (\S+) \|/gm)].map(([, path = '']) =>
    path.replace(/^\{\w+\}/, (known) => short.get(known) ?? known),
  );
}

test.skipIf(!existsSync(documents)).each(['unified-api.md', 'services-api.md'])(
  'every GET of %s is read by a source, or it is said why not (skipped where it is not beside the checkout)',
  (name) => {
    const paths = pathsIn(name);

    expect(paths.length).toBeGreaterThan(4);
    expect(paths.filter((path) => !rows.has(path))).toEqual([]);
  },
);

test('every source is in the index, with a link to the source that reads a path', () => {
  expect(sources.map(({ type }) => type).filter((type) => !index.includes(`(${type}.md)`))).toEqual(
    [],
  );
  for (const reader of rows.values()) expect(reader).toMatch(/^(none: .+|.*`\w+`.*)$/);
});

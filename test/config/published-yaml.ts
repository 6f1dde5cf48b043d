// Every YAML text that we publish: files of config/, docs/ and deploy/, and the blocks of their pages and of the README.

import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';

/** `name` is a path in the checkout, with the block's line where it stands in a page. */
export interface PublishedYaml {
  readonly name: string;
  readonly text: string;
}

const root = new URL('../../', import.meta.url).pathname;

/** All of them, in the order of their paths. */
export function publishedYaml(): readonly PublishedYaml[] {
  const pages = ['README.md', ...['config', 'docs', 'deploy'].flatMap(filesIn)].toSorted();
  return pages.flatMap((file) => {
    // Templates of Helm become YAML when Helm reads them (test/deploy/helm.test.ts).
    if (!/\.(ya?ml|md)$/.test(file) || file.startsWith('deploy/helm/templates/')) return [];
    const text = readFileSync(join(root, file), 'utf8');
    if (!file.endsWith('.md')) return [{ name: file, text }];
    return Array.from(
      text.matchAll(/^```ya?ml.*\n([\s\S]*?)^```/gm),
      ({ 1: block = '', index }) => ({
        name: `${file}:${text.slice(0, index).split('\n').length}`,
        text: block,
      }),
    );
  });
}

/** Those of them that are whole configs of sluice. */
export function publishedConfigs(): readonly PublishedYaml[] {
  return publishedYaml().filter(({ text }) => {
    const config: unknown = parseAllDocuments(text)[0]?.toJS();
    const keys = typeof config === 'object' && config !== null ? Object.keys(config) : [];
    return ['upstreams', 'sources', 'sinks'].every((key) => keys.includes(key));
  });
}

function filesIn(folder: string): readonly string[] {
  return readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .map((name) => join(folder, name))
    .filter((path) => statSync(join(root, path)).isFile());
}

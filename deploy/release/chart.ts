// The Helm chart as `helm package` writes it: a tar archive with the directory of the chart. Helm itself is not needed.

import { globSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { type TarEntry, tar } from './tar.ts';
import { root } from './tree.ts';

/** The archive; `seconds` is the time of its entries. */
export function chart(seconds: number): Buffer {
  const dir = join(root, 'deploy/helm');
  const files = globSync('**/*', { cwd: dir })
    .filter((path) => !path.endsWith('.ts') && statSync(join(dir, path)).isFile())
    .toSorted((a, b) => (a < b ? -1 : 1));
  // Helm reads the name of the chart from the first file.
  const ordered = ['Chart.yaml', ...files.filter((path) => path !== 'Chart.yaml')];
  const entries = ordered.map(
    (path): TarEntry => ({
      path: `sluice/${path}`,
      mode: 0o644,
      bytes: readFileSync(join(dir, path)),
    }),
  );
  return gzipSync(tar(entries, seconds), { level: 9 });
}

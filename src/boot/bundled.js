// Selects the module of a start: main.ts, or its bundle from bundle.js. Finding, reading and
// linking 400 small files takes Node more CPU than all other work of a short command. Invariant:
// the running code equals the sources, so each source and package in the bundle is checked, and if
// one has changed since, the sources are run. Plain JavaScript, like sluice.js.

import { readFileSync, statSync } from 'node:fs';
import { fileURLToPath, pathToFileURL } from 'node:url';

/** Root of the project, and of all paths here. */
export const root = fileURLToPath(new URL('../../', import.meta.url));

/** Inside node_modules, so that `npm ci` deletes it together with the packages. */
export const bundleDir = `${root}node_modules/.cache/sluice-bundle`;

/** In that directory: `stampOf` each bundled source and package, by the file's path below the root. */
export const stampsName = 'made-of.json';

/** A stamp that shows whether a file has changed; throws if the file is missing. */
export function stampOf(path) {
  const { size, mtimeMs } = statSync(root + path);
  return `${size} ${mtimeMs}`;
}

/** True if there is a bundle of the present sources. */
export function isBundled() {
  try {
    const stamps = JSON.parse(readFileSync(`${bundleDir}/${stampsName}`, 'utf8'));
    return Object.entries(stamps).every(([path, stamp]) => stampOf(path) === stamp);
  } catch {
    return false; // There is no bundle, or one of its sources is missing.
  }
}

/** `SLUICE_FROM=sources` is for profiling a start: the files keep their names. */
export function mainModule() {
  const isRequested = process.env.SLUICE_FROM !== 'sources';
  return pathToFileURL(
    isRequested && isBundled() ? `${bundleDir}/main.mjs` : `${root}src/boot/main.ts`,
  );
}

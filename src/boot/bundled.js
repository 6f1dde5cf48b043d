// Which module a start begins with: main.ts, or what bundle.js has made of it. To find, read and link 400 small files
// takes Node more CPU than all else that a short command does. What must stay true: what runs is what the sources say, so
// each file that went into the bundle is looked at, and where one has changed since, the sources are run. Plain
// JavaScript, as sluice.js is.

import { readFileSync, statSync } from 'node:fs';
import { fileURLToPath, pathToFileURL } from 'node:url';

/** Of the project, and of all paths here. */
export const root = fileURLToPath(new URL('../../', import.meta.url));

/** Beside the packages, so that `npm ci` takes it away together with them. */
export const bundleDir = `${root}node_modules/.cache/sluice-bundle`;

/** In it: `stampOf` each file that it was made of, by the file's path below the root. */
export const stampsName = 'made-of.json';

/** What shows that a file has changed; throws where there is none. */
export function stampOf(path) {
  const { size, mtimeMs } = statSync(root + path);
  return `${size} ${mtimeMs}`;
}

/** True for a bundle of the sources as they are. */
export function isBundled() {
  try {
    const stamps = JSON.parse(readFileSync(`${bundleDir}/${stampsName}`, 'utf8'));
    return Object.entries(stamps).every(([path, stamp]) => stampOf(path) === stamp);
  } catch {
    return false; // None was made, or one of its sources is gone.
  }
}

/** `SLUICE_FROM=sources` is for those who look into a start: the files keep their names. */
export function mainModule() {
  const isWanted = process.env.SLUICE_FROM !== 'sources';
  return pathToFileURL(
    isWanted && isBundled() ? `${bundleDir}/main.mjs` : `${root}src/boot/main.ts`,
  );
}

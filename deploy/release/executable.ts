// One executable file: Node's binary with the tree of a release inside. Node's own option `--build-sea` writes it, and
// `useVfs` mounts the tree read-only when the file starts (nodejs.org/api/single-executable-applications.html).
// Invariant: the same tree and binary give the same bytes. Node writes the config's `main` into the file, so it is relative.

import { spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { entryFile, type Tree } from './tree.ts';

/** As in the first line of src/boot/sluice.js. */
const flags = ['--min-semi-space-size=4', '--max-semi-space-size=4'];

/**
 * Writes the executable `output` from a Node binary for the target platform; `dir` is an empty working directory.
 * Throws with the output of Node if it fails.
 */
export function writeExecutable(tree: Tree, nodeBinary: string, output: string, dir: string): void {
  for (const [path, bytes] of tree) {
    const file = join(dir, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, bytes);
  }
  const config = {
    main: entryFile,
    mainFormat: 'module',
    executable: nodeBinary,
    output,
    assets: Object.fromEntries([...tree.keys()].map((path) => [path, path])),
    useVfs: true,
    execArgv: flags,
    execArgvExtension: 'none',
    disableExperimentalSEAWarning: true,
  };
  writeFileSync(join(dir, 'sea.json'), JSON.stringify(config));
  const { status, stderr } = spawnSync(process.execPath, ['--build-sea', 'sea.json'], {
    cwd: dir,
    encoding: 'utf8',
  });
  if (status !== 0) throw new Error(`node --build-sea ended with ${status}: ${stderr}`);
}

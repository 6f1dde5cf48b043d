// `npm run bundle`, also run by `npm ci`: joins the sources, and the packages that each start
// needs, into a few files that sluice.js starts as long as the sources are unchanged (bundled.js).
// Invariant: the bundle behaves as the sources: names are kept, other packages stay where they are,
// and a module that loads files by its own address uses the address of its source. Without rolldown
// (`npm ci --omit=dev`) there is no bundle, and sluice runs from its sources.

import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join, relative } from 'node:path';
import { bundleDir, isBundled, root, stampOf, stampsName } from './bundled.js';

/** Packages that only sluice's own files import. What they import themselves is joined too. */
const joined = /^(commander|undici|yaml|zod|@platformatic\/kafka)(\/|$)/;
/** Reads a file beside its own. */
const apart = '@platformatic/wasm-utils';
/** Of this package, a module without a used export is omitted, since it loads parsers of other formats at each start. */
const unusedOmitted = /\/@platformatic\/kafka\//;
/** Worker threads, which are started from the bundle too. */
const workers = ['src/hold/spool-worker.ts', 'src/parquet/erase-worker.ts'];

const rolldown = await import('rolldown').catch(() => null);
if (rolldown === null) process.stdout.write('sluice is not bundled: there is no rolldown\n');
else if (!isBundled()) await bundle(rolldown);

/**
 * Built in another directory and renamed when complete, because another process may start
 * meanwhile.
 */
async function bundle({ build }) {
  const dir = `${bundleDir}-${process.pid}`;
  mkdirSync(dir, { recursive: true });
  try {
    const stamps = {};
    await build({
      input: {
        main: join(root, 'src/boot/main.ts'),
        ...Object.fromEntries(workers.map((path) => [basename(path, '.ts'), join(root, path)])),
      },
      platform: 'node',
      external: (name, from) => name === apart || !isJoined(name, from),
      treeshake: { moduleSideEffects: [{ test: unusedOmitted, sideEffects: false }] },
      plugins: [
        sourceAddresses(),
        asciiOnly(),
        { name: 'stamps', moduleParsed: ({ id }) => stamp(id) },
      ],
      output: {
        ...{ dir, entryFileNames: '[name].mjs', chunkFileNames: '[name]-[hash].mjs' },
        // V8 keeps the text of loaded code: without comments and indentation it has half the
        // length.
        minify: { compress: false, mangle: false, codegen: true },
      },
      logLevel: 'warn',
    });
    function stamp(id) {
      if (!id.startsWith(root)) return;
      const path = stampedPath(relative(root, id));
      stamps[path] ??= stampOf(path);
    }
    writeFileSync(join(dir, stampsName), JSON.stringify(stamps));
    writeFileSync(join(dir, 'commit.json'), JSON.stringify(commitOf()));
    rmSync(bundleDir, { recursive: true, force: true });
    renameSync(dir, bundleDir);
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

function isJoined(name, from) {
  return /^[./]/.test(name) || joined.test(name) || from?.includes('/node_modules/') === true;
}

/** The file that shows a change: of a package its description, which npm writes again with the other files. */
function stampedPath(path) {
  const name = /^node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path)?.[0];
  return name === undefined ? path : `${name}/package.json`;
}

/** The commit of the checkout and its day (UTC), for `--version` (src/tools/version.ts). Empty without git. */
function commitOf() {
  if (!existsSync(join(root, '.git'))) return {};
  const args = ['-C', root, 'log', '-1', '--format=%H %ct'];
  const { status, stdout } = spawnSync('git', args, { encoding: 'utf8' });
  if (status !== 0) return {};
  const [commit, seconds] = stdout.trim().split(' ');
  return { commit, date: new Date(Number(seconds) * 1_000).toISOString().slice(0, 10) };
}

/** Gives each module the address of its source, except the threads. */
function sourceAddresses() {
  const threads = new RegExp(
    `new URL\\('\\./(${workers.map((path) => basename(path, '.ts')).join('|')})\\.ts', import\\.meta\\.url\\)`,
  );
  return {
    name: 'source-addresses',
    transform: {
      filter: { id: /\.ts$/, code: 'import.meta.url' },
      handler(code, id) {
        const source = JSON.stringify(relative(bundleDir, id));
        // Every second part is the name of a thread.
        return code
          .split(threads)
          .map((part, i) =>
            i % 2 === 1
              ? `new URL('./${part}.mjs', import.meta.url)`
              : part.replaceAll('import.meta.url', `new URL(${source}, import.meta.url).href`),
          )
          .join('');
      },
    },
  };
}

/** In V8, one non-Latin-1 character makes every character of a text take two bytes. */
function asciiOnly() {
  return {
    name: 'ascii-only',
    generateBundle(_options, files) {
      for (const file of Object.values(files)) {
        file.code = file.code.replace(
          /[^\x00-\x7f]/g,
          (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
        );
      }
    },
  };
}

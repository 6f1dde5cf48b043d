// The files of a release: all modules joined into `app/`, and the data files that modules load, at the paths of their
// sources. The one file (executable.ts) holds this tree and mounts it read-only at its start.
// Invariants: two builds of one commit give the same bytes at the same paths; a module that loads a file by its own address
// finds it, because each module keeps the address of its source.

import { globSync, readFileSync } from 'node:fs';
import { basename, dirname, join, relative, sep } from 'node:path';
import { build, type Plugin } from 'rolldown';

/** Root of the checkout, without a slash at its end. */
export const root = join(import.meta.dirname, '../..');

/** The entry point. Node mounts it at the root of the tree, so it is no file of `app/`. */
export const entryFile = 'main.mjs';

/** Bytes by path from the root of the tree; paths are sorted. */
export type Tree = ReadonlyMap<string, Uint8Array>;

/** The tree, and the packages in it: their directories below the root, sorted. */
export interface ReleaseTree {
  readonly files: Tree;
  readonly packages: readonly string[];
}

/** Worker threads. A thread does not see the mounted tree, so each is one file, which is started from its text. */
const threads = ['src/hold/spool-worker.ts', 'src/parquet/erase-worker.ts'];

/**
 * Not joined: kafkajs is patched in the cache of `require`, so its files stay as they are. @node-rs has native code for one
 * platform; @platformatic/kafka uses its WebAssembly where that is missing.
 */
const apart = /^(kafkajs|@node-rs\/[^/]+)(\/|$)/;

/** Of this package, a module without a used export is omitted, since it loads parsers of other formats at each start. */
const unusedOmitted = /\/@platformatic\/kafka\//;

/**
 * Packages that `require` loads at their first use. Each is an entry of its own: the bundler would put it into the chunk of
 * its caller, which most starts load.
 */
const loadedLater = [
  'node-cron',
  '@marcbachmann/cel-js',
  '@opentelemetry/otlp-transformer',
  '@opentelemetry/resources',
];
const entryOf = (name: string) => name.replace('@', '').replace('/', '-');

/** Files that modules read, as globs from the root of the checkout. */
const dataFiles = [
  'package.json',
  'config/quickstart.yaml',
  'src/normalise/ocsf-1.8.0.json',
  'src/tools/scan.wasm',
  'src/transcode/lines.wasm',
  'src/watch/page/*',
  'node_modules/kafkajs/{index.js,package.json,LICENSE}',
  'node_modules/kafkajs/src/**/*.js',
  'node_modules/uplot/{package.json,LICENSE}',
  'node_modules/uplot/dist/uPlot.iife.min.js',
  'node_modules/uplot/dist/uPlot.min.css',
  'node_modules/@platformatic/wasm-utils/dist/native.wasm',
];

/** Joins the modules of the checkout. Throws if a module cannot be resolved. */
export async function releaseTree(): Promise<ReleaseTree> {
  const files = new Map<string, Uint8Array>();
  const modules = new Set<string>();
  for (const thread of threads) {
    const name = basename(thread, '.ts');
    const [file] = await joined({ [name]: `./${thread}` }, modules, false);
    if (file === undefined) throw new Error(`no output for ${thread}`);
    files.set(`app/${name}.mjs`, Buffer.from(file.code));
  }
  const later = loadedLater.map((name) => [entryOf(name), name] as const);
  const entries = { release: './src/boot/release.js', ...Object.fromEntries(later) };
  for (const { name, code } of await joined(entries, modules, true)) {
    files.set(`app/${name}`, Buffer.from(code));
  }
  files.set(entryFile, Buffer.from("import './app/release.mjs';\n"));
  for (const path of dataFiles.flatMap((pattern) => globSync(pattern, { cwd: root }))) {
    files.set(path.split(sep).join('/'), readFileSync(join(root, path)));
    modules.add(join(root, path));
  }
  return { files: new Map([...files].toSorted(byPath)), packages: packagesOf(modules) };
}

/** A call that loads a package: by a `require` of the module, or by `createRequire` at once. */
const requireOf = /(?<![.\w])(?:createRequire\(import\.meta\.url\)|require)\('([^']+)'\)/g;

function byPath([a]: readonly [string, unknown], [b]: readonly [string, unknown]): number {
  return a < b ? -1 : 1;
}

/** One bundle; adds the files of which it consists to `modules`. */
async function joined(
  input: Readonly<Record<string, string>>,
  modules: Set<string>,
  isSplit: boolean,
): Promise<readonly { readonly name: string; readonly code: string }[]> {
  const { output } = await build({
    input: { ...input },
    cwd: root,
    write: false,
    platform: 'node',
    external: (name) => apart.test(name),
    treeshake: { moduleSideEffects: [{ test: unusedOmitted, sideEffects: false }] },
    // Paths stay below the root, also where node_modules is a link.
    resolve: { symlinks: false },
    plugins: [
      sourceAddresses(isSplit),
      { name: 'modules', moduleParsed: ({ id }) => void modules.add(id) },
    ],
    transform: {
      define: { __filename: 'import.meta.filename', __dirname: 'import.meta.dirname' },
    },
    output: {
      entryFileNames: '[name].mjs',
      chunkFileNames: '[name]-[hash].mjs',
      codeSplitting: isSplit && { groups: startChunks() },
      keepNames: true,
      minify: { compress: false, mangle: false, codegen: true },
    },
    // In one chunk, a module may be loaded before its `import()`.
    checks: { ineffectiveDynamicImport: false },
    logLevel: 'warn',
  });
  return output.flatMap((file) => {
    if (file.type !== 'chunk') throw new Error(`${file.fileName} is not a module`);
    return { name: file.fileName, code: asciiOf(file.code) };
  });
}

/**
 * Chunks for what most starts load, since each chunk costs a start about 0.5 ms: the modules of each start, which `--version`
 * and the help load alone, and those of each command with a config, of which `healthy` has the fewest. The ones that
 * commands without a config load too are a chunk between them.
 */
function startChunks() {
  const chunk = (name: string, priority: number, paths: readonly string[]) => {
    let modules: ReadonlySet<string> | null = null;
    const nameOf = (id: string, graph: ModuleGraph) => {
      modules ??= paths
        .map((path) => importedBy(path, graph))
        .reduce((all, one) => all.intersection(one));
      return modules.has(id) ? name : null;
    };
    return { name: nameOf, debugName: name, priority };
  };
  const [config, proof] = ['src/commands/healthy.ts', 'src/commands/archive/verify.ts'];
  return [
    chunk('start', 3, ['src/boot/program.ts']),
    chunk('shared', 2, [config, proof]),
    chunk('config', 1, [config]),
  ];
}

interface ModuleGraph {
  getModuleInfo(id: string): { readonly importedIds: readonly string[] } | null;
}

/** A module and all that it imports, at once and through others, but not what it imports later by `import()`. */
function importedBy(path: string, graph: ModuleGraph): ReadonlySet<string> {
  const found = new Set([join(root, path)]);
  for (const id of found) {
    for (const imported of graph.getModuleInfo(id)?.importedIds ?? []) found.add(imported);
  }
  return found;
}

/** In V8, one non-Latin-1 character makes every character of a text take two bytes. */
function asciiOf(code: string): string {
  return code.replace(
    /[^\x00-\x7f]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

/**
 * Gives each module the address of its source, starts threads from their text, and lets `require` load the entries of
 * `loadedLater`. A thread has no other files, so these packages are joined into it.
 */
function sourceAddresses(isSplit: boolean): Plugin {
  const names = threads.map((path) => basename(path, '.ts')).join('|');
  const thread = new RegExp(`new URL\\('\\./(${names})\\.ts', import\\.meta\\.url\\)`, 'g');
  return {
    name: 'source-addresses',
    transform: {
      filter: { id: /\.[cm]?[jt]s$/, code: /import\.meta\.url|npx sluice/ },
      handler(code, id) {
        // The runtime of the bundler has no source.
        if (id.startsWith('\0')) return code;
        const source = JSON.stringify(`../${relative(root, id).split(sep).join('/')}`);
        return (
          code
            // The release is started by its own name.
            .replaceAll('npx sluice', 'sluice')
            .replace(
              thread,
              (_, name) =>
                `new URL('data:text/javascript;base64,' + process.getBuiltinModule('node:fs').readFileSync(new URL('./${name}.mjs', import.meta.url), 'base64'))`,
            )
            .replace(requireOf, (call, name) => {
              if (!loadedLater.includes(name)) return call;
              if (!isSplit) return `require('${name}')`;
              const entry = `${relative(dirname(id), root)}/app/${entryOf(name)}.mjs`;
              return `createRequire(import.meta.url)('${entry}')`;
            })
            .replace(/^\s*const require = createRequire\(import\.meta\.url\);$/m, (line) =>
              code.includes('require.resolve') ? line : '',
            )
            .replaceAll(/(?<!mjs', )import\.meta\.url/g, `new URL(${source}, import.meta.url).href`)
        );
      },
    },
  };
}

/** Directories of packages that hold these files, such as `node_modules/zod`. */
function packagesOf(modules: ReadonlySet<string>): readonly string[] {
  const found = new Set<string>();
  for (const id of modules) {
    const path = relative(root, id).split(sep).join('/');
    const [packageDir] = /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path) ?? [];
    if (packageDir !== undefined) found.add(packageDir);
  }
  return [...found].toSorted();
}

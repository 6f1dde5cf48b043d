// What the program loads before it does what it was started for. A start is nearly all loading: each module costs a
// quarter of a millisecond, a client tens. So a command loads what it needs and no more, whatever else there is, and what it
// loads, in its spool's thread as well, was compiled by the run before.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, expect, test } from 'vitest';
import { runSluice } from '../support/cli.ts';
import { tempDir } from '../support/temp.ts';
import { aSetup } from './a-setup.ts';

interface Loaded {
  /** Packages, modules of Node and files of sluice, as `zod`, `node:http`, `src/boot/main.ts`. */
  readonly modules: readonly string[];
  /** Where its code is kept compiled, and nothing if it is not. */
  readonly cache: string | undefined;
}

/** Records each module when it is found: the spool's thread ends without notice. */
const witness = (file: string) => `
  import { appendFileSync } from 'node:fs';
  import { getCompileCacheDir, registerHooks } from 'node:module';
  import { isMainThread } from 'node:worker_threads';
  registerHooks({ resolve(specifier, context, next) {
    const found = next(specifier, context);
    const loaded = { isMainThread, url: found.url, cache: getCompileCacheDir() };
    appendFileSync(${JSON.stringify(file)}, JSON.stringify(loaded) + '\\n');
    return found;
  } });`;

interface LoadedModule {
  readonly isMainThread: boolean;
  readonly url: string;
  readonly cache?: string;
}

/** Runs a command line to its end, and says what the program and its spool's thread have loaded. */
async function loadedBy(
  args: readonly string[],
): Promise<{ readonly main: Loaded; readonly thread: Loaded }> {
  const file = join(tempDir(), 'loaded.ndjson');
  const hook = `--import=data:text/javascript,${encodeURIComponent(witness(file))}`;
  const { exitCode, stderr } = await runSluice(args, {
    env: { NODE_OPTIONS: hook, SLUICE_FROM: 'sources' },
  });
  if (exitCode !== 0) throw new Error(stderr);
  const lines = readFileSync(file, 'utf8').trimEnd().split('\n');
  const reported = lines.map((line): LoadedModule => JSON.parse(line));
  return {
    main: loaded(reported.filter(({ isMainThread }) => isMainThread)),
    thread: loaded(reported.filter(({ isMainThread }) => !isMainThread)),
  };
}

function loaded(reported: readonly LoadedModule[]): Loaded {
  return {
    modules: [...new Set(reported.map(({ url }) => nameOf(url)))],
    cache: reported.at(-1)?.cache,
  };
}

const root = pathToFileURL(`${join(import.meta.dirname, '..', '..')}/`).href;

function nameOf(url: string): string {
  const [, inPackage] = url.split('/node_modules/');
  if (inPackage === undefined) return url.replace(root, '');
  return inPackage
    .split('/')
    .slice(0, inPackage.startsWith('@') ? 2 : 1)
    .join('/');
}

/** Loaded only if a config needs them. */
const onlyWhereAsked = [
  'kafkajs',
  '@platformatic/kafka',
  'syslog-client',
  '@opentelemetry/otlp-transformer',
  '@marcbachmann/cel-js',
  'node-cron',
  'node:http',
  'connectors/sinks/syslog/stream.ts',
  'src/watch/status-server.ts',
  'src/sandbox/sandbox.ts',
];

describe('modules loaded', () => {
  test('by --help: the files of the commands, which declare their parameters, and no client', async () => {
    const { main, thread } = await loadedBy(['--help']);

    // The sandbox is a server; its command is a command like the others.
    const sandbox = ['src/sandbox/sandbox.ts', 'node:http'];
    const needless = onlyWhereAsked.filter((name) => !sandbox.includes(name));
    expect(main.modules).toContain('commander');
    expect(main.modules.filter((name) => needless.includes(name))).toEqual([]);
    expect(thread.modules).toEqual([]);
  });

  test('by check: no client, and nothing that only another config needs', async () => {
    const { config } = await aSetup();

    const { main, thread } = await loadedBy(['check', '-c', config]);

    expect(main.modules).toContain('zod');
    // It looks into the state, which has the ends of upstreams and pairs.
    const needless = onlyWhereAsked.filter((name) => name !== 'node:sqlite');
    const clients = ['undici', 'pino', 'node:tls'];
    expect(main.modules.filter((name) => [...needless, ...clients].includes(name))).toEqual([]);
    expect(thread.modules).toEqual([]);
  });

  test('by run: nothing that only another config needs', async () => {
    const { config } = await aSetup();

    const { main, thread } = await loadedBy(['run', '--once', '-c', config]);

    // undici requires it, which costs little; an import by name costs as much as zod.
    const needless = onlyWhereAsked.filter((name) => name !== 'node:http');
    expect(main.modules).toContain('undici');
    expect(main.modules.filter((name) => needless.includes(name))).toEqual([]);
    const own = /^(node:|src\/(hold|contracts)\/)/;
    expect(thread.modules).toContain('src/hold/store.ts');
    expect(thread.modules.filter((name) => !own.test(name))).toEqual([]);
    expect(thread.cache).toContain('sluice-compiled');
  });
});

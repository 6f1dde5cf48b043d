// Who may import whom. The directions are the design: stages know each other only through contracts, connectors never
// see the engine, and each third-party client appears in the one file that wraps it, so that it can be replaced there.

import { globSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { expect, test } from 'vitest';

const root = join(import.meta.dirname, '..', '..');

interface Import {
  readonly file: string;
  /** A path within the project, or a package's name. */
  readonly target: string;
}

const files = globSync(['src/**/*.ts', 'connectors/**/*.ts', 'formats/**/*.ts'], { cwd: root });

const imports: readonly Import[] = files.flatMap((file) => {
  const text = readFileSync(join(root, file), 'utf8');
  const found = text.matchAll(/(?:\bfrom|\bimport\(|\bimport)\s*['"]([^'"]+)['"]/g);
  return [...found].map(([, specifier = '']) => ({
    file,
    target: specifier.startsWith('.')
      ? relative(root, join(root, dirname(file), specifier))
      : specifier
          .split('/')
          .slice(0, specifier.startsWith('@') ? 2 : 1)
          .join('/'),
  }));
});

/**
 * For each package, the packages and files that it may also import: a level may only import lower ones. The order of
 * this list is the order of the levels.
 */
const allowed: Readonly<Record<string, readonly string[]>> = {
  'src/contracts': [],
  'src/sandbox': [],
  'src/tools': ['src/contracts'],
  'src/terminal': ['src/contracts', 'src/tools'],
  'src/upstream': ['src/contracts', 'src/tools'],
  'src/hold': ['src/contracts', 'src/tools'],
  'src/objects': ['src/contracts', 'src/tools', 'src/hold'],
  'src/normalise': ['src/contracts'],
  'src/kafka': ['src/contracts'],
  'src/parquet': ['src/contracts', 'src/normalise', 'src/objects'],
  'src/archive': ['src/contracts', 'src/tools', 'src/objects', 'src/parquet'],
  formats: ['src/contracts'],
  'connectors/shared': ['src/contracts'],
  'connectors/sinks': [
    'src/contracts',
    'src/objects',
    'src/archive',
    'src/kafka',
    'connectors/shared',
    'src/parquet',
    // What an event says, and who acts in it, is the same text in every sink.
    'formats/texts.ts',
  ],
  'connectors/sources': ['src/contracts', 'connectors/shared'],
  'src/cluster': ['src/contracts', 'src/hold', 'src/kafka'],
  'src/poll': ['src/contracts', 'src/tools'],
  'src/list': ['src/contracts', 'src/tools', 'src/poll'],
  'src/collection': ['src/contracts', 'src/tools', 'src/poll', 'src/list'],
  'src/parents': ['src/contracts', 'src/tools', 'src/poll', 'src/list', 'src/collection'],
  'src/webhooks': ['src/contracts', 'src/tools', 'src/poll', 'src/list'],
  'src/succession': [
    'src/contracts',
    'src/tools',
    'src/poll',
    'src/list',
    'src/collection',
    'src/parents',
  ],
  'src/fetch': [
    'src/contracts',
    'src/tools',
    'src/poll',
    'src/list',
    'src/collection',
    'src/parents',
    'src/webhooks',
    'src/succession',
  ],
  // What it copies, and what must hold for it to be copied, is what the normaliser takes.
  'src/transcode': ['src/contracts', 'src/normalise'],
  'src/send': ['src/contracts', 'src/tools', 'src/normalise', 'src/transcode'],
  'src/drift': ['src/contracts', 'src/tools', 'src/fetch', 'src/send'],
  'src/pipeline.ts': ['src/contracts', 'src/tools', 'src/fetch', 'src/send', 'src/drift'],
  'src/watch': [
    'src/contracts',
    'src/tools',
    'src/terminal',
    'src/upstream',
    'src/hold',
    'src/pipeline.ts',
    // A sink's status covers the streams that are routed there.
    'src/send',
    // Streams are shown with their checkpoints.
    'src/fetch',
  ],
  // Text to Config: of the stages it knows the settings that they declare, and nothing that runs.
  'src/config': [
    'src/contracts',
    'src/kafka',
    'src/cluster',
    'src/tools',
    'src/terminal',
    'src/upstream',
    'src/hold',
    'src/normalise',
    'formats',
    'connectors',
  ],
  'src/run': [
    'src/contracts',
    'src/cluster',
    'src/tools',
    'src/terminal',
    'src/upstream',
    'src/hold',
    'src/archive',
    'src/fetch',
    'src/send',
    'src/pipeline.ts',
    'src/watch',
    'src/config',
  ],
  'src/operator': [
    'src/contracts',
    'src/cluster',
    'src/tools',
    'src/hold',
    'src/watch',
    'src/config',
    'src/run',
  ],
  'src/commands': [
    'src/contracts',
    'src/operator',
    'src/tools',
    'src/terminal',
    'src/hold',
    'src/archive',
    'src/fetch',
    'src/send',
    'src/watch',
    'src/config',
    'src/run',
  ],
  'src/boot': ['src/contracts', 'src/commands'],
};

/**
 * The entry points of each package: its only files that other packages import. `pipeline.ts` is a package of one file.
 */
const entryPoints: Readonly<Record<string, readonly string[]>> = {
  'src/contracts': ['config.ts', 'index.ts'],
  'src/tools': ['http-client.ts', 'index.ts'],
  'src/terminal': ['index.ts'],
  'src/upstream': ['index.ts'],
  'src/hold': ['index.ts', 'open.ts'],
  'src/objects': ['index.ts'],
  'src/normalise': ['index.ts'],
  'src/kafka': ['index.ts', 'log-client.ts'],
  'src/parquet': ['index.ts'],
  'src/archive': ['audit.ts', 'index.ts', 'operate.ts', 'write.ts'],
  formats: ['index.ts', 'texts.ts'],
  connectors: ['index.ts', 'shared/http-post.ts', 'sources/index.ts'],
  'src/cluster': ['index.ts', 'kafka.ts'],
  'src/poll': ['index.ts'],
  'src/list': ['index.ts'],
  'src/collection': ['index.ts'],
  'src/parents': ['index.ts'],
  'src/webhooks': ['index.ts'],
  'src/succession': ['index.ts'],
  'src/fetch': ['engine.ts', 'index.ts'],
  'src/transcode': ['index.ts'],
  'src/send': ['delivery.ts', 'index.ts'],
  'src/drift': ['index.ts'],
  'src/watch': ['collector-log.ts', 'index.ts', 'log.ts', 'running-status.ts', 'status-server.ts'],
  'src/config': ['index.ts', 'json-schema.ts', 'tests.ts'],
  'src/run': ['index.ts', 'process.ts', 'shards.ts'],
  'src/operator': ['index.ts'],
  'src/commands': ['index.ts'],
  'src/sandbox': ['sandbox.ts'],
};

/** The imports that still stand against the list above, each until its step of the tidying takes it away. */
const exceptions: Readonly<Record<string, readonly string[]>> = {
  'src/commands/quickstart.ts': ['src/sandbox/sandbox.ts'],
  'src/commands/sandbox.ts': ['src/sandbox/sandbox.ts'],
};

/** Import cycles that still exist, types included. */
const cycles: readonly string[] = [];

/** The files that may import a third-party client. */
const wrappers: Readonly<Record<string, readonly string[]>> = {
  '@aws-sdk/client-s3': ['src/objects/s3.ts'],
  '@aws-sdk/credential-provider-node': ['connectors/shared/sigv4.ts'],
  '@smithy/signature-v4': ['connectors/shared/sigv4.ts'],
  undici: ['src/tools/'],
  '@grpc/grpc-js': ['connectors/sinks/otlp/grpc.ts'],
  kafkajs: ['src/kafka/'],
  '@platformatic/kafka': ['src/kafka/', 'src/cluster/'],
  'syslog-client': ['connectors/sinks/syslog/'],
  '@opentelemetry/otlp-transformer': ['formats/'],
  '@opentelemetry/resources': ['formats/', 'src/watch/collector-log.ts'],
  '@opentelemetry/sdk-logs': ['formats/', 'src/watch/collector-log.ts'],
  '@opentelemetry/exporter-logs-otlp-http': ['src/watch/collector-log.ts'],
  '@marcbachmann/cel-js': ['src/tools/filter.ts'],
  'node-cron': ['src/tools/cron.ts'],
  hyparquet: ['src/parquet/'],
  'hyparquet-writer': ['src/parquet/'],
  yaml: ['src/config/', 'src/sandbox/fault-script.ts'],
  commander: ['src/boot/', 'src/commands/'],
  pino: ['src/watch/'],
};

test('the project has files and imports to look at', () => {
  expect(files.length).toBeGreaterThan(50);
  expect(imports.length).toBeGreaterThan(200);
});

test.each(Object.entries(allowed))('%s imports only allowed packages', (folder, others) => {
  const inside = imports.filter(({ file }) => file === folder || file.startsWith(`${folder}/`));

  const strays = inside.filter(
    ({ file, target }) =>
      /^(src|connectors|formats|test|bench)(\/|$)/.test(target) &&
      ![folder, ...others].some((place) => target === place || target.startsWith(`${place}/`)) &&
      !exceptions[file]?.includes(target),
  );

  expect(inside.length).toBeGreaterThan(0);
  expect(strays).toEqual([]);
});

test('no package imports more than 12 others', () => {
  const packageOf = (path: string) =>
    path
      .split('/')
      .slice(0, path.startsWith('src/') ? 2 : 1)
      .join('/');
  const isOurs = (path: string) => /^(src|connectors|formats)\//.test(path);
  const others = Map.groupBy(
    imports.filter(({ target }) => isOurs(target)),
    ({ file }) => packageOf(file),
  );

  const many = [...others].flatMap(([own, found]) => {
    const packages = new Set(found.map(({ target }) => packageOf(target)));
    packages.delete(own);
    return packages.size > 12 ? [[own, ...packages]] : [];
  });

  expect(others.size).toBeGreaterThan(20);
  expect(many).toEqual([]);
});

test('no more than 60 files are imported by other packages', () => {
  expect(Object.values(entryPoints).flat().length).toBeLessThanOrEqual(60);
});

test.each(Object.entries(entryPoints))(
  '%s is imported by its entry points only',
  (folder, entries) => {
    const inside = (path: string) => path.startsWith(`${folder}/`);
    const entered = new Set(
      imports
        .filter(({ file, target }) => inside(target) && !inside(file))
        .map(({ target }) => target),
    );

    expect([...entered].toSorted()).toEqual(
      entries.map((entry) => `${folder}/${entry}`).toSorted(),
    );
  },
);

test('each room has its directions', () => {
  const rooms = files.filter((file) => !Object.keys(allowed).some((room) => file.startsWith(room)));

  expect(rooms).toEqual(['connectors/index.ts']);
});

test('each exception still stands', () => {
  const gone = Object.entries(exceptions).flatMap(([from, targets]) =>
    targets.filter((to) => !imports.some(({ file, target }) => file === from && target === to)),
  );

  expect(gone).toEqual([]);
});

test('there is no import cycle, types included', () => {
  const targets = Map.groupBy(imports, ({ file }) => file);
  const reaches = (from: string) => {
    const seen = new Set<string>();
    const todo = [from];
    for (let file = todo.pop(); file !== undefined; file = todo.pop()) {
      for (const { target } of targets.get(file) ?? []) {
        if (!seen.has(target)) todo.push(target);
        seen.add(target);
      }
    }
    return seen;
  };

  expect(files.filter((file) => reaches(file).has(file))).toEqual(cycles);
});

test.each(Object.entries(wrappers))('%s is imported only where it is wrapped', (client, places) => {
  const users = imports.filter(({ target }) => target === client).map(({ file }) => file);

  const strays = users.filter((file) => !places.some((place) => file.startsWith(place)));

  expect(strays).toEqual([]);
});

test('no SQL stands outside of src/hold', () => {
  const words =
    /\b(SELECT\s+[\w*(]|INSERT\s+(OR\s+\w+\s+)?INTO|UPDATE\s+\w+\s+SET|DELETE\s+FROM|ATTACH\s+DATABASE|PRAGMA|CREATE\s+TABLE)\b/;
  const isHold = (file: string) => file.startsWith('src/hold/');

  const strays = files.filter(
    (file) => !isHold(file) && words.test(readFileSync(join(root, file), 'utf8')),
  );

  expect(
    files.filter((file) => isHold(file) && words.test(readFileSync(join(root, file), 'utf8')))
      .length,
  ).toBeGreaterThan(5);
  expect(strays).toEqual([]);
  expect(imports.filter(({ file, target }) => target === 'node:sqlite' && !isHold(file))).toEqual(
    [],
  );
});

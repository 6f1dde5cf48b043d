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

/** For each folder, the project's folders and files that it may import besides itself. */
const allowed: Readonly<Record<string, readonly string[]>> = {
  'src/contracts': [],
  'src/tools': ['src/contracts'],
  'src/watch': ['src/contracts'],
  'src/hold': ['src/contracts'],
  'src/fetch': ['src/contracts', 'src/tools'],
  'src/send': ['src/contracts', 'src/tools'],
  'src/sandbox': [],
  // How a body is cut into records is the same question for a source as for the engine.
  'connectors/sources': [
    'src/contracts',
    'src/tools/records.ts',
    'src/tools/record-list.ts',
    'src/tools/json-scan.ts',
    'connectors/shared',
  ],
  'connectors/sinks': ['src/contracts', 'connectors/shared'],
  'connectors/shared': ['src/contracts'],
  formats: ['src/contracts'],
};

/** The files that may import a third-party client. */
const wrappers: Readonly<Record<string, readonly string[]>> = {
  undici: ['src/tools/'],
  kafkajs: ['connectors/sinks/kafka/'],
  '@platformatic/kafka': ['connectors/sinks/kafka/'],
  'syslog-client': ['connectors/sinks/syslog/'],
  '@opentelemetry/otlp-transformer': ['formats/'],
  '@opentelemetry/resources': ['formats/', 'src/watch/collector-log.ts'],
  '@opentelemetry/sdk-logs': ['formats/', 'src/watch/collector-log.ts'],
  '@opentelemetry/exporter-logs-otlp-http': ['src/watch/collector-log.ts'],
  '@marcbachmann/cel-js': ['src/send/filter.ts'],
  'node-cron': ['src/fetch/schedule.ts', 'src/boot/config/'],
  yaml: ['src/boot/config/', 'src/sandbox/fault-script.ts'],
  commander: ['src/boot/'],
  pino: ['src/watch/'],
};

test('the project has files and imports to look at', () => {
  expect(files.length).toBeGreaterThan(50);
  expect(imports.length).toBeGreaterThan(200);
});

test.each(Object.entries(allowed))('%s imports only what it may', (folder, others) => {
  const inside = imports.filter(({ file }) => file.startsWith(`${folder}/`));

  const strays = inside.filter(
    ({ target }) =>
      /^(src|connectors|formats|test|bench)(\/|$)/.test(target) &&
      ![folder, ...others].some((place) => target === place || target.startsWith(`${place}/`)),
  );

  expect(inside.length).toBeGreaterThan(0);
  expect(strays).toEqual([]);
});

test.each(Object.entries(wrappers))('%s is imported only where it is wrapped', (client, places) => {
  const users = imports.filter(({ target }) => target === client).map(({ file }) => file);

  const strays = users.filter((file) => !places.some((place) => file.startsWith(place)));

  expect(strays).toEqual([]);
});

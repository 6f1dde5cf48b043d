// Each package that is shipped has a reason, a licence that permits it, a checksum, and no install script.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const root = join(import.meta.dirname, '../..');
const read = (path: string) => readFileSync(join(root, path), 'utf8');
const { dependencies, optionalDependencies } = JSON.parse(read('package.json'));

interface Locked {
  readonly dev?: boolean;
  readonly license?: string;
  readonly integrity?: string;
  readonly hasInstallScript?: boolean;
}

const shipped = Object.entries<Locked>(JSON.parse(read('package-lock.json')).packages).filter(
  ([path, { dev }]) => path !== '' && dev !== true,
);

test('the page has a reason for each dependency, and for no other package', () => {
  const rows = read('docs/contributing/dependencies.md').match(/^\| `.* \|$/gm) ?? [];
  const named = rows.flatMap((row) =>
    [...(row.split('|')[1] ?? '').matchAll(/`([^`]+)`/g)].map(([, name]) => name),
  );

  expect(named.toSorted()).toEqual(
    Object.keys({ ...dependencies, ...optionalDependencies }).toSorted(),
  );
});

test('each dependency has an exact version', () => {
  const ranges = Object.entries<string>({ ...dependencies, ...optionalDependencies }).filter(
    ([, version]) => !/^\d+\.\d+\.\d+$/.test(version),
  );

  expect(ranges).toEqual([]);
});

test('each shipped package has a permitted licence and a checksum', () => {
  const permitted = new Set(['Apache-2.0', 'MIT', 'ISC', 'BSD-2-Clause', 'BSD-3-Clause', '0BSD']);

  expect(shipped.length).toBeGreaterThan(50);
  expect(shipped.filter(([, { license }]) => !permitted.has(license ?? ''))).toEqual([]);
  expect(shipped.filter(([, { integrity }]) => !integrity?.startsWith('sha512-'))).toEqual([]);
});

test('no shipped package has an install script, except the known one', () => {
  // It prints a note about its own versions; the release does not run it.
  const known = ['node_modules/@grpc/proto-loader/node_modules/protobufjs'];

  const found = shipped.filter(([, { hasInstallScript }]) => hasInstallScript === true);
  expect(found.map(([path]) => path)).toEqual(known);
});

// Settings say the same as long as nothing in them, and in the files they name for TLS, is another.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { fingerprintOf } from '../../src/tools/fingerprint.ts';
import { tempDir } from '../support/temp.ts';

test('fingerprintOf is the same whatever the order of keys', () => {
  expect(fingerprintOf({ url: 'a', tls: { min_version: 'b' } })).toBe(
    fingerprintOf({ tls: { min_version: 'b' }, url: 'a' }),
  );
});

test.each(['ca_file', 'cert_file', 'key_file'])('fingerprintOf changes with %s itself', (key) => {
  const file = join(tempDir(), 'some.pem');
  const settings = { tls: { [key]: file } };
  const absent = fingerprintOf(settings);

  writeFileSync(file, 'one');
  const one = fingerprintOf(settings);
  const again = fingerprintOf(settings);
  writeFileSync(file, 'another');

  expect(new Set([absent, one, fingerprintOf(settings)]).size).toBe(3);
  expect(again).toBe(one);
});

test('fingerprintOf has no regard for a path that is no file of TLS', () => {
  const file = join(tempDir(), 'events.ndjson');
  const before = fingerprintOf({ path: file });

  writeFileSync(file, 'one');

  expect(fingerprintOf({ path: file })).toBe(before);
});

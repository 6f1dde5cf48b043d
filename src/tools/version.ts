// The running version of sluice, from its package.json.

import { readFileSync } from 'node:fs';

/** `0.1.0`: the version of sluice, from its package.json. */
export function version(): string {
  const { version }: { version: string } = JSON.parse(
    readFileSync(new URL('../../package.json', import.meta.url), 'utf8'),
  );
  return version;
}

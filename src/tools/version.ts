// The version of sluice that runs, as its package says.

import { readFileSync } from 'node:fs';

/** `0.1.0`: the version of sluice, as its package says. */
export function version(): string {
  const { version }: { version: string } = JSON.parse(
    readFileSync(new URL('../../package.json', import.meta.url), 'utf8'),
  );
  return version;
}

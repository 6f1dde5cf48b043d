// Material that other people made and that is not part of this repository (schemas, parser vectors,
// real sample records) lies beside it in `../shared`, on machines that have it. Tests read it from
// there; where it is absent they are skipped, and say so.
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, test } from 'vitest';

/** The path of a file or directory in `../shared`, or null if it is not on this machine. */
export function sharedPath(...segments: readonly string[]): string | null {
  const path = fileURLToPath(new URL(`../../../shared/${segments.join('/')}`, import.meta.url));
  return existsSync(path) ? path : null;
}

/**
 * `describe` for tests that need something from `../shared`: the body gets its path. Where it is
 * absent one skipped test says which file is missing.
 */
export function describeWithShared(
  name: string,
  segments: readonly string[],
  body: (path: string) => void,
): void {
  const path = sharedPath(...segments);
  if (path !== null) {
    describe(name, () => body(path));
    return;
  }
  const missing = `../shared/${segments.join('/')} is not on this machine`;
  console.log(`skipped: ${name}: ${missing}`);
  describe(name, () => test.skip(missing, () => undefined));
}

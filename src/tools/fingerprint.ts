// Whether settings say what they said before, their secrets and certificates included, of which no
// more than a digest is kept. A secret is read anew each time, and a file of `tls` is looked at, so
// that one that was mended in its file shows.

import { createHash } from 'node:crypto';
import { statSync } from 'node:fs';
import { isObject } from '../contracts/json.ts';
import { Secret } from '../contracts/secret.ts';
import type { Clock } from '../contracts/tools.ts';

/** Equal for values that say the same, whatever the order of their keys. */
export function fingerprintOf(value: unknown): string {
  return createHash('sha256')
    .update(JSON.stringify(plain(value)))
    .digest('base64');
}

/** Changes with the file, wherever its name leads; one that cannot be seen is like no other. */
export function fileStamp(file: string): string {
  try {
    const { ino, size, mtimeMs } = statSync(file);
    return `${ino}:${size}:${mtimeMs}`;
  } catch {
    return 'absent';
  }
}

const tlsFiles: ReadonlySet<string> = new Set(['ca_file', 'cert_file', 'key_file']);

const lookEveryMs = 1_000;

/** Looks once a second, and resolves when the fingerprint is another one. Rejects when aborted. */
export async function otherThan(
  known: string,
  { fingerprint, clock }: { readonly fingerprint: () => string; readonly clock: Clock },
  signal: AbortSignal,
): Promise<void> {
  do await clock.sleep(lookEveryMs, signal);
  while (fingerprint() === known);
}

function plain(value: unknown): unknown {
  if (value instanceof Secret) return { secret: revealed(value) };
  if (Array.isArray(value)) return value.map(plain);
  if (!isObject(value)) return value ?? null;
  const entries = Object.entries(value).filter(([, one]) => one !== undefined);
  return entries
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, one]) => [
      key,
      tlsFiles.has(key) && typeof one === 'string' ? [one, fileStamp(one)] : plain(one),
    ]);
}

/** One that cannot be read any more is like no other that can. */
function revealed(secret: Secret): string | null {
  try {
    return secret.reveal();
  } catch {
    return null;
  }
}

// Detects changed settings, including their secrets and certificates, by a digest. A secret is read
// again each time, and the files of `tls` are checked, so that a correction in a file is detected.

import { createHash } from 'node:crypto';
import { statSync } from 'node:fs';
import { type Clock, isObject, Secret } from '../contracts/index.ts';

/** Equal for equal values, whatever the order of their keys. */
export function fingerprintOf(value: unknown): string {
  return createHash('sha256')
    .update(JSON.stringify(plain(value)))
    .digest('base64');
}

/**
 * Changes with the file that the path resolves to; differs from every other stamp if the file is
 * unreadable.
 */
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

/** Runs the commands behind all secrets of the value again (`Secret.refresh`). Never rejects. */
export async function refreshSecrets(value: unknown): Promise<void> {
  if (value instanceof Secret) await value.refresh();
  else if (Array.isArray(value)) await Promise.all(value.map(refreshSecrets));
  else if (isObject(value)) await Promise.all(Object.values(value).map(refreshSecrets));
}

/**
 * Checks once a second, and resolves when the fingerprint has changed. Rejects when aborted. Before each check it calls
 * `refresh` without waiting for it: a command that hangs must not delay the other secrets.
 */
export async function otherThan(
  known: string,
  {
    fingerprint,
    clock,
    refresh,
  }: {
    readonly fingerprint: () => string;
    readonly clock: Clock;
    readonly refresh?: () => Promise<void>;
  },
  signal: AbortSignal,
): Promise<void> {
  do {
    void refresh?.();
    await clock.sleep(lookEveryMs, signal);
  } while (fingerprint() === known);
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

/** An unreadable secret differs from every readable one. */
function revealed(secret: Secret): string | null {
  try {
    return secret.reveal();
  } catch {
    return null;
  }
}

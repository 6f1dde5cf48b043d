// The files that a block's `tls` names: looked at when the config is checked, since a certificate
// that cannot be read would else show as a connection that never comes up.

import { type BlockReading, shown } from './block.ts';
import { readFile, whyUnreadable } from './references.ts';
import type { Entry } from './section.ts';

const fileKeys = ['ca_file', 'cert_file', 'key_file'] as const;

/** Tells of files that cannot be read, and of a certificate without its key if not told yet. */
export function checkTlsFiles(
  { written, path }: Pick<Entry<unknown>, 'written' | 'path'>,
  { flaws, around }: BlockReading,
  pairs = true,
): void {
  const tls = written.children?.get('tls');
  if (tls?.children == null) return;
  for (const key of fileKeys) {
    const file = tls.children.get(key);
    if (typeof file?.value !== 'string' || file.unset !== null) continue;
    if (around.placeholders !== undefined) continue; // another machine may have it
    try {
      readFile(file.value, around);
    } catch (error) {
      const message = `the file ${shown(file)} cannot be read: ${whyUnreadable(error)}`;
      flaws.add(file.at, [...path, 'tls', key], message);
    }
  }
  const certificate = tls.children.get('cert_file');
  const key = tls.children.get('key_file');
  if (!pairs || (certificate === undefined) === (key === undefined)) return;
  const at = (certificate ?? key)?.keyAt ?? tls.at;
  flaws.add(at, [...path, 'tls'], 'cert_file and key_file belong together: set both or neither');
}

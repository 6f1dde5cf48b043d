// The files that a block's `tls` names: read and parsed when the config is checked, because an unusable file would
// otherwise show only as a failing connection. A certificate outside its validity is only a notice: it must not prevent
// the start of the process with its other sinks.

import { type TlsFileKey, tlsFaults, tlsFileKeys, tlsNotices } from '../contracts/index.ts';
import { type BlockReading, shown } from './block.ts';
import { readFile, whyUnreadable } from './references.ts';
import type { NamedBlock } from './section.ts';
import type { WrittenValue } from './written.ts';

/**
 * Adds a flaw for each file that cannot be read or used, a notice for each certificate outside its validity, and with
 * `pairs` a flaw for a certificate without its key.
 */
export function checkTlsFiles(
  { written, path }: Pick<NamedBlock<unknown>, 'written' | 'path'>,
  reading: BlockReading,
  {
    pairs = true,
    block = 'tls',
  }: { readonly pairs?: boolean; readonly block?: 'tls' | 'tsa' } = {},
): void {
  const tls = written.children?.get(block);
  if (tls?.children == null) return;
  const { flaws, notices } = reading;
  const named = filesOf(tls);
  const files = contentsOf(named, [...path, block], reading);
  const add = (to: typeof flaws | undefined, key: TlsFileKey, message: string) => {
    const file = named.get(key);
    if (file !== undefined)
      to?.add(file.at, [...path, block, key], `the file ${shown(file)} ${message}`);
  };
  for (const { key, message } of tlsFaults(files)) add(flaws, key, message);
  for (const { key, message } of tlsNotices(files, Date.now())) add(notices, key, message);
  const certificate = tls.children.get('cert_file');
  const key = tls.children.get('key_file');
  if (!pairs || (certificate === undefined) === (key === undefined)) return;
  const at = (certificate ?? key)?.keyAt ?? tls.at;
  flaws.add(at, [...path, 'tls'], 'cert_file and key_file belong together: set both or neither');
}

/** The files whose names have no unset reference. */
function filesOf(tls: WrittenValue): ReadonlyMap<TlsFileKey, WrittenValue> {
  const named = new Map<TlsFileKey, WrittenValue>();
  for (const key of tlsFileKeys) {
    const file = tls.children?.get(key);
    if (typeof file?.value === 'string' && file.unset === null) named.set(key, file);
  }
  return named;
}

/** The contents of the files; a flaw for each that cannot be read. */
function contentsOf(
  named: ReadonlyMap<TlsFileKey, WrittenValue>,
  path: NamedBlock<unknown>['path'],
  { flaws, around: configEnv }: BlockReading,
): Partial<Record<TlsFileKey, Uint8Array>> {
  const contents: Partial<Record<TlsFileKey, Uint8Array>> = {};
  if (configEnv.placeholders !== undefined) return contents; // another machine may have the files
  for (const [key, file] of named) {
    try {
      contents[key] = readFile(String(file.value), configEnv);
    } catch (error) {
      const message = `the file ${shown(file)} cannot be read: ${whyUnreadable(error)}`;
      flaws.add(file.at, [...path, key], message);
    }
  }
  return contents;
}

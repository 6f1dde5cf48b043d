// The files that a block's `tls` names: read and parsed when the config is checked, because an unusable file would
// otherwise show only as a failing connection. A certificate outside its validity is only a notice: it must not prevent
// the start of the process with its other sinks.

import { type TlsFileKey, tlsFaults, tlsFileKeys, tlsNotices } from '../contracts/index.ts';
import { locate, shown } from './block.ts';
import type { Blocks } from './blocks.ts';
import type { Flaws, Path } from './flaws.ts';
import { readFile, type Surroundings, whyUnreadable } from './references.ts';
import type { WrittenBlock } from './section.ts';
import type { WrittenValue } from './written.ts';

/** The blocks with `tls` outside the sections of named blocks. */
const single = [
  ['status', 'otlp'],
  ['log', 'otlp'],
  ['state', 'kafka'],
];

/**
 * Adds a flaw for each file that cannot be read or used, and for a certificate without its key; a notice for each
 * certificate outside its validity.
 */
export function checkTlsFiles(
  { tree, upstreams, sources, sinks }: Blocks,
  configEnv: Surroundings,
  flaws: Flaws,
): void {
  for (const path of single) {
    const { found, steps } = locate(tree, path);
    if (steps === path.length)
      checkFilesOf({ written: found, path, settings: undefined }, configEnv, flaws);
  }
  for (const { entries } of [upstreams, sources, sinks]) {
    for (const entry of entries.values()) checkFilesOf(entry, configEnv, flaws);
  }
}

function checkFilesOf(
  { written, path, settings }: WrittenBlock<unknown>,
  configEnv: Surroundings,
  flaws: Flaws,
): void {
  for (const block of ['tls', 'tsa']) {
    const tls = written.children?.get(block);
    if (tls?.children == null) continue;
    const named = filesOf(tls);
    const at = [...path, block];
    const files = contentsOf({ named, at }, configEnv, flaws);
    const add = (kind: 'error' | 'notice', key: TlsFileKey, message: string) => {
      const file = named.get(key);
      if (file === undefined) return;
      flaws.add(file.at, [...at, key], `the file ${shown(file)} ${message}`, kind);
    };
    for (const { key, message } of tlsFaults(files)) add('error', key, message);
    for (const { key, message } of tlsNotices(files, Date.now())) add('notice', key, message);
    const certificate = tls.children.get('cert_file');
    const key = tls.children.get('key_file');
    // The flaw of a block may be this one, in its own words.
    if (settings === null || (certificate === undefined) === (key === undefined)) continue;
    const text = 'cert_file and key_file belong together: set both or neither';
    flaws.add((certificate ?? key)?.keyAt ?? tls.at, at, text);
  }
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
  { named, at }: { readonly named: ReadonlyMap<TlsFileKey, WrittenValue>; readonly at: Path },
  configEnv: Surroundings,
  flaws: Flaws,
): Partial<Record<TlsFileKey, Uint8Array>> {
  const contents: Partial<Record<TlsFileKey, Uint8Array>> = {};
  if (configEnv.placeholders !== undefined) return contents; // another machine may have the files
  for (const [key, file] of named) {
    try {
      contents[key] = readFile(String(file.value), configEnv);
    } catch (error) {
      const message = `the file ${shown(file)} cannot be read: ${whyUnreadable(error)}`;
      flaws.add(file.at, [...at, key], message);
    }
  }
  return contents;
}

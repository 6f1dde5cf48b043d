// Reads `companies: { file: PATH }`: one company id per line, in the order of the file. Text from `#` on is a comment where
// the `#` begins a line or follows a blank. Invariants: an id is never cut or joined, so no other company is read by
// mistake; a file without an id is an error, never "no companies".

import { createHash } from 'node:crypto';
import { readRegularFile } from '../tools/index.ts';
import { isCompanyId, type UpstreamBlock, type UpstreamSettings } from '../upstream/index.ts';
import { shown } from './block.ts';
import type { Flaws } from './flaws.ts';
import { placeholderWord } from './placeholders.ts';
import { type Surroundings, whyUnreadable } from './references.ts';
import type { NamedBlock } from './section.ts';

/** Limit in bytes: a log file named by mistake is reported. */
const fileBytesMax = 16 * 1024 * 1024;

/** The companies of an upstream, from its list or its file; null: the flaws give the reason. */
export function readCompanies(
  { companies: written }: Pick<UpstreamBlock, 'companies'>,
  entry: NamedBlock<null>,
  configEnv: Surroundings,
  flaws: Flaws,
): Pick<UpstreamSettings, 'companies' | 'companiesFile'> | null {
  if (!('file' in written)) return { companies: written };
  const file = entry.written.children?.get('companies')?.children?.get('file');
  const path = [...entry.path, 'companies', 'file'];
  const at = file?.at ?? entry.written.at;
  const placeholder = { companies: [placeholderWord] };
  if (file === undefined || file.unset !== null) return placeholder;
  const called = `the file ${shown(file)}`;
  let bytes: Uint8Array;
  try {
    bytes = configEnv.readFile?.(written.file) ?? readRegularFile(written.file, fileBytesMax);
  } catch (error) {
    const message = `${called} cannot be read: ${whyUnreadable(error)}; create it with one company id per line`;
    if (configEnv.placeholders !== 'all') {
      flaws.add(at, path, message);
      return null;
    }
    flaws.add(at, path, message, 'notice');
    return placeholder;
  }
  const parsed = parseCompanies(bytes);
  if (typeof parsed === 'string') {
    flaws.add(at, path, `${called} ${parsed}`);
    return null;
  }
  return { companies: parsed, companiesFile: { path: written.file, digest: digestOf(bytes) } };
}

/** Identifies the content of a companies file. */
export function digestOf(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('base64');
}

/** The ids, each once; a text: why the file cannot be used. */
export function parseCompanies(bytes: Uint8Array): readonly string[] | string {
  if (bytes.length > fileBytesMax) return 'is too large: expected one company id per line';
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return 'is not UTF-8 text: expected one company id per line';
  }
  const ids = new Set<string>();
  for (const [index, line] of text.split(/\r\n|\n|\r/).entries()) {
    const id = line.replace(/(^|[ \t])#.*$/s, '').trim();
    if (id === '') continue;
    if (!isCompanyId(id)) {
      return `has no company id in line ${index + 1}: expected one id per line, without control characters, and not . or ..`;
    }
    ids.add(id);
  }
  if (ids.size === 0) return 'has no company: write at least one id, one per line';
  return [...ids];
}

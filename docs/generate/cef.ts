// What the page of the `cef` format takes from its table of keys: where each key comes from.

import { type CefKey, cefKeys, standIns } from '../../formats/cef-keys.ts';
import { table } from './settings-table.ts';

/** Every key of the table with its sources. */
export function cefKeyTable(): string {
  const rows = cefKeys.map((row) => [keyOf(row), codes(row.from), namesOf(row), lengthOf(row)]);
  const given = Object.entries(standIns).map(([path, other]) => `\`${path}\` for \`${other}\``);
  return `${table(['key', 'from the OCSF attribute', 'in records not mapped', 'at most'], rows)}

One attribute is read in the stead of another only where that is missing: ${given.join(', ')}.`;
}

function keyOf({ key, kind, label }: CefKey): string {
  if (kind === 'header') return `${key} (header)`;
  if (label !== '') return `\`${key}\` with \`${key}Label=${label}\``;
  return `\`${key}\``;
}

function namesOf({ names, anywhere }: CefKey): string {
  if (names.length === 0) return '';
  return `${anywhere ? 'any: ' : 'logs: '}${codes(names)}`;
}

function lengthOf({ kind, length }: CefKey): string {
  if (length === 0) return '';
  return kind === 'whole' ? `${length}, whole or not at all` : String(length);
}

function codes(words: readonly string[]): string {
  return words.map((word) => `\`${word}\``).join(', ');
}

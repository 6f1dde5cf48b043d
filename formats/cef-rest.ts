// The one value that contains all values without a key: a JSON object by their paths. Invariant: it
// is always complete JSON: a value that does not fit is omitted, never cut, because half a document
// is unreadable.

import type { Pen } from './cef-values.ts';
import type { Dialect } from './dialect.ts';
import { jsonText, visibleJson } from './json-text.ts';

const beginning = 'sluiceUnmapped=';
// Minimum size of a member: `"a":1,`.
const memberMin = 6;

/** Maximum length of the value in characters, and of the pair in bytes. */
interface Room {
  readonly lengthMax: number;
  readonly bytesMax?: number;
}

/** The pair with these values; empty without values, `whole` if all of them fit. */
export function restPair(
  left: readonly { readonly path: string; readonly value: unknown }[],
  { replacePipe, dialect }: Pick<Pen, 'replacePipe' | 'dialect'>,
  { lengthMax, bytesMax = Number.POSITIVE_INFINITY }: Room,
): { readonly pair: string; readonly whole: boolean } {
  if (left.length === 0) return { pair: '', whole: true };
  let members = '';
  let whole = true;
  let length = lengthMax - 1;
  let bytes = bytesMax - beginning.length - 2;
  const names = new Set<string>();
  for (const { path, value } of left) {
    if (length < memberMin || bytes < memberMin)
      return { pair: pairOf(members, dialect), whole: false };
    let name = path;
    // A record can have `a.b` and an `a` with a `b`.
    while (names.has(name)) name = `unmapped.${name}`;
    const json = visibleJson(`${JSON.stringify(name)}:${jsonText(value)}`);
    // Escaping never shortens a text, and is slow for a value many times too long.
    const fits = json.length + 1 <= Math.min(length, bytes);
    const member = fits ? dialect.json(replacePipe ? json.replaceAll('|', '¦') : json) : '';
    const memberBytes = Buffer.byteLength(member) + 1;
    if (!fits || member.length + 1 > length || memberBytes > bytes) {
      whole = false;
      continue;
    }
    length -= member.length + 1;
    bytes -= memberBytes;
    names.add(name);
    members += members === '' ? member : `,${member}`;
  }
  return { pair: pairOf(members, dialect), whole };
}

function pairOf(members: string, { separator }: Dialect): string {
  return members === '' ? '' : `${separator}${beginning}{${members}}`;
}

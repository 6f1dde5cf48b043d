// The one value that holds what has no key of its own: a JSON object of values by their paths. It
// is always whole JSON: a value that does not fit any more is left out, never cut, since half of a
// document can be read by nobody.

import type { Pen } from './cef-values.ts';
import type { Dialect } from './dialect.ts';
import { jsonText, visibleJson } from './json-text.ts';

const beginning = 'sluiceUnmapped=';
// The least that a member takes: `"a":1,`.
const memberMin = 6;

/** How long the value may be: in characters, and the pair in bytes. */
interface Room {
  readonly lengthMax: number;
  readonly bytesMax?: number;
}

/** The pair that holds these values; empty where there are none, `whole` where all of them fit. */
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
    // Escaping makes nothing shorter, and takes long where a value is many times what fits.
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

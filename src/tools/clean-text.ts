// Makes upstream's text safe for an error message or log line. It is hostile by default: control
// and bidirectional characters could forge a second line or reverse one, length could hide the
// rest, and a server may echo the token or cursor that no message may contain.

import { plainText } from '../contracts/index.ts';

/**
 * Shorter values are too common to be replaced; no credential or cursor that matters is shorter.
 */
const hiddenLengthMin = 6;

/**
 * The text in one printable line of at most `lengthMax` characters. Values in `hidden` (a token, a
 * cursor), raw or percent-encoded, are replaced by `[hidden]`.
 */
export function cleanText(text: string, lengthMax: number, hidden: readonly string[] = []): string {
  // Hiding precedes cutting, because half a token is still secret; this bound keeps the search
  // cheap.
  let clean = text.slice(0, lengthMax * 8).toWellFormed();
  for (const value of hidden) {
    if (value.length < hiddenLengthMin) continue;
    clean = clean.replaceAll(value, '[hidden]');
    clean = clean.replaceAll(encodeURIComponent(value.toWellFormed()), '[hidden]');
  }
  clean = plainText(clean).replace(/ {2,}/g, ' ').trim();
  return clean.length > lengthMax ? `${clean.slice(0, lengthMax - 1).toWellFormed()}…` : clean;
}

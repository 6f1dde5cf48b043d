// Upstream's words made fit for an error message or log line. They are hostile until shown
// otherwise: control and bidirectional characters could forge a second line or turn one around,
// length could bury the rest, and a server may echo back the very token or cursor that no message
// may hold.

import { plainText } from '../contracts/text.ts';

/** Shorter values are too common to be replaced; no credential or cursor that matters is. */
const hiddenLengthMin = 6;

/**
 * The text in one printable line of at most `lengthMax` characters. Values in `hidden` (a token, a
 * cursor), as they are or percent-encoded, are replaced by `[hidden]`.
 */
export function cleanText(text: string, lengthMax: number, hidden: readonly string[] = []): string {
  // Hiding comes before cutting, as half a token is a token; this keeps the search cheap.
  let clean = text.slice(0, lengthMax * 8).toWellFormed();
  for (const value of hidden) {
    if (value.length < hiddenLengthMin) continue;
    clean = clean.replaceAll(value, '[hidden]');
    clean = clean.replaceAll(encodeURIComponent(value.toWellFormed()), '[hidden]');
  }
  clean = plainText(clean).replace(/ {2,}/g, ' ').trim();
  return clean.length > lengthMax ? `${clean.slice(0, lengthMax - 1).toWellFormed()}…` : clean;
}

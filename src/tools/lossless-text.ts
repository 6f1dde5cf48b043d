// Text that keeps each byte that is not UTF-8. RFC 8259 requires UTF-8 for JSON, but some servers
// send other bytes. A decoder turns each of them into U+FFFD, so that two different bytes look
// equal. Here that byte becomes the lone surrogate U+DC00 + byte, from U+DC80 to U+DCFF, as in
// Python's `surrogateescape` (PEP 383). Invariants: UTF-8 bytes give the same text as a decoder;
// converting bytes to text and back changes nothing.

import { isUtf8 } from 'node:buffer';

const decoder = new TextDecoder();

/** Sequences of UTF-8 above ASCII (Unicode 16, table 3-7) as Latin-1 text, or else one byte above ASCII. */
const sequences =
  /(?:[\xc2-\xdf][\x80-\xbf]|\xe0[\xa0-\xbf][\x80-\xbf]|[\xe1-\xec\xee\xef][\x80-\xbf]{2}|\xed[\x80-\x9f][\x80-\xbf]|\xf0[\x90-\xbf][\x80-\xbf]{2}|[\xf1-\xf3][\x80-\xbf]{3}|\xf4[\x80-\x8f][\x80-\xbf]{2})+|[\x80-\xff]/g;

/** The text of bytes; each byte that is not UTF-8 is a lone surrogate. */
export function losslessText(bytes: Uint8Array): string {
  if (isUtf8(bytes)) return decoder.decode(bytes);
  const latin = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1');
  return latin.replace(sequences, (found) =>
    found.length > 1
      ? Buffer.from(found, 'latin1').toString()
      : String.fromCharCode(0xdc00 + found.charCodeAt(0)),
  );
}

/** The bytes of a text from `losslessText`. */
export function losslessBytes(text: string): Buffer {
  if (text.isWellFormed()) return Buffer.from(text);
  // With the flag `u` a surrogate within a pair does not match.
  const pieces = text.split(/([\udc80-\udcff]+)/u);
  return Buffer.concat(
    pieces.map((piece, at) =>
      at % 2 === 0
        ? Buffer.from(piece)
        : Buffer.from(Array.from(piece, (one) => one.charCodeAt(0) - 0xdc00)),
    ),
  );
}

/** The text as a decoder shows it: U+FFFD for bytes that are not UTF-8. */
export function shownText(text: string): string {
  return text.isWellFormed() ? text : decoder.decode(losslessBytes(text));
}

/** `JSON.stringify` escapes lone surrogates. This restores them in JSON of a lossless text. */
export function unescapedBytes(json: string): string {
  return json.replace(/\\(?:udc([89a-f][0-9a-f])|.)/g, (found, byte?: string) =>
    byte === undefined ? found : String.fromCharCode(0xdc00 + Number.parseInt(byte, 16)),
  );
}

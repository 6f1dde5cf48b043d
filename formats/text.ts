// Text for lines: cuts it to a length without splitting a character, and removes characters that
// could end a line or control a terminal. All formats that write lines use this file, so that
// control characters are defined once.

const lineBreakers = /[\x00-\x1f\x7f-\x9f\u2028\u2029]/;
const lineBreakersAll = /[\x00-\x1f\x7f-\x9f\u2028\u2029]/g;

/** The text with C0 and C1 control characters, DEL and line separators replaced by blanks. */
export function oneLine(text: string): string {
  return lineBreakers.test(text) ? text.replace(lineBreakersAll, ' ') : text;
}

/** The text without blanks at its ends. Only blanks: other white space is content. */
export function trimBlanks(text: string): string {
  let start = 0;
  let end = text.length;
  while (start < end && text.charCodeAt(start) === 0x20) start++;
  while (end > start && text.charCodeAt(end - 1) === 0x20) end--;
  return end - start === text.length ? text : text.slice(start, end);
}

/** The first `codePointsMax` code points of the text. */
export function cutToCodePoints(text: string, codePointsMax: number): string {
  if (text.length <= codePointsMax) return text;
  let at = 0;
  for (let n = 0; n < codePointsMax && at < text.length; n++) {
    at += (text.codePointAt(at) ?? 0) > 0xffff ? 2 : 1;
  }
  return text.slice(0, at);
}

/** The longest prefix of whole code points within `bytesMax` bytes of UTF-8. */
export function cutToBytes(text: string, bytesMax: number): string {
  if (fits(text, bytesMax)) return text;
  const { read } = new TextEncoder().encodeInto(text, new Uint8Array(Math.max(0, bytesMax)));
  return text.slice(0, read);
}

/** Whether the text fits `bytesMax` bytes of UTF-8. */
export function fits(text: string, bytesMax: number): boolean {
  if (text.length * 3 <= bytesMax) return true;
  return text.length <= bytesMax && Buffer.byteLength(text) <= bytesMax;
}

/**
 * An escaped text cut so that no escape pair (a backslash and the character after it) is split;
 * trailing blanks left by the cut are removed too.
 */
export function cutEscaped(escaped: string, cut: (text: string) => string): string {
  const kept = cut(escaped);
  if (kept.length === escaped.length) return escaped;
  let backslashes = 0;
  while (kept.charCodeAt(kept.length - 1 - backslashes) === 0x5c) backslashes++;
  return trimBlanks(backslashes % 2 === 1 ? kept.slice(0, -1) : kept);
}

// Escaping for CEF, exactly as the ArcSight CEF Implementation Standard (version 27, "Character
// encoding") defines it: a pipe must not be escaped in the extension, nor an equals sign in the
// header, or decoders reject the event. Further replacements: CRLF counts as one line break; other
// control characters become blanks, because they would break the syslog line around the event;
// blanks at the ends of a value are removed, as decoders do. Length limits count code points of the
// escaped text, so that they hold however a receiver counts.

import { cutEscaped, cutToCodePoints, trimBlanks } from './text.ts';

const specialInValue = /[\\=\x00-\x1f\x7f-\x9f\u2028\u2029]/;
const specialInValueAll = /\r\n|[\\=\x00-\x1f\x7f-\x9f\u2028\u2029]/g;
const specialInHeader = /[\\|\x00-\x1f\x7f-\x9f\u2028\u2029]/;
const specialInHeaderAll = /\r\n|[\\|\x00-\x1f\x7f-\x9f\u2028\u2029]/g;
const blank = 0x20;

/** An extension value, at most `lengthMax` characters; may become empty. */
export function escapeValue(value: string, lengthMax: number): string {
  const last = value.length - 1;
  if (
    last < lengthMax &&
    value.charCodeAt(0) !== blank &&
    value.charCodeAt(last) !== blank &&
    !specialInValue.test(value)
  ) {
    return value;
  }
  return limited(value.replace(specialInValueAll, inValue), lengthMax);
}

/** A header field, at most `lengthMax` characters; a line break becomes one blank. */
export function escapeHeader(value: string, lengthMax: number): string {
  if (value.length <= lengthMax && !specialInHeader.test(value)) return trimBlanks(value);
  return limited(value.replace(specialInHeaderAll, inHeader), lengthMax);
}

function limited(escaped: string, lengthMax: number): string {
  return cutEscaped(trimBlanks(escaped), (text) => cutToCodePoints(text, lengthMax));
}

function inValue(special: string): string {
  switch (special) {
    case '\\':
    case '=':
      return `\\${special}`;
    case '\n':
    case '\r\n':
      return '\\n';
    case '\r':
      return '\\r';
    default:
      return ' ';
  }
}

function inHeader(special: string): string {
  return special === '\\' || special === '|' ? `\\${special}` : ' ';
}

// Parses records so that no number changes its value on the way out. A double keeps 15 significant digits; what upstream
// writes beyond that (ids of 64 bits, `1e400`, nanoseconds) would come out rounded, or as null. Such a number becomes the
// text that upstream wrote: a string is safe in every format and with every reader, where a long number literal
// would be rounded by the next one. Integers beyond 2^53 become text also where a double happens to keep one, so
// that a field of ids has one type. What must stay true: a record without such numbers costs nothing here; the scan
// that reads a page says so beforehand (`Slices.exact`), and else a search does.

import type { ParsedRecord } from '../contracts/event.ts';
import { digitsKept } from '../tools/json-tokens.ts';

const quote = 0x22;
const minus = 0x2d;
const nine = 0x39;
const backslash = 0x5c;

/**
 * Found in every record with a number that a double may not keep, and in few others: one that is long or has an exponent,
 * behind what stands before a value. Looking for it costs a tenth of going through the bytes one by one.
 */
const mayBeLong = new RegExp(`(?:^|[:[,])\\s*(?:[-+.\\d]{${digitsKept + 1}}|[-+.\\d]+[eE])`);

/** The record that stands at `body[start, end)` and is well-formed; numbers that a double cannot keep are their text. */
export function parseRecord(body: Buffer, start: number, end: number): ParsedRecord {
  const whole = body.toString('utf8', start, end);
  if (!mayBeLong.test(whole)) return JSON.parse(whole) as ParsedRecord;
  let text = '';
  let at = start;
  for (let number = longNumber(body, start, end); number !== null; ) {
    const source = body.toString('latin1', number.start, number.end);
    if (!isKept(source)) {
      text += `${body.toString('utf8', at, number.start)}"${source}"`;
      at = number.end;
    }
    number = longNumber(body, number.end, end);
  }
  return JSON.parse(text + body.toString('utf8', at, end)) as ParsedRecord;
}

/** The next number that is long enough, or has an exponent, so that it may not be kept. `from` is outside of strings. */
function longNumber(
  body: Buffer,
  from: number,
  end: number,
): { readonly start: number; readonly end: number } | null {
  let at = from;
  while (at < end) {
    const byte = body[at] ?? 0;
    at += 1;
    if (byte === quote) {
      at = stringEnd(body, at);
    } else if (byte >= minus && byte <= nine) {
      const start = at - 1;
      let scaled = false;
      for (let next = body[at] ?? 0; isOfNumber(next); next = body[at] ?? 0) {
        if (next > nine) scaled = true;
        at += 1;
      }
      if (scaled || at - start > digitsKept) return { start, end: at };
    }
  }
  return null;
}

/** Where the string ends whose text starts at `from`. */
function stringEnd(body: Buffer, from: number): number {
  let at = from;
  for (;;) {
    const byte = body[at];
    at += 1;
    if (byte === quote || byte === undefined) return at;
    if (byte === backslash) at += 1;
  }
}

/** Digits, `+`, `-`, `.`, `e` and `E`; the comma between `+` and `-` ends a number. */
function isOfNumber(byte: number): boolean {
  return (byte <= nine && byte >= minus) || byte === 0x2b || byte === 0x65 || byte === 0x45;
}

/** True where the number, once parsed, is written again with the same value. */
function isKept(source: string): boolean {
  const value = Number(source);
  if (/^-?\d+$/.test(source)) return Number.isSafeInteger(value);
  if (!Number.isFinite(value)) return false;
  const given = decimalOf(source);
  const kept = decimalOf(String(value));
  return given.digits === kept.digits && (given.digits === '' || given.exponent === kept.exponent);
}

/** A number as its significant digits, without sign and zeros at either end, and the power of ten of the last one. */
function decimalOf(source: string): { readonly digits: string; readonly exponent: number } {
  const [mantissa = '', scale = '0'] = source.replace('-', '').toLowerCase().split('e');
  const [whole = '', fraction = ''] = mantissa.split('.');
  const digits = whole + fraction;
  let start = 0;
  let end = digits.length;
  while (digits[start] === '0') start += 1;
  while (end > start && digits[end - 1] === '0') end -= 1;
  const exponent = Number(scale) - fraction.length + (digits.length - end);
  return { digits: digits.slice(start, end), exponent };
}

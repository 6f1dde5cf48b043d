// Parses records so that no number changes its value on the way out. A double keeps 15 significant
// digits; longer numbers of upstream (64-bit ids, `1e400`, nanoseconds) would be rounded or become
// null. They become the text that upstream wrote: a string is safe in every format and for every
// reader, while the next reader would lose digits of a long number literal. Integers beyond 2^53 always
// become text, even if a double represents one exactly, so that a field of ids has one type.
// Invariant: a record without long numbers costs nothing here: the scan of a page reports it
// (`Slices.exact`), otherwise a search finds it.

import type { ParsedRecord } from '../contracts/index.ts';
import { digitsKept, heldNestingMax, JsonScan } from '../tools/index.ts';

/**
 * Matches every record with a number that a double may not represent, and few others: a long number
 * or one with an exponent, after a character that precedes a value. The search costs a tenth of a
 * scan byte by byte.
 */
const mayBeLong = new RegExp(`(?:^|[:[,])\\s*(?:[-+.\\d]{${digitsKept + 1}}|[-+.\\d]+[eE])`);

/**
 * The well-formed record at `body[start, end)`; numbers that doubles cannot represent become text.
 */
export function parseRecord(body: Buffer, start: number, end: number): ParsedRecord {
  const whole = body.toString('utf8', start, end);
  if (!mayBeLong.test(whole)) return JSON.parse(whole) as ParsedRecord;
  const scan = new JsonScan(body, null);
  scan.levelsMax = heldNestingMax;
  const found: number[] = [];
  scan.tokens.inexact = found;
  scan.value(start);
  let text = '';
  let at = start;
  for (let i = 0; i < found.length; i += 2) {
    const [from = end, to = end] = found.slice(i, i + 2);
    const source = body.toString('latin1', from, to);
    if (isKept(source)) continue;
    text += `${body.toString('utf8', at, from)}"${source}"`;
    at = to;
  }
  return JSON.parse(text + body.toString('utf8', at, end)) as ParsedRecord;
}

/** True if the parsed number is written with the same value. */
function isKept(source: string): boolean {
  const value = Number(source);
  if (/^-?\d+$/.test(source)) return Number.isSafeInteger(value);
  if (!Number.isFinite(value)) return false;
  const given = decimalOf(source);
  const kept = decimalOf(String(value));
  return given.digits === kept.digits && (given.digits === '' || given.exponent === kept.exponent);
}

/** A number as its significant digits, unsigned, and the power of ten of the last one. */
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

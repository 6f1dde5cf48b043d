// Parses records so that no number changes its value on the way out. A double keeps 15 significant
// digits; what upstream writes beyond that (ids of 64 bits, `1e400`, nanoseconds) would come out
// rounded, or as null. Such a number becomes the text that upstream wrote: a string is safe in
// every format and with every reader, where a long number literal would be rounded by the next one.
// Integers beyond 2^53 become text also where a double happens to keep one, so that a field of ids
// has one type. What must stay true: a record without such numbers costs nothing here: the scan of
// a page says so beforehand (`Slices.exact`), and else a search.

import type { ParsedRecord } from '../contracts/event.ts';
import { heldNestingMax, JsonScan } from '../tools/json-scan.ts';
import { digitsKept } from '../tools/json-tokens.ts';

/**
 * Found in every record with a number that a double may not keep, and in few others: one that is
 * long or has an exponent, behind what stands before a value. Looking for it costs a tenth of going
 * through the bytes one by one.
 */
const mayBeLong = new RegExp(`(?:^|[:[,])\\s*(?:[-+.\\d]{${digitsKept + 1}}|[-+.\\d]+[eE])`);

/** The well-formed record at `body[start, end)`; numbers that doubles cannot keep are text. */
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

/** True where the number, once parsed, is written again with the same value. */
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

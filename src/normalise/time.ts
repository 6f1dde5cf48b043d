// Parses the times in upstream's records: RFC 3339 text and its common variants, and epoch numbers
// of any unit. It runs once per event on the way out, so it walks the characters once and allocates
// no Date and no string. Invariant: a text that it does not fully understand is no time (NaN),
// because a wrong time is worse than none.

import { parseOtherForm } from '../contracts/index.ts';

const zero = 48;
const dayMs = 86_400_000;
/** 9999-12-31T23:59:59.999Z; later ones cannot be written as RFC 3339. */
const msMax = 253_402_300_799_999;
/** An epoch number below this many seconds (1973) is more likely a counter or a duration. */
const secondsMin = 1e8;

/**
 * Epoch milliseconds of a record's time value, or NaN if it is none. Text: RFC 3339 (section 5.6)
 * with any number of fraction digits, also with a blank for `T`, an offset without colon, no zone
 * (UTC, as upstream uses), or a date alone. Numbers, also as text: epoch seconds, milliseconds,
 * microseconds or nanoseconds, distinguished by magnitude. Other texts: the unambiguous formats
 * (contracts/time-forms.ts).
 */
export function parseTime(value: unknown): number {
  const ms = parseUsualTime(value);
  return Number.isNaN(ms) && typeof value === 'string' ? parseOtherForm(value) : ms;
}

/** The same for the formats that nearly all times have. */
export function parseUsualTime(value: unknown): number {
  if (typeof value === 'string') {
    const ms = parseText(value);
    return !Number.isNaN(ms) || value.length < 9 || value.length > 30 ? ms : parseDigits(value);
  }
  return typeof value === 'number' ? fromNumber(value) : Number.NaN;
}

function fromNumber(value: number): number {
  let ms = Number.NaN;
  if (value >= secondsMin && value < 1e11) ms = Math.floor(value * 1000 + 1e-4);
  else if (value >= 1e11 && value < 1e14) ms = Math.floor(value);
  else if (value >= 1e14 && value < 1e17) ms = Math.floor(value / 1e3);
  else if (value >= 1e17 && value < 1e20) ms = Math.floor(value / 1e6);
  return ms <= msMax ? ms : Number.NaN;
}

function parseDigits(text: string): number {
  let dots = 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === 46) dots++;
    else if (code < zero || code > 57) return Number.NaN;
  }
  return dots > 1 ? Number.NaN : fromNumber(Number(text));
}

/** Two digits at an index, or NaN, which propagates through sums and is checked at the end. */
function two(text: string, at: number): number {
  const high = text.charCodeAt(at) - zero;
  const low = text.charCodeAt(at + 1) - zero;
  return high >= 0 && high <= 9 && low >= 0 && low <= 9 ? high * 10 + low : Number.NaN;
}

/** Days since 1970-01-01 of a Gregorian date, by years that begin in March. */
function daysSinceEpoch(year: number, month: number, day: number): number {
  const years = month > 2 ? year : year - 1;
  const months = month > 2 ? month - 3 : month + 9;
  const leaps = Math.floor(years / 4) - Math.floor(years / 100) + Math.floor(years / 400);
  return years * 365 + leaps + Math.floor((months * 153 + 2) / 5) + day - 1 - 719_468;
}

function daysIn(month: number, year: number): number {
  if (month === 2) return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0) ? 29 : 28;
  return month === 4 || month === 6 || month === 9 || month === 11 ? 30 : 31;
}

function parseText(text: string): number {
  const end = text.length;
  if (end < 10 || text.charCodeAt(4) !== 45 || text.charCodeAt(7) !== 45) return Number.NaN;
  const year = two(text, 0) * 100 + two(text, 2);
  const month = two(text, 5);
  const day = two(text, 8);
  if (!(month >= 1 && month <= 12 && day >= 1 && day <= daysIn(month, year))) return Number.NaN;
  const midnight = daysSinceEpoch(year, month, day) * dayMs;
  if (end === 10) return midnight;
  const separator = text.charCodeAt(10);
  if (separator !== 84 && separator !== 116 && separator !== 32) return Number.NaN;
  if (end < 19 || text.charCodeAt(13) !== 58 || text.charCodeAt(16) !== 58) return Number.NaN;
  const hour = two(text, 11);
  const minute = two(text, 14);
  const second = two(text, 17);
  // 60 is a leap second; it counts as the following second.
  if (!(hour <= 23 && minute <= 59 && second <= 60)) return Number.NaN;
  return midnight + ((hour * 60 + minute) * 60 + second) * 1000 + tail(text, 19);
}

/** Milliseconds of the fraction minus the offset; NaN if the rest is neither. */
function tail(text: string, start: number): number {
  let at = start;
  let ms = 0;
  const mark = text.charCodeAt(at);
  if (mark === 46 || mark === 44) {
    let weight = 100;
    const first = ++at;
    for (; at < text.length; at++) {
      const digit = text.charCodeAt(at) - zero;
      if (!(digit >= 0 && digit <= 9)) break;
      if (weight >= 1) ms += digit * weight;
      weight /= 10;
    }
    if (at === first) return Number.NaN;
  }
  if (at === text.length) return ms;
  const sign = text.charCodeAt(at);
  if (sign === 90 || sign === 122) return at + 1 === text.length ? ms : Number.NaN;
  if (sign === 32 && text.endsWith(' UTC') && at + 4 === text.length) return ms;
  if (sign !== 43 && sign !== 45) return Number.NaN;
  return ms - (sign === 43 ? 1 : -1) * offset(text, at + 1);
}

function offset(text: string, at: number): number {
  const length = text.length - at;
  const colon = text.charCodeAt(at + 2) === 58;
  if (length !== 2 && length !== (colon ? 5 : 4)) return Number.NaN;
  const hours = two(text, at);
  const minutes = length === 2 ? 0 : two(text, colon ? at + 3 : at + 2);
  return hours <= 23 && minutes <= 59 ? (hours * 60 + minutes) * 60_000 : Number.NaN;
}

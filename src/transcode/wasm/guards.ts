// The guards of values, as in ../guards.ts; a rare case gives `unsure` and is left to that file.

import {
  atCare,
  cares,
  digitsMax,
  escapeCare,
  fractionCare,
  highCare,
  isDigit,
  rareEscapeCare,
  timeMin,
  times,
} from './memory';

/** The answer of a failed test, and the answer that leaves the value to the other transcoder. */
const isNot: i32 = 3;
const unsure: i32 = -1;
const timeMax: f64 = 253402300799999;

/** `ask` as a number: the index in `asks` of ../runs.ts. */
export function answerOf(ask: u32, isText: bool, leaf: usize, start: usize, end: usize): i32 {
  const care = load<u32>(cares + leaf * 4);
  if ((care & rareEscapeCare) !== 0) return unsure;
  switch (ask) {
    case 0:
      return 0;
    case 1:
      return load<u8>(start) === 0x2f ? 0 : isNot;
    case 2:
    case 3:
    case 4:
      if (isText) return numberAnswer(ask, start, end);
      return (care & fractionCare) === 0 && inRange(ask, start, end) ? 0 : unsure;
    case 5:
    case 6:
      return timeAnswer(ask, leaf, start, end);
    case 7:
      return epochAnswer(leaf, care, start, end);
    case 8:
      if ((care & atCare) === 0) return isNot;
      break;
    default:
  }
  if ((care & (escapeCare | highCare)) !== 0) return isNot;
  if (ask === 8) return isEmail(start, end) ? 0 : isNot;
  if (ask === 9) return addressAnswer(start, end);
  if (ask === 10) return isHost(start, end) ? 0 : isNot;
  return macAnswer(start, end);
}

function numberAnswer(ask: u32, start: usize, end: usize): i32 {
  const first = load<u8>(start) === 0x2d ? start + 1 : start;
  for (let at = first; at < end; at += 1) if (!isDigit(load<u8>(at))) return isNot;
  const length = end - first;
  const isWritten = load<u8>(first) !== 0x30 || (first === start && length === 1);
  if (length === 0 || length > digitsMax || !isWritten) return unsure;
  return inRange(ask, start, end) ? 0 : unsure;
}

function inRange(ask: u32, start: usize, end: usize): bool {
  if (ask === 2) return true;
  if (load<u8>(start) === 0x2d) return false;
  if (ask === 3) return true;
  return end - start <= 5 && digitsAt(start, <u32>(end - start)) <= 65535;
}

/** The number of `count` digits, at most nine. */
function digitsAt(at: usize, count: u32): u32 {
  let value: u32 = 0;
  for (let i: u32 = 0; i < count; i += 1) value = value * 10 + load<u8>(at + i) - 0x30;
  return value;
}

function areDigits(at: usize, count: u32): bool {
  for (let i: u32 = 0; i < count; i += 1) if (!isDigit(load<u8>(at + i))) return false;
  return true;
}

/** For a time in RFC 3339 in UTC; any other text is `unsure`. */
function timeAnswer(ask: u32, leaf: usize, start: usize, end: usize): i32 {
  if (end - start < 20 || load<u8>(end - 1) !== 0x5a) return unsure;
  const isLike =
    areDigits(start, 4) &&
    load<u8>(start, 4) === 0x2d &&
    areDigits(start + 5, 2) &&
    load<u8>(start, 7) === 0x2d &&
    areDigits(start + 8, 2) &&
    load<u8>(start, 10) === 0x54 &&
    areDigits(start + 11, 2) &&
    load<u8>(start, 13) === 0x3a &&
    areDigits(start + 14, 2) &&
    load<u8>(start, 16) === 0x3a &&
    areDigits(start + 17, 2);
  if (!isLike) return unsure;
  const year = digitsAt(start, 4);
  const month = digitsAt(start + 5, 2);
  const day = digitsAt(start + 8, 2);
  const hour = digitsAt(start + 11, 2);
  const minute = digitsAt(start + 14, 2);
  const second = digitsAt(start + 17, 2);
  if (month - 1 > 11 || day - 1 > 27 || hour > 23 || minute > 59 || second > 59) {
    // The last days of months are not checked here.
    const isLate = month - 1 <= 11 && day - 29 <= 1 && month !== 2;
    if (!isLate || hour > 23 || minute > 59 || second > 59) return unsure;
  }
  let milliseconds: u32 = 0;
  let isFine = false;
  let at = start + 19;
  if (load<u8>(at) === 0x2e) {
    at += 1;
    const first = at;
    let weight: u32 = 100;
    for (; at < end - 1; at += 1) {
      const digit = <u32>load<u8>(at) - 0x30;
      if (digit > 9) return unsure;
      if (weight === 0 && digit !== 0) isFine = true;
      milliseconds += digit * weight;
      weight /= 10;
    }
    if (at === first) return unsure;
  }
  if (at !== end - 1) return unsure;
  const years = month > 2 ? year : year - 1;
  const months = month > 2 ? month - 3 : month + 9;
  const days = years * 365 + years / 4 - years / 100 + years / 400 + (months * 153 + 2) / 5 + day;
  const time =
    (<f64>days - 719469) * 86400000 +
    <f64>(((hour * 60 + minute) * 60 + second) * 1000 + milliseconds);
  if (!(time >= timeMin && time <= timeMax)) return unsure;
  store<f64>(times + leaf * 8, time);
  return ask === 6 && isFine ? 1 : 0;
}

function epochAnswer(leaf: usize, care: u32, start: usize, end: usize): i32 {
  if (care !== 0 || load<u8>(start) === 0x2d) return unsure;
  let value: u64 = 0;
  for (let at = start; at < end; at += 1) value = value * 10 + load<u8>(at) - 0x30;
  if (value < 100000000) return isNot;
  const isSeconds = value < 100000000000;
  const time = <f64>(isSeconds ? value * 1000 : value);
  if (time < timeMin || time >= 1e14) return unsure;
  store<f64>(times + leaf * 8, time);
  return isSeconds ? 0 : 1;
}

/** Only a single IPv4 address is decided here. */
function addressAnswer(start: usize, end: usize): i32 {
  let dots: u32 = 0;
  let octet: i32 = -1;
  let isOne = end - start <= 40;
  for (let at = start; at < end; at += 1) {
    const byte = load<u8>(at);
    // A colon, blank, comma or semicolon: IPv6, a port or a list.
    if (byte === 0x3a || byte === 0x20 || byte === 0x2c || byte === 0x3b) return unsure;
    if (byte === 0x2e) {
      if (octet < 0) isOne = false;
      dots += 1;
      octet = -1;
    } else if (isDigit(byte)) {
      if (octet === 0) isOne = false;
      octet = octet < 0 ? byte - 0x30 : octet * 10 + byte - 0x30;
      if (octet > 255) {
        isOne = false;
        octet = 1;
      }
    } else {
      isOne = false;
    }
  }
  return isOne && dots === 3 && octet >= 0 ? 0 : isNot;
}

function isAlphanumeric(byte: u32): bool {
  return (byte | 0x20) - 0x61 <= 25 || byte - 0x30 <= 9;
}

function isEmail(start: usize, end: usize): bool {
  if (end - start > 320) return false;
  let at = start;
  for (; at < end; at += 1) {
    const byte = <u32>load<u8>(at);
    if (byte === 0x40) break;
    const isLocal =
      isAlphanumeric(byte) ||
      byte - 42 <= 5 ||
      byte - 35 <= 4 ||
      byte - 94 <= 2 ||
      byte - 123 <= 3 ||
      byte === 33 ||
      byte === 61 ||
      byte === 63;
    if (!isLocal) return false;
  }
  if (at === start || at === end) return false;
  let dot: usize = 0;
  for (let place = at + 1; place < end; place += 1) {
    const byte = <u32>load<u8>(place);
    if (byte === 0x2e && dot === 0) dot = place;
    if (!isAlphanumeric(byte) && byte !== 45 && byte !== 46) return false;
  }
  return dot >= at + 2 && dot !== end - 1;
}

function isHost(start: usize, end: usize): bool {
  if (end - start > 253) return false;
  for (let at = start; at < end; at += 1) {
    const byte = <u32>load<u8>(at);
    if (!isAlphanumeric(byte) && byte !== 45 && byte !== 46 && byte !== 95) return false;
  }
  return true;
}

/** Some formats write a MAC address with hyphens differently. */
function macAnswer(start: usize, end: usize): i32 {
  if (end - start !== 17) return isNot;
  for (let i: usize = 0; i < 17; i += 1) {
    const byte = <u32>load<u8>(start + i);
    if (byte === 45) return unsure;
    const isHex = byte - 0x30 <= 9 || (byte | 0x20) - 0x61 <= 5;
    if (i % 3 === 2 ? byte !== 0x3a : !isHex) return isNot;
  }
  return 0;
}

// The value ranges of OCSF attribute types: addresses, ports, e-mail addresses, and texts within
// the schema's ranges and patterns. Other values stay in `unmapped`. Invariant: a check may be
// stricter than the schema and never laxer. All checks run on the hot path and walk characters.

import { isIPv6 } from 'node:net';
import type { Json } from '../contracts/index.ts';

/** True for an IPv4 or IPv6 address as defined by OCSF's `ip_t` (at most 40 characters). */
export function isIp(text: string): boolean {
  const { length } = text;
  if (length < 2 || length > 40) return false;
  return isIpv4(text) || (text.includes(':') && isIPv6(text));
}

function isIpv4(text: string): boolean {
  let dots = 0;
  let octet = -1;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === 46) {
      if (octet < 0) return false;
      dots++;
      octet = -1;
    } else if (code >= 48 && code <= 57) {
      // Some readers parse an octet with a leading zero as octal.
      if (octet === 0) return false;
      octet = octet < 0 ? code - 48 : octet * 10 + code - 48;
      if (octet > 255) return false;
    } else {
      return false;
    }
  }
  return dots === 3 && octet >= 0;
}

/** True if OCSF's `email_t` accepts the text; longer than RFC 5321 allows is rejected. */
export function isEmail(text: string): boolean {
  if (text.length > 320) return false;
  const at = text.indexOf('@');
  if (at < 1) return false;
  for (let place = 0; place < at; place++) {
    if (!isLocalPart(text.charCodeAt(place))) return false;
  }
  const dot = text.indexOf('.', at);
  if (dot < at + 2 || dot === text.length - 1) return false;
  for (let place = at + 1; place < text.length; place++) {
    const code = text.charCodeAt(place);
    if (!isAlphanumeric(code) && code !== 45 && code !== 46) return false;
  }
  return true;
}

function isAlphanumeric(code: number): boolean {
  return (code >= 97 && code <= 122) || (code >= 48 && code <= 57) || (code >= 65 && code <= 90);
}

/** Letters, digits and ``!#$%&'*+,-./=?^_`{|}~``, as the schema's pattern lists them. */
function isLocalPart(code: number): boolean {
  return (
    isAlphanumeric(code) ||
    (code >= 42 && code <= 47) ||
    (code >= 35 && code <= 39) ||
    (code >= 94 && code <= 96) ||
    (code >= 123 && code <= 126) ||
    code === 33 ||
    code === 61 ||
    code === 63
  );
}

/** True for six pairs of hex digits separated by `:` or `-`. */
export function isMac(text: string): boolean {
  return text.length === 17 && /^(?:[0-9A-Fa-f]{2}[:-]){5}[0-9A-Fa-f]{2}$/.test(text);
}

/** True for a possible host name: at most 253 letters, digits, `-`, `_` and `.`. */
export function isHostname(text: string): boolean {
  if (text.length > 253) return false;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (!isAlphanumeric(code) && code !== 45 && code !== 46 && code !== 95) return false;
  }
  return text.length > 0;
}

/** True for a port number. */
export function isPort(value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= 65_535;
}

/** True for values that a text attribute holds without loss: text, or an exact integer. */
export function isTextual(value: Json): value is string | number {
  return typeof value === 'string' ? value !== '' : Number.isSafeInteger(value);
}

/** The integer that a text denotes exactly, or undefined: `'443'`, not `'0443'` or `'4.0'`. */
export function integerOf(value: Json | undefined): number | undefined {
  if (typeof value === 'number') return Number.isSafeInteger(value) ? value : undefined;
  if (typeof value !== 'string' || value.length > 17 || value.charCodeAt(0) > 57) return undefined;
  const number = Number(value);
  return Number.isSafeInteger(number) && String(number) === value ? number : undefined;
}

/** True if two words differ at most in the case of A to Z. */
export function sameWord(one: string, two: string): boolean {
  if (one.length !== two.length) return false;
  for (let at = 0; at < one.length; at++) {
    const code = one.charCodeAt(at);
    const differs = code ^ two.charCodeAt(at);
    if (differs !== 0 && (differs !== 32 || !isAlphanumeric(code))) return false;
  }
  return true;
}

const nearbyMax = 256;

/**
 * Caches the results of `compute` by text. Bounded: long texts and those over `max` are computed
 * each time. A small table by length and end characters precedes the map, because hashing a fresh
 * string costs more than comparing it.
 */
export function memo<T>(compute: (text: string) => T, max = 1024): (text: string) => T {
  const known = new Map<string, T>();
  const nearby = new Array<{ readonly text: string; readonly made: T } | null>(nearbyMax).fill(
    null,
  );
  return (text) => {
    const { length } = text;
    const at =
      (length * 31 + text.charCodeAt(0) * 7 + text.charCodeAt(length - 1) * 3) & (nearbyMax - 1);
    const near = nearby[at];
    if (near !== null && near !== undefined && near.text === text) return near.made;
    let made = known.get(text);
    if (made === undefined) {
      made = compute(text);
      if (length > 128) return made;
      if (known.size < max) known.set(text, made);
    }
    nearby[at] = { text, made };
    return made;
  };
}

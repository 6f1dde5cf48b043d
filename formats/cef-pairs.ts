// How one pair of a CEF extension is written: a blank, the key, `=`, the escaped value; or nothing at all, since
// decoders fall over empty values. Keys come in with their blank and their `=`, so that a pair is one concatenation.

import { isIPv4, isIPv6 } from 'node:net';
import { escapeValue } from './cef-escape.ts';
import type { Lengths } from './cef-lengths.ts';
import { cutToCodePoints } from './text.ts';

/** How the pairs of one extension are written. */
export interface Pen {
  readonly lengths: Lengths;
  /** Whether what the mapping did not place is written too. */
  readonly unmapped: boolean;
  /** One pair; nothing where the value is no text or nothing is left of it. */
  pair(key: string, value: unknown, lengthMax: number): string;
}

/** What a user chooses of the extension. */
interface PenSettings {
  readonly unmapped: boolean;
  /** Pipes become `%7C` in a URL and `¦` elsewhere, for receivers that split on every pipe: CEF has no escape there. */
  readonly replace_pipe: boolean;
}

/** Makes a pen that keeps to these lengths. */
export function penOf(lengths: Lengths, { unmapped, replace_pipe }: PenSettings): Pen {
  return { lengths, unmapped, pair: replace_pipe ? pipelessPair : pair };
}

/** A pair of text. */
function pair(key: string, value: unknown, lengthMax: number): string {
  if (typeof value !== 'string' || value === '') return '';
  const escaped = escapeValue(value, lengthMax);
  return escaped === '' ? '' : key + escaped;
}

function pipelessPair(key: string, value: unknown, lengthMax: number): string {
  if (typeof value !== 'string' || !value.includes('|')) return pair(key, value, lengthMax);
  return pair(key, value.replaceAll('|', key === ' request=' ? '%7C' : '¦'), lengthMax);
}

/** A pair only where the value fits: half an identifier would match the wrong record. */
export function wholePair(key: string, value: unknown, lengthMax: number): string {
  if (typeof value !== 'string' || value.length > 2 * lengthMax) return '';
  const escaped = escapeValue(value, Number.POSITIVE_INFINITY);
  return escaped === '' || cutToCodePoints(escaped, lengthMax) !== escaped ? '' : key + escaped;
}

/** A pair of a number that has been checked. */
export function numberPair(key: string, value: number | undefined): string {
  return value === undefined ? '' : key + value;
}

/** A custom field with its label, without which receivers refuse it. */
export function labelled(written: string, label: string): string {
  return written === '' ? '' : written + label;
}

/** The keys for an address of either family. */
export interface AddressKeys {
  readonly ip4: string;
  readonly ip6: string;
  readonly ip6Label: string;
}

/** An address under the key of its family; a zone (`%eth0`) means nothing elsewhere and is left out. */
export function addressPair(ip: unknown, keys: AddressKeys): string {
  if (typeof ip !== 'string') return '';
  if (isIPv4(ip)) return keys.ip4 + ip;
  if (!isIPv6(ip)) return '';
  const zone = ip.indexOf('%');
  return keys.ip6 + (zone < 0 ? ip : ip.slice(0, zone)) + keys.ip6Label;
}

const macAddress = /^[0-9A-Fa-f]{2}([:-][0-9A-Fa-f]{2}){5}$/;

/** A hardware address, with colons as CEF has it. */
export function macPair(key: string, mac: unknown): string {
  return typeof mac === 'string' && macAddress.test(mac) ? key + mac.replaceAll('-', ':') : '';
}

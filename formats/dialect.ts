// The dialects of keys and values in one line: CEF and LEEF have the same values in the same order,
// and differ in the separator of pairs, in the names of keys and in the escaping of delimiters.

import { isIPv4, isIPv6 } from 'node:net';
import { escapeHeader, escapeValue } from './cef-escape.ts';
import { epochMsOf } from './parts.ts';
import { cutToCodePoints, oneLine, trimBlanks } from './text.ts';

/** One dialect of pairs. */
export interface Dialect {
  /** The text before a pair. */
  readonly separator: string;
  /**
   * A table key's name in this dialect; `label`: its meaning, if the key's name does not show it.
   */
  keyOf(key: string, label: string): string;
  /** The pair with a key's meaning; empty if the key's name shows it. */
  labelOf(key: string, label: string): string;
  /** A value of at most `lengthMax` characters. */
  value(text: string, lengthMax: number): string;
  /** JSON as a value; the result is JSON. */
  json(text: string): string;
  /** A header field of at most `lengthMax` characters. */
  header(text: string, lengthMax: number): string;
  /** A point in time, epoch milliseconds; undefined if it cannot be expressed. */
  time(value: unknown): number | undefined;
  /** The pair of an address; empty if no key accepts it. */
  address(ip: string, key: string): string;
  /** The line up to its pairs. */
  start(device: string, head: PairHeader): string;
}

/** The start of a line. */
export interface PairHeader {
  readonly classId: string;
  readonly name: string;
  /** OCSF level 0 to 6. */
  readonly severity: number;
  readonly uid: string;
}

const cefSeverities = ['0|', '2|', '3|', '5|', '8|', '10|', '10|'];

/** CEF's keys for an address that is not IPv4, each with its label. */
const keysOfIp6: Readonly<Record<string, readonly [key: string, label: string]>> = {
  src: ['c6a2', 'Source IPv6 Address'],
  dst: ['c6a3', 'Destination IPv6 Address'],
  dvc: ['c6a1', 'Device IPv6 Address'],
};

/** ArcSight's Common Event Format. */
export const cefDialect: Dialect = {
  separator: ' ',
  keyOf: (key) => key,
  labelOf: (key, label) => (label === '' ? '' : ` ${key}Label=${label}`),
  value: escapeValue,
  json: (text) => escapeValue(text, Number.POSITIVE_INFINITY),
  header: escapeHeader,
  time: epochMsOf,
  address(ip, key) {
    if (isIPv4(ip)) return ` ${key}=${ip}`;
    const [ip6Key, label] = keysOfIp6[key] ?? [];
    if (ip6Key === undefined || !isIPv6(ip)) return '';
    return ` ${ip6Key}=${withoutZone(ip)} ${ip6Key}Label=${label}`;
  },
  start: (device, { classId, name, severity, uid }) =>
    // Hexadecimal digits need no escaping, and are never shortened with the other values.
    `${device}${classId}|${name}|${cefSeverities[severity]}cs6=${uid} cs6Label=uid`,
};

/** LEEF's names of keys; a key without one keeps CEF's name. */
const leefKeys: Readonly<Record<string, string>> = {
  rt: 'devTime',
  spt: 'srcPort',
  dpt: 'dstPort',
  smac: 'srcMAC',
  dmac: 'dstMAC',
  suser: 'usrName',
  spriv: 'role',
  in: 'srcBytes',
  out: 'dstBytes',
  request: 'url',
  cs1: 'policy',
  cs4: 'resource',
};

// The standard has no escapes, so characters that would end a pair or the header become
// look-alikes. The separator is a caret and not a tab, which syslog receivers alter or drop.
const lookAlikes = /[|^]/g;
const leefSeverities = [1, 2, 3, 5, 8, 10, 10];
const leefEventIdMax = 255;
const leefTimeMin = 1e12;
const leefTimeMax = 1e13;

/** IBM QRadar's Log Event Extended Format, version 2.0. */
export const leefDialect: Dialect = {
  separator: '^',
  keyOf: (key, label) =>
    leefKeys[key] ?? (label === '' ? key : label.replace(/_(.)/g, (_, next) => next.toUpperCase())),
  labelOf: () => '',
  value: (text, lengthMax) => cutToCodePoints(leefText(text), lengthMax),
  json: (text) =>
    // These characters occur only inside strings.
    text.replace(lookAlikes, (one) => (one === '|' ? '\\u007c' : '\\u005e')),
  header: (text, lengthMax) => cutToCodePoints(leefText(text), lengthMax),
  // Without devTimeFormat a time is recognised by its 13 digits.
  time(value) {
    const time = epochMsOf(value);
    return time !== undefined && time >= leefTimeMin && time < leefTimeMax ? time : undefined;
  },
  address: (ip, key) => (isIPv4(ip) || isIPv6(ip) ? `^${key}=${withoutZone(ip)}` : ''),
  start: (device, { classId, name, severity, uid }) =>
    `${device}${cutToCodePoints(classId, leefEventIdMax)}|^|sev=${leefSeverities[severity]}^name=${name}^uid=${uid}`,
};

function leefText(text: string): string {
  return trimBlanks(oneLine(text)).replace(lookAlikes, (one) => (one === '|' ? '¦' : 'ˆ'));
}

/** A zone (`%eth0`) has no meaning on another machine. */
function withoutZone(ip: string): string {
  const zone = ip.indexOf('%');
  return zone < 0 ? ip : ip.slice(0, zone);
}

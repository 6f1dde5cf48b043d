// The role of a record's value for its event: it decides the form of the event, or it is copied
// under a guard. Both follow from the values that the normaliser declares to inspect; any other
// value decides. Invariant: for two values that pass a guard with the same answer, the normaliser
// creates the same event except for the values themselves.

import { isIPv6 } from 'node:net';
import { partOfChange } from '../contracts/index.ts';
import {
  type Attention,
  isIp,
  type Passing,
  parseTime,
  parseUsualTime,
} from '../normalise/index.ts';
import { inArray, type LeafPath } from './record-shape.ts';
import { care, digitsMax, isDigit, type ShapeTree } from './shape-tree.ts';

/**
 * The test of a value. The answer is 0 if the value passes and `isNot` if not; for a `whole time`
 * it is 1 if there is something finer than milliseconds; for an `epoch` 0 for seconds and 1 for
 * milliseconds; for an `ip` 1 for IPv6. A `count` is not below zero. Texts may be numbers too.
 */
export type GuardCheck =
  | 'nothing'
  | 'path'
  | 'time'
  | 'whole time'
  | 'epoch'
  | 'email'
  | 'ip'
  | 'mac'
  | 'host'
  | 'integer'
  | 'count'
  | 'port';

/** The answer of a failed test. */
export const isNot = 3;

/** One value of a shape. */
export interface ShapeLeaf {
  readonly isText: boolean;
  readonly decides: boolean;
  readonly ask: GuardCheck;
  readonly bytesMax: number;
}

/** Maximum length of a word under a name that accepts words (normalise/reading.ts). */
const wordMax = 512;
const portMax = 65_535;
const slash = 0x2f;
const minus = 0x2d;
const dot = 0x2e;
const comma = 0x2c;
const zero = 0x30;
/** `2026-11-23T12:34:56`. */
const secondsBytes = 19;
/** Where epoch numbers begin, and where those of a unit end (normalise/time.ts). */
const epochMin = 1e8;
const secondsMax = 1e11;
const millisecondsMax = 1e14;
/** Times of 13 digits that can be written as RFC 3339: 2001-09-09 to 9999-12-31. */
export const timeMin = 1e12;
const timeMax = 253_402_300_799_999;

/** The leaf for a value of a shape. */
export function leafAt(path: LeafPath, isText: boolean, attention: Attention): ShapeLeaf {
  const array = path.indexOf(inArray);
  const keys = (array < 0 ? path : path.slice(0, array)) as readonly string[];
  const asks = new Set<GuardCheck>();
  let decides = false;
  let bytesMax = Number.POSITIVE_INFINITY;
  for (const { slot, accepts } of attention.offers(keys)) {
    // An array is taken whole as JSON, as a list of changes, for its first address, or not at all.
    if (array >= 0 && accepts === 'ip') decides = true;
    if (array >= 0 && accepts === 'changes' && isChangedField(path, array)) decides = true;
    if (array >= 0 && accepts !== 'json') continue;
    const passing = attention.passedOn.get(slot);
    for (const ask of [
      isText ? asksOfTexts[accepts] : asksOfNumbers[accepts],
      passing && askOf(passing, isText),
    ]) {
      if (ask === undefined) decides = true;
      else asks.add(ask);
    }
    if (accepts === 'word') bytesMax = wordMax;
  }
  asks.delete('nothing');
  const [first = 'nothing'] = asks;
  const ask = strongest.find((one) => asks.has(one)) ?? first;
  for (const implied of [ask, ...(implies[ask] ?? [])]) asks.delete(implied);
  return { isText, decides: decides || asks.size > 0, ask, bytesMax };
}

/** The name of a field in a list of changes becomes a key of the event. */
function isChangedField(path: LeafPath, array: number): boolean {
  const key = path[array + 1];
  return path.length === array + 2 && typeof key === 'string' && partOfChange(key) === 'field';
}

/** Guards that hold whenever this one does. */
export const implies: Readonly<Partial<Record<GuardCheck, readonly GuardCheck[]>>> = {
  'whole time': ['time'],
  port: ['count', 'integer'],
  count: ['integer'],
};
const strongest = Object.keys(implies) as GuardCheck[];

/** The guard for a copied value; undefined: the value itself decides. */
function askOf(passing: Passing, isText: boolean): GuardCheck | undefined {
  if (passing === 'nothing') return 'nothing';
  if (typeof passing === 'string') return isText ? passing : 'nothing';
  return (isText ? coercionsOfTexts : coercionsOfNumbers)[passing.to];
}

/** The guard under which a text or number converts to a type (normalise/coerce.ts). */
type Coercions = Readonly<Partial<Record<Extract<Passing, object>['to'], GuardCheck>>>;
const coercionsOfTexts: Coercions = {
  text: 'nothing',
  json: 'nothing',
  int: 'integer',
  long: 'integer',
  port: 'port',
  time: 'whole time',
  ip: 'ip',
  mac: 'mac',
  email: 'email',
};
const coercionsOfNumbers: Coercions = {
  text: 'nothing',
  json: 'nothing',
  float: 'nothing',
  int: 'integer',
  long: 'integer',
  port: 'port',
  time: 'epoch',
  // No number does.
  bool: 'nothing',
  ip: 'nothing',
  mac: 'nothing',
  email: 'nothing',
};

type Asks = Readonly<
  Partial<Record<ReturnType<Attention['offers']>[number]['accepts'], GuardCheck>>
>;

/** The guard under which a name accepts a text; `nothing`: never or always. Other types decide. */
const asksOfTexts: Asks = {
  text: 'nothing',
  word: 'nothing',
  json: 'nothing',
  changes: 'nothing',
  port: 'nothing',
  code: 'nothing',
  time: 'time',
  ip: 'ip',
  email: 'email',
  host: 'host',
};

const asksOfNumbers: Asks = {
  text: 'integer',
  time: 'epoch',
  json: 'nothing',
  changes: 'nothing',
  port: 'port',
  word: 'nothing',
  ip: 'nothing',
  email: 'nothing',
  host: 'nothing',
  mac: 'nothing',
  method: 'nothing',
};

/** A page's bytes, and the byte ranges of the last found record's values. */
export interface FoundValues extends Pick<ShapeTree<unknown>, 'starts' | 'ends' | 'cares'> {
  readonly bytes: Buffer;
  /** Epoch milliseconds of the values that are times. */
  readonly times: Float64Array;
}

/** The guard's answer for the last found value of a leaf; -1 if it must not be copied. */
export function guardResult(
  { ask, isText, bytesMax }: ShapeLeaf,
  index: number,
  found: FoundValues,
  accepts: Attention['accepts'],
): number {
  const start = found.starts[index] as number;
  const end = found.ends[index] as number;
  const cares = found.cares[index] as number;
  if (end - start > bytesMax || (cares & care.rareEscape) !== 0) return -1;
  switch (ask) {
    case 'nothing':
      return 0;
    case 'path':
      return found.bytes[start] === slash ? 0 : isNot;
    case 'integer':
    case 'count':
    case 'port':
      return isText ? numberAnswer(ask, found, start, end) : rangeAnswer(ask, index, found);
    case 'time':
    case 'whole time':
      return timeAnswer(ask, index, found);
    case 'epoch':
      return epochAnswer(index, found);
    case 'email':
      if ((cares & care.at) === 0) return isNot;
      break;
    default:
  }
  // With an escape or a non-ASCII byte it is none of these.
  if ((cares & (care.escape | care.high)) !== 0) return isNot;
  const text = textOf(found, start, end);
  const isKind = accepts(ask, text);
  // An address with a port, or several addresses, are placed in part.
  if (ask === 'ip' && isKind && !isIp(text)) return -1;
  // Formats write these differently: an address with a zone, a MAC address with hyphens.
  if (ask === 'ip' && text.includes(':') && isIPv6(text))
    return isKind && !text.includes('%') ? 1 : -1;
  if (ask === 'mac' && isKind && text.includes('-')) return -1;
  return isKind ? 0 : isNot;
}

/** Digits as JSON would write them, with an optional minus; similar forms do not pass. */
function numberAnswer(ask: GuardCheck, { bytes }: FoundValues, start: number, end: number): number {
  const first = bytes[start] === minus ? start + 1 : start;
  for (let at = first; at < end; at += 1) if (!isDigit(bytes[at])) return isNot;
  const length = end - first;
  const isWritten = bytes[first] !== zero || (first === start && length === 1);
  if (length === 0 || length > digitsMax || !isWritten) return -1;
  return inRange(ask, bytes, start, end) ? 0 : -1;
}

function rangeAnswer(
  ask: GuardCheck,
  index: number,
  { bytes, starts, ends, cares }: FoundValues,
): number {
  if (((cares[index] as number) & care.fraction) !== 0) return -1;
  return inRange(ask, bytes, starts[index] as number, ends[index] as number) ? 0 : -1;
}

function inRange(ask: GuardCheck, bytes: Uint8Array, start: number, end: number): boolean {
  if (ask === 'integer') return true;
  if (bytes[start] === minus) return false;
  if (ask === 'count') return true;
  if (end - start > 5) return false;
  let port = 0;
  for (let at = start; at < end; at += 1) port = port * 10 + (bytes[at] as number) - zero;
  return port <= portMax;
}

function timeAnswer(ask: GuardCheck, index: number, found: FoundValues): number {
  const { bytes, times } = found;
  const start = found.starts[index] as number;
  const end = found.ends[index] as number;
  // With an escape it may be a time in another format.
  if (((found.cares[index] as number) & care.escape) !== 0) return -1;
  const text = textOf(found, start, end);
  const time = parseUsualTime(text);
  times[index] = time;
  // Only the normaliser can parse the other formats.
  if (Number.isNaN(time)) return Number.isNaN(parseTime(text)) ? isNot : -1;
  if (!(time >= timeMin && time <= timeMax)) return -1;
  if (ask === 'time') return 0;
  let at = start + secondsBytes;
  if (bytes[at] !== dot && bytes[at] !== comma) return 0;
  at += 4;
  for (; at < end && isDigit(bytes[at]); at += 1) if (bytes[at] !== zero) return 1;
  return 0;
}

/** Numbers that are no epoch, and those of the most common units. */
function epochAnswer(index: number, found: FoundValues): number {
  const start = found.starts[index] as number;
  const value = Number(textOf(found, start, found.ends[index] as number));
  found.times[index] = Number.NaN;
  if (value < epochMin) return isNot;
  const isSeconds = value < secondsMax;
  const time = isSeconds ? value * 1000 : value;
  if (!Number.isInteger(value) || time < timeMin || time >= millisecondsMax) return -1;
  found.times[index] = time;
  return isSeconds ? 0 : 1;
}

function textOf({ bytes }: FoundValues, start: number, end: number): string {
  return bytes.toString('latin1', start, end);
}

// What a record's value is to its event: one that decides what the event looks like, or one that is
// passed on, and then what must hold for it to be passed on as another was. Both follow from what
// the normaliser says that it looks at; whatever it does not name decides. What must stay true: of
// two values that are let pass with the same answer, the normaliser makes the same event but for
// the values themselves.

import type { Attention } from '../normalise/slots.ts';
import { parseTime } from '../normalise/time.ts';
import { isEmail } from '../normalise/values.ts';
import { inArray, type LeafPath } from './record-shape.ts';
import { care, type ShapeTree } from './shape-tree.ts';

/** What must hold for a value. `email or not` and `path or not` have two answers, others one. */
export type Ask =
  | 'nothing'
  | 'email or not'
  | 'path or not'
  | 'time'
  | 'email'
  | 'ipv4'
  | 'host'
  | 'integer'
  | 'port';

/** One value of a shape. */
export interface Leaf {
  readonly isText: boolean;
  readonly decides: boolean;
  readonly ask: Ask;
  readonly bytesMax: number;
}

/** The longest that a name may be that accepts a word (normalise/reading.ts). */
const wordMax = 512;
const slash = 0x2f;
/** Times of 13 digits that can be written as RFC 3339: 2001-09-09 to 9999-12-31. */
export const timeMin = 1e12;
const timeMax = 253_402_300_799_999;

/** What a value of a shape is. */
export function leafAt(path: LeafPath, isText: boolean, attention: Attention): Leaf {
  const array = path.indexOf(inArray);
  const keys = (array < 0 ? path : path.slice(0, array)) as readonly string[];
  const asks = new Set<Ask>();
  let decides = false;
  let bytesMax = Number.POSITIVE_INFINITY;
  for (const { slot, accepts } of attention.offers(keys)) {
    // An array is taken whole as JSON, or not at all.
    if (array >= 0 && accepts !== 'json') continue;
    const asked = attention.passedOn.get(slot);
    if (asked === undefined) decides = true;
    if (asked === 'email' && isText) asks.add('email or not');
    if (asked === 'path' && isText) asks.add('path or not');
    const ask = isText ? asksOfTexts[accepts] : asksOfNumbers[accepts];
    if (ask === undefined) decides = true;
    else if (ask !== 'nothing') asks.add(ask);
    if (accepts === 'word') bytesMax = wordMax;
  }
  const [ask = 'nothing', ...more] = asks;
  return { isText, decides: decides || more.length > 0, ask, bytesMax };
}

type Asks = Readonly<Partial<Record<ReturnType<Attention['offers']>[number]['accepts'], Ask>>>;

/** What makes a name accept a text, or, with `nothing`, never or always; others decide. */
const asksOfTexts: Asks = {
  text: 'nothing',
  word: 'nothing',
  json: 'nothing',
  port: 'nothing',
  code: 'nothing',
  time: 'time',
  ip: 'ipv4',
  email: 'email',
  host: 'host',
};

const asksOfNumbers: Asks = {
  text: 'integer',
  json: 'nothing',
  port: 'port',
  word: 'nothing',
  ip: 'nothing',
  email: 'nothing',
  host: 'nothing',
  mac: 'nothing',
  method: 'nothing',
};

/** A page's bytes, and those of its records' values that were found last. */
export interface Found extends Pick<ShapeTree<unknown>, 'starts' | 'ends' | 'cares'> {
  readonly bytes: Buffer;
  /** Epoch milliseconds of the values that are times. */
  readonly times: Float64Array;
}

/** The answer of the value that was found last for a leaf: 0 or 1, or -1 where it may not pass. */
export function answerOf(
  { ask, bytesMax }: Leaf,
  index: number,
  found: Found,
  accepts: Attention['accepts'],
): number {
  const start = found.starts[index] as number;
  const end = found.ends[index] as number;
  const cares = found.cares[index] as number;
  if (end - start > bytesMax || (cares & care.rareEscape) !== 0) return -1;
  switch (ask) {
    case 'nothing':
      return 0;
    case 'path or not':
      return found.bytes[start] === slash ? 1 : 0;
    case 'email or not':
      if ((cares & care.at) === 0) return 0;
      if ((cares & care.escape) !== 0) return -1;
      return (cares & care.high) === 0 && isEmail(textOf(found, start, end)) ? 1 : 0;
    case 'integer':
      return (cares & care.fraction) === 0 ? 0 : -1;
    case 'port':
      return end - start <= 5 &&
        (cares & care.fraction) === 0 &&
        portOf(found, start, end) <= 65_535
        ? 0
        : -1;
    case 'time': {
      const time = parseTime(textOf(found, start, end));
      found.times[index] = time;
      return time >= timeMin && time <= timeMax && (cares & ~care.at) === 0 ? 0 : -1;
    }
    case 'ipv4': {
      const text = textOf(found, start, end);
      return !text.includes(':') && accepts('ip', text) ? 0 : -1;
    }
    case 'email':
    case 'host':
      return (cares & (care.escape | care.high)) === 0 && accepts(ask, textOf(found, start, end))
        ? 0
        : -1;
  }
}

function textOf({ bytes }: Found, start: number, end: number): string {
  return bytes.toString('latin1', start, end);
}

/** Of a minus sign something far below zero. */
function portOf({ bytes }: Found, start: number, end: number): number {
  let port = 0;
  for (let at = start; at < end; at += 1) port = port * 10 + (bytes[at] as number) - 0x30;
  return bytes[start] === 0x2d ? Number.POSITIVE_INFINITY : port;
}

// Converts a record's value to the type of an OCSF attribute if that is lossless: `'443'` to a
// port, a time to epoch milliseconds. A value that cannot be converted is refused and stays in
// `unmapped`.

import type { Json } from '../contracts/index.ts';
import { addressIn } from './address.ts';
import type { Attribute, AttributeType } from './schema.ts';
import { parseTime } from './time.ts';
import { integerOf, isEmail, isMac, isPort } from './values.ts';

/** Converts one value to a type, or returns undefined. */
export type Coerce = (value: Json) => Json | undefined;

/**
 * The conversion for an attribute that is neither enum nor object; for a list attribute, of the
 * list.
 */
export function coercionOf(attribute: Attribute): Coerce {
  const one = ofType(attribute.type, attribute);
  if (!attribute.list) return one;
  return (value) => {
    if (!Array.isArray(value)) {
      const only = one(value);
      return only === undefined ? undefined : [only];
    }
    const all: Json[] = [];
    for (const member of value) {
      const coerced = one(member);
      if (coerced === undefined) return undefined;
      all.push(coerced);
    }
    return all;
  };
}

function ofType(type: AttributeType, { captions }: Attribute): Coerce {
  switch (type) {
    case 'text':
      return text;
    case 'int':
    case 'long':
      return integerOf;
    case 'float':
      return float;
    case 'bool':
      return bool;
    case 'time':
      return time;
    case 'ip':
      return (value) => addressIn(value)?.ip;
    case 'port':
      return port;
    case 'mac':
      return (value) => (typeof value === 'string' && isMac(value) ? value : undefined);
    case 'email':
      return (value) => (typeof value === 'string' && isEmail(value) ? value : undefined);
    case 'choice':
      return (value) => (typeof value === 'string' && captions.has(value) ? value : undefined);
    case 'json':
      return (value) => value;
    case 'enum':
    case 'object':
      return () => undefined;
  }
}

function text(value: Json): string | undefined {
  if (typeof value === 'string') return value;
  if (typeof value !== 'number') return undefined;
  // An integer beyond 2^53 has lost digits in parsing, so its text would differ from upstream's.
  return Number.isInteger(value) && !Number.isSafeInteger(value) ? undefined : String(value);
}

/** The nearest double, also of a number with more digits than a double keeps (see `isWhole`). */
function float(value: Json): number | undefined {
  if (typeof value === 'number') return value;
  if (typeof value !== 'string' || !/^-?\d+(\.\d+)?(e[+-]?\d+)?$/i.test(value)) return undefined;
  const number = Number(value);
  return Number.isFinite(number) ? number : undefined;
}

function bool(value: Json): boolean | undefined {
  if (typeof value === 'boolean') return value;
  return value === 'true' ? true : value === 'false' ? false : undefined;
}

function port(value: Json): number | undefined {
  const number = integerOf(value);
  return isPort(number) ? number : undefined;
}

function time(value: Json): number | undefined {
  const ms = parseTime(value);
  return Number.isNaN(ms) ? undefined : ms;
}

/** True if the converted value is complete; otherwise the original stays in `unmapped` too. */
export function isLossless(value: Json, coerced: Json, type: AttributeType): boolean {
  if (Array.isArray(coerced)) {
    return coerced.every((one, at) =>
      isLossless(Array.isArray(value) ? value[at] : value, one, type),
    );
  }
  if (type === 'ip') return value === coerced;
  if (typeof coerced !== 'number') return true;
  if (type === 'float') return typeof value === 'number' || String(coerced) === value;
  return type !== 'time' || isWholeTime(value, coerced);
}

/** True if no fraction finer than milliseconds was cut off. */
function isWholeTime(value: Json, ms: number): boolean {
  if (typeof value === 'number') return value === ms || value * 1000 === ms;
  if (typeof value !== 'string') return false;
  return /^[\d.]+$/.test(value) ? isWholeTime(Number(value), ms) : !/[.,]\d{3}\d*[1-9]/.test(value);
}

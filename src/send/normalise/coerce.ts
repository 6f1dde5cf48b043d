// Brings a record's value to the type of an OCSF attribute where nothing is lost by it: `'443'` to a port, a time to
// epoch milliseconds. What cannot be brought there is refused, and stays in `unmapped`.

import type { Json } from '../../contracts/json.ts';
import type { Attribute, AttributeType } from './schema.ts';
import { parseTime } from './time.ts';
import { integerOf, isEmail, isIp, isMac, isPort } from './values.ts';

/** Brings one value to a type, or refuses it with undefined. */
export type Coerce = (value: Json) => Json | undefined;

/** The coercion of an attribute that is neither enum nor object; for a list, of the list. */
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
      return (value) => (typeof value === 'string' && isIp(value) ? value : undefined);
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
  // An integer beyond 2^53 has lost digits in parsing, so its text would not be upstream's.
  return Number.isInteger(value) && !Number.isSafeInteger(value) ? undefined : String(value);
}

function float(value: Json): number | undefined {
  if (typeof value === 'number') return value;
  if (typeof value !== 'string') return undefined;
  const number = Number(value);
  return Number.isFinite(number) && String(number) === value ? number : undefined;
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

/** True where a time in milliseconds says all that the record's own value does: no finer fraction was cut. */
export function isWholeTime(value: Json, ms: number): boolean {
  if (typeof value === 'number') return value === ms || value * 1000 === ms;
  return typeof value === 'string' && !/[.,]\d{3}\d*[1-9]/.test(value);
}

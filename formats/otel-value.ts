// Values as OpenTelemetry's AnyValue. The OpenTelemetry serialisers silently lose or damage values
// that AnyValue cannot hold: a bigint or Date becomes empty, NaN becomes null, an integer beyond 64
// bits becomes invalid JSON, a lone surrogate is invalid UTF-8. These values become text here.
// Nearly all content is plain, so it is checked and returned unchanged; only containers of such
// values are copied.

import type { AnyValue } from '@opentelemetry/api';
import { jsonText } from './json-text.ts';

// The serialisers recurse; a value below this depth is written as its JSON text, so that nothing is
// lost.
const depthMax = 32;

/** The value as an AnyValue: itself if plain, otherwise a copy. Total. */
export function anyValue(value: unknown, depth = 0): AnyValue {
  switch (typeof value) {
    case 'string':
      return value.isWellFormed() ? value : value.toWellFormed();
    case 'boolean':
      return value;
    case 'number':
      // Integers beyond 2^53 have lost digits already, and OTLP cannot hold those beyond 2^63.
      return Number.isSafeInteger(value) || (Number.isFinite(value) && !Number.isInteger(value))
        ? value
        : String(value);
    case 'bigint':
      return value.toString();
    case 'object':
      break;
    case 'undefined':
    case 'function':
    case 'symbol':
      return null;
  }
  if (value === null || value instanceof Uint8Array) return value;
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? null : value.toISOString();
  if (depth >= depthMax) return jsonText(value);
  return Array.isArray(value) ? anyList(value, depth) : anyMap(value, depth);
}

function anyList(list: readonly unknown[], depth: number): AnyValue {
  let copy: AnyValue[] | null = null;
  for (let i = 0; i < list.length; i++) {
    const given = list[i];
    const safe = anyValue(given, depth + 1);
    if (safe === given && !copy) continue;
    // The elements before were checked to be AnyValues.
    copy ??= list.slice(0, i) as AnyValue[];
    copy.push(safe);
  }
  // Without a copy, every element was checked to be an AnyValue.
  return copy ?? (list as AnyValue[]);
}

/** Each member is checked once: a check per level would double the time with the depth. */
function anyMap(map: object, depth: number): AnyValue {
  const members = map as Readonly<Record<string, unknown>>;
  let copy: { [key: string]: AnyValue } | null = null;
  for (const key in members) {
    const given = members[key];
    const safe = anyValue(given, depth + 1);
    if (safe === given && !copy && key.isWellFormed()) continue;
    copy ??= headOf(members, key);
    if (given !== undefined) copy[key.toWellFormed()] = safe;
  }
  // Without a copy, every member was checked to be an AnyValue.
  return copy ?? (members as { [key: string]: AnyValue });
}

/** The members before this one, all checked to be AnyValues. */
function headOf(
  members: Readonly<Record<string, unknown>>,
  end: string,
): { [key: string]: AnyValue } {
  // No prototype, so that a member named __proto__ is an ordinary member.
  const head: { [key: string]: AnyValue } = Object.create(null);
  for (const key in members) {
    if (key === end) break;
    head[key] = members[key] as AnyValue;
  }
  return head;
}

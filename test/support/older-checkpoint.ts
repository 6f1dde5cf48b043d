// A list's checkpoint as version 1 of it would hold the same: all fields side by side.

import { isObject, type Json } from '../../src/contracts/json.ts';

/** A checkpoint of the current version as one of version 1. */
export function asVersion1(checkpoint: Json): Json {
  if (!isObject(checkpoint)) return checkpoint;
  const entries = Object.entries(checkpoint);
  const concerns = entries.map(([, value]) => value).filter(isObject);
  const rest = Object.fromEntries(entries.filter(([, value]) => !isObject(value)));
  return Object.assign({}, rest, { version: 1 }, ...concerns);
}

// A list's checkpoint in the form of version 1: all fields side by side.

import { isObject, type Json } from '../../src/contracts/json.ts';

/** A checkpoint of the current version as one of version 1. */
export function asVersion1(checkpoint: Json): Json {
  if (!isObject(checkpoint)) return checkpoint;
  const entries = Object.entries(checkpoint);
  const concerns = entries.map(([, value]) => value).filter(isObject);
  const rest = Object.fromEntries(entries.filter(([, value]) => !isObject(value)));
  return Object.assign({}, rest, { version: 1 }, ...concerns);
}

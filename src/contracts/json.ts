// The JSON values that cross sluice's borders. Upstream's records, positions and checkpoints are
// JSON; nothing here interprets them. Integers beyond 2^53 lose digits when parsed, so identity
// never depends on a parsed number but on the record's own bytes (see `scan` in fetch/).

/** Any JSON value, read-only. */
export type Json = null | boolean | number | string | readonly Json[] | JsonObject;

/** A JSON object, read-only; a missing key reads as `undefined`. */
export interface JsonObject {
  readonly [key: string]: Json | undefined;
}

/** True for a JSON object: not null, not an array. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

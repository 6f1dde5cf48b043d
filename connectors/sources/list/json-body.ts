// The first look at an upstream's body: JSON or not, nested within bounds, and no error in a 200's clothing. Whatever is
// not plainly a good answer is nothing: it is never taken for an empty list, because that would be loss.

import { ExportError } from '../../../src/contracts/errors.ts';
import { isObject, type Json } from '../../../src/contracts/json.ts';
import { parseBody } from '../../../src/tools/records.ts';

/** Deeper than any record known, and far from where code that follows a value downwards runs out of stack. */
const nestingMax = 200;

/** A body as parsed, or why it is none. */
export type JsonBody =
  | { readonly good: true; readonly value: Json }
  | { readonly good: false; readonly cause: ExportError };

/** Parses a body. `doing` begins the message, e.g. `reading audit`. */
export function readJson(body: Uint8Array, doing: string): JsonBody {
  let value: Json;
  try {
    value = parseBody(body);
  } catch {
    return { good: false, cause: nonsense(doing, 'the answer is not JSON, or not whole') };
  }
  if (isDeeperThan(value, nestingMax)) {
    const what = `the answer is nested more than ${nestingMax} levels deep`;
    return { good: false, cause: nonsense(doing, what) };
  }
  if (isObject(value) && isFailure(value.error)) {
    return { good: false, cause: nonsense(doing, 'the answer is an error with status 200') };
  }
  return { good: true, value };
}

/** An answer that makes no sense, which is asked for again. */
export function nonsense(doing: string, what: string): ExportError {
  return new ExportError('upstream_nonsense', `${doing}: ${what}`, {
    next: 'It is asked again by itself and never taken for the end of the data; check path and pagination of the source if it lasts.',
  });
}

function isFailure(error: Json | undefined): boolean {
  return isObject(error) || (typeof error === 'string' && error !== '');
}

function isDeeperThan(value: Json, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false;
  if (levels === 0) return true;
  if (Array.isArray(value)) return value.some((inner) => isDeeperThan(inner, levels - 1));
  for (const key in value) {
    const inner = (value as Readonly<Record<string, Json>>)[key];
    if (typeof inner === 'object' && inner !== null && isDeeperThan(inner, levels - 1)) return true;
  }
  return false;
}

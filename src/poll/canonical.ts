// Canonical JSON: two texts have the same form exactly if they mean the same. Keys are sorted, numbers keep their
// source text (`1.0` and integers beyond 2^53 stay distinct), ignored paths are dropped, and some arrays are unordered.
// A collection uses it to distinguish a configuration change from a server that formats the same data differently.

import { createHash } from 'node:crypto';

/** The parts that are not compared. Paths are dotted; an array's elements have the array's path. */
export interface ComparisonRules {
  readonly ignore: readonly string[];
  /** Arrays whose order has no meaning. */
  readonly unordered: readonly string[];
}

/** JSON whose numbers keep their source text. `JSON.stringify` writes them with every digit. */
export type ExactJson =
  | null
  | boolean
  | string
  | RawNumber
  | readonly ExactJson[]
  | { readonly [key: string]: ExactJson };

/** The result of `JSON.rawJSON` (ECMAScript 2026, JSON.parse source text access). */
interface RawNumber {
  readonly rawJSON: string;
}

// The type library lacks these two functions.
const exact = JSON as unknown as {
  rawJSON(text: string): RawNumber;
  isRawJSON(value: unknown): value is RawNumber;
};

/** Parses JSON text without rounding its numbers. */
export function parseExact(text: string): ExactJson {
  return JSON.parse(text, (_key, value, context?: { source?: string }) =>
    typeof value === 'number' ? exact.rawJSON(context?.source ?? String(value)) : value,
  );
}

/** True for an object; false for an array, null, or a number. */
export function isExactObject(
  value: ExactJson | undefined,
): value is { readonly [key: string]: ExactJson } {
  return (
    typeof value === 'object' && value !== null && !Array.isArray(value) && !exact.isRawJSON(value)
  );
}

/** The canonical text of a value at `path`. */
export function canonicalText(value: ExactJson, comparison: ComparisonRules, path = ''): string {
  if (exact.isRawJSON(value)) return value.rawJSON;
  if (Array.isArray(value)) {
    const elements = value.map((element) => canonicalText(element, comparison, path));
    if (comparison.unordered.includes(path)) elements.sort();
    return `[${elements.join(',')}]`;
  }
  if (!isExactObject(value)) return JSON.stringify(value);
  const members: string[] = [];
  for (const key of Object.keys(value).sort()) {
    const inner = childPath(path, key);
    const member = value[key];
    if (member === undefined || comparison.ignore.includes(inner)) continue;
    members.push(`${JSON.stringify(key)}:${canonicalText(member, comparison, inner)}`);
  }
  return `{${members.join(',')}}`;
}

/** SHA-256 over the canonical form of JSON text, hexadecimal. */
export function contentHash(text: string, comparison: ComparisonRules): string {
  return createHash('sha256')
    .update(canonicalText(parseExact(text), comparison))
    .digest('hex');
}

/** A dotted path, extended by one key. */
export function childPath(path: string, key: string): string {
  return path === '' ? key : `${path}.${key}`;
}

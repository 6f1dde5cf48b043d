// What a reader of each format is to get back of an event, said from the standards and the documented replacements and not
// from the formats: JSON has no infinities and one zero; UTF-8 has no lone surrogates; CEF and syslog lines have no
// control characters; OTLP has integers up to 2^63, so those that a double no longer holds exactly travel as text.

import { carriedValue } from '../formats/carried.ts';

/** True where `given`, read back from JSON, is what JSON says of `expected`. */
export function sameJson(given: unknown, expected: unknown): boolean {
  if (typeof expected === 'number') {
    return Number.isFinite(expected) ? given === expected : given === null;
  }
  return sameStructure(given, expected, sameJson);
}

/** True where both are the same value, infinities included. */
export function sameValue(given: unknown, expected: unknown): boolean {
  return sameStructure(given, expected, sameValue);
}

/** Below this depth OTLP carries a value as JSON text, since its readers recurse. */
const otlpDepthMax = 32;

/** True where `given`, an AnyValue read back, is what OTLP says of `expected`. */
export function sameAnyValue(given: unknown, expected: unknown, depth = 0): boolean {
  if (typeof expected === 'string') return given === expected.toWellFormed();
  if (typeof expected === 'number') {
    const exact = Number.isSafeInteger(expected) || !Number.isInteger(expected);
    return exact && Number.isFinite(expected) ? given === expected : given === String(expected);
  }
  if (depth >= otlpDepthMax && typeof expected === 'object' && expected !== null) {
    return typeof given === 'string' && sameJson(JSON.parse(given), expected);
  }
  return sameStructure(given, expected, (g, e) => sameAnyValue(g, e, depth + 1));
}

function sameStructure(
  given: unknown,
  expected: unknown,
  same: (given: unknown, expected: unknown) => boolean,
): boolean {
  if (typeof expected !== 'object' || expected === null) return given === expected;
  if (typeof given !== 'object' || given === null) return false;
  if (Array.isArray(expected)) {
    if (!Array.isArray(given) || given.length !== expected.length) return false;
    return expected.every((member, index) => same(given[index], member));
  }
  const members = new Map(
    Object.entries(expected)
      .filter(([, member]) => member !== undefined)
      .map(([key, member]) => [key.toWellFormed(), member]),
  );
  const found = new Map(Object.entries(given).map(([key, member]) => [key.toWellFormed(), member]));
  if (found.size !== members.size) return false;
  for (const [key, member] of members) {
    if (!found.has(key) || !same(found.get(key), member)) return false;
  }
  return true;
}

/** Every text within a value, keys included. */
function* textsIn(value: unknown): Generator<string> {
  if (typeof value === 'string') yield value;
  if (typeof value !== 'object' || value === null) return;
  for (const [key, member] of Object.entries(value)) {
    if (!Array.isArray(value)) yield key;
    yield* textsIn(member);
  }
}

/** Every text, number and boolean that a value holds, as text; keys are not. */
export function* scalarsIn(value: unknown): Generator<string> {
  if (typeof value === 'object' && value !== null) {
    for (const member of Object.values(value)) yield* scalarsIn(member);
  } else if (value !== null && value !== undefined) yield String(value);
}

/** The marked texts of `record` that `event` does not hold as often. */
export function lostTexts(record: unknown, event: unknown): readonly string[] {
  const held = new Map<string, number>();
  for (const text of textsIn(event)) held.set(text, (held.get(text) ?? 0) + 1);
  const lost: string[] = [];
  for (const text of textsIn(record)) {
    if (!/~\d+~/.test(text)) continue;
    const left = held.get(text) ?? 0;
    if (left === 0) lost.push(text);
    else held.set(text, left - 1);
  }
  return lost;
}

/** Values that CEF carries of an event: every text, replaced as documented; a longer one may be cut. */
export class CefTexts {
  readonly #texts: ReadonlySet<string>;

  constructor(...values: readonly unknown[]) {
    this.#texts = new Set(
      values.flatMap((value) => [...textsIn(value), ...scalarsIn(value)].map(cefText)),
    );
  }

  /** True where a decoded value stems from the event; `lengthMin` is the shortest that the dictionary ever cuts to. */
  has(value: string, lengthMin = 30): boolean {
    if (this.#texts.has(value)) return true;
    // The limit counts escapes and trailing blanks, which a reader does not see.
    const escaped = value.replace(/[\\=\r\n]/g, 'xx').length;
    if (escaped < lengthMin / 2) return false;
    for (const text of this.#texts) if (text.startsWith(value)) return true;
    return false;
  }
}

/** What a CEF reader gets of a text. */
export function cefText(text: string): string {
  return carriedValue(text.toWellFormed());
}

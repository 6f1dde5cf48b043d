// Compares an expected with an actual value. Each difference has its path, for a person to correct. An expected mapping
// covers only the members it names; a list is compared whole, element by element.

import { isObject, type Json, visibleText } from '../../contracts/index.ts';
import { valueAt } from '../../tools/index.ts';

/** One value that is not as expected. */
export interface ValueDifference {
  /** Keys and list positions as the expectation writes them. */
  readonly path: readonly (string | number)[];
  readonly expected: string;
  readonly found: string;
}

/** Differences between expectation and value. A key may be a path: `actor.user.name`. */
export function differences(
  expected: unknown,
  found: Json | undefined,
  path: ValueDifference['path'] = [],
): readonly ValueDifference[] {
  if (isObject(expected) && isObject(found)) {
    return Object.entries(expected).flatMap(([key, value]) =>
      differences(value, valueAt(found, key), [...path, key]),
    );
  }
  if (Array.isArray(expected) && Array.isArray(found) && expected.length === found.length) {
    return expected.flatMap((value, i) => differences(value, found[i], [...path, i]));
  }
  return expected === found ? [] : [{ path, expected: shown(expected), found: shown(found) }];
}

/** A difference for each path at which there is a value where there should be none. */
export function unrequested(paths: readonly string[], found: Json): readonly ValueDifference[] {
  return paths.flatMap((path, i) => {
    const value = valueAt(found, path);
    if (value === undefined) return [];
    return [{ path: [i], expected: `no ${visibleText(path)}`, found: shown(value) }];
  });
}

/** The difference of two texts, cut to where they part; null where they are the same. */
export function textDifference(
  expected: string,
  found: string,
): Omit<ValueDifference, 'path'> | null {
  if (expected === found) return null;
  let at = 0;
  while (at < expected.length && expected[at] === found[at]) at += 1;
  return { expected: configEnv(expected, at), found: configEnv(found, at) };
}

const shownLengthMax = 300;
const beforeMax = 40;
const afterMax = 80;

function shown(value: unknown): string {
  return value === undefined ? 'nothing' : textStart(JSON.stringify(value));
}

/** The beginning of a text, fit to be shown. */
export function textStart(text: string): string {
  const cut = text.length > shownLengthMax ? `${text.slice(0, shownLengthMax)}…` : text;
  return visibleText(cut);
}

function configEnv(text: string, at: number): string {
  const from = Math.max(0, at - beforeMax);
  const to = Math.min(text.length, at + afterMax);
  const part = visibleText(text.slice(from, to));
  return `${from > 0 ? '…' : ''}${part}${to < text.length ? '…' : ''}`;
}

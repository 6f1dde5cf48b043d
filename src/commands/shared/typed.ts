// Parses the values of options. An error for a wrong value suggests a similar word or an example.

import { duration } from '../../contracts/config.ts';
import { parseRfc3339, UsageError } from '../../contracts/index.ts';
import { cleanText, hint } from '../../tools/index.ts';

const lengthMax = 80;

/** `there is no sink siam; did you mean siem?` */
export function unknownText(what: string, name: string, known: Iterable<string>): string {
  return `there is no ${what} ${cleanText(name, lengthMax)}${hint(name, known)}`;
}

/** Throws a UsageError if an option such as `--sink` has an unknown name. */
export function refuseUnknown(
  option: 'source' | 'stream' | 'sink' | 'live',
  name: string | undefined,
  known: Iterable<string>,
): void {
  const names = new Set(known);
  if (name === undefined || names.has(name)) return;
  const what = option === 'live' ? 'source' : option;
  throw new UsageError(`--${option}: ${unknownText(what, name, names)}`);
}

/** Epoch milliseconds of an RFC 3339 time, which has to name its offset. Throws a UsageError. */
export function timeTyped(option: 'from' | 'to' | 'before' | 'since', text: string): number {
  const at = parseRfc3339(text);
  if (at !== null) return at;
  const found = cleanText(text, lengthMax);
  throw new UsageError(
    `--${option}: expected an RFC 3339 time such as 2026-01-31T08:00:00Z, found ${found}`,
  );
}

/** Milliseconds of a duration such as `60s`. Throws a UsageError. */
export function durationTyped(option: 'timeout' | 'seen-within', text: string): number {
  const parsed = duration().safeParse(text);
  if (parsed.success) return parsed.data;
  const found = cleanText(text, lengthMax);
  throw new UsageError(`--${option}: ${parsed.error.issues[0]?.message}, found ${found}`);
}

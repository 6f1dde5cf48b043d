// Placeholders for references without a value: an environment variable that is not set, a missing file, or any
// reference if a config is checked without its secrets. The rest of the config is checked as if the value were valid,
// so an unset reference is a single flaw. Invariant: a placeholder is never sent to an upstream or a sink.

import type { z } from 'zod';

/** A value that is unknown. */
export interface Unset {
  /** Its references without a value, as written, e.g. `${env:NAME}`. */
  readonly references: readonly string[];
  /** The text with `sample` in place of each of them. */
  readonly textWith: (sample: string) => string;
  /** Number of placeholders tried so far. */
  tried: number;
}

/** Part of every text placeholder, so that messages can omit it. */
export const placeholderWord = 'not-set-here';

/**
 * One form per kind of setting, the most usual first. `.invalid` never resolves (RFC 6761, section 6.4); the number
 * distinguishes placeholders of different references.
 */
const samples: readonly ((n: number) => string)[] = [
  (n) => `https://${placeholderWord}-${n}.invalid`,
  (n) => `${placeholderWord}-${n}`,
  () => '30s',
  () => '1MiB',
  (n) => `127.0.0.1:${10_000 + (n % 50_000)}`,
  (n) => `/${placeholderWord}-${n}`,
  (n) => `tls://${placeholderWord}-${n}.invalid:6514`,
  (n) => `s3://${placeholderWord}-${n}`,
  (n) => `not_set_here_${n}`,
  (n) => String(100_000_000_000 + n),
  (n) => String(n),
  () => '2026-01-01T00:00:00Z',
  (n) => `http://127.0.0.1:${10_000 + (n % 50_000)}`,
];

/** The first placeholder of a value. */
export function firstPlaceholder(unset: Unset): string {
  return placeholderAt(unset, 0);
}

function placeholderAt({ references, textWith }: Unset, at: number): string {
  const number = references
    .join('')
    .split('')
    .reduce((sum, one) => (sum * 31 + one.charCodeAt(0)) % 1_000_003, 7);
  return textWith((samples[at] ?? samples[0])?.(number) ?? '');
}

/** Another placeholder for a value that its declaration rejects with these issues; undefined: none is left. */
export function nextPlaceholder(
  { unset, value }: { readonly unset: Unset | null; readonly value: unknown },
  issues: readonly z.core.$ZodIssue[],
): string | number | boolean | undefined {
  if (unset === null) return undefined;
  const typed = issues.map((issue) => typedFor(issue, value)).find((one) => one !== undefined);
  if (typed !== undefined) return typed;
  unset.tried += 1;
  return unset.tried < samples.length ? placeholderAt(unset, unset.tried) : undefined;
}

function typedFor(issue: z.core.$ZodIssue, value: unknown): string | number | boolean | undefined {
  switch (issue.code) {
    case 'invalid_value': {
      const [first] = issue.values;
      const isOther = first !== value && typeof first !== 'symbol' && typeof first !== 'bigint';
      return isOther ? (first ?? undefined) : undefined;
    }
    case 'invalid_type':
      if (typeof value !== 'string') return undefined;
      if (issue.expected === 'number' || issue.expected === 'int') return 1;
      return issue.expected === 'boolean' ? false : undefined;
    case 'too_small':
      return typeof value === 'number' ? Number(issue.minimum) : undefined;
    case 'too_big':
      return typeof value === 'number' ? Number(issue.maximum) : undefined;
    default:
      return undefined;
  }
}

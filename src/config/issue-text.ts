// Translates zod's issues into sentences for authors of YAML. A sentence names the expected type and the type found.
// Invariant: it contains the value only if the caller has declared it safe to show.

import type { z } from 'zod';
import { nearest } from '../tools/index.ts';

/** The value of an issue, and its reference as written. */
export interface IssueValue {
  readonly value: unknown;
  readonly reference: string | null;
}

const shownLengthMax = 60;

/** The value in a form that may be shown: a value from a reference is not shown. */
export function shownValue({ value, reference }: IssueValue): string {
  if (reference !== null) return `the value of ${reference}`;
  if (typeof value !== 'string') return kindOf(value);
  return JSON.stringify(
    value.length > shownLengthMax ? `${value.slice(0, shownLengthMax)}…` : value,
  );
}

type Issue = z.core.$ZodIssue;

/** Facts about the location of the issue. */
export interface About {
  /** Undefined: there is no value. */
  readonly found: IssueValue | undefined;
  /** The required form of a text, e.g. `expected a size such as 64KiB`. */
  readonly form: string | null;
}

/** The issue as a sentence. */
export function sentenceOf(issue: Issue, { found, form }: About): string {
  if (found?.value === '' && found.reference !== null) {
    return `${found.reference} gives an empty text; give it a value`;
  }
  switch (issue.code) {
    case 'invalid_type':
      return form === null ? typeSentence(issue.expected, found) : formSentence(form, found);
    case 'invalid_value':
      return issue.message.startsWith('Invalid')
        ? valueSentence(issue.values, found)
        : issue.message;
    case 'invalid_union':
      return issue.message.startsWith('Invalid')
        ? unionSentence(issue, found)
        : formSentence(issue.message, found);
    case 'too_small':
      return issue.message.startsWith('Too small') ? smallSentence(issue) : issue.message;
    case 'too_big':
      return issue.message.startsWith('Too big') ? bigSentence(issue) : issue.message;
    case 'invalid_key':
      return issue.issues[0]?.message ?? 'this cannot be a key here';
    case 'invalid_format':
    case 'not_multiple_of':
    case 'unrecognized_keys':
    case 'invalid_element':
    case 'custom':
      return issue.message;
  }
}

const kinds: Readonly<Record<string, string>> = {
  string: 'text',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  array: 'a list',
  object: 'a mapping',
  record: 'a mapping',
  null: 'nothing',
};

/** The type of a value, for people. */
function kindOf(value: unknown): string {
  if (value === null || value === undefined) return 'nothing';
  if (Array.isArray(value)) return 'a list';
  return kinds[typeof value] ?? 'something else';
}

function typeSentence(expected: string, found: IssueValue | undefined): string {
  const requested = kinds[expected] ?? expected;
  if (found === undefined) return `is missing; expected ${requested}`;
  const { value } = found;
  if (value === null)
    return `expected ${requested}, found nothing; give it a value or leave the key out`;
  const got =
    typeof value === 'number' && expected === 'int' ? 'one with a fraction' : kindOf(value);
  const scalar = typeof value === 'number' || typeof value === 'boolean';
  const quote = expected === 'string' && scalar ? '; put it in quotes' : '';
  const what = found.reference === null ? got : `${shownValue(found)}, which is none`;
  return `expected ${requested}, found ${what}${quote}`;
}

function formSentence(form: string, found: IssueValue | undefined): string {
  return found === undefined ? `is missing; ${form}` : `${form}, found ${shownValue(found)}`;
}

function valueSentence(values: readonly unknown[], found: IssueValue | undefined): string {
  const words = values.map(String);
  const requested = words.length === 1 ? words[0] : `one of ${words.join(', ')}`;
  if (found === undefined) return `is missing; expected ${requested}`;
  const own = typeof found.value === 'string' && found.reference === null ? found.value : null;
  const near = own === null ? null : nearest(own, words);
  const meant = near === null ? '' : `; did you mean ${near}?`;
  return `expected ${requested}, found ${shownValue(found)}${meant}`;
}

function unionSentence(
  issue: Extract<Issue, { code: 'invalid_union' }>,
  found: IssueValue | undefined,
) {
  if ('options' in issue && Array.isArray(issue.options))
    return valueSentence(issue.options, found);
  const requested = new Set(issue.errors.map((issues) => requestedBy(issues[0])));
  return `expected ${[...requested].join(' or ')}, found ${found === undefined ? 'nothing' : shownValue(found)}`;
}

function requestedBy(issue: Issue | undefined): string {
  if (issue?.code === 'invalid_type') return kinds[issue.expected] ?? issue.expected;
  if (issue?.code === 'invalid_value') return `one of ${issue.values.map(String).join(', ')}`;
  return issue?.message ?? 'something else';
}

function smallSentence(issue: Extract<Issue, { code: 'too_small' }>): string {
  const { origin, minimum, inclusive } = issue;
  if (origin === 'string')
    return minimum === 1 ? 'may not be empty' : `has at least ${minimum} characters`;
  if (origin === 'array')
    return minimum === 1 ? 'needs at least one entry' : `needs at least ${minimum} entries`;
  return `expected a number ${inclusive === false ? 'above' : 'of at least'} ${minimum}`;
}

function bigSentence(issue: Extract<Issue, { code: 'too_big' }>): string {
  const { origin, maximum, inclusive } = issue;
  if (origin === 'string') return `has at most ${maximum} characters`;
  if (origin === 'array') return `has at most ${maximum} entries`;
  return `expected a number ${inclusive === false ? 'below' : 'of at most'} ${maximum}`;
}

// Names of destinations by company and source: safe, and never one for two companies.

import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  fixedNameFlaw,
  pageNames,
  patternFlaw,
} from '../../connectors/shared/destination-names.ts';
import { archiveSink } from '../../connectors/sinks/archive.ts';

function nameOf(pattern: string, company?: string, source = 'audit'): string {
  const context = {
    source,
    stream: 's',
    kind: 'log',
    fetchedAt: 0,
    ...(company !== undefined && { company }),
  } as const;
  return pageNames(pattern)({ context });
}

test('usual values stay readable, and none stands for no company', () => {
  expect(nameOf('logs-{source}-{company}', 'c-1', 'web_logs')).toBe('logs-web_logs-c-1');
  expect(nameOf('{company}-{class}-{date}', 'c-1')).toBe('c-1-{class}-{date}');
  expect(nameOf('x.{company}')).toBe('x.none');
  expect(nameOf('fixed', 'c-1')).toBe('fixed');
});

test.each([
  'C-1',
  'none',
  '',
  'a/b',
  '../x',
  'a.b',
  'ü',
  'a b',
  `${'x'.repeat(300)}`,
  'a-0123456789abcdef',
  '_a',
  'a$&b',
])('the company %s has a safe name of its own', (company) => {
  const name = nameOf('t-{company}', company);

  expect(name).toMatch(/^t-[a-z0-9][a-z0-9_-]{0,63}$/);
  if (company !== '') expect(name).not.toBe('t-none');
  expect(name).not.toBe(nameOf('t-{company}', 'a-b'));
});

const anyName = fc.oneof(
  fc.string({ maxLength: 12 }),
  fc.stringMatching(/^[abA_.-]{1,6}$/),
  fc.constantFrom('none', 'NONE', 'a-b', 'a_b', 'a-b-c', 'b-c', 'c'),
);
test.each([
  't-{company}',
  '{source}-{company}',
  '{company}-{source}',
  '{company}_{class}-{source}',
  '{source}.{company}.{date}',
])('two companies never share a name of %s, also where case is ignored', (pattern) => {
  fc.assert(
    fc.property(anyName, anyName, anyName, anyName, (one, two, first, second) => {
      fc.pre(one !== two && one !== '' && two !== '' && first !== '' && second !== '');
      expect(nameOf(pattern, one, first).toLowerCase()).not.toBe(
        nameOf(pattern, two, second).toLowerCase(),
      );
    }),
    { numRuns: 2_000 },
  );
});

test.each(['a b', 'A-1', '../x', 'c\u0000\n1'])(
  'a company with the name that %j gets has another one',
  (company) => {
    const taken = nameOf('{company}', company);

    expect(nameOf('{company}', taken)).not.toBe(taken);
  },
);

/** What follows the slug `a` of the value `A`. */
const hashOfA = nameOf('{company}', 'A').slice(2);

test.each([
  ['{source}-{company}', ['a-b', 'c'], ['a', 'b-c']],
  ['{source}-{company}', ['A', 'c'], ['a', `${hashOfA}-c`]],
  ['{source}_{company}', ['a_b', 'c'], ['a', 'b_c']],
  ['{company}-{class}-{source}', ['a-{class}-b', 'c'], ['a', 'b-{class}-c']],
  ['{source}-{class}-{company}', ['a-b', 'c'], ['a', 'b-c']],
] as const)('the separator of %s is in no value before it', (pattern, one, two) => {
  const of = ([first, second]: readonly [string, string]) =>
    pattern.startsWith('{company}')
      ? nameOf(pattern, first, second)
      : nameOf(pattern, second, first);

  expect(of(one)).not.toBe(of(two));
});

test('placeholders without a character between them are refused', () => {
  expect(patternFlaw('index', '{source}{company}')).toContain('write one of - _ .');
  expect(patternFlaw('index', '{source}x{company}')).toContain('write one of - _ .');
  expect(patternFlaw('topic', '{company}0-{date}')).toContain('write one of - _ .');
  expect(patternFlaw('index', '{source}-{company}')).toBeNull();
  expect(patternFlaw('index', 'a{source}-b{company}c')).toBeNull();
  expect(patternFlaw('index', '{class}{date}')).toBeNull();
});

test('an archive, which is one log, refuses them', () => {
  const flaw = archiveSink.flaw?.({ location: 'out-{company}', signing_key: 'k' } as never);

  expect(flaw).toContain('location: {company} is not replaced in this sink');
  expect(fixedNameFlaw('path', 'a/{}/{b}')).toBeNull();
});

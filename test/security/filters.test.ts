// Filters are the operator's, the texts they look at are upstream's: no text may make a filter run for hours, and no event may
// bring a pattern of its own.

import { expect, test } from 'vitest';
import { compileFilter } from '../../src/tools/filter.ts';
import { anEvent } from '../support/an-event.ts';

const compile = (where: string) => compileFilter(where, () => undefined);

// Each of these takes some 2^n steps on n characters, so that 300 would never end.
test.each(['^(a+)+$', '(a|aa)+$', '^(\\\\w+\\\\s?)*$', '([a-z]+)*=', '(.*)*b'])(
  'matches(%j) comes to an end on a text made to keep it going',
  (pattern) => {
    const filter = compile(`event.message.matches('${pattern}')`);

    expect(filter(anEvent({ ocsf: { message: `${'a'.repeat(300)}!` } }))).toBe(false);
  },
);

test('matches finds the expected texts', () => {
  const filter = compile("event.message.matches('^(Policy|Rule) [a-z]+d$') && source != 'x'");

  expect(filter(anEvent({ ocsf: { message: 'Policy updated' } }))).toBe(true);
  expect(filter(anEvent({ ocsf: { message: 'Site updated' } }))).toBe(false);
});

test.each(['(?=a)(a+)+$', '(?!x)a+', '(a+)+\\\\1$', '(a{1,500}){1,500}$'])(
  'matches(%j) is refused, since it cannot be bounded',
  (pattern) => {
    const where = `source == 'a' || [1].exists(x, event.message.matches('${pattern}'))`;

    expect(() => compile(where)).toThrow('linear time');
  },
);

test.each(['event.message.matches(event.api.operation)', "event.message.matches('a' + source)"])(
  '%s is refused, since the pattern would be an event’s',
  (where) => {
    expect(() => compile(where)).toThrow('a pattern in quotes');
  },
);

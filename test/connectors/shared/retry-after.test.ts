// Retry-After in the forms that RFC 9110 allows, and the nonsense that must not be taken for one.

import { describe, expect, test } from 'vitest';
import { boundedRetryAfterMs } from '../../../connectors/shared/retry-after.ts';

const now = Date.UTC(2026, 5, 1, 12, 0, 0);

describe('retryAfterMs reads', () => {
  test.each([
    ['seconds', { 'retry-after': '120' }, 120_000],
    ['no wait', { 'retry-after': '0' }, 0],
    ['IMF-fixdate', { 'retry-after': 'Mon, 01 Jun 2026 12:00:30 GMT' }, 30_000],
    ['the RFC 850 form', { 'retry-after': 'Monday, 01-Jun-26 12:00:30 GMT' }, 30_000],
    ['asctime, which is in UTC', { 'retry-after': 'Mon Jun  1 12:00:30 2026' }, 30_000],
    ['a date that has passed as no wait', { 'retry-after': 'Mon, 01 Jun 2026 11:00:00 GMT' }, 0],
    [
      'a date against the answer’s own clock',
      { 'retry-after': 'Mon, 01 Jun 2026 09:00:10 GMT', date: 'Mon, 01 Jun 2026 09:00:00 GMT' },
      10_000,
    ],
    ['a year as an hour', { 'retry-after': '31536000' }, 3_600_000],
  ])('%s', (_name, headers, expected) => {
    expect(boundedRetryAfterMs(headers, now)).toBe(expected);
  });
});

test.each(['', '-1', '1.5', '1e3', 'soon', '2026-06-01', '1 2', 'Mon, 01 Foo 2026 12:00:30 GMT'])(
  'retryAfterMs ignores %j',
  (text) => {
    expect(boundedRetryAfterMs({ 'retry-after': text }, now)).toBeUndefined();
  },
);

test('retryAfterMs is undefined if a response has no wait', () => {
  expect(boundedRetryAfterMs({}, now)).toBeUndefined();
});

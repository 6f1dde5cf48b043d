import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseHttpDate } from '../../src/contracts/http-date.ts';
import { readRateSign } from '../../src/upstream/rate-sign.ts';
import { anyText } from '../support/any-text.ts';

const nowMs = Date.UTC(2026, 6, 1, 12, 0, 0);
const day = 86_400_000;

function sign(status: number, headers: Record<string, string>) {
  return readRateSign(status, headers, { nowMs });
}

describe('readRateSign: Retry-After', () => {
  test.each([
    ['30', 30_000],
    [' 5 ', 5_000],
    ['0', 0],
    ['2592000', 30 * day],
    ['30, 60', 60_000],
    ['Wed, 01 Jul 2026 12:00:10 GMT', 10_000],
    ['Wednesday, 01-Jul-26 12:00:10 GMT', 10_000],
    ['Wed Jul  1 12:00:10 2026', 10_000],
    ['Wed, 01 Jul 2020 12:00:10 GMT', 0],
  ])('A19: %j is %d ms', (text, ms) => {
    expect(sign(429, { 'retry-after': text }).retryAfterMs).toBe(ms);
  });

  test.each([
    '',
    ' ',
    '0x10',
    '-5',
    '1.5',
    '1e3',
    'soon',
    '99999999999',
    '2026-07-01',
    '5s',
    'NaN',
  ])('A19: %j is ignored', (text) => {
    expect(sign(429, { 'retry-after': text })).toEqual({ refused: true });
  });

  test('A19: a date counts from the answer’s own Date, so that neither clock matters', () => {
    const headers = {
      date: 'Thu, 01 Jan 2015 00:00:00 GMT',
      'retry-after': 'Thu, 01 Jan 2015 00:00:45 GMT',
    };

    expect(sign(503, headers)).toEqual({ refused: false, retryAfterMs: 45_000 });
  });

  test.each([403, 429, 500, 503])('is read from a %d', (status) => {
    expect(sign(status, { 'retry-after': '3' }).retryAfterMs).toBe(3_000);
  });

  test.each([
    [{ 'retry-after-ms': '3000' }, 3_000],
    [{ 'retry-after-ms': '300.5' }, 300.5],
    // Retry-After is never shortened.
    [{ 'retry-after-ms': '300', 'retry-after': '2' }, 2_000],
    [{ 'retry-after-ms': 'soon', 'retry-after': '2' }, 2_000],
    [{ 'retry-after-ms': '-1' }, undefined],
  ])('%j is %d ms', (headers, ms) => {
    expect(sign(429, headers).retryAfterMs).toBe(ms);
  });

  test('is not read from an answer that succeeded', () => {
    expect(sign(200, { 'retry-after': '30' })).toEqual({ refused: false });
  });
});

describe('readRateSign: families', () => {
  test.each([
    ['x-ratelimit', 'x-ratelimit'],
    ['x-rate-limit', 'x-rate-limit'],
    ['ratelimit', 'ratelimit'],
  ])('A35: %s', (_, family) => {
    const headers = {
      [`${family}-limit`]: '60',
      [`${family}-remaining`]: '0',
      [`${family}-reset`]: '17',
    };

    expect(sign(200, headers)).toEqual({
      refused: false,
      limit: 60,
      remaining: 0,
      resetMs: 17_000,
    });
  });

  test('A20: the unified API’s two headers, which say no reset', () => {
    const headers = { 'x-ratelimit-limit': '60', 'x-ratelimit-remaining': '3' };

    expect(sign(200, headers)).toEqual({ refused: false, limit: 60, remaining: 3 });
  });

  test('the structured RateLimit of draft 10: the tightest policy counts', () => {
    const headers = {
      ratelimit: '"burst";r=50;t=30, "daily";r=2;t=600',
      'ratelimit-policy': '"burst";q=100;w=60,"daily";q=1000;w=86400',
    };

    expect(sign(200, headers)).toEqual({
      refused: false,
      limit: 1000,
      remaining: 2,
      resetMs: 600_000,
    });
  });

  test('the dictionary RateLimit of draft 07', () => {
    const headers = { ratelimit: 'limit=100, remaining=0, reset=5' };

    expect(sign(200, headers)).toEqual({
      refused: false,
      limit: 100,
      remaining: 0,
      resetMs: 5_000,
    });
  });

  test('A35: names from the config come first', () => {
    const headers = { 'x-budget-left': '0', 'x-budget-until': '20', 'x-ratelimit-remaining': '9' };
    const names = { remaining: 'X-Budget-Left', reset: 'X-Budget-Until' };

    expect(readRateSign(200, headers, { nowMs, names })).toEqual({
      refused: false,
      remaining: 0,
      resetMs: 20_000,
    });
  });

  test.each([
    ['epoch seconds', String(nowMs / 1_000 + 40), 40_000],
    ['epoch milliseconds', String(nowMs + 40_000), 40_000],
    ['a span in seconds', '40', 40_000],
    ['an HTTP-date', 'Wed, 01 Jul 2026 12:00:40 GMT', 40_000],
    ['an ISO date', '2026-07-01T12:00:40Z', 40_000],
    ['epoch microseconds', `${nowMs + 40_000}000`, 40_000],
    ['epoch nanoseconds', `${nowMs + 40_000}000000`, 40_000],
    ['epoch seconds with a fraction', `${nowMs / 1_000 + 40}.5`, 40_500],
    ['a span with a fraction', '2.5', 2_500],
    ['the past', String(nowMs / 1_000 - 40), 1_000],
    ['zero', '0', 1_000],
  ])('a reset that is %s', (_, text, ms) => {
    const headers = { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': text };

    expect(sign(200, headers).resetMs).toBe(ms);
  });

  test.each([
    ['x-ratelimit-reset', '864000'],
    ['x-ratelimit-reset', `${nowMs + 2 * day}000`],
    ['x-ratelimit-reset', '99999999999999999999'],
    ['ratelimit-reset-after', '86401'],
    ['ratelimit', '"daily";r=0;t=90000'],
  ])('a reset more than a day away is ignored and marked: %s %s', (name, text) => {
    expect(sign(429, { [name]: text })).toMatchObject({ refused: true, distantReset: true });
    expect(sign(429, { [name]: text })).not.toHaveProperty('resetMs');
  });

  test.each(['x-ratelimit', 'x-rate-limit', 'ratelimit'])(
    '%s-reset-after is a span, and wins over a reset of unknown unit',
    (family) => {
      const headers = { [`${family}-reset-after`]: '3.25', [`${family}-reset`]: '864000' };

      expect(sign(429, headers)).toEqual({ refused: true, resetMs: 3_250 });
    },
  );

  test.each(['', '--1', '0x10', '1.5', 'none', '٣'])(
    'A20: a remaining of %j is ignored',
    (text) => {
      expect(sign(200, { 'x-ratelimit-remaining': text })).toEqual({ refused: false });
    },
  );

  test.each([
    { 'x-ratelimit-remaining': '-3' },
    { 'ratelimit-remaining': '12, -3;w=60' },
    { ratelimit: '"a";r=-3' },
    { ratelimit: 'limit=60, remaining=-3' },
  ])('A20: a remaining below zero counts as none: %j', (headers) => {
    expect(sign(200, headers)).toMatchObject({ refused: false, remaining: 0 });
  });

  test.each(['"a";r=1.5', '"a";r=', 'r=1;', '"a"', ',', '"a;r=0'])(
    'a malformed RateLimit %j is ignored',
    (ratelimit) => {
      expect(sign(200, { ratelimit })).toEqual({ refused: false });
    },
  );

  test('no header text makes it throw or gives a number that is not one', () => {
    const header = fc.oneof(anyText(), fc.stringMatching(/^[0-9 ,;:"=rtqw@()?.-]{0,40}$/));
    const names = [
      'retry-after',
      'x-ratelimit-reset',
      'x-ratelimit-remaining',
      'ratelimit',
      'date',
    ];
    fc.assert(
      fc.property(fc.constantFrom(...names), header, (name, text) => {
        const { refused, ...numbers } = sign(429, { [name]: text });

        expect(refused).toBe(true);
        for (const value of Object.values(numbers)) {
          expect(value).toBeGreaterThanOrEqual(0);
          expect(Number.isFinite(value)).toBe(true);
        }
      }),
      { numRuns: 1_000 },
    );
  });
});

describe('parseHttpDate', () => {
  const moment = Date.UTC(1994, 10, 6, 8, 49, 37);

  test.each([
    'Sun, 06 Nov 1994 08:49:37 GMT',
    'Sunday, 06-Nov-94 08:49:37 GMT',
    'Sun Nov  6 08:49:37 1994',
  ])('%s (RFC 9110 section 5.6.7)', (text) => {
    expect(parseHttpDate(text, nowMs)).toBe(moment);
  });

  test.each([
    '',
    'Sun, 31 Feb 1994 08:49:37 GMT',
    'Sun, 06 Nov 1994 25:49:37 GMT',
    'Sun, 06 Nov 1994 08:49:37',
    '6 Nov 1994',
    '1994',
    '@784111777',
    'Sun, 06 Foo 1994 08:49:37 GMT',
  ])('%j is none', (text) => {
    expect(parseHttpDate(text, nowMs)).toBeNull();
  });

  test('gives back every second of every year it can be written for', () => {
    const date = fc.date({
      min: new Date('1900-01-01'),
      max: new Date('9999-12-31'),
      noInvalidDate: true,
    });
    fc.assert(
      fc.property(date, (moment) => {
        const second = Math.floor(moment.getTime() / 1_000) * 1_000;

        expect(parseHttpDate(new Date(second).toUTCString(), nowMs)).toBe(second);
      }),
    );
  });
});

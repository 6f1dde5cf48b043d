// Times as records write them, against the platform's own parser where it knows the form.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseTime } from '../../src/normalise/time.ts';

describe('parseTime', () => {
  it.each([
    ['2022-02-23T19:23:17.563183+0100', '2022-02-23T18:23:17.563Z'],
    ['2022-02-23T19:23:17+01:00', '2022-02-23T18:23:17.000Z'],
    ['2022-02-23t19:23:17.5z', '2022-02-23T19:23:17.500Z'],
    ['2022-02-23 19:23:17.123456789', '2022-02-23T19:23:17.123Z'],
    ['2022-02-23 19:23:17,25 UTC', '2022-02-23T19:23:17.250Z'],
    ['2022-02-23T19:23:17-05', '2022-02-24T00:23:17.000Z'],
    ['2022-02-23', '2022-02-23T00:00:00.000Z'],
    ['2000-02-29T23:59:60Z', '2000-03-01T00:00:00.000Z'],
    ['0001-01-01T00:00:00Z', '0001-01-01T00:00:00.000Z'],
    ['1702857600', '2023-12-18T00:00:00.000Z'],
    ['1588317924.691536', '2020-05-01T07:25:24.691Z'],
    [1_588_317_924.691_536, '2020-05-01T07:25:24.691Z'],
    [1_702_857_600, '2023-12-18T00:00:00.000Z'],
    [1_702_857_600_123, '2023-12-18T00:00:00.123Z'],
    [1_702_857_600_123_456, '2023-12-18T00:00:00.123Z'],
    [1_702_857_600_123_456_800, '2023-12-18T00:00:00.123Z'],
  ])('reads %j', (value, expected) => {
    expect(new Date(parseTime(value)).toISOString()).toBe(expected);
  });

  it.each([
    '',
    'yesterday',
    '2022-02-30T00:00:00Z',
    '1900-02-29',
    '2022-13-01',
    '2022-02-23T24:00:00Z',
    '2022-02-23T19:60:00Z',
    '2022-02-23T19:23:17.Z',
    '2022-02-23T19:23:17Zx',
    '2022-02-23T19:23:17+1',
    '2022-02-23T19:23:17+99:00',
    '20220223',
    '1.7028.57600',
    '12345',
    0,
    -1,
    12_345,
    Number.NaN,
    Number.POSITIVE_INFINITY,
    1e300,
    true,
    null,
    [],
    {},
    ['2022-02-23'],
  ])('takes %j for no time', (value) => {
    expect(parseTime(value)).toBeNaN();
  });

  it('agrees with Date for any instant and any offset', () => {
    const instants = fc.date({
      min: new Date('0002-01-01T00:00:00Z'),
      max: new Date('9998-12-31T00:00:00Z'),
      noInvalidDate: true,
    });

    fc.assert(
      fc.property(instants, fc.integer({ min: -1439, max: 1439 }), (instant, minutes) => {
        const local = new Date(instant.getTime() + minutes * 60_000).toISOString().slice(0, -1);
        const away = Math.abs(minutes);
        const hours = String(Math.floor(away / 60)).padStart(2, '0');
        const text = `${local}${minutes < 0 ? '-' : '+'}${hours}:${String(away % 60).padStart(2, '0')}`;

        expect(parseTime(text)).toBe(instant.getTime());
        expect(parseTime(instant.toISOString())).toBe(instant.getTime());
      }),
    );
  });

  it('reads any number and any text without throwing, as an integer or not at all', () => {
    fc.assert(
      fc.property(
        fc.oneof(fc.double(), fc.string(), fc.stringMatching(/^[-0-9T:.+Z ]{0,32}$/)),
        (value) => {
          const ms = parseTime(value);

          expect(Number.isNaN(ms) || Number.isSafeInteger(ms)).toBe(true);
        },
      ),
    );
  });
});

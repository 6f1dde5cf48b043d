// When an upstream ends: which of config, header and document counts, and what `ends` accepts.

import { expect, test } from 'vitest';
import { type AnnouncedEnd, daysLeft, parseEnds, upstreamEnd } from '../../src/upstream/ends.ts';

const endOf2026 = Date.UTC(2026, 11, 31, 23, 59, 59);
const march = Date.UTC(2027, 2, 1);
const june = Date.UTC(2027, 5, 1);

function sunset(endpoint: string, atMs: number): AnnouncedEnd {
  return { endpoint, deprecationMs: null, sunsetMs: atMs, endsMs: atMs };
}

test.each([
  ['never', 'never'],
  ['2026-12-31', endOf2026],
  ['2028-02-29', Date.UTC(2028, 1, 29, 23, 59, 59)],
  ['2026-12-31T12:00:00Z', Date.UTC(2026, 11, 31, 12)],
  ['2026-12-31T12:00:00.5+01:00', Date.UTC(2026, 11, 31, 11, 0, 0, 500)],
  ['1999-01-01', Date.UTC(1999, 0, 1, 23, 59, 59)],
])('ends: %s', (text, value) => {
  expect(parseEnds(text)).toBe(value);
});

test.each(['', 'Never', '2026', '31.12.2026', '2026-02-30', '2026-13-01', '2026-12-31T12:00'])(
  'ends: %j is refused',
  (text) => {
    expect(parseEnds(text)).toBeNull();
  },
);

test('the default is the date of the document for unified, and none for services', () => {
  const none = { endpoint: null, earlier: null };

  expect(upstreamEnd({ api: 'unified' }, [])).toEqual({
    ...none,
    ...{ endsMs: endOf2026, from: 'default' },
  });
  expect(upstreamEnd({ api: 'services' }, [])).toEqual({
    ...none,
    ...{ endsMs: null, from: 'default' },
  });
});

test.each(['unified', 'services'] as const)(
  '%s: the earliest header wins over the default',
  (api) => {
    const deprecated = { endpoint: '/c', deprecationMs: march, sunsetMs: null, endsMs: null };
    const found = upstreamEnd({ api }, [deprecated, sunset('/b', june), sunset('/a', march)]);

    expect(found).toEqual({ endsMs: march, from: 'sunset', endpoint: '/a', earlier: null });
  },
);

test('a future date in Deprecation is named as such', () => {
  const one = { endpoint: '/a', deprecationMs: march, sunsetMs: null, endsMs: march };

  expect(upstreamEnd({ api: 'services' }, [one])).toMatchObject({ from: 'deprecation' });
});

test.each([
  ['a later date', { ends: june }, { endpoint: '/a', endsMs: march }],
  ['never', { ends: 'never' as const }, { endpoint: '/a', endsMs: march }],
  ['the same date', { ends: march }, null],
  ['an earlier date', { ends: endOf2026 }, null],
])('a set end wins, and an earlier header is shown: %s', (_, { ends }, earlier) => {
  expect(upstreamEnd({ api: 'unified', ends }, [sunset('/a', march)])).toMatchObject({
    ...{ endsMs: ends === 'never' ? null : ends, from: 'config', endpoint: null },
    earlier: earlier && expect.objectContaining(earlier),
  });
});

test.each([
  [march - 1, 0],
  [march + 1, -1],
  [march - 86_400_000, 1],
])('daysLeft at %i', (now, days) => {
  expect(daysLeft(march, now)).toBe(days);
});

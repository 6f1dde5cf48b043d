// Dates that responses announce: hostile, several, and different from one response to the next.

import { expect, test } from 'vitest';
import { AnnouncedEnds, announcedIn } from '../../src/upstream/announced-ends.ts';
import { manualClock } from '../support/manual-clock.ts';
import { silent } from '../support/silent-log.ts';

const now = Date.UTC(2026, 0, 1);
const dayMs = 86_400_000;
const march = Date.UTC(2026, 2, 1);
const june = Date.UTC(2026, 5, 1);
const http = (ms: number) => new Date(ms).toUTCString();
const epoch = (ms: number) => `@${ms / 1_000}`;

function anUpstream() {
  const clock = manualClock(now);
  const ends = new AnnouncedEnds(clock);
  const respond = (headers: Readonly<Record<string, string>>, status = 200, endpoint = '/a') =>
    ends.notice(endpoint, { status, headers }, silent);
  return { clock, ends, respond, endsMs: () => ends.all.map((one) => one.endsMs) };
}

test.each<[what: string, headers: Readonly<Record<string, string>>, endsMs: number | null]>([
  ['Sunset', { sunset: http(june) }, june],
  ['Sunset beside an earlier Deprecation', { sunset: http(june), deprecation: epoch(march) }, june],
  ['a future Deprecation alone', { deprecation: epoch(june) }, june],
  ['a past Deprecation alone', { deprecation: '@1' }, null],
  ['a Deprecation of last year alone', { deprecation: epoch(now - dayMs) }, null],
  ['Deprecation without a date', { deprecation: 'true' }, null],
  ['a malformed Sunset beside a Deprecation', { sunset: 'soon', deprecation: epoch(june) }, june],
  ['a past Sunset', { sunset: http(now - dayMs) }, now - dayMs],
  ['two Sunset lines', { sunset: `${http(june)}, ${http(march)}` }, march],
  ['two Deprecation lines', { deprecation: `${epoch(june)}, ${epoch(march)}` }, march],
  ['a Sunset in 1970 beside a Deprecation', { sunset: http(0), deprecation: epoch(june) }, june],
])('%s', (_, headers, endsMs) => {
  expect(announcedIn(headers, now)).toMatchObject({ endsMs });
});

test.each<[what: string, headers: Readonly<Record<string, string>>]>([
  ['no header', {}],
  ['text', { sunset: 'soon', deprecation: 'no' }],
  ['a Sunset in the year 9999', { sunset: 'Fri, 31 Dec 9999 23:59:59 GMT' }],
  ['February 30', { sunset: 'Mon, 30 Feb 2026 00:00:00 GMT' }],
  ['a long text', { sunset: 'x'.repeat(100_000), deprecation: ','.repeat(100_000) }],
])('nothing is announced by %s', (_, headers) => {
  expect(announcedIn(headers, now)).toBeNull();
});

test('an earlier date counts at once, and a later one after ten responses in a row', () => {
  const { respond, endsMs } = anUpstream();
  respond({ sunset: http(june) });
  respond({ sunset: http(march) });
  expect(endsMs()).toEqual([march]);

  for (let n = 0; n < 9; n += 1) respond({ sunset: http(june) });
  respond({ sunset: http(march) });
  for (let n = 0; n < 9; n += 1) respond({ sunset: http(june) });
  expect(endsMs()).toEqual([march]);

  respond({ sunset: http(june) });
  expect(endsMs()).toEqual([june]);
});

test('a date that changes with each response stays at the earliest', () => {
  const { respond, endsMs, ends } = anUpstream();
  for (let n = 0; n < 100; n += 1) respond({ sunset: http(n % 2 === 0 ? june : march) });

  expect([endsMs(), ends.changes]).toEqual([[march], 2]);
});

test('a date that no response repeats is removed by a successful response after 24 hours', async () => {
  const { clock, respond, endsMs } = anUpstream();
  respond({ sunset: http(june) });
  await clock.advance(dayMs - 1);
  respond({});
  expect(endsMs()).toEqual([june]);

  await clock.advance(1);
  respond({}, 404);
  respond({}, 503);
  expect(endsMs()).toEqual([june]);

  respond({});
  expect(endsMs()).toEqual([]);
});

test('a Deprecation that was the end when it was in the future stays the end once it has passed', async () => {
  const { clock, respond, endsMs } = anUpstream();
  const soon = now + dayMs;
  respond({ deprecation: epoch(soon) });
  await clock.advance(3 * dayMs);
  for (let n = 0; n < 20; n += 1) respond({ deprecation: epoch(soon) });

  expect(endsMs()).toEqual([soon]);
});

test('a stored date counts like one that a response named, and a response wins over it', () => {
  const { respond, ends, endsMs } = anUpstream();
  respond({ sunset: http(march) });
  const stored = { deprecationMs: null, sunsetMs: june, endsMs: june };
  ends.resume([
    { endpoint: '/a', ...stored },
    { endpoint: '/b', ...stored },
  ]);

  expect(endsMs()).toEqual([march, june]);
});

test('the number of endpoints is bounded', () => {
  const { respond, ends } = anUpstream();
  for (let n = 0; n < 500; n += 1) respond({ sunset: http(june) }, 200, `/${n}`);

  expect(ends.all).toHaveLength(100);
});

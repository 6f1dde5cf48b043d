// When a record happened, for the watermark and for `start`: a time that is not understood is none, since a wrong one
// could keep a record out.

import { expect, test } from 'vitest';
import { recordTime, timeSpan } from '../../src/list/record-time.ts';
import { scanBody } from '../../src/tools/record-list.ts';

const noon = Date.UTC(2026, 10, 1, 12);

test.each([
  ['2026-11-01T12:00:00Z', noon],
  ['2026-11-01T12:00:00.250Z', noon + 250],
  ['2026-11-01T12:00:00.250999Z', noon + 250],
  ['2026-11-01T14:00:00+02:00', noon],
  ['2026-11-01T12:00:00', noon],
  ['2026-11-01 12:00:00', noon],
  ['2026-11-01T12:00', noon],
  ['2026-11-01', Date.UTC(2026, 10, 1)],
  [noon, noon],
  [noon / 1_000, noon],
])('A13: timeOf reads %s, as UTC where it says no zone', (value, expected) => {
  expect(recordTime({ at: value }, ['at'])).toBe(expected);
});

test.each(['', '12', 'soon', 'Nov 1', '2026-13-45T99:00:00Z', 0, -5, true, null, {}, [noon]])(
  'timeOf takes %s for no time',
  (value) => {
    expect(recordTime({ at: value }, ['at'])).toBeNull();
  },
);

test('A12: timeOf takes the first path that can be read', () => {
  const record = { created_at: 'soon', event: { time: '2026-11-01T12:00:00Z' }, time: 1 };

  expect(recordTime(record, ['timestamp', 'created_at', 'event.time', 'time'])).toBe(noon);
  expect(recordTime('text', ['time'])).toBeNull();
});

test('timeSpan returns earliest and latest in either order, and nothing if an end has no time', () => {
  const early = { time: noon };
  const late = { time: noon + 5_000 };
  const span = { earliest: noon, latest: noon + 5_000 };

  const spanOf = (records: readonly object[]) => {
    const list = scanBody(Buffer.from(JSON.stringify(records)), '', null).records;
    return list && timeSpan(list, ['time']);
  };

  expect(spanOf([early, late])).toEqual(span);
  expect(spanOf([late, early])).toEqual(span);
  expect(spanOf([late, {}])).toBeNull();
  expect(spanOf([])).toBeNull();
});

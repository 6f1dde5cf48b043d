// Times in other forms than RFC 3339: those that can mean one time only are read, and those that a config declares.

import { describe, expect, test } from 'vitest';
import { compileTimeFormats, timeFormatFlaw } from '../../src/contracts/time-forms.ts';
import { compileNormaliser } from '../../src/normalise/normalise.ts';
import { parseTime } from '../../src/normalise/time.ts';
import { aContext, aUid } from './ocsf.ts';

test.each([
  ['11/20/2026 10:00:00', '2026-11-20T10:00:00Z'],
  ['20/11/2026 10:00', '2026-11-20T10:00:00Z'],
  ['11/11/2026 10:00:00 PM', '2026-11-11T22:00:00Z'],
  ['11/20/2026, 12:05 AM', '2026-11-20T00:05:00Z'],
  ['20.11.2026 10:00:00', '2026-11-20T10:00:00Z'],
  ['05.11.2026', '2026-11-05T00:00:00Z'],
  ['20/Nov/2026:10:00:00 +0100', '2026-11-20T09:00:00Z'],
  ['Fri, 20 Nov 2026 09:00:00 GMT', '2026-11-20T09:00:00Z'],
  ['Fri, 20 Nov 2026 09:00:00 -0530', '2026-11-20T14:30:00Z'],
  ['20-Nov-2026 10:00:00.250', '2026-11-20T10:00:00.250Z'],
  ['20 November 2026 10:00', '2026-11-20T10:00:00Z'],
  ['Nov 20, 2026 10:00:00 AM', '2026-11-20T10:00:00Z'],
  ['Sept 1, 2026', '2026-09-01T00:00:00Z'],
  ['Fri Nov 20 10:00:00 2026', '2026-11-20T10:00:00Z'],
  ['Fri Nov 20 10:00:00 UTC 2026', '2026-11-20T10:00:00Z'],
  ['Fri Nov 20 2026 10:00:00 GMT+0100 (Central European Standard Time)', '2026-11-20T09:00:00Z'],
  ['2026-11-20 10:00 +0100', '2026-11-20T09:00:00Z'],
  ['2026-11-20T10:00Z', '2026-11-20T10:00:00Z'],
  ['2026-11-20 10:00:00 +01:00', '2026-11-20T09:00:00Z'],
  ['2026/11/20 10:00:00,5', '2026-11-20T10:00:00.500Z'],
  ['20261120T100000Z', '2026-11-20T10:00:00Z'],
  ['20261120T100000.123+0100', '2026-11-20T09:00:00.123Z'],
])('%s is %s', (text, expected) => {
  expect(new Date(parseTime(text)).toISOString()).toBe(new Date(expected).toISOString());
});

test.each([
  ...[
    '05/11/2026 10:00:00',
    '5-11-2026',
    '11/31/2026 10:00:00',
    '13/13/2026',
    '29/02/2026',
    '30 Feb 2026 10:00',
  ],
  ...[
    'Nov 20 10:00:00',
    '20/11/26 10:00',
    '11/20/2026 25:00:00',
    '11/20/2026 13:00 PM',
    '20 Nov 2026 10:00:00 CET',
  ],
  ...[
    '20 Non 2026',
    'Novel 20, 2026',
    '2026.11',
    '1.2.3.4',
    '10.0.20.2026',
    'yesterday',
    '10:00Z',
    '20/11/2026 10:00:00 x',
  ],
  ...[
    `20 Nov 2026${' '.repeat(80)}10:00`,
    '20/Nov/2026:10:60:00 +0100',
    '2026-11-20T10:00:00+25:00',
  ],
])('%s is no time', (text) => {
  expect(parseTime(text)).toBeNaN();
});

describe('time_formats', () => {
  test.each([
    ['%d/%m/%Y %H:%M:%S', '05/11/2026 10:00:01', '2026-11-05T10:00:01Z'],
    ['%m/%d/%Y %I:%M %p', '05/11/2026 10:00 pm', '2026-05-11T22:00:00Z'],
    ['%y%m%d-%H%M%S', '261105-100001', '2026-11-05T10:00:01Z'],
    ['%Y%m%d%H%M%S', '20261105100001', '2026-11-05T10:00:01Z'],
    ['%d %b %Y | %T.%f %z', '05 Nov 2026 | 10:00:01.25 -0100', '2026-11-05T11:00:01.250Z'],
    ['[%s]', '[1794477601]', '2026-11-12T10:00:01Z'],
    ['%F %R %Z', '2026-11-05 10:00 UTC', '2026-11-05T10:00:00Z'],
    ['100%% %d.%m.%Y', '100% 05.11.2026', '2026-11-05T00:00:00Z'],
  ])('%s reads %s', (format, text, expected) => {
    const parse = compileTimeFormats(['%d.%m.%y', format]);

    expect(timeFormatFlaw(format)).toBeNull();
    expect(new Date(parse(text)).toISOString()).toBe(new Date(expected).toISOString());
    expect(parse(`${text} `)).toBeNaN();
  });

  test.each([
    ['%d/%m', 'is no whole date'],
    ['%Y-%m-%d %q', 'has "%q", expected one of %Y %y'],
    ['dd/MM/yyyy', 'is no whole date'],
    ['%d/%m/%Y %', 'has "%", expected'],
  ])('%s is refused', (format, flaw) => {
    expect(timeFormatFlaw(format)).toContain(flaw);
  });

  test.each(['audit', 'log'] as const)(
    'are those of a source’s %s records, also under common names',
    (kind) => {
      const timeFormats = ['%d/%m/%Y %H:%M:%S'];
      for (const time of [['when'], []]) {
        const normalise = compileNormaliser(kind, { id: 'id', time, timeFormats });
        const name = time[0] ?? 'timestamp';
        const event = normalise(
          { action: 'x', [name]: '05/11/2026 10:00:01' },
          aUid,
          aContext(kind),
        );

        expect(event.time).toBe(Date.parse('2026-11-05T10:00:01Z'));
        expect(event.metadata).toMatchObject({ original_time: '05/11/2026 10:00:01' });
        expect(event.metadata.tags).toBeUndefined();
      }
    },
  );
});

// The syslog format: lines that a strict RFC 5424 parser reads back, RFC 3164 lines, and that no event, however long or
// hostile, makes a line that is too long or two lines.

import { isUtf8 } from 'node:buffer';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Event } from '../../src/contracts/event.ts';
import { losslessBytes, losslessText } from '../../src/tools/lossless-text.ts';
import { anEvent } from '../support/an-event.ts';
import { anyText } from '../support/any-text.ts';
import { hostileEvent, weirdEvent } from './arbitrary-events.ts';
import { decodeCef, decodeLeef, parse5424 } from './decoders.ts';
import { makeFormat, textEncoder } from './make-format.ts';

const named = { hostname: 'gw-1', app_name: 'sluice' };
const sdId = 'sluice@32473';
const messages = [
  'json',
  'ecs',
  'cef',
  'leef',
  'text',
  'original',
  { type: 'json', raw_data: true },
];

/** An event whose JSON, CEF, sentence and record are all far longer than a line may be. */
function aLongEvent(unit: string): Event {
  const long = unit.repeat(9000);
  return anEvent({
    raw: { long },
    ocsf: {
      message: long,
      unmapped: { long, list: Array.from({ length: 500 }, (_, i) => `${unit}${i}`) },
      actor: { user: { name: long, uid: 'usr-17' } },
      resources: Array.from({ length: 300 }, (_, i) => ({ uid: `r-${i}`, name: long, type: long })),
      firewall_rule: { name: long },
    },
  });
}

describe('syslog rfc5424', () => {
  test('has each field of the header, and uid, source and stream in structured data', () => {
    const encode = textEncoder('syslog', { ...named, facility: 'auth' });
    const event = anEvent({ source: 'audit', stream: 'audit/c-1', ocsf: { severity_id: 4 } });

    const line = parse5424(encode(event));

    expect(line).toMatchObject({
      facility: 4,
      severity: 3,
      version: 1,
      timestamp: '2026-03-04T05:06:07.089Z',
      hostname: 'gw-1',
      appName: 'sluice',
      procId: null,
      msgId: 'api_activity',
    });
    expect([...(line.structuredData ?? [])]).toEqual([
      [sdId, new Map(Object.entries({ uid: event.uid, source: 'audit', stream: 'audit/c-1' }))],
    ]);
    expect(JSON.parse(line.message ?? '')).toEqual(event.ocsf);
  });

  test.each([
    [0, 6],
    [1, 6],
    [2, 5],
    [3, 4],
    [4, 3],
    [5, 2],
    [6, 1],
    [99, 6],
  ])('writes OCSF severity %d as syslog severity %d', (severity_id, expected) => {
    const line = parse5424(textEncoder('syslog')(anEvent({ ocsf: { severity_id } })));

    expect([line.facility, line.severity]).toEqual([16, expected]);
  });

  test('writes any time as RFC 3339 in UTC, and no time where there is none to write', () => {
    const encode = textEncoder('syslog', named);
    const stampOf = (time: number) => parse5424(encode(anEvent({ ocsf: { time } }))).timestamp;

    fc.assert(
      fc.property(fc.integer({ min: 0, max: Date.UTC(9999, 11, 31) }), (time) => {
        expect(stampOf(time)).toBe(new Date(time).toISOString());
      }),
    );
    for (const time of [Number.NaN, -1, Date.UTC(9999, 11, 31) + 86_400_000, 9e15]) {
      expect(stampOf(time)).toBeNull();
    }
  });

  test('escapes names in structured data as a strict parser undoes it', () => {
    const encode = textEncoder('syslog', named);
    const source = 'a"b\\c]d é';
    const stream = '"] [forged@1 x="';

    const line = parse5424(encode(anEvent({ source, stream })));

    expect([...(line.structuredData?.keys() ?? [])]).toEqual([sdId]);
    expect(line.structuredData?.get(sdId)?.get('source')).toBe(source);
    expect(line.structuredData?.get(sdId)?.get('stream')).toBe(stream);
  });

  test('takes another enterprise number, and a byte order mark on request', () => {
    const encode = textEncoder('syslog', { ...named, enterprise: 99, bom: true });

    const line = parse5424(encode(anEvent()));

    expect(line.structuredData?.has('sluice@99')).toBe(true);
    expect(line.message?.startsWith('\ufeff{')).toBe(true);
  });

  test('carries CEF untouched, with its own settings', () => {
    const message = { type: 'cef', vendor: 'Acme' };
    const event = anEvent();

    const line = parse5424(textEncoder('syslog', { ...named, message })(event));

    expect(line.message).toBe(textEncoder('cef', { vendor: 'Acme' })(event));
  });

  test('carries the record as sent, on one line', () => {
    const raw = '{\n\t"id": 12345678901234567890,\r\n\t"note": "\u0085 \u2028 é"\n}';

    const line = parse5424(
      textEncoder('syslog', { ...named, message: 'original' })(anEvent({ raw })),
    );

    expect(JSON.parse(line.message ?? '')).toEqual(JSON.parse(raw));
    expect(line.message).toContain('12345678901234567890');
  });

  test('carries the bytes of a record exactly as its text would be written, whatever is in it', () => {
    const odd = fc.constantFrom(
      ...['\t', '\n', '\x7f', '\u0080', '\u009f', '\u00a0', '\u2028', '\u2029', '\u202a'],
    );
    const broken = fc.constantFrom(
      [0xc2],
      [0xe2, 0x80],
      [0xff],
      [0xed, 0xa0, 0x80],
      [0xc0, 0x80],
      [0x1f],
      [0x7f],
      [0xf0, 0x9f],
    );
    const part = fc.oneof(
      anyText({ maxLength: 12 }).map((text) => Buffer.from(JSON.stringify(text))),
      odd.map((text) => Buffer.from(text)),
      broken.map((bytes) => Buffer.from(bytes)),
      fc.nat({ max: 9 }).map((n) => Buffer.from('plain=|\\"é漢😀'.repeat(n))),
    );
    const bounds = fc.constantFrom(480, 8000);
    fc.assert(
      fc.property(
        fc.array(part, { maxLength: 8 }),
        bounds,
        fc.boolean(),
        (parts, max_message, bom) => {
          const event = {
            ...anEvent(),
            raw: Buffer.concat([Buffer.from('x'), ...parts]).subarray(1),
          };
          const settings = { ...named, max_message, bom, message: 'original' };
          const line = Buffer.from(makeFormat('syslog', settings).encode(event));
          // Bytes that are not UTF-8 stay, and have no byte order mark before them.
          const isText = isUtf8(event.raw);
          const visible = losslessText(event.raw).replace(
            /[\x7f-\x9f\u2028\u2029]/g,
            (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
          );
          const written = visible.replace(/[\x00-\x1f]/g, ' ');

          const header = line.subarray(0, line.indexOf('"] ') + 3).toString();
          const mark = bom && isText ? '\ufeff' : '';
          const whole = losslessBytes(header + mark + written);

          if (whole.length <= max_message) expect(line.equals(whole)).toBe(true);
          else expect(line.length).toBeLessThanOrEqual(max_message);
        },
      ),
      { numRuns: 400 },
    );
  });

  test.for(['rfc5424', 'rfc3164'])(
    '%s carries a record that is not UTF-8 as its bytes, without a byte order mark',
    (protocol) => {
      const latin = Buffer.from('{"id":"evt-1",\n"name":"caf\u00e9"}', 'latin1');
      const settings = { ...named, protocol, bom: true, message: 'original' };

      const line = Buffer.from(
        makeFormat('syslog', settings).encode({ ...anEvent(), raw: latin }),
      ).toString('latin1');
      const long = { ...anEvent(), raw: Buffer.concat([latin, Buffer.alloc(9000, 0xe9)]) };
      const short = Buffer.from(makeFormat('syslog', settings).encode(long));

      expect(line.endsWith(' {"id":"evt-1", "name":"caf\u00e9"}')).toBe(true);
      expect(line).not.toContain('\u00ef\u00bb\u00bf');
      expect(short.length).toBeLessThanOrEqual(8000);
      expect(isUtf8(short)).toBe(true);
    },
  );

  test('has a sentence with actor, object, origin and the uid', () => {
    const event = anEvent({ uid: 'e'.repeat(64) });

    const line = parse5424(textEncoder('syslog', { ...named, message: 'text' })(event));

    expect(line.message).toBe(
      'API Activity: policy.update by Anna Schmidt from 203.0.113.7 on Default policy, Success' +
        ` - Policy updated uid=${'e'.repeat(64)}`,
    );
  });
});

describe('syslog rfc3164', () => {
  test('has priority, time, host and tag before the message', () => {
    const encode = textEncoder('syslog', { ...named, app_name: 'my_app', protocol: 'rfc3164' });
    const event = anEvent();

    const line = encode(event);

    expect(line.slice(0, line.indexOf('{'))).toBe('<134>Mar  4 05:06:07 gw-1 my_app: ');
    expect(JSON.parse(line.slice(line.indexOf('{')))).toEqual(event.ocsf);
  });

  test('has CEF where the tag would be, as the CEF standard shows it', () => {
    const encode = textEncoder('syslog', { ...named, protocol: 'rfc3164', message: 'cef' });

    const line = encode(anEvent({ ocsf: { time: Date.UTC(2026, 0, 18, 11, 7, 53) } }));

    expect(line).toMatch(/^<134>Jan 18 11:07:53 gw-1 CEF:0\|/);
  });
});

describe.each(messages)('syslog with message %j', (message) => {
  const shapes = (['rfc5424', 'rfc3164'] as const).flatMap((protocol) =>
    [480, 1024, 8000].map((max_message) => ({ protocol, max_message })),
  );

  test.each(shapes)('keeps any event within the line: %j', (shape) => {
    const encode = textEncoder('syslog', { message, ...shape });

    fc.assert(
      fc.property(fc.oneof(hostileEvent, weirdEvent), (event) => {
        const line = encode(event);

        expect(Buffer.byteLength(line)).toBeLessThanOrEqual(shape.max_message);
        expect(line).not.toMatch(/[\p{Cc}\u2028\u2029]/u);
        expect(line).toMatch(/^<\d+>/);
        if (shape.protocol === 'rfc5424') {
          expect([...(parse5424(line).structuredData?.keys() ?? [])]).toEqual([sdId]);
        }
      }),
      { numRuns: process.env.SLUICE_TEST_LONG === '1' ? 60 : 20 },
    );
  });

  test.each(['x', 'é', '😀', '\n', '\\', '"', '='])(
    'shortens an event of very many %j, marked and with its uid',
    (unit) => {
      const event = aLongEvent(unit);
      const encode = textEncoder('syslog', { ...named, message });

      const line = encode(event);

      expect(Buffer.byteLength(line)).toBeLessThanOrEqual(8000);
      const text = parse5424(line).message ?? '';
      expect(text).toContain(event.uid);
      expect(text).toMatch(
        /is_truncated":true|sluice_truncated|sluiceTruncated=true|\[truncated\]/,
      );
      if (message === 'cef') expect(decodeCef(text).extension.get('cs6')).toBe(event.uid);
      else if (message === 'leef') expect(decodeLeef(text).attributes.get('uid')).toBe(event.uid);
      else if (message !== 'text') expect(JSON.parse(text)).toBeTypeOf('object');
    },
  );
});

describe('syslog shortening', () => {
  test('drops unmapped values before mapped ones', () => {
    const encode = textEncoder('syslog', named);
    const event = anEvent({ ocsf: { unmapped: { note: 'x'.repeat(20_000) } } });

    const written = JSON.parse(parse5424(encode(event)).message ?? '');

    const { unmapped: _, metadata, ...mapped } = event.ocsf;
    expect(written).toMatchObject(mapped);
    expect(written.metadata).toEqual({ ...metadata, is_truncated: true, untruncated_size: 21 });
    expect(written.unmapped.note).toBe(`${'x'.repeat(256)}…`);
  });

  test('drops the record as sent first', () => {
    const encode = textEncoder('syslog', { ...named, message: { type: 'json', raw_data: true } });
    const event = anEvent({ raw: { note: 'x'.repeat(20_000) } });

    const written = JSON.parse(parse5424(encode(event)).message ?? '');

    expect(written).not.toHaveProperty('raw_data');
    expect(written.unmapped).toEqual(event.ocsf.unmapped);
  });

  test('keeps the uid on the shortest line with the longest names', () => {
    const settings = { hostname: 'h'.repeat(255), app_name: 'a'.repeat(48), max_message: 480 };
    const names = { source: '"'.repeat(300), stream: 'é'.repeat(300) };
    const event = { ...aLongEvent('é'), ...names };

    const lines = messages.map((message) => textEncoder('syslog', { ...settings, message })(event));

    for (const line of lines) {
      expect(Buffer.byteLength(line)).toBeLessThanOrEqual(480);
      expect(parse5424(line).structuredData?.get(sdId)?.get('uid')).toBe(event.uid);
      expect(parse5424(line).message).toContain(event.uid);
    }
  });
});

test.each([
  [{ app_name: 'my app' }],
  [{ hostname: 'hôte' }],
  [{ facility: 'local8' }],
  [{ max_message: 100 }],
  [{ enterprise: 0 }],
  [{ message: { type: 'xml' } }],
  [{ message: { type: 'cef', vendr: 'x' } }],
])('syslog refuses the setting %j', (settings) => {
  expect(() => makeFormat('syslog', settings)).toThrow();
});

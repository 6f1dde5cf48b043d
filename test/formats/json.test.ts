// The json format: OCSF lines that any JSON parser reads back, and the record's own bytes.

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { OcsfEvent } from '../../src/contracts/event.ts';
import { anEvent } from '../support/an-event.ts';
import { hostileEvent } from './arbitrary-events.ts';
import { makeFormat, textEncoder } from './make-format.ts';

describe('json ocsf', () => {
  const encode = textEncoder('json');

  test('gives back the whole OCSF event, whatever its texts hold', () => {
    fc.assert(
      fc.property(hostileEvent, (event) => {
        expect(JSON.parse(encode(event))).toEqual(event.ocsf);
      }),
    );
  });

  test('writes a bigint as its digits, and never throws on a cycle or deep nesting', () => {
    const cycle: Record<string, unknown> = {
      big: 2n ** 64n,
      deep: JSON.parse('['.repeat(9e4) + ']'.repeat(9e4)),
    };
    cycle.self = cycle;
    const event = { ...anEvent(), ocsf: cycle as unknown as OcsfEvent };

    const written = JSON.parse(encode(event));

    expect(written).toMatchObject({ big: '18446744073709551616', self: '[circular]' });
  });

  test('leaves raw_data out unless configured', () => {
    expect(JSON.parse(encode(anEvent()))).not.toHaveProperty('raw_data');
  });
});

describe('json with raw_data', () => {
  const encode = textEncoder('json', { raw_data: true });

  test('carries the record as sent and its length in bytes', () => {
    const raw = '{"id": 12345678901234567890,\r\n "note": "Grüße \\u2028 😀"}';

    const written = JSON.parse(encode(anEvent({ raw })));

    expect(written).toMatchObject({ raw_data: raw, raw_data_size: Buffer.byteLength(raw) });
    expect(written.metadata).toEqual(anEvent({ raw }).ocsf.metadata);
  });
});

describe('json original', () => {
  const { encode } = makeFormat('json', { schema: 'original' });

  test('hands on the very bytes upstream sent', () => {
    const event = anEvent({ raw: '{"id":12345678901234567890,"é":"\\r\\n 😀"}' });

    expect(encode(event)).toBe(event.raw);
  });

  test('turns line breaks between tokens into blanks, and alters nothing else', () => {
    fc.assert(
      fc.property(fc.json(), fc.constantFrom('\n', '\r\n', '\n\t'), (json, gap) => {
        const raw = JSON.stringify(JSON.parse(json), null, 2).replaceAll('\n', gap);

        const line = Buffer.from(encode(anEvent({ raw }))).toString('utf8');

        expect(line).toBe(raw.replace(/[\r\n]/g, ' '));
        expect(JSON.parse(line)).toEqual(JSON.parse(json));
      }),
    );
  });

  test('does not alter the record that other sinks share', () => {
    const event = anEvent({ raw: '{\n}' });

    encode(event);

    expect(Buffer.from(event.raw).toString()).toBe('{\n}');
  });
});

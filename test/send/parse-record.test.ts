// Numbers on their way out: whatever a record writes, what sinks get has the same value, whether the page comes from the
// reader, who has looked through it, or from disk.

import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { JsonObject } from '../../src/contracts/json.ts';
import type { HeldPage } from '../../src/contracts/spool.ts';
import { compileNormaliser, type NormaliseSettings } from '../../src/normalise/normalise.ts';
import { DecodedPage, parseRecord } from '../../src/send/held-event.ts';
import { scanBody } from '../../src/tools/record-list.ts';
import { textEncoder } from '../formats/make-format.ts';

const numbers = fc.stringMatching(
  /^-?(0|[1-9][0-9]{0,24})(\.[0-9]{1,24})?([eE][+-]?[0-9]{1,3})?$/,
  { size: 'max' },
);
const toJson = textEncoder('json');
const parsed = (text: string) => {
  const body = Buffer.from(text);
  return parseRecord(body, 0, body.length);
};

/** The events of a page with this record: as the reader hands it on, and as it comes from disk. */
function events(record: string, kind: 'audit' | 'log', settings: Partial<NormaliseSettings> = {}) {
  const body = Buffer.from(`[${record}]`);
  const context = { source: 's', stream: 's', kind, fetchedAt: 1_793_491_200_000 };
  const { records } = scanBody(body, '', 'id');
  const page = {
    context,
    body,
    items: '',
    kept: null,
    uids: new Uint8Array(32),
    first: 0,
    count: 1,
  };
  const normalise = compileNormaliser(kind, { id: 'id', time: ['time'], ...settings });
  const read: HeldPage = records === null ? page : { ...page, slices: records.slices };
  return [read, page].map((held) => {
    const [event] = new DecodedPage(held, normalise).events;
    return event === undefined ? {} : (JSON.parse(toJson(event)) as JsonObject);
  });
}

/** The number that a text writes, as an integer times a power of ten that all of these texts can be written with. */
function exactly(text: string): bigint {
  const [mantissa = '', exponent = '0'] = text.toLowerCase().split('e');
  const [whole = '', fraction = ''] = mantissa.split('.');
  return BigInt(whole + fraction) * 10n ** BigInt(1100 - fraction.length + Number(exponent));
}

test('any number comes out with the value that upstream wrote, wherever it stands in a record', () => {
  fc.assert(
    fc.property(numbers, numbers, (one, two) => {
      const record = `{"s":"\\"1e400,","n":${one},"l":[ ${two} ,{"n":${one}}],"e":"1e400"}`;
      for (const { unmapped } of events(record, 'audit')) {
        const { s, n, l, e } = unmapped as { s: string; n: unknown; l: unknown[]; e: string };

        expect(exactly(String(n))).toBe(exactly(one));
        expect(exactly(String(l[0]))).toBe(exactly(two));
        expect(l[1]).toEqual({ n });
        expect([s, e]).toEqual(['"1e400,', '1e400']);
      }
    }),
    { numRuns: 150 },
  );
});

test('a number that a double keeps stays a number, and one that it does not is the text upstream wrote', () => {
  const kept = [
    '0',
    '-0',
    '1.50',
    '9007199254740991',
    '0.1',
    '1e21',
    '5E-324',
    '0e999',
    '1.7e+308',
  ];
  const text = [
    '9007199254740993',
    '9007199254740994',
    '12345678901234567890',
    '1e400',
    '-1E-400',
    '0.10000000000000001',
    '1.0000000000000000000001',
  ];

  expect(parsed(`[${kept}]`)).toEqual(kept.map(Number));
  expect(parsed(`[${text}]`)).toEqual(text);
});

test('parseRecord reads the values of JSON.parse if every number is kept', () => {
  const safe = fc.jsonValue().filter((value) => !/\d{16}/.test(JSON.stringify(value)));
  fc.assert(
    fc.property(safe, fc.constantFrom(0, 1), (value, indent) => {
      const text = JSON.stringify(value, null, indent);

      expect(parsed(text)).toEqual(JSON.parse(text));
    }),
  );
});

test('an id beyond 2^53 is kept digit by digit', () => {
  for (const { metadata } of events('{"id":9007199254740993}', 'audit')) {
    expect(metadata).toMatchObject({ original_event_uid: '9007199254740993' });
  }
});

test('a mapped attribute keeps to its type, and values that do not fit are unchanged in unmapped', () => {
  const fields = {
    'traffic.bytes': 'bytes',
    'src_endpoint.uid': 'uid',
    'src_endpoint.location.lat': 'lat',
    'src_endpoint.location.city': 'city',
    start_time: 'begun',
  };
  const mapping = { class: 'network_activity', fields };
  const record =
    '{"bytes":12345678901234567890,"uid":9007199254740993,"lat":47.123456789012345678,"city":"Bern","begun":1793491200000000123}';

  for (const event of events(record, 'log', { mapping })) {
    expect(event.traffic).toBeUndefined();
    expect(event.start_time).toBe(1_793_491_200_000);
    expect(event.src_endpoint).toEqual({
      uid: '9007199254740993',
      location: { lat: Number('47.123456789012345678'), city: 'Bern' },
    });
    expect(event.unmapped).toEqual({
      bytes: '12345678901234567890',
      lat: '47.123456789012345678',
      begun: '1793491200000000123',
    });
  }
});

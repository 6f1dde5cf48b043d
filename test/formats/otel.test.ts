// The otel format: requests that an independent reader of OTLP gives back whole, exact times, and values that AnyValue
// cannot hold turned into text instead of being lost.

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { anyValue } from '../../formats/otel-value.ts';
import type { Event, OcsfEvent } from '../../src/contracts/event.ts';
import { encodeLines } from '../../src/send/encode.ts';
import { anEvent } from '../support/an-event.ts';
import { anyValue as anything, hostileEvent, weirdEvent } from './arbitrary-events.ts';
import { documentOf, makeFormat } from './make-format.ts';
import { type ReadRecord, readRequest } from './otlp-reader.ts';

type Settings = Readonly<Record<string, unknown>>;

function requestOf(events: readonly Event[], settings: Settings = {}): Uint8Array {
  const document = documentOf(makeFormat('otel', settings), events);
  if (!document) throw new Error('otel has no document form');
  return document;
}

function recordOf(event: Event, settings: Settings = {}): ReadRecord {
  const record = readRequest(requestOf([event], settings)).groups[0]?.records[0];
  if (!record) throw new Error('no record');
  return record;
}

/** What is left of a value once UTF-8 and JSON have carried it. */
function carried(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value), (_key, member) =>
    typeof member === 'string' ? member.toWellFormed() : member,
  );
}

describe('otel record', () => {
  test('has the event whole in the body, and the fields that back ends search by as attributes', () => {
    const event = anEvent({ ocsf: { severity_id: 4, severity: 'High' } });

    const record = recordOf(event);

    expect(record).toMatchObject({
      timeUnixNano: 1_772_600_767_089_000_000n,
      observedTimeUnixNano: 1_772_600_797_000_000_000n,
      severityNumber: 17,
      severityText: 'High',
      eventName: 'ocsf.api_activity',
    });
    expect(record.body).toEqual(event.ocsf);
    expect(record.attributes).toEqual({
      'log.record.uid': event.uid,
      'sluice.source': 'audit',
      'sluice.stream': 'audit/c-1',
      'source.address': '203.0.113.7',
      'client.address': '203.0.113.7',
      'user.id': 'usr-17',
      'user.name': 'Anna Schmidt',
      'user.email': 'anna.schmidt@example.com',
    });
  });

  test('names both ends of a flow, the request and the query by the semantic conventions', () => {
    const { attributes } = recordOf(
      anEvent({
        ocsf: {
          category_uid: 4,
          class_uid: 4001,
          src_endpoint: { ip: '10.0.0.1', port: 49_330 },
          dst_endpoint: { ip: '2001:db8::1', port: 443 },
          connection_info: { protocol_name: 'TCP' },
          http_request: {
            http_method: 'GET',
            user_agent: 'curl/8',
            url: { url_string: 'https://h/p', path: '/p' },
          },
          http_response: { code: 403 },
          query: { hostname: 'x.example' },
        },
      }),
    );

    expect(attributes).toMatchObject({
      'source.address': '10.0.0.1',
      'source.port': 49_330,
      'destination.address': '2001:db8::1',
      'destination.port': 443,
      'network.transport': 'tcp',
      'http.request.method': 'GET',
      'http.response.status_code': 403,
      'url.full': 'https://h/p',
      'url.path': '/p',
      'user_agent.original': 'curl/8',
      'dns.question.name': 'x.example',
    });
    expect(attributes).not.toHaveProperty('client.address');
  });

  test.each([
    [0, 0],
    [1, 9],
    [2, 10],
    [3, 13],
    [4, 17],
    [5, 18],
    [6, 21],
    [99, 0],
  ])('writes OCSF severity %d as severity number %d', (severity_id, expected) => {
    expect(recordOf(anEvent({ ocsf: { severity_id } })).severityNumber).toBe(expected);
  });

  test('writes every time as exact nanoseconds', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 9_000_000_000_000 }), (time) => {
        const record = recordOf(anEvent({ ocsf: { time, metadata: { logged_time: time + 1 } } }));

        expect(record.timeUnixNano).toBe(BigInt(time) * 1_000_000n);
        expect(record.observedTimeUnixNano).toBe(BigInt(time + 1) * 1_000_000n);
      }),
    );
  });

  test('has no time where 64 bits do not hold its nanoseconds, in either encoding', () => {
    const last = 18_446_744_073_709;
    expect(recordOf(anEvent({ ocsf: { time: last } })).timeUnixNano).toBe(
      BigInt(last) * 1_000_000n,
    );
    const later = anEvent({ ocsf: { time: last + 1, metadata: { logged_time: 8.64e15 } } });
    expect(recordOf(later)).toMatchObject({ timeUnixNano: 0n, observedTimeUnixNano: 0n });
    const json = Buffer.from(makeFormat('otel', { encoding: 'json' }).encode(later)).toString();
    expect(json).toContain('"timeUnixNano":"0"');
  });

  test('adds the record as sent on request', () => {
    const raw = '{"id": 12345678901234567890}';

    const { attributes } = recordOf(anEvent({ raw }), { raw_data: true });

    expect(attributes['log.record.original']).toBe(raw);
    expect(recordOf(anEvent({ raw })).attributes).not.toHaveProperty('log.record.original');
  });

  test('has a program that acts by itself as the user', () => {
    const actor = { app_name: 'triage-agent', app_uid: 'ag-7' };

    const { attributes } = recordOf(anEvent({ ocsf: { actor } }));
    const led = recordOf(anEvent({ ocsf: { actor: { ...actor, user: { name: 'bo' } } } }));

    expect(attributes).toMatchObject({ 'user.id': 'ag-7', 'user.name': 'triage-agent' });
    expect(led.attributes['user.name']).toBe('bo');
    expect(led.attributes).not.toHaveProperty('user.id');
  });

  test('has the message as a text in the body on request, and the event in an attribute', () => {
    const settings = { body: 'message' };
    const event = anEvent();
    const silent = anEvent({ ocsf: { message: '' } });

    const { body, attributes } = recordOf(event, settings);

    const said =
      'API Activity: policy.update by Anna Schmidt from 203.0.113.7 on Default policy, Success - Policy updated';
    expect(body).toBe(said);
    expect(attributes.ocsf).toEqual(event.ocsf);
    expect(recordOf(silent, settings).body).toMatch(/^API Activity: policy.update by Anna Schmidt/);
    expect(recordOf(event).attributes).not.toHaveProperty('ocsf');
    const json = Buffer.from(requestOf([event], { ...settings, encoding: 'json' })).toString();
    expect(json).toContain(`"body":{"stringValue":"${said}"}`);
    expect(json).toContain('{"key":"ocsf","value":{"kvlistValue":');
  });

  test('has the body as one JSON text on request', () => {
    const event = anEvent();

    const { body } = recordOf(event, { body: 'json' });

    expect(JSON.parse(String(body))).toEqual(event.ocsf);
  });

  test('gives back the whole event, whatever its texts hold', () => {
    fc.assert(
      fc.property(hostileEvent, (event) => {
        const record = recordOf(event);

        expect(record.body).toEqual(carried(event.ocsf));
        expect(record.attributes['log.record.uid']).toBe(event.uid);
      }),
    );
  });

  test('can be read whatever the event holds', () => {
    fc.assert(
      fc.property(weirdEvent, (event) => {
        expect(readRequest(requestOf([event, event])).groups[0]?.records).toHaveLength(2);
      }),
    );
  });
});

describe('otel request', () => {
  test('groups all records under one resource and one scope', () => {
    const events = Array.from({ length: 50 }, (_, offset) => anEvent({ offset }));

    const { groups } = readRequest(requestOf(events, { resource: { 'host.name': 'gw-1' } }));

    expect(groups).toHaveLength(1);
    expect(groups[0]?.scope).toBe('sluice');
    expect(groups[0]?.resource).toEqual({ 'service.name': 'sluice', 'host.name': 'gw-1' });
    expect(groups[0]?.records.map(({ attributes }) => attributes['log.record.uid'])).toEqual(
      events.map(({ uid }) => uid),
    );
  });

  test('of one event equals the output of encode', () => {
    const event = anEvent();

    expect(makeFormat('otel').encode(event)).toEqual(requestOf([event]));
  });

  test.each(['protobuf', 'json'])('in %s is put together from any records of many', (encoding) => {
    const { document } = makeFormat('otel', { encoding, resource: { '"logRecords":[': '[' } });
    const some = fc.array(hostileEvent, { minLength: 1, maxLength: 5 });
    fc.assert(
      fc.property(some, fc.nat(5), fc.nat(5), (events, one, two) => {
        if (!document) throw new Error('otel has no document form');
        const range = { from: Math.min(one, two), to: Math.min(Math.max(one, two), events.length) };
        const part = events.slice(range.from, range.to);

        const joined = document.join(encodeLines(events, document), range);

        const alone = document.join(encodeLines(part, document), { from: 0, to: part.length });
        expect(Buffer.from(joined).equals(alone)).toBe(true);
        expect(uidsOf(joined, encoding)).toEqual(part.map(({ uid }) => uid));
      }),
      { numRuns: 30 },
    );
  });

  test('in JSON is one line by the OTLP file exporter’s rules', () => {
    const event = anEvent({ ocsf: { unmapped: { big: 2 ** 60, note: 'a\nb' } } });
    const format = makeFormat('otel', { encoding: 'json' });

    const line = Buffer.from(format.encode(event)).toString('utf8');

    expect(line).not.toMatch(/[\r\n]/);
    const record = JSON.parse(line).resourceLogs[0].scopeLogs[0].logRecords[0];
    expect(record).toMatchObject({
      timeUnixNano: '1772600767089000000',
      observedTimeUnixNano: '1772600797000000000',
      severityNumber: 9,
      eventName: 'ocsf.api_activity',
    });
    expect(record.attributes).toContainEqual({
      key: 'log.record.uid',
      value: { stringValue: event.uid },
    });
  });
});

/** The uids of a request's records; a request without any says nothing. */
function uidsOf(request: Uint8Array, encoding: string): unknown[] {
  if (encoding === 'protobuf') {
    const records = readRequest(request).groups.flatMap((group) => group.records);
    return records.map(({ attributes }) => attributes['log.record.uid']);
  }
  const { resourceLogs } = JSON.parse(Buffer.from(request).toString());
  const records = resourceLogs.flatMap(
    (logs: { scopeLogs: { logRecords: JsonRecord[] }[] }) => logs.scopeLogs[0]?.logRecords ?? [],
  );
  return records.map(
    ({ attributes }: JsonRecord) =>
      attributes.find(({ key }) => key === 'log.record.uid')?.value.stringValue,
  );
}

interface JsonRecord {
  readonly attributes: readonly { readonly key: string; readonly value: JsonAnyValue }[];
}

describe('anyValue', () => {
  test.each([
    [2n ** 70n, '1180591620717411303424'],
    [2 ** 53, '9007199254740992'],
    [1e21, '1e+21'],
    [Number.NaN, 'NaN'],
    [Number.POSITIVE_INFINITY, 'Infinity'],
    [new Date(0), '1970-01-01T00:00:00.000Z'],
    ['\ud800', '\ufffd'],
    [undefined, null],
    [null, null],
    [0.5, 0.5],
    [-3, -3],
    [
      [1, undefined, 2n],
      [1, null, '2'],
    ],
  ])('turns %s into a value that AnyValue can have', (value, expected) => {
    expect(anyValue(value)).toEqual(expected);
  });

  test('hands plain content on as it is, without a copy', () => {
    const plain = { a: ['x', 1, true, null, { b: 0.5 }] };

    expect(anyValue(plain)).toBe(plain);
  });

  test('keeps a member named __proto__ a member', () => {
    const value = JSON.parse('{"__proto__": {"x": 1}, "big": 1e300}');

    const record = recordOf({ ...anEvent(), ocsf: value as OcsfEvent });

    expect(Object.entries(record.body as object)).toEqual([
      ['__proto__', { x: 1 }],
      ['big', '1e+300'],
    ]);
  });

  test('carries values nested too deeply as their JSON text', () => {
    const deep = JSON.parse(`${'['.repeat(5000)}"kept"${']'.repeat(5000)}`);

    const record = recordOf(anEvent({ ocsf: { unmapped: { deep } } }));

    expect(JSON.stringify(record.body)).toContain('kept');
  });

  test('gives both encodings values that they can write', () => {
    fc.assert(
      fc.property(anything, (value) => {
        const event = anEvent({ ocsf: { odd: value } });

        const json = JSON.parse(Buffer.from(requestOf([event], { encoding: 'json' })).toString());
        const record = recordOf(event);

        const { body } = json.resourceLogs[0].scopeLogs[0].logRecords[0];
        expect(fromJson(body)).toEqual(record.body);
      }),
    );
  });
});

interface JsonAnyValue {
  readonly stringValue?: string;
  readonly boolValue?: boolean;
  readonly intValue?: number;
  readonly doubleValue?: number;
  readonly bytesValue?: string;
  readonly arrayValue?: { readonly values: readonly JsonAnyValue[] };
  readonly kvlistValue?: { readonly values: readonly { key: string; value: JsonAnyValue }[] };
}

/** An AnyValue in OTLP's JSON form as a plain value. */
function fromJson(value: JsonAnyValue): unknown {
  if (value.kvlistValue) {
    return Object.fromEntries(
      value.kvlistValue.values.map((pair) => [pair.key, fromJson(pair.value)]),
    );
  }
  if (value.arrayValue) return value.arrayValue.values.map(fromJson);
  if (value.bytesValue !== undefined) return Buffer.from(value.bytesValue, 'base64');
  return value.stringValue ?? value.boolValue ?? value.intValue ?? value.doubleValue ?? null;
}

// The gelf format as a strict reader of GELF 1.1 reads it.

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Json } from '../../src/contracts/json.ts';
import { hasShared, loadSamples, sampleNames, sharedNote } from '../normalise/ocsf.ts';
import { anEvent } from '../support/an-event.ts';
import { sampleMappings } from '../support/sample-mappings.ts';
import { hostileEvent, weirdEvent } from './arbitrary-events.ts';
import { readGelf } from './decoders.ts';
import { addFound, type Found, foundOf, foundShare } from './far-end.ts';
import { textEncoder } from './make-format.ts';

const write = textEncoder('gelf', { host: 'export-1' });

describe('gelf', () => {
  test('reads back whatever an event holds, with its uid', () => {
    fc.assert(
      fc.property(fc.oneof(weirdEvent, hostileEvent), (event) => {
        expect(readGelf(write(event))._uid).toBe(event.uid);
      }),
      { numRuns: 300 },
    );
  });

  test('has a field for each value, named after its path', () => {
    expect(readGelf(write(anEvent()))).toMatchObject({
      host: 'export-1',
      short_message:
        'API Activity: policy.update by Anna Schmidt from 203.0.113.7 on Default policy, Success - Policy updated',
      _record_message: 'Policy updated',
      timestamp: 1_772_600_767.089,
      level: 6,
      _source_name: 'audit',
      _class_uid: 6003,
      _actor_user_name: 'Anna Schmidt',
      _src_endpoint_ip: '203.0.113.7',
      _unmapped_request_id: 'req-55',
      _unmapped_session_mfa: 'true',
    });
  });

  test('keeps in one value what can be no field', () => {
    const unmapped = { größe: 1, list: [1, { a: 'b' }], none: null, a_b: 'one', a: { b: 'two' } };

    const { _sluice_rest: rest } = readGelf(write(anEvent({ ocsf: { unmapped, resources: [] } })));

    expect(JSON.parse(String(rest))).toEqual({
      'unmapped.größe': 1,
      'unmapped.list': [1, { a: 'b' }],
      'unmapped.none': null,
      'unmapped.a.b': 'two',
      resources: [],
    });
  });

  test('has no more fields than an index can take, and a short message', () => {
    const unmapped = Object.fromEntries(Array.from({ length: 5_000 }, (_, i) => [`k${i}`, i]));

    const read = readGelf(write(anEvent({ ocsf: { unmapped, message: 'x'.repeat(9_000) } })));

    expect(Object.keys(read).length).toBeLessThan(220);
    expect(JSON.parse(String(read._sluice_rest))).toHaveProperty(['unmapped.k4999'], 4999);
    expect(read.full_message).toMatch(/^API Activity: .* - x{9000}$/);
    expect(String(read.short_message).length).toBeLessThan(300);
  });
});

describe.skipIf(!hasShared)(`gelf of real records${sharedNote}`, () => {
  test.each(sampleNames)('%s: 97 in 100 values', (name) => {
    const samples: readonly Json[] = loadSamples(name).filter((_, i) => i % 5 === 0);
    const total: Found = { values: 0, standard: 0, own: 0, rest: 0, lost: 0 };
    for (const way of [
      { kind: 'audit' },
      { kind: 'log' },
      { kind: 'log', mapping: sampleMappings[name] },
    ] as const) {
      addFound(total, foundOf(samples, { ...way, format: 'gelf' }));
    }

    expect(foundShare(total)).toBeGreaterThanOrEqual(97);
  });
});

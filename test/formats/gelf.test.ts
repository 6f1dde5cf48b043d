// The gelf format as a strict reader of GELF 1.1 reads it.

import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { isNumberName } from '../../formats/gelf-names.ts';
import type { Json } from '../../src/contracts/json.ts';
import { hasShared, loadSamples, sampleNames, sharedNote } from '../normalise/ocsf.ts';
import { anEvent } from '../support/an-event.ts';
import { sampleMappings } from '../support/sample-mappings.ts';
import { hostileEvent, weirdEvent } from './arbitrary-events.ts';
import { addFound, type Found, foundOf, foundShare } from './carried-share.ts';
import { readGelf } from './decoders.ts';
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
    });
  });

  test('a name has one type in all events', () => {
    const events = [5, 'E5', true, { deep: 1 }].map((code, offset) =>
      anEvent({ offset, ocsf: { unmapped: { code }, status_code: code as string } }),
    );
    const wrong = anEvent({ offset: 9, ocsf: { severity_id: 'high' as unknown as number } });
    const types = new Map<string, Set<string>>();

    for (const event of [...events, wrong]) {
      for (const [name, value] of Object.entries(readGelf(write(event)))) {
        types.set(name, (types.get(name) ?? new Set()).add(typeof value));
      }
    }

    expect([...types].filter(([, kinds]) => kinds.size > 1)).toEqual([]);
    const rest = readGelf(write(events[0] ?? wrong))._sluice_rest;
    expect(JSON.parse(String(rest))).toMatchObject({ unmapped: { code: 5 }, status_code: 5 });
    expect(JSON.parse(String(readGelf(write(wrong))._sluice_rest)).severity_id).toBe('high');
  });

  test('the names that hold numbers are those of the schema', () => {
    const path = new URL('../../src/normalise/ocsf-1.8.0.json', import.meta.url);
    const { classes, objects } = JSON.parse(readFileSync(path, 'utf8'));
    const kinds = new Map<string, boolean>();
    for (const { attributes } of [...Object.values(classes), ...Object.values(objects)] as {
      attributes: Record<string, { type: string; list?: boolean }>;
    }[]) {
      for (const [name, { type, list }] of Object.entries(attributes)) {
        if (list === true) continue;
        kinds.set(name, /^(int|long|float|enum|time|port)$/.test(type));
      }
    }

    expect([...kinds].filter(([name, isNumber]) => isNumberName(name) !== isNumber)).toEqual([]);
  });

  test.each([
    ['ASCII', 'x'],
    ['characters of four bytes', '🛡'],
  ])('no field passes 32,766 bytes, and all is there: %s', (_, character) => {
    const long = character.repeat(40_000);
    const ocsf = { message: long, status_detail: long, unmapped: { long, list: [long] } };

    const read = readGelf(write(anEvent({ ocsf })));

    const longest = Math.max(...Object.values(read).map((one) => Buffer.byteLength(String(one))));
    expect(longest).toBeLessThanOrEqual(32_766);
    const parts = Object.keys(read).filter((name) => name.startsWith('_sluice_rest'));
    expect(parts).toEqual(parts.map((_one, at) => `_sluice_rest_${at + 1}`));
    const rest = JSON.parse(parts.map((name) => read[name]).join(''));
    expect(rest).toMatchObject({
      message: long,
      status_detail: long,
      unmapped: { long, list: [long] },
    });
    expect(read.full_message).toMatch(/^API Activity: /);
  });

  test('a value longer than a message may be is cut, with the number of bytes cut', () => {
    const read = readGelf(write(anEvent({ ocsf: { unmapped: { long: 'x'.repeat(3_000_000) } } })));

    const parts = Object.keys(read).filter((name) => /^_sluice_rest_\d+$/.test(name));
    expect(parts).toHaveLength(64);
    expect(read._sluice_rest_cut_bytes).toBeGreaterThan(900_000);
  });

  test('names have an end, whatever a source sends', () => {
    const names = new Set<string>();
    for (let record = 0; record < 12; record += 1) {
      const keys = Array.from({ length: 100 }, (_, at) => [`k${record * 100 + at}`, at]);
      const unmapped = Object.fromEntries(keys);
      const entity = { data: unmapped };
      for (const name of Object.keys(readGelf(write(anEvent({ ocsf: { unmapped, entity } })))))
        names.add(name);
    }

    expect(names.size).toBeLessThan(60);
  });

  test('keeps values that can be no field in one value', () => {
    const unmapped = { größe: 1, list: [1, { a: 'b' }], none: null, a_b: 'one', a: { b: 'two' } };

    const { _sluice_rest: rest } = readGelf(write(anEvent({ ocsf: { unmapped, resources: [] } })));

    expect(JSON.parse(String(rest))).toEqual({
      unmapped,
      resources: [],
    });
  });

  test('has no more fields than an index can take, and a short message', () => {
    const unmapped = Object.fromEntries(Array.from({ length: 5_000 }, (_, i) => [`k${i}`, i]));

    const read = readGelf(write(anEvent({ ocsf: { unmapped, message: 'x'.repeat(9_000) } })));

    expect(Object.keys(read).length).toBeLessThan(220);
    const parts = [1, 2, 3, 4].map((part) => read[`_sluice_rest_${part}`] ?? '');
    expect(JSON.parse(parts.join(''))).toHaveProperty(['unmapped', 'k4999'], 4999);
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

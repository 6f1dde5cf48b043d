// The leef format as a strict decoder of LEEF 2.0 reads it: nothing of an event can end the header or a pair, what QRadar
// has names for stands under them, and nearly every value arrives.

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Json } from '../../src/contracts/json.ts';
import { hasShared, loadSamples, sampleNames, sharedNote } from '../normalise/ocsf.ts';
import { anEvent, type EventWishes } from '../support/an-event.ts';
import { sampleMappings } from '../support/sample-mappings.ts';
import { hostileEvent, weirdEvent } from './arbitrary-events.ts';
import { addFound, type Found, foundOf, foundShare } from './carried-share.ts';
import { decodeLeef, parse5424 } from './decoders.ts';
import { textEncoder } from './make-format.ts';

const write = textEncoder('leef');
const attributesOf = (ocsf: EventWishes['ocsf'] = {}) =>
  Object.fromEntries(decodeLeef(write(anEvent({ ocsf }))).attributes);

describe('leef', () => {
  test('reads back whatever an event holds, with its uid', () => {
    fc.assert(
      fc.property(fc.oneof(weirdEvent, hostileEvent), (event) => {
        expect(decodeLeef(write(event)).attributes.get('uid')).toBe(event.uid);
      }),
      { numRuns: 300 },
    );
  });

  test('starts with the header of LEEF 2.0, and names the event by its action', () => {
    const line = textEncoder('leef', { vendor: 'Ac|me', product: 'Ed^ge' })(anEvent());

    expect(line).toMatch(/^LEEF:2\.0\|Ac¦me\|Edˆge\|1\.0\|policy\.update\|\^\|sev=2\^/);
  });

  test('has actor, object and origin under the names of LEEF', () => {
    expect(
      attributesOf({
        src_endpoint: { ip: '2001:db8::1', port: 1024, mac: '0a:1b:2c:3d:4e:5f' },
        dst_endpoint: { ip: '192.0.2.7', port: 443 },
        traffic: { bytes_out: 7, bytes_in: 8 },
        firewall_rule: { name: 'block-out' },
      }),
    ).toMatchObject({
      devTime: '1772600767089',
      usrName: 'Anna Schmidt',
      role: 'Administrator',
      src: '2001:db8::1',
      srcPort: '1024',
      srcMAC: '0a:1b:2c:3d:4e:5f',
      dst: '192.0.2.7',
      dstPort: '443',
      srcBytes: '7',
      dstBytes: '8',
      policy: 'block-out',
      resource: 'Default policy',
      resourceUid: 'pol-9',
      cat: 'API Activity',
    });
  });

  test('replaces characters that would end a pair, and keeps them in JSON', () => {
    const attributes = attributesOf({
      message: 'a|b^c\td\r\ne = \\f',
      unmapped: { list: ['x|y^z'] },
    });

    expect(attributes.msg).toBe('a¦bˆc d  e = \\f');
    expect(JSON.parse(attributes.sluiceUnmapped ?? '')).toEqual({ list: ['x|y^z'] });
  });

  test.each([0, 1e13, -1, Number.NaN])('says %d in no devTime, which would be misread', (time) => {
    expect(attributesOf({ time })).not.toHaveProperty('devTime');
  });

  test('goes over syslog as it is, and shortened with its uid', () => {
    const long = anEvent({
      ocsf: { message: '|^'.repeat(4_000), unmapped: { a: 'b'.repeat(9_000) } },
    });

    const whole = parse5424(textEncoder('syslog', { message: 'leef' })(anEvent())).message ?? '';
    const short = textEncoder('syslog', { message: 'leef', max_message: 1_000 })(long);

    expect(whole).toBe(write(anEvent()));
    expect(Buffer.byteLength(short)).toBeLessThanOrEqual(1_000);
    expect(decodeLeef(parse5424(short).message ?? '').attributes.get('uid')).toBe(long.uid);
    expect(short).toMatch(/\^sluiceTruncated=true$/);
  });
});

describe.skipIf(!hasShared)(`leef of real records${sharedNote}`, () => {
  test.each(sampleNames)('%s: 97 in 100 values', (name) => {
    const samples: readonly Json[] = loadSamples(name).filter((_, i) => i % 5 === 0);
    const total: Found = { values: 0, standard: 0, own: 0, rest: 0, lost: 0 };
    for (const way of [
      { kind: 'audit' },
      { kind: 'log' },
      { kind: 'log', mapping: sampleMappings[name] },
    ] as const) {
      addFound(total, foundOf(samples, { ...way, format: 'leef' }));
    }

    expect(foundShare(total)).toBeGreaterThanOrEqual(97);
  });
});

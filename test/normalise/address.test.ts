// Addresses as proxies and devices write them: with a port, with blanks, in a list. The first one is placed, the port
// beside it, and the value stays as it was. A text with an address in it is none.

import { describe, expect, test } from 'vitest';
import type { Json } from '../../src/contracts/json.ts';
import { addressIn } from '../../src/normalise/address.ts';
import { compileNormaliser } from '../../src/normalise/normalise.ts';
import { aContext, aUid, hasShared, loadCheck, sharedNote } from './ocsf.ts';

const cases: readonly (readonly [value: Json, ip: string, port?: number])[] = [
  ['203.0.113.7', '203.0.113.7'],
  ['203.0.113.7:443', '203.0.113.7', 443],
  ['[2001:db8::1]:443', '2001:db8::1', 443],
  ['[2001:db8::1]', '2001:db8::1'],
  ['2001:db8::1', '2001:db8::1'],
  ['203.0.113.7, 10.0.0.1', '203.0.113.7'],
  ['203.0.113.7:443, 10.0.0.1:80', '203.0.113.7', 443],
  ['203.0.113.7;10.0.0.1', '203.0.113.7'],
  ['unknown, 203.0.113.7', '203.0.113.7'],
  [' 203.0.113.7 ', '203.0.113.7'],
  [['203.0.113.7'], '203.0.113.7'],
  [['[2001:db8::1]:443', '10.0.0.1'], '2001:db8::1', 443],
];
const others: readonly Json[] = [
  ...[
    '',
    'unknown',
    'web',
    '203.0.113',
    '203.0.113.7:99999',
    '203.0.113.7:',
    '203.0.113.7/24',
    '[203.0.113.7]:1',
  ],
  ...['blocked 203.0.113.7', '203.0.113.7 was blocked', '203.0.113.7\t', '1.2.3.4.5', 'a:b', ':'],
  ...[[], [1], ['203.0.113.7', null], ['203.0.113.7', 'x'], 3_405_803_783, true, {}],
];

describe('an address in', () => {
  test.for(cases)('%j is found', ([value, ip, port]) => {
    expect(addressIn(value)).toEqual({ ip, port });
  });

  test('every other value holds none', () => {
    expect(others.filter((value) => addressIn(value) !== undefined)).toEqual([]);
  });
});

describe('an audit record', () => {
  const normalise = compileNormaliser('audit', { id: 'id', time: [] });
  const eventOf = (record: Json) => normalise(record, aUid, aContext('audit'));

  test.for(cases)('from %j is API Activity with address and port', ([value, ip, port]) => {
    for (const name of ['source_ip', 'client_ip', 'ip']) {
      const event = eventOf({ action: 'policy.update', actor: 'anna', [name]: value });

      expect(event).toMatchObject({ class_uid: 6003, src_endpoint: { ip } });
      expect(event.src_endpoint?.port).toBe(port);
      expect(event.unmapped?.[name]).toEqual(value === ip ? undefined : value);
    }
  });

  test('keeps a port of its own, and loses nothing', () => {
    const event = eventOf({
      action: 'x',
      source_ip: '203.0.113.7:443',
      source_port: 1024,
      client_ip: '10.0.0.1:5, 10.0.0.2',
    });

    expect(event.src_endpoint).toEqual({ ip: '10.0.0.1', port: 1024 });
    expect(event.unmapped).toEqual({
      source_ip: '203.0.113.7:443',
      client_ip: '10.0.0.1:5, 10.0.0.2',
    });
  });

  test.skipIf(!hasShared)(`is valid with any of them${sharedNote}`, async () => {
    const check = await loadCheck();
    for (const value of [...cases.map(([one]) => one), ...others]) {
      expect(check(eventOf({ action: 'x', actor: 'anna', source_ip: value }))).toEqual({
        errors: [],
        warnings: [],
      });
    }
  });
});

describe('a mapped log', () => {
  const fields = { 'src_endpoint.ip': 'client', 'dst_endpoint.ip': 'server' };
  const eventOf = (record: Json, more = {}) =>
    compileNormaliser('log', {
      ...{ id: 'id', time: [] },
      mapping: { class: 'network_activity', fields: { ...fields, ...more } },
    })(record, aUid, aContext('log'));

  test.for(cases)('of %j has it at both ends', ([value, ip, port]) => {
    const event = eventOf({ client: value, server: value });

    for (const end of [event.src_endpoint, event.dst_endpoint]) {
      expect(end).toEqual({ ip, ...(port !== undefined && { port }) });
    }
    expect(event.unmapped).toEqual(value === ip ? {} : { client: value, server: value });
  });

  test('has the port that is mapped, where there is one', () => {
    const more = { 'dst_endpoint.port': 'port' };

    expect(eventOf({ server: '203.0.113.7:443', port: 8443 }, more).dst_endpoint?.port).toBe(8443);
    expect(eventOf({ server: '203.0.113.7:443' }, more).dst_endpoint?.port).toBe(443);
  });
});

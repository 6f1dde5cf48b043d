// The cef format: what of an event stands where.

import { describe, expect, test } from 'vitest';
import { anEvent } from '../support/an-event.ts';
import { decodeCef } from './decoders.ts';
import { textEncoder } from './make-format.ts';

const encode = textEncoder('cef');
const decode = (event: Parameters<typeof encode>[0]) => decodeCef(encode(event));
const extensionOf = (event: Parameters<typeof encode>[0]) =>
  Object.fromEntries(decode(event).extension);

describe('cef header', () => {
  test('has seven fields and the settings in them', () => {
    const write = textEncoder('cef', { vendor: 'Ac|me', product: 'Edge\\', version: '2=0' });

    const decoded = decodeCef(write(anEvent({ ocsf: { severity_id: 4 } })));

    expect(decoded).toMatchObject({
      version: '0',
      deviceVendor: 'Ac|me',
      deviceProduct: 'Edge\\',
      deviceVersion: '2=0',
      deviceEventClassId: 'policy.update',
      name: 'API Activity: Update',
      severity: '8',
    });
  });

  test.each([
    [0, '0'],
    [1, '2'],
    [2, '3'],
    [3, '5'],
    [4, '8'],
    [5, '10'],
    [6, '10'],
    [99, '0'],
  ])('writes OCSF severity %d as %s', (severity_id, expected) => {
    expect(decode(anEvent({ ocsf: { severity_id } })).severity).toBe(expected);
  });

  test('takes class and activity for the class id where upstream has no code, and a title for the name', () => {
    const { metadata, ...ocsf } = anEvent().ocsf;
    const { event_code: _, ...rest } = metadata;
    const event = {
      ...anEvent(),
      ocsf: { ...ocsf, metadata: rest, finding_info: { title: 'Port scan' } },
    };

    expect(decode(event)).toMatchObject({ deviceEventClassId: '6003:3', name: 'Port scan' });
  });
});

describe('cef extension', () => {
  test('of an administrator’s change', () => {
    const extension = extensionOf(anEvent({ uid: 'f'.repeat(64) }));

    expect(extension).toEqual({
      cs6: 'f'.repeat(64),
      cs6Label: 'uid',
      rt: String(Date.UTC(2026, 2, 4, 5, 6, 7, 89)),
      externalId: 'evt-0001',
      cat: 'API Activity',
      act: 'policy.update',
      outcome: 'success',
      deviceFacility: 'audit/c-1',
      cs2: 'c-1',
      cs2Label: 'tenant',
      suser: 'Anna Schmidt',
      suid: 'usr-17',
      spriv: 'Administrator',
      sluiceActorUserType: 'Admin',
      sluiceActorUserEmailAddr: 'anna.schmidt@example.com',
      src: '203.0.113.7',
      cs3: 'policy',
      cs3Label: 'resource_type',
      cs4: 'Default policy',
      cs4Label: 'resource',
      cs5: 'pol-9',
      cs5Label: 'resource_uid',
      msg: 'Policy updated',
      sluiceOriginalTime: '2026-03-04T05:06:07.089Z',
      sluiceRequestId: 'req-55',
      sluiceSessionMfa: 'true',
    });
  });

  test('of a firewall’s flow: bytes by CEF’s sense of direction, IPv6 under its own keys', () => {
    const extension = extensionOf(
      anEvent({
        ocsf: {
          class_uid: 4001,
          class_name: 'Network Activity',
          action: 'Denied',
          src_endpoint: { ip: '2001:db8::1', port: 49_330, mac: '00-0D-60-AF-1B-61' },
          dst_endpoint: {
            ip: '198.51.100.4',
            port: 443,
            hostname: 'web.example',
            svc_name: 'https',
          },
          connection_info: { protocol_name: 'tcp', direction_id: 2 },
          traffic: { bytes_in: 5_000_000_000, bytes_out: 66 },
          firewall_rule: { name: 'block-out', uid: 'r-1' },
          start_time: 1_700_000_000_000,
          end_time: 1_700_000_000_500,
          count: 3,
        },
      }),
    );

    expect(extension).toMatchObject({
      act: 'Denied',
      c6a2: '2001:db8::1',
      c6a2Label: 'Source IPv6 Address',
      spt: '49330',
      smac: '00:0D:60:AF:1B:61',
      dst: '198.51.100.4',
      dpt: '443',
      dhost: 'web.example',
      proto: 'tcp',
      app: 'https',
      in: '66',
      out: '5000000000',
      deviceDirection: '1',
      cs1: 'block-out',
      cs1Label: 'rule',
      start: '1700000000000',
      end: '1700000000500',
      cnt: '3',
    });
    expect(extension).not.toHaveProperty('src');
  });

  test('of a login, a web request, a query and a detection', () => {
    const login = extensionOf(
      anEvent({
        ocsf: {
          class_uid: 3002,
          actor: { app_name: 'portal' },
          user: { name: 'bo', uid: 'u-2' },
          service: { name: 'vpn' },
          status_id: 2,
          status_detail: 'bad password',
        },
      }),
    );
    const web = extensionOf(
      anEvent({
        ocsf: {
          http_request: {
            uid: 'req-9',
            http_method: 'GET',
            user_agent: 'curl/8',
            referrer: 'https://r.example/',
            url: { url_string: 'https://h.example/p?a=b|c' },
          },
          http_response: { code: 403 },
        },
      }),
    );
    const query = extensionOf(
      anEvent({
        ocsf: {
          class_uid: 4003,
          query: { hostname: 'x.example', type: 'AAAA' },
          rcode: 'NXDOMAIN',
        },
      }),
    );
    const detection = extensionOf(
      anEvent({
        ocsf: {
          class_uid: 2004,
          evidences: [
            { file: { name: 'a.exe', path: 'C:\\a.exe', size: 9, hashes: [{ value: 'ab' }] } },
          ],
          attacks: [{ technique: { uid: 'T1046' } }],
        },
      }),
    );

    expect(login).toMatchObject({
      suser: 'bo',
      duser: 'bo',
      duid: 'u-2',
      outcome: 'failure',
      reason: 'bad password',
      sourceServiceName: 'portal',
      destinationServiceName: 'vpn',
    });
    expect(web).toMatchObject({
      request: 'https://h.example/p?a=b|c',
      requestMethod: 'GET',
      requestClientApplication: 'curl/8',
      requestContext: 'https://r.example/',
      sluiceRequestId: 'req-9',
      cn1: '403',
      cn1Label: 'http_status',
    });
    expect(query).toMatchObject({
      app: 'DNS',
      destinationDnsDomain: 'x.example',
      sluiceDnsQueryType: 'AAAA',
      reason: 'NXDOMAIN',
    });
    expect(detection).toMatchObject({
      fname: 'a.exe',
      filePath: 'C:\\a.exe',
      fsize: '9',
      fileHash: 'ab',
      threatAttackID: 'T1046',
      frameworkName: 'MITRE ATT&CK',
    });
  });

  test('has upstream’s own name for the action, and no outcome if none is known', () => {
    const extension = extensionOf(
      anEvent({
        ocsf: {
          category_uid: 3,
          api: {},
          activity_name: 'Update',
          status_id: 0,
          status: 'Unknown',
          metadata: { event_code: 'rule.updated' },
        },
      }),
    );

    expect(extension.act).toBe('rule.updated');
    expect(extension).not.toHaveProperty('outcome');
  });

  test.each([
    ['a'.repeat(40), true],
    ['a'.repeat(41), false],
    [`${'a'.repeat(39)}=`, false],
    ['😀'.repeat(40), true],
  ])('has upstream’s id %j only where it fits whole', (original_event_uid, fits) => {
    const extension = extensionOf(anEvent({ ocsf: { metadata: { original_event_uid } } }));

    expect(extension.externalId).toBe(fits ? original_event_uid : undefined);
    expect(extension.cs6).toHaveLength(64);
  });

  test.each([
    ['999.1.1.1', {}],
    ['host.example', {}],
    ['fe80::1%eth0', { c6a2: 'fe80::1', c6a2Label: 'Source IPv6 Address' }],
    ['10.0.0.1', { src: '10.0.0.1' }],
  ])('has the address %s only under the key of its family', (ip, expected) => {
    const { src, c6a2, c6a2Label } = extensionOf(anEvent({ ocsf: { src_endpoint: { ip } } }));

    expect(JSON.parse(JSON.stringify({ src, c6a2, c6a2Label }))).toEqual(expected);
  });

  test('replaces pipes if configured, in URLs as a URL does', () => {
    const write = textEncoder('cef', { replace_pipe: true });
    const event = anEvent({
      ocsf: { message: 'a|b', http_request: { url: { url_string: 'https://h/?q=a|b' } } },
    });

    const extension = Object.fromEntries(decodeCef(write(event)).extension);

    expect(extension).toMatchObject({ msg: 'a¦b', request: 'https://h/?q=a%7Cb' });
  });

  test('has no unmapped values if configured so, except in a Base Event', () => {
    const unmapped = { changed: ['a=b'], flow: { state: 'new' } };
    const write = textEncoder('cef', { unmapped: false });
    const keys = (ocsf: object) => {
      const { extension } = decodeCef(write(anEvent({ ocsf: { unmapped, ...ocsf } })));
      return Object.fromEntries([...extension].filter(([key]) => /^sluice[FU]/.test(key)));
    };

    expect(keys({})).toEqual({});
    expect(keys({ class_uid: 0 })).toEqual({
      sluiceFlowState: 'new',
      sluiceUnmapped: '{"changed":["a=b"]}',
    });
  });
});

// Logs under a mapping, logs without one, and what is wrong with a mapping.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { OcsfEvent, PageContext } from '../../src/contracts/event.ts';
import type { Json } from '../../src/contracts/json.ts';
import { compileNormaliser, type Mapping, mappingFlaws } from '../../src/normalise/normalise.ts';
import { aContext, aUid } from './ocsf.ts';

function normalised(record: Json, mapping?: Mapping, about: Partial<PageContext> = {}): OcsfEvent {
  const settings = { time: ['timestamp'], id: 'id' };
  const normalise = compileNormaliser(
    'log',
    mapping === undefined ? settings : { ...settings, mapping },
  );
  return normalise(record, aUid, { ...aContext('log'), ...about });
}

const flows: Mapping = {
  class: 'network_activity',
  fields: {
    'src_endpoint.ip': 'client.ip',
    'src_endpoint.port': 'client.port',
    'dst_endpoint.ip': 'server_ip',
    'connection_info.protocol_name': 'proto',
    'traffic.bytes': 'bytes',
    start_time: 'started',
    action: 'verdict',
  },
};

describe('mapped logs', () => {
  it('have mapped values where the mapping says, common ones where they belong and the rest in unmapped', () => {
    const event = normalised(
      {
        id: 7,
        timestamp: 1_702_857_600.5,
        client: { ip: '10.0.0.1', port: '443', os: 'linux' },
        server_ip: '2001:db8::1',
        proto: 'tcp',
        bytes: '1234',
        started: '2026-01-02T03:04:05Z',
        verdict: 'allowed',
        level: 'warning',
        note: null,
      },
      flows,
    );

    expect(event).toMatchObject({
      class_uid: 4001,
      activity_name: 'Traffic',
      type_uid: 400106,
      time: 1_702_857_600_500,
      severity: 'Medium',
      metadata: {
        original_event_uid: '7',
        original_time: '1702857600.5',
        profiles: ['security_control'],
      },
      src_endpoint: { ip: '10.0.0.1', port: 443 },
      dst_endpoint: { ip: '2001:db8::1' },
      connection_info: { protocol_name: 'tcp', direction_id: 0, direction: 'Unknown' },
      traffic: { bytes: 1234 },
      start_time: Date.UTC(2026, 0, 2, 3, 4, 5),
      action_id: 1,
      action: 'Allowed',
    });
    expect(event.unmapped).toEqual({ client: { os: 'linux' }, level: 'warning', note: null });
  });

  it('keep values in unmapped that an attribute cannot accept without loss', () => {
    const event = normalised(
      {
        client: { ip: '10.0.0.1', port: '0443' },
        server_ip: 'db.local',
        bytes: 1.5,
        started: '2026-01-02T03:04:05.123456Z',
        verdict: 'maybe',
      },
      flows,
    );

    expect(event).toMatchObject({
      src_endpoint: { ip: '10.0.0.1' },
      action_id: 99,
      action: 'maybe',
      start_time: Date.UTC(2026, 0, 2, 3, 4, 5, 123),
    });
    expect(event.dst_endpoint).toBeUndefined();
    expect(event.unmapped).toEqual({
      client: { port: '0443' },
      server_ip: 'db.local',
      bytes: 1.5,
      started: '2026-01-02T03:04:05.123456Z',
    });
  });

  it('without the required attributes of the class are Base Events with all in unmapped', () => {
    const record = { client: { port: 443 }, proto: 'tcp', message: 'hi' };
    const event = normalised(record, flows);

    expect(event).toMatchObject({ class_uid: 0, message: 'hi', unmapped: record });
    expect(event.connection_info).toBeUndefined();
  });

  it('try a literal dotted key before the path', () => {
    const mapping = { class: 'network_activity', fields: { 'src_endpoint.ip': 'id.orig_h' } };
    const event = normalised({ 'id.orig_h': '10.0.0.1', id: { orig_h: '10.0.0.2' } }, mapping);

    expect(event.src_endpoint).toEqual({ ip: '10.0.0.1' });
    expect(event.unmapped).toEqual({ id: { orig_h: '10.0.0.2' } });
  });

  it('build lists of objects element by element', () => {
    const mapping = {
      class: 'dns_activity',
      fields: {
        'src_endpoint.ip': 'ip',
        'answers.rdata': 'answers',
        'answers.ttl': 'ttls',
        'query.hostname': 'q',
      },
    };
    const event = normalised(
      { ip: '10.0.0.1', q: 'a.example', answers: ['10.0.0.2', 'b.example'], ttls: [60, 5] },
      mapping,
    );
    const uneven = normalised({ ip: '10.0.0.1', answers: ['10.0.0.2'], ttls: [60, 5] }, mapping);

    expect(event).toMatchObject({ activity_name: 'Response', query: { hostname: 'a.example' } });
    expect(event.answers).toEqual([
      { rdata: '10.0.0.2', ttl: 60 },
      { rdata: 'b.example', ttl: 5 },
    ]);
    expect(event.unmapped).toEqual({});
    expect(uneven.answers).toBeUndefined();
    expect(uneven.unmapped).toEqual({ answers: ['10.0.0.2'], ttls: [60, 5] });
  });

  it('read HTTP methods as activities; one that OCSF does not know is kept', () => {
    const mapping = {
      class: 'http_activity',
      fields: { 'http_request.http_method': 'method', 'http_request.url.path': 'uri' },
    };
    const known = normalised({ method: 'PATCH', uri: '/' }, mapping);
    const unknown = normalised({ method: 'PROPFIND', uri: '/' }, mapping);

    expect(known).toMatchObject({
      activity_id: 9,
      activity_name: 'Patch',
      type_name: 'HTTP Activity: Patch',
    });
    expect(unknown).toMatchObject({ activity_id: 0, unmapped: { method: 'PROPFIND' } });
  });

  it('give findings an id, and their own states', () => {
    const mapping = {
      class: 'detection_finding',
      fields: { 'finding_info.title': 'title', activity_name: 'phase' },
    };
    const event = normalised(
      { id: 'd-1', title: 'Scan', status: 'open', severity: 'sev2', phase: 'update' },
      mapping,
    );
    const anonymous = normalised({ title: 'Scan' }, mapping);
    const again = normalised({ title: 'Scan' }, mapping, { isUpdate: true });

    expect(event).toMatchObject({
      class_uid: 2004,
      activity_name: 'Update',
      severity: 'High',
      status_id: 1,
      status: 'New',
      status_code: 'open',
      finding_info: { uid: 'd-1', title: 'Scan' },
    });
    expect(anonymous).toMatchObject({ severity: 'Unknown', finding_info: { uid: aUid } });
    expect([anonymous, again].map((one) => one.activity_name)).toEqual(['Create', 'Update']);
  });

  it('take mapped time, severity and message before the common names', () => {
    const mapping = {
      class: 'network_activity',
      fields: {
        'src_endpoint.ip': 'ip',
        time: 'seen',
        severity: 'grade',
        message: 'note',
        'metadata.event_code': 'rule',
      },
    };
    const record = {
      ip: '10.0.0.1',
      seen: '2026-01-02',
      timestamp: '2026-01-03',
      grade: 9,
      level: 'low',
      note: 'n',
      message: 'm',
      rule: 12,
    };
    const event = normalised(record, mapping);

    expect(event).toMatchObject({
      time: Date.UTC(2026, 0, 2),
      severity: 'Critical',
      message: 'n',
      metadata: { event_code: '12' },
    });
    expect(event.unmapped).toEqual({
      timestamp: '2026-01-03',
      grade: 9,
      level: 'low',
      message: 'm',
    });
  });

  it('may map one value twice', () => {
    const mapping = {
      class: 'network_activity',
      fields: { 'src_endpoint.ip': 'host', 'src_endpoint.name': 'host' },
    };

    expect(normalised({ host: '10.0.0.1' }, mapping).src_endpoint).toEqual({
      ip: '10.0.0.1',
      name: '10.0.0.1',
    });
    expect(normalised({ host: 'pc-1' }, mapping).src_endpoint).toEqual({ name: 'pc-1' });
  });

  it('lose nothing, whatever the record', () => {
    const { start_time: _, ...fields } = flows.fields;
    const settings = { time: ['timestamp'], id: 'id', mapping: { class: flows.class, fields } };
    const normalise = compileNormaliser('log', settings);
    const leaf = fc.oneof(
      fc.constantFrom('10.0.0.1', 'allowed', 'ok', '443', 'Other'),
      fc.string({ minLength: 1 }),
      fc.integer(),
    );
    const keys = [
      'client',
      'ip',
      'port',
      'server_ip',
      'proto',
      'bytes',
      'verdict',
      'id',
      'timestamp',
      'status',
      'level',
      'x',
      '__proto__',
    ];
    const inner = fc.dictionary(fc.constantFrom(...keys), leaf, { noNullPrototype: true });
    const outer = fc.dictionary(fc.constantFrom(...keys), fc.oneof(leaf, inner, fc.array(leaf)), {
      noNullPrototype: true,
    });

    fc.assert(
      fc.property(outer, (record) => {
        const there = new Set(
          leaves(normalise(record as Json, aUid, aContext('log')) as unknown as Json),
        );
        for (const reported of leaves(record as Json)) expect(there).toContain(reported);
      }),
      { numRuns: 800 },
    );
  });
});

/** Every text and number in a value; case apart, since captions differ in it. */
function leaves(value: Json | undefined): readonly string[] {
  if (value === null || value === undefined) return [];
  if (typeof value !== 'object') return [String(value).toLowerCase()];
  return Object.values(value as Record<string, Json>).flatMap(leaves);
}

describe('logs without a mapping', () => {
  it('are Base Events that hold the whole record', () => {
    const record = {
      id: 'l-1',
      timestamp: '2026-01-02T00:00:00Z',
      log: { level: 'error' },
      msg: 'boom',
      ip: '10.0.0.1',
    };
    const event = normalised(record);

    expect(event).toMatchObject({
      class_uid: 0,
      class_name: 'Base Event',
      category_name: 'Uncategorized',
      type_name: 'Base Event: Unknown',
      time: Date.UTC(2026, 0, 2),
      severity: 'High',
      message: 'boom',
      metadata: { original_event_uid: 'l-1' },
    });
    expect(event.unmapped).toBe(record);
  });

  it('of an unknown class are Base Events too', () => {
    expect(normalised({ a: 1 }, { class: 'nothing', fields: {} })).toMatchObject({
      class_uid: 0,
      unmapped: { a: 1 },
    });
  });
});

describe('mappingFlaws', () => {
  it('finds none in a mapping that works', () => {
    expect(mappingFlaws(flows)).toEqual([]);
  });

  it('names the near class', () => {
    expect(mappingFlaws({ class: 'network_activty', fields: {} })).toEqual([
      { path: 'class', message: expect.stringContaining('did you mean network_activity?') },
    ]);
  });

  it('reports all errors in the fields at once, with the near attribute', () => {
    const flaws = mappingFlaws({
      class: 'network_activity',
      fields: {
        'src_endpoint.ipp': 'a',
        src_ip: 'a',
        'traffic.bytes.x': 'a',
        src_endpoint: 'a',
        class_uid: 'a',
        'metadata.uid': 'a',
        message: '',
      },
    });

    expect(flaws.map(({ path }) => path)).toEqual([
      'fields.src_endpoint.ipp',
      'fields.src_ip',
      'fields.traffic.bytes.x',
      'fields.src_endpoint',
      'fields.class_uid',
      'fields.metadata.uid',
      'fields.message',
    ]);
    expect(flaws[0]?.message).toContain('did you mean ip?');
    expect(flaws[2]?.message).toContain('traffic.bytes has no attributes');
    expect(flaws[3]?.message).toContain('is an object');
    expect(flaws[4]?.message).toContain('set by sluice');
  });

  it('names the required attributes of the class', () => {
    expect(
      mappingFlaws({ class: 'network_activity', fields: { message: 'm' } })[0]?.message,
    ).toContain('dst_endpoint, src_endpoint');
    expect(
      mappingFlaws({ class: 'authentication', fields: { message: 'm' } })[0]?.message,
    ).toContain('needs user');
  });
});

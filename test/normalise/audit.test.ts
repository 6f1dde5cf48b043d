// Audit records of the shapes that are common in the field, as OCSF.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { OcsfEvent } from '../../src/contracts/event.ts';
import type { Json } from '../../src/contracts/json.ts';
import { compileNormaliser } from '../../src/normalise/normalise.ts';
import { aContext, aUid } from './ocsf.ts';

const settings = { time: ['timestamp', 'time', 'created_at'], id: 'id' };
const normalise = compileNormaliser('audit', settings);

function normalised(record: Json, company: string | null = 'c-1'): OcsfEvent {
  return normalise(record, aUid, aContext('audit', company));
}

const aRecord = {
  id: 'evt_1',
  timestamp: '2026-03-01T10:00:00.123Z',
  action: 'policy.update',
  actor: { id: 'usr_7', name: 'Ada', email: 'ada@example.com', type: 'admin' },
  source_ip: '203.0.113.7',
  user_agent: 'curl/8',
  resource: { type: 'policy', id: 'pol_1', name: 'Block all' },
  result: 'success',
  severity: 'HIGH',
  request_id: 'req-1',
  message: 'Rule changed',
  region: { name: 'eu', zone: null },
};

describe('audit records', () => {
  it.each([
    { network: { source_ip: '203.0.113.7', source_port: 40_123, user_agent: 'curl/8' } },
    { request: { client_ip: '203.0.113.7', client_port: 40_123, user_agent: 'curl/8' } },
    { connection: { srcIp: '203.0.113.7', srcPort: 40_123, userAgent: 'curl/8' } },
  ])('name their source in the description of the connection: %j', (connection) => {
    const { source_ip: _, user_agent: __, ...rest } = aRecord;

    const event = normalised({ ...rest, ...connection });

    expect(event).toMatchObject({
      class_uid: 6003,
      src_endpoint: { ip: '203.0.113.7', port: 40_123 },
      http_request: { user_agent: 'curl/8' },
    });
    expect(event).not.toHaveProperty(['unmapped', 'network']);
  });

  it('with a source address are API Activity', () => {
    const event = normalised(aRecord);

    expect(event).toEqual({
      class_uid: 6003,
      class_name: 'API Activity',
      category_uid: 6,
      category_name: 'Application Activity',
      activity_id: 3,
      activity_name: 'Update',
      type_uid: 600303,
      type_name: 'API Activity: Update',
      time: Date.UTC(2026, 2, 1, 10, 0, 0, 123),
      severity_id: 4,
      severity: 'High',
      status_id: 1,
      status: 'Success',
      status_code: 'success',
      metadata: {
        version: '1.8.0',
        product: { name: 'audit' },
        uid: aUid,
        log_name: 'audit',
        logged_time: 1_755_800_000_000,
        original_event_uid: 'evt_1',
        original_time: '2026-03-01T10:00:00.123Z',
        event_code: 'policy.update',
        tenant_uid: 'c-1',
      },
      actor: {
        user: {
          name: 'Ada',
          uid: 'usr_7',
          email_addr: 'ada@example.com',
          type_id: 2,
          type: 'Admin',
        },
      },
      api: { operation: 'policy.update', request: { uid: 'req-1' } },
      resources: [{ uid: 'pol_1', name: 'Block all', type: 'policy' }],
      src_endpoint: { ip: '203.0.113.7' },
      http_request: { user_agent: 'curl/8' },
      message: 'Rule changed',
      unmapped: { region: { name: 'eu', zone: null } },
    });
  });

  it('without a source address are Entity Management', () => {
    const { source_ip: _, ...record } = aRecord;
    const event = normalised({ ...record, before: { on: true }, after: { on: false } });

    expect(event.class_uid).toBe(3004);
    expect(event.entity).toEqual({
      uid: 'pol_1',
      name: 'Block all',
      type_id: 5,
      type: 'Policy',
      data: { on: true },
    });
    expect(event.entity_result).toMatchObject({ uid: 'pol_1', data: { on: false } });
    expect(event.http_request).toEqual({ uid: 'req-1', user_agent: 'curl/8' });
    expect(event.unmapped).toEqual({ region: { name: 'eu', zone: null } });
  });

  it('of logins are Authentication', () => {
    const event = normalised({
      event: 'user.login_failed',
      user: 'ada@example.com',
      ip: '::1',
      reason: 'bad password',
    });

    expect(event).toMatchObject({
      class_uid: 3002,
      activity_name: 'Logon',
      user: { name: 'ada@example.com', email_addr: 'ada@example.com' },
      service: { name: 'audit' },
      src_endpoint: { ip: '::1' },
      status: 'Failure',
      status_detail: 'bad password',
    });
  });

  it.each<Json>([
    {
      id: 'evt_1',
      eventName: 'UpdatePolicy',
      sourceIPAddress: '203.0.113.7',
      userIdentity: { userName: 'Ada', principalId: 'usr_7' },
    },
    {
      event_id: 'evt_1',
      event_type: 'UpdatePolicy',
      client: { ip_address: '203.0.113.7' },
      actor_name: 'Ada',
      actor_id: 'usr_7',
    },
    {
      'event.id': 'evt_1',
      'event.action': 'UpdatePolicy',
      'source.ip': '203.0.113.7',
      'user.name': 'Ada',
      'user.id': 'usr_7',
    },
    {
      event: { id: 'evt_1', action: 'UpdatePolicy' },
      source: { ip: '203.0.113.7' },
      user: { name: 'Ada', id: 'usr_7' },
    },
    {
      EVENT_ID: 'evt_1',
      OPERATION: 'UpdatePolicy',
      SRC_IP: '203.0.113.7',
      USERNAME: 'Ada',
      USER_ID: 'usr_7',
    },
    {
      uuid: 'evt_1',
      operationName: 'UpdatePolicy',
      context: { ipAddress: '203.0.113.7' },
      initiatedBy: { user: { name: 'Ada', id: 'usr_7' } },
    },
    {
      id: 'evt_1',
      action: 'UpdatePolicy',
      actor: { session: { user: { id: 'usr_7', name: 'Ada' }, ip_address: '203.0.113.7' } },
    },
  ])('A12 A50: are read nested, flat, dotted, in snake and camel case: %j', (record) => {
    const event = normalised(record);

    expect(event.metadata).toMatchObject({
      original_event_uid: 'evt_1',
      event_code: 'UpdatePolicy',
    });
    expect(event.actor?.user).toEqual({ name: 'Ada', uid: 'usr_7' });
    expect(event.src_endpoint).toEqual({ ip: '203.0.113.7' });
    expect(event.unmapped).toEqual({});
  });

  it('of autonomous agents name an app, not a user', () => {
    const event = normalised({
      action: 'run.approve',
      actor: { type: 'agent', id: 'ag-1', name: 'Warden' },
      ip: '10.0.0.1',
    });

    expect(event.actor).toEqual({ app_name: 'Warden', app_uid: 'ag-1' });
    expect(event.unmapped).toEqual({ actor: { type: 'agent' } });
  });

  it('of agents that send their id as agent_id are no one without an id', () => {
    const event = normalised({
      action: 'run.approve',
      actor: { type: 'agent', agent_id: 'ag-1', name: 'Warden' },
      ip: '10.0.0.1',
    });

    expect(event.actor).toEqual({ app_name: 'Warden', app_uid: 'ag-1' });
  });

  it('never make one person out of two', () => {
    const event = normalised({
      action: 'role.grant',
      actor: 'ada',
      user_id: 'usr_9',
      user_email: 'bob@example.com',
      ip: '10.0.0.1',
    });

    expect(event.actor).toEqual({ user: { name: 'ada' } });
    expect(event.unmapped).toEqual({ user_id: 'usr_9', user_email: 'bob@example.com' });
  });

  it('keep values in unmapped that their attribute does not take', () => {
    const event = normalised({
      action: 'x',
      user: 'ada',
      src: { ip: '300.1.1.1', port: 70_000, mac: 'zz' },
      user_email: 'no mail',
    });

    expect(event.src_endpoint).toBeUndefined();
    expect(event.unmapped).toEqual({
      src: { ip: '300.1.1.1', port: 70_000, mac: 'zz' },
      user_email: 'no mail',
    });
  });

  it('keep words that an enum cannot show', () => {
    const event = normalised({
      action: 'x',
      user: { name: 'ada', type: 'superadmin' },
      severity: 8,
      status: 'ok',
      error_code: 'E1',
    });

    expect(event).toMatchObject({
      severity_id: 4,
      status_id: 1,
      status_code: 'E1',
      actor: { user: { type: 'Admin' } },
    });
    expect(event.unmapped).toEqual({ severity: 8, status: 'ok', user: { type: 'superadmin' } });
  });

  it('show unknown words as the captions of Other', () => {
    const event = normalised({
      action: 'agent.pondered',
      user: 'ada',
      severity: 'spicy',
      outcome: 'half done',
    });

    expect(event).toMatchObject({
      activity_id: 99,
      activity_name: 'agent.pondered',
      severity_id: 99,
      severity: 'spicy',
      status_id: 99,
      status: 'half done',
    });
  });

  it('A12: take the time of reading where they have none, and say so', () => {
    const event = normalised({ id: 'e', action: 'x', user: 'ada', timestamp: 'yesterday' });

    expect(event.time).toBe(1_755_800_000_000);
    expect(event.metadata.tags).toEqual([{ name: 'time_source', value: 'fetched_at' }]);
    expect(event.unmapped).toEqual({ timestamp: 'yesterday' });
  });

  it('take the first configured time that parses; the others stay', () => {
    const event = normalised({
      created_at: '2026-01-03',
      time: '2026-01-02',
      timestamp: 'soon',
      action: 'x',
    });

    expect(event.time).toBe(Date.UTC(2026, 0, 2));
    expect(event.unmapped).toEqual({ created_at: '2026-01-03', timestamp: 'soon' });
  });

  it('have their configured paths before the common names, nested or as a literal key', () => {
    const byPath = compileNormaliser('audit', { time: ['meta.at'], id: 'meta.key' });
    const nested = byPath(
      { id: 'no', action: 'x', meta: { at: 1_702_857_600, key: 5 } },
      aUid,
      aContext('audit'),
    );
    const literal = byPath(
      { id: 'no', action: 'x', 'meta.at': 1_702_857_600, 'meta.key': 5 },
      aUid,
      aContext('audit'),
    );

    for (const event of [nested, literal]) {
      expect(event.metadata).toMatchObject({
        original_event_uid: '5',
        original_time: '1702857600',
      });
      expect(event.unmapped).toEqual({ id: 'no' });
    }
  });

  it('do not use a number whose digits parsing has lost as an id', () => {
    const event = normalised(
      JSON.parse('{"id":9007199254740993,"action":"x","user":"ada"}') as Json,
    );

    expect(event.metadata.original_event_uid).toBeUndefined();
    expect(event.unmapped).toEqual({ id: 2 ** 53 });
  });

  it('A38: show a company that differs from the stream’s', () => {
    expect(normalised({ action: 'x', company_id: 'c-1' }).unmapped).toEqual({});
    expect(normalised({ action: 'x', company_id: 'c-2' }).unmapped).toEqual({ company_id: 'c-2' });
    expect(normalised({ action: 'x', company_id: 'c-2' }, null).metadata.tenant_uid).toBe('c-2');
  });

  it('make the same event whatever was read before', () => {
    const first = normalise(aRecord, aUid, aContext('audit'));
    normalise(
      { actor: { other: 1 }, x: 1, id: 'evt_2', severity: 'low', src: 5 },
      aUid,
      aContext('audit'),
    );

    expect(normalise(aRecord, aUid, aContext('audit'))).toEqual(first);
    expect(
      normalise(
        Object.fromEntries(Object.entries(aRecord).reverse()) as Json,
        aUid,
        aContext('audit'),
      ),
    ).toEqual(first);
  });
});

describe('records that will not map', () => {
  const base = { class_uid: 0, type_uid: 0, activity_id: 0 };

  it.each<Json>([null, true, 7, 'text', [], [{ action: 'x' }]])(
    '%j goes out whole as a Base Event',
    (record) => {
      expect(normalised(record)).toMatchObject({ ...base, unmapped: { value: record } });
    },
  );

  it('an object without actor, action or target goes out whole as a Base Event', () => {
    const record = {
      time: '2026-01-02',
      message: 'hello',
      severity: 'low',
      id: 'x1',
      colour: 'red',
    };
    const event = normalised(record);

    expect(event).toMatchObject({
      ...base,
      time: Date.UTC(2026, 0, 2),
      message: 'hello',
      severity_id: 2,
      unmapped: record,
    });
    expect(event.metadata.original_event_uid).toBe('x1');
  });

  it('hostile keys arrive as plain own properties and pollute nothing', () => {
    const text =
      '{"action":"x","user":"ada","__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}},"toString":"t","actor":{"__proto__":{"polluted":2},"hasOwnProperty":3}}';
    const event = normalised(JSON.parse(text) as Json);

    expect(({} as Record<string, unknown>).polluted).toBeUndefined();
    expect(JSON.parse(JSON.stringify(event.unmapped))).toEqual(
      JSON.parse(
        '{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}},"toString":"t","actor":{"__proto__":{"polluted":2},"hasOwnProperty":3}}',
      ),
    );
    expect(Object.getPrototypeOf(event.unmapped)).toBe(Object.prototype);
    expect(Object.hasOwn(event.unmapped ?? {}, '__proto__')).toBe(true);
  });

  it('depth of 10,000 and texts of 2 MB are no trouble', () => {
    const deep = JSON.parse(
      `{"action":"x","actor":${'{"user":'.repeat(10_000)}1${'}'.repeat(10_000)}}`,
    ) as Json;
    const long = 'x'.repeat(2_000_000);

    expect(normalised(deep).class_uid).toBe(3004);
    const event = normalised({
      [long]: 1,
      action: long,
      actor: long,
      message: long,
      user_email: `${long}@example.com`,
      severity: long,
    });
    expect(event.message).toBe(long);
    expect(event.unmapped).toMatchObject({
      [long]: 1,
      action: long,
      actor: long,
      user_email: `${long}@example.com`,
    });
  });
});

describe('the source’s own word for the outcome', () => {
  it.each([
    ['SUCCESS', 1, 'Success', 'SUCCESS'],
    ['success', 1, 'Success', 'success'],
    ['Success', 1, 'Success', undefined],
    ['denied', 2, 'Failure', 'denied'],
  ])('%s is status_id %d, and stays', (result, status_id, status, status_code) => {
    const event = normalised({ action: 'policy.update', actor: 'bo', result });

    expect(event).toMatchObject({ status_id, status });
    expect(event.status_code).toBe(status_code);
  });

  it('stays in unmapped where it is no word, or another code is there', () => {
    const record = { action: 'policy.update', actor: 'bo' };

    expect(normalised({ ...record, success: false }).unmapped).toEqual({ success: false });
    expect(normalised({ ...record, result: 'FAILED', error_code: 'E1' })).toMatchObject({
      status_code: 'E1',
      unmapped: { result: 'FAILED' },
    });
  });
});

describe('the content of an audit record', () => {
  it('is in the event, whatever it is', () => {
    const keys = [
      'id',
      'time',
      'action',
      'actor',
      'user',
      'name',
      'email',
      'type',
      'ip',
      'src',
      'target',
      'policy_id',
      'status',
      'severity',
      'error',
      'before',
      'message',
      'event',
      'agent',
      'trace_id',
      'correlation_id',
      '__proto__',
      '-',
    ];
    const leaf = fc.oneof(
      fc.constantFrom(
        'login',
        'x.update',
        'admin',
        'agent',
        'ok',
        'High',
        '10.0.0.1',
        'a@b.co',
        '/p',
      ),
      fc.string({ minLength: 1 }),
      fc.integer(),
    );
    const { record } = fc.letrec<{ record: Json }>((tie) => ({
      record: fc.dictionary(
        fc.constantFrom(...keys),
        fc.oneof({ weight: 3, arbitrary: leaf }, tie('record')),
        { maxKeys: 9, noNullPrototype: true },
      ) as fc.Arbitrary<Json>,
    }));

    fc.assert(
      fc.property(record, (value) => {
        const there = new Set(leaves(normalised(value) as unknown as Json));
        for (const reported of leaves(value)) expect(there).toContain(reported);
      }),
      { numRuns: 1000 },
    );
  });
});

/** Every text and number in a value; case apart, since captions differ in it. */
function leaves(value: Json | undefined): readonly string[] {
  if (value === null || value === undefined) return [];
  if (typeof value !== 'object') return [String(value).toLowerCase()];
  return Object.values(value as Record<string, Json>).flatMap(leaves);
}

// Changes of any resource as OCSF and as CEF: what an entity is called, what it is, when it changed, and the classes that
// a mapping makes of changes. The entities are the sandbox's, as the sources declare them.

import { beforeAll, describe, expect, it } from 'vitest';
import { sources } from '../../connectors/sources/index.ts';
import type { ChangeRecord } from '../../src/contracts/change.ts';
import type { Json } from '../../src/contracts/json.ts';
import { compileNormaliser, type Mapping, mappingFlaws } from '../../src/normalise/normalise.ts';
import { type Sandbox, startSandbox } from '../../src/sandbox/sandbox.ts';
import { foundOf, foundShare } from '../formats/carried-share.ts';
import { settingsOf } from '../support/plain-upstream.ts';
import { aContext, aUid, hasShared, loadCheck, sharedNote, type Verdict } from './ocsf.ts';

const resources = {
  sites: '/v1/sites',
  web_categories: '/v1/web/categories',
  company: '/api/fleet/v1/companies/c-1',
  hosts: '/api/fleet/v1/companies/c-1/hosts',
  block_list: '/api/threat-protection/v1/companies/c-1/block-list-entries',
  exclusion_list: '/api/threat-protection/v1/companies/c-1/exclusion-list-entries',
  tickets: '/api/ticketing/v1/companies/c-1/tickets',
} as const;
type Resource = keyof typeof resources;
const types = Object.keys(resources) as readonly Resource[];

function aChange(parts: Partial<ChangeRecord> = {}): ChangeRecord {
  return {
    change: 'updated',
    entity_kind: 'ticket',
    entity_id: 't-1',
    company_id: 'c-1',
    generation: 4,
    epoch: 'e1',
    entity_version: 2,
    observed_at: '2026-01-02T03:04:05.678Z',
    changed: ['status'],
    before: { ticket_id: 't-1', status: 'open' },
    after: { ticket_id: 't-1', status: 'closed' },
    ...parts,
  };
}

function readingOf(type: string, given: Readonly<Record<string, unknown>> = {}) {
  const definition = sources.find((source) => source.type === type);
  if (definition === undefined) throw new Error(`there is no source ${type}`);
  return definition.reading(settingsOf(definition, given));
}

/** The change as the source of that type reports it, with these keys. */
function reported(
  change: ChangeRecord,
  type = 'tickets',
  given: Readonly<Record<string, unknown>> = {},
) {
  const normalise = compileNormaliser('drift', readingOf(type, given));
  return normalise(change as unknown as Json, aUid, aContext('drift'));
}

/** Every entity as the first reading reports it, and each change that the sandbox's clock has made. */
function changesOf(sandbox: Sandbox, type: Resource): readonly ChangeRecord[] {
  const { kind, entities, changes, sidesOf } = sandbox.ledger().collection(resources[type]);
  const common = { entity_kind: kind, entity_id: '' };
  const states = [...entities()].map(([id, after]) =>
    aChange({
      ...common,
      change: 'state',
      entity_id: id,
      before: null,
      after: after as Json,
      changed: [],
    }),
  );
  const changed = [...changes()].map((change) => {
    const [before, after] = sidesOf(change) as readonly [Json, Json];
    return aChange({ ...common, change: change.op, entity_id: change.id, before, after });
  });
  return [...states, ...changed];
}

describe('changes of a resource', () => {
  it.each([
    ['its name', { name: 'n', subject: 's' }, 'n'],
    ['a title', { title: 't', subject: '' }, 't'],
    ['a subject, where the title is none', { title: '', subject: 's' }, 's'],
    ['the value of an entry', { type: 'ip', value: '192.0.2.1' }, '192.0.2.1'],
    ['nothing but its id', { name: 5, subject: null }, undefined],
  ])('are of an entity that is called by %s', (_, after, name) => {
    const { entity_name } = { entity_name: 'name' in after ? after.name : undefined };
    const record = { ...aChange({ after }), ...(entity_name !== undefined && { entity_name }) };

    const event = reported(record as ChangeRecord);

    expect(event.entity?.name).toBe(name);
    expect(event.message).toBe(`ticket "${name ?? 't-1'}" updated: status`);
  });

  it('call a deleted object by its last name', () => {
    const { after: _, ...rest } = aChange({ change: 'deleted', before: { label: 'old' } });

    expect(reported(rest)).toMatchObject({
      message: 'ticket "old" deleted: status',
      entity: { name: 'old' },
    });
  });

  it.each([
    ['host', 1, 'Device', 'Medium'],
    ['company', 4, 'Organization', 'Medium'],
    ['policy', 5, 'Policy', 'Medium'],
    ['block_list_entry', 99, 'block_list_entry', 'Medium'],
    ['ticket', 99, 'ticket', 'Informational'],
    ['toString', 99, 'toString', 'Medium'],
  ])('%s is entity type %i %s, and a change of that is %4$s', (kind, id, type, severity) => {
    const event = reported(aChange({ entity_kind: kind }));

    expect(event).toMatchObject({ severity, entity: { type_id: id, type } });
    expect(event.metadata.event_code).toBe(`${kind}.updated`);
  });

  it('are at the time that the entity says, where the config says where', () => {
    const after = { at: { changed: '2026-01-02T03:00:00Z' }, seen: 'never' };
    const event = reported(aChange({ after }), 'tickets', { time: ['seen', 'at.changed'] });

    expect(event.time).toBe(Date.UTC(2026, 0, 2, 3));
    expect(event.metadata.original_time).toBe('2026-01-02T03:00:00Z');
    expect(event.unmapped).toMatchObject({ observed_at: '2026-01-02T03:04:05.678Z' });
    expect(reported(aChange({ after }), 'tickets', { time: ['seen'] }).time).toBe(
      Date.UTC(2026, 0, 2, 3, 4, 5, 678),
    );
  });

  it('of no company are reported without one', () => {
    const { company_id: _, ...rest } = aChange();
    const normalise = compileNormaliser('drift', readingOf('sites'));

    const event = normalise(rest as unknown as Json, aUid, aContext('drift', null));

    expect(event.metadata.tenant_uid).toBeUndefined();
    expect(event.entity?.uid).toBe('t-1');
  });
});

describe('changes that are mapped to another class', () => {
  const mapping: Mapping = {
    class: 'account_change',
    fields: { 'user.name': 'owner.login', 'user.uid': 'entity_id', severity: 'priority' },
  };

  it('have the mapping’s values of the entity as it is, else as it was, and of the change', () => {
    const before = { owner: { login: 'ann' }, note: 'x' };
    const after = { owner: { login: 'bo' }, note: 'y' };

    const updated = reported(aChange({ before, after }), 'tickets', { mapping });
    const { after: _, ...gone } = aChange({ change: 'deleted', before });
    const deleted = reported(gone, 'tickets', { mapping });

    expect(updated).toMatchObject({
      class_uid: 3001,
      user: { name: 'bo', uid: 't-1' },
      severity: 'Informational',
      message: 'ticket "t-1" updated: status',
      metadata: { event_code: 'ticket.updated', tenant_uid: 'c-1' },
      time: Date.UTC(2026, 0, 2, 3, 4, 5, 678),
    });
    expect(updated.unmapped).toEqual({
      change: 'updated',
      entity_kind: 'ticket',
      generation: 4,
      epoch: 'e1',
      entity_version: 2,
      changed: ['status'],
      before,
      after: { note: 'y' },
    });
    expect(deleted).toMatchObject({
      activity_name: 'Delete',
      user: { name: 'ann' },
      unmapped: { before: { note: 'x' } },
    });
  });

  it('have the severity that is mapped', () => {
    const event = reported(
      aChange({ after: { owner: { login: 'bo' }, priority: 'high' } }),
      'hosts',
      {
        mapping,
      },
    );

    expect(event).toMatchObject({ severity_id: 4, severity: 'High' });
  });

  it('stay Entity Management if the class needs a missing value, and a count always', () => {
    const sized = { ...mapping, fields: { 'user.name': 'owner.login' } };

    expect(reported(aChange(), 'tickets', { mapping: sized }).class_uid).toBe(3004);
    expect(
      reported(aChange({ change: 'baseline', count: 3 }), 'tickets', { mapping }),
    ).toMatchObject({
      class_uid: 3004,
      message: 'ticket "t-1": 3 present at the first reading',
    });
  });
});

describe('hosts', () => {
  const host = {
    host_id: 'h-1',
    name: 'fw-zrh',
    hostname: 'fw-zrh.example.net',
    type: 'firewall',
    management_ip: '192.0.2.1',
    serial: 'S-1',
    owner: { name: 'Ann', email: 'ann@example.com' },
    status: 'online',
  };
  const state = aChange({
    change: 'state',
    entity_kind: 'host',
    entity_id: 'h-1',
    before: null,
    after: host,
  });

  it('are an inventory at the first reading, with all that is known under usual names', () => {
    expect(reported(state, 'hosts')).toMatchObject({
      class_uid: 5001,
      activity_name: 'Collect',
      severity: 'Informational',
      metadata: { event_code: 'host.state' },
      device: {
        uid: 'h-1',
        name: 'fw-zrh',
        hostname: 'fw-zrh.example.net',
        type_id: 9,
        type: 'Firewall',
        ip: '192.0.2.1',
        hw_info: { serial_number: 'S-1' },
        owner: { name: 'Ann', email_addr: 'ann@example.com' },
      },
      unmapped: { after: { host_id: 'h-1', status: 'online' } },
    });
  });

  it('are changes of a device later, and the values of the config’s mapping in both', () => {
    const mapping = { class: 'base_event' };

    expect(reported({ ...state, change: 'created' }, 'hosts').class_uid).toBe(3004);
    expect(reported(state, 'hosts', { mapping }).class_uid).toBe(0);
  });

  it('are mapped without a flaw', () => {
    const mapping = readingOf('hosts').state;

    expect(mapping && mappingFlaws(mapping)).toEqual([]);
  });
});

describe('every resource of the sandbox', () => {
  let sandbox: Sandbox;
  let check: ((event: unknown) => Verdict) | null = null;

  beforeAll(async () => {
    sandbox = await startSandbox({ rate: 0, firewallEveryS: 0, events: 1 });
    for (const path of Object.values(resources)) sandbox.control.change(path, { op: 'updated' });
    if (hasShared) check = await loadCheck();
    return () => sandbox.close();
  });

  it.each(types)('%s: nothing is lost in JSON, and 97 values in 100 are found in CEF', (type) => {
    const changes = changesOf(sandbox, type) as unknown as readonly Json[];
    const reading = readingOf(type);

    for (const [format, share] of [
      ['json', 100],
      ['cef', 97],
    ] as const) {
      const found = foundOf(changes, { kind: 'drift', format, reading });
      expect([format, foundShare(found)]).toEqual([format, expect.toSatisfy((is) => is >= share)]);
    }
  });

  it.each(types)(`%s: all events are valid${sharedNote}`, (type) => {
    const flaws = changesOf(sandbox, type).flatMap((change) => {
      const { errors = [], warnings = [] } = check?.(reported(change, type)) ?? {};
      return [...errors, ...warnings];
    });

    expect(flaws).toEqual([]);
  });
});

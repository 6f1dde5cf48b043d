// The records that sluice makes itself: changes of configuration and conditions of sources.

import { beforeAll, describe, expect, it } from 'vitest';
import type { ChangeRecord, ConditionRecord } from '../../src/contracts/change.ts';
import type { OcsfEvent, RecordKind } from '../../src/contracts/event.ts';
import type { Json } from '../../src/contracts/json.ts';
import { compileNormaliser } from '../../src/normalise/normalise.ts';
import { aContext, aUid, hasShared, loadCheck, sharedNote, type Verdict } from './ocsf.ts';

function normalised(kind: RecordKind, record: unknown): OcsfEvent {
  return compileNormaliser(kind, { time: [], id: null })(record as Json, aUid, aContext(kind));
}

function aChange(parts: Partial<ChangeRecord> = {}): ChangeRecord {
  return {
    change: 'updated',
    entity_kind: 'rule',
    entity_id: 'r-1',
    entity_name: 'Allow DNS',
    parent_id: 'p-1',
    company_id: 'c-1',
    generation: 4,
    epoch: 'e1',
    entity_version: 2,
    observed_at: '2026-01-02T03:04:05.678Z',
    changed: ['action', 'enabled'],
    before: { action: 'deny' },
    after: { action: 'allow' },
    ...parts,
  };
}

function aCondition(parts: Partial<ConditionRecord> = {}): ConditionRecord {
  return {
    condition: 'source.gap',
    source: 'web_logs',
    stream: 'web_logs/c-1',
    observed_at: '2026-01-02T03:04:05Z',
    message: 'Records between two times are missing.',
    details: { from: 'a', to: 'b' },
    ...parts,
  };
}

describe('changes of configuration', () => {
  it('are Entity Management with the entity before and after', () => {
    const event = normalised('drift', aChange());

    expect(event).toMatchObject({
      class_uid: 3004,
      activity_name: 'Update',
      severity: 'Medium',
      time: Date.UTC(2026, 0, 2, 3, 4, 5, 678),
      message: 'rule "Allow DNS" updated: action, enabled',
      metadata: {
        event_code: 'rule.updated',
        tenant_uid: 'c-1',
        original_time: '2026-01-02T03:04:05.678Z',
      },
      entity: {
        uid: 'r-1',
        name: 'Allow DNS',
        type_id: 99,
        type: 'rule',
        version: '2',
        data: { action: 'deny' },
      },
      entity_result: { uid: 'r-1', data: { action: 'allow' } },
    });
    expect(event.unmapped).toEqual({
      parent_id: 'p-1',
      generation: 4,
      epoch: 'e1',
      changed: ['action', 'enabled'],
    });
  });

  it('say which list of which policy a rule is in, and where', () => {
    const event = normalised('drift', aChange({ list: 'nat_rules', place: 3 }));
    const gone = normalised('drift', aChange({ change: 'deleted', list: 'nat_rules' }));

    expect(event.message).toBe(
      'rule "Allow DNS" (place 3 of nat_rules in policy "p-1") updated: action, enabled',
    );
    expect(event.unmapped).toMatchObject({ parent_id: 'p-1', list: 'nat_rules', place: 3 });
    expect(gone.message).toMatch(/^rule "Allow DNS" \(nat_rules in policy "p-1"\) deleted/);
  });

  it.each([
    ['created', 'Create', 'Medium'],
    ['deleted', 'Delete', 'Medium'],
    ['state', 'Read', 'Informational'],
    ['baseline', 'Read', 'Informational'],
  ] as const)('%s is %s', (change, activity, severity) => {
    const event = normalised('drift', aChange({ change, count: 12 }));

    expect(event).toMatchObject({ activity_name: activity, severity });
  });
});

describe('conditions of sources', () => {
  it('are Application Lifecycle of sluice that name the condition', () => {
    const event = normalised('condition', aCondition());

    expect(event).toMatchObject({
      class_uid: 6002,
      activity_id: 99,
      activity_name: 'source.gap',
      severity: 'High',
      message: 'Records between two times are missing.',
      app: { name: 'sluice' },
      metadata: {
        log_name: 'sluice',
        log_source: 'web_logs',
        event_code: 'source.gap',
        product: { name: 'sluice' },
      },
    });
    expect(event.unmapped).toEqual({ stream: 'web_logs/c-1', details: { from: 'a', to: 'b' } });
  });
});

describe('own records that are damaged', () => {
  it.each([null, 'x', {}, { change: 'toString', entity_kind: 'rule' }, { condition: 5 }])(
    '%j goes out as a Base Event',
    (record) => {
      expect(normalised('drift', record).class_uid).toBe(0);
      expect(normalised('condition', record)).toMatchObject({
        class_uid: 0,
        metadata: { log_name: 'sluice' },
      });
    },
  );

  it('keep a field of an unexpected type', () => {
    const change = normalised('drift', {
      ...aChange(),
      entity_name: 5,
      observed_at: 'soon',
      before: null,
    });
    const condition = normalised('condition', { ...aCondition(), message: 5, observed_at: 7 });

    expect(change.unmapped).toMatchObject({ entity_name: 5, observed_at: 'soon', before: null });
    expect(condition.unmapped).toMatchObject({ message: 5, observed_at: 7 });
  });
});

describe.skipIf(!hasShared)(`own records against the official validator${sharedNote}`, () => {
  let check: (event: unknown) => Verdict;

  beforeAll(async () => {
    check = await loadCheck();
  });

  it('are valid in every variant', () => {
    const events = [
      ...(['created', 'updated', 'deleted', 'baseline', 'state'] as const).flatMap((change) =>
        ['object', 'policy', 'rule', 'Other'].map((kind) =>
          normalised('drift', aChange({ change, entity_kind: kind, entity_id: '' })),
        ),
      ),
      ...(
        [
          'source.checkpoint_reset',
          'source.gap_suspected',
          'source.gap',
          'source.scope_lost',
          'source.paging_suspected',
          'integrity_violation',
          'schema_drift',
        ] as const
      ).map((condition) => normalised('condition', aCondition({ condition }))),
      normalised('condition', { condition: 'Other' }),
    ];

    expect(events.flatMap((event) => [...check(event).errors, ...check(event).warnings])).toEqual(
      [],
    );
  });
});

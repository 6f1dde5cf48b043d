// The part of a record that a reader of CEF gets back: nearly all, most values in keys that can be searched, the actor,
// the target, the addresses, the outcome and the rule in keys of the dictionary; and the keys dropped first if a line
// is short.

import { describe, expect, test } from 'vitest';
import type { Event, PageContext } from '../../src/contracts/event.ts';
import type { Json } from '../../src/contracts/json.ts';
import { compileNormaliser, type Mapping } from '../../src/normalise/normalise.ts';
import { auditRecord, type RecordContext } from '../../src/sandbox/audit-records.ts';
import { logRecords } from '../../src/sandbox/log-records.ts';
import { hasShared, loadSamples, sampleNames, sharedNote } from '../normalise/ocsf.ts';
import { anEvent } from '../support/an-event.ts';
import { sampleMappings } from '../support/sample-mappings.ts';
import { addFound, type Found, foundOf, foundShare } from './carried-share.ts';
import { decodeCef, parse5424 } from './decoders.ts';
import { textEncoder } from './make-format.ts';

const shapes = [{ format: 'cef' }, { format: 'syslog', settings: { message: 'cef' } }] as const;
const nothing = (): Found => ({ values: 0, standard: 0, own: 0, rest: 0, lost: 0 });

/** The extension of a record that was read as this kind. */
function extensionOf(
  record: Json,
  kind: PageContext['kind'],
  mapping?: Mapping,
): Readonly<Record<string, string>> {
  return Object.fromEntries(decoded(record, kind, mapping).extension);
}

function decoded(record: Json, kind: PageContext['kind'], mapping?: Mapping) {
  const context: PageContext = { source: 's', stream: 's', kind, fetchedAt: 1_790_000_000_000 };
  const settings = { time: ['timestamp'], id: 'id', ...(mapping === undefined ? {} : { mapping }) };
  const ocsf = compileNormaliser(kind, settings)(record, 'ab'.repeat(32), context);
  const event: Event = { ...anEvent(), kind, context, ocsf };
  return decodeCef(textEncoder('cef')(event));
}

function expectCarried(found: Found): void {
  expect(foundShare(found)).toBeGreaterThanOrEqual(97);
  const inKeys = (found.standard + found.own) / (found.values - found.lost);
  expect(inKeys).toBeGreaterThanOrEqual(0.6);
}

describe.skipIf(!hasShared)(`cef of real records${sharedNote}`, () => {
  // `bench/carried-share.ts` looks at all of them.
  const some = (name: string) => {
    const samples = loadSamples(name);
    const step = Math.ceil(samples.length / 300);
    return samples.filter((_, index) => index % step === 0);
  };

  test.each(sampleNames)('%s: 97 in 100 values, most of them in keys', (name) => {
    const samples = some(name);
    const [, line] = shapes;

    expectCarried(foundOf(samples, { kind: 'audit', ...line }));
    expectCarried(foundOf(samples, { kind: 'log', ...line }));
    expectCarried(foundOf(samples, { kind: 'log', mapping: sampleMappings[name], ...line }));
  });
});

describe('cef of the sandbox’s records', () => {
  const place = (index: number): RecordContext => ({
    seed: 1,
    index,
    timeMs: 1_790_000_000_000,
    id: `"e-${index}"`,
  });
  const records = (draw: (place: RecordContext) => string) =>
    Array.from({ length: 200 }, (_, index) => JSON.parse(draw(place(index))) as Json);

  test.each(['flow', 'web', 'dns', 'ids'] as const)('%s logs: all values, most in keys', (kind) => {
    const drawn = records(logRecords('c-1', kind));
    const total = nothing();

    for (const shape of shapes) addFound(total, foundOf(drawn, { kind: 'log', ...shape }));

    expectCarried(total);
    for (const record of drawn as { client_ip: string; server_ip: string; port: number }[]) {
      const { src, dst, c6a3, dpt } = extensionOf(record as unknown as Json, 'log');
      expect([src, dst ?? c6a3, dpt]).toEqual([
        record.client_ip,
        record.server_ip,
        String(record.port),
      ]);
    }
  });

  test('audit events: all values, most in keys', () => {
    expectCarried(foundOf(records(auditRecord), { kind: 'audit', format: 'cef' }));
  });
});

describe('cef keys of the dictionary', () => {
  test('have the actor, an agent as well', () => {
    const agent = { type: 'agent', id: 'ag-7', name: 'triage' };
    const record = { id: 'e', action: 'incident.close', actor: agent, source_ip: '10.0.0.1' };
    const led = { ...record, actor: { id: 'u-1', name: 'bo' }, agent };

    expect(extensionOf(record, 'audit')).toMatchObject({ suser: 'triage', suid: 'ag-7' });
    expect(extensionOf({ ...record, source_ip: null }, 'audit')).toMatchObject({ suid: 'ag-7' });
    expect(extensionOf(led, 'audit')).toMatchObject({
      suser: 'bo',
      suid: 'u-1',
      sourceServiceName: 'triage',
      sluiceActorAppUid: 'ag-7',
    });
  });

  test('have the target, if that is a user', () => {
    const target = { type: 'user', id: 'u-9', name: 'eve' };

    const extension = extensionOf({ id: 'e', action: 'user.delete', actor: 'bo', target }, 'audit');

    expect(extension).toMatchObject({ suser: 'bo', duser: 'eve', duid: 'u-9', cs5: 'u-9' });
  });

  test('have the changed rule, and its list, position and policy', () => {
    const record = {
      change: 'created',
      entity_kind: 'rule',
      entity_id: 'r-1',
      entity_name: 'Allow DNS',
      parent_id: 'p-1',
      list: 'nat_rules',
      place: 3,
      company_id: 'c-1',
      generation: 2,
      epoch: 'e',
      entity_version: 1,
      observed_at: '2026-01-02T03:04:05.678Z',
      after: { action: 'allow', sources: ['any'] },
    };

    expect(extensionOf(record, 'drift')).toMatchObject({
      act: 'rule.created',
      cs1: 'Allow DNS',
      cs1Label: 'rule',
      cs5: 'r-1',
      sluiceParentId: 'p-1',
      sluiceList: 'nat_rules',
      sluicePlace: '3',
      sluiceEntityDataAction: 'allow',
      msg: 'rule "Allow DNS" (place 3 of nat_rules in policy "p-1") created',
    });
  });

  test('hold the addresses, the rule and the outcome of a log that is not mapped', () => {
    const record = {
      src_ip: '10.0.0.1',
      src_port: '1024',
      dest_ip: '2001:db8::1',
      dest_port: 443,
      user: 'bo',
      rule: { id: 'r-1', name: 'block-out' },
      result: 'denied',
    };

    expect(extensionOf(record, 'log')).toMatchObject({
      src: '10.0.0.1',
      spt: '1024',
      c6a3: '2001:db8::1',
      dpt: '443',
      suser: 'bo',
      cs1: 'block-out',
      cs1Label: 'rule',
      sluiceRuleId: 'r-1',
      outcome: 'failure',
    });
  });

  test('do not take a name that an audit record’s reader left, since it may be somebody else’s', () => {
    const record = { action: 'user.update', actor: { id: 'u-1' }, user: { name: 'eve' } };

    const extension = extensionOf(record, 'audit');

    expect(extension.suid).toBe('u-1');
    expect(extension.suser).toBeUndefined();
    expect(extension.sluiceUserName).toBe('eve');
  });

  test('have a signature’s id as the class of event, mapped or not', () => {
    const record = { id: 'e', alert: { signature_id: 2_019_401, signature: 'ET SCAN' } };
    const fields = { 'finding_info.title': 'alert.signature' };
    const by = (path: string) =>
      decoded(record, 'log', {
        class: 'detection_finding',
        fields: { ...fields, [path]: 'alert.signature_id' },
      });

    for (const cef of [
      by('finding_info.uid'),
      by('finding_info.analytic.uid'),
      decoded(record, 'log'),
    ]) {
      expect(cef).toMatchObject({ deviceEventClassId: '2019401', name: 'ET SCAN' });
    }
  });

  test('have no id of one finding as the class of event', () => {
    const mapping: Mapping = { class: 'detection_finding', fields: { 'finding_info.uid': 'id' } };

    expect(decoded({ id: 'det-1' }, 'log', mapping).deviceEventClassId).toBe('2004:1');
    const other = { id: 'a', finding: '0f8fad5b-d9cb-469f-a165-70867728950e' };
    const found = { class: 'detection_finding', fields: { 'finding_info.uid': 'finding' } };
    expect(decoded(other, 'log', found).deviceEventClassId).toBe('2004:1');
  });

  test('show the state of a finding, and not that a new one was a success', () => {
    const mapping: Mapping = { class: 'detection_finding', fields: { status: 'state' } };

    expect(extensionOf({ id: 'e', state: 'new' }, 'log', mapping).outcome).toBe('New');
  });
});

describe('cef keys of sluice’s own', () => {
  test('are named after the path, and each stands once', () => {
    const extension = extensionOf(
      {
        flow: { bytes_toserver: 1, 'pkts-toclient': 2 },
        'a.b': 'one',
        a: { b: 'two' },
        größe: 3,
        list: [1, { x: 2 }],
        empty: '',
        none: null,
      },
      'log',
    );

    expect(extension).toMatchObject({ in: '1', sluiceFlowPktsToclient: '2', sluiceAB: 'one' });
    expect(JSON.parse(extension.sluiceUnmapped ?? '')).toEqual({
      'a.b': 'two',
      größe: 3,
      list: [1, { x: 2 }],
      empty: '',
      none: null,
    });
  });

  test.each([
    'truncated',
    'unmapped',
    'sluice.unmapped',
    'original_time',
    'request.id',
    '__proto__',
  ])('cannot be taken by a record’s own %s', (name) => {
    const record = JSON.parse(`{ "timestamp": "2026-03-04T05:06:07Z", "${name}": "forged" }`);

    const extension = extensionOf(record, 'log');

    expect(extension.sluiceTruncated).toBeUndefined();
    expect(extension.sluiceOriginalTime).toBe('2026-03-04T05:06:07Z');
    expect(extension.sluiceUnmapped ?? '{}').toMatch(/^\{.*\}$/);
    expect(Object.values(extension).join(' ')).toContain('forged');
  });

  test('are no more than a receiver can index, whatever a record holds', () => {
    const record = Object.fromEntries(Array.from({ length: 5_000 }, (_, i) => [`k${i}`, i]));

    const extension = extensionOf(record, 'log');

    expect(Object.keys(extension).length).toBeLessThan(200);
    expect(JSON.parse(extension.sluiceUnmapped ?? '')).toHaveProperty('k128', 128);
    expect(extension.sluiceTruncated).toBe('true');
  });

  test('are the same whatever was written before', () => {
    const write = textEncoder('cef');
    const event = anEvent({ kind: 'log', ocsf: { unmapped: { last: 'x', 'la-st': 'y' } } });
    const fresh = write(event);

    for (let i = 0; i < 20_000; i++) {
      write(anEvent({ kind: 'log', ocsf: { unmapped: { [`n${i}`]: { [`m${i}`]: 1 } } } }));
    }

    expect(write(event)).toBe(fresh);
    const late = { class_uid: 0, unmapped: { 'never-1': 'x', never_1: 'y' } };
    expect(write(anEvent({ ocsf: late }))).toBe(textEncoder('cef')(anEvent({ ocsf: late })));
  });

  test('keep values whole that no key of the dictionary has room for', () => {
    const long = 'x'.repeat(50);

    const extension = extensionOf(
      { id: long, action: long.repeat(2), actor: 'bo', ip: '10.0.0.1' },
      'audit',
    );

    expect(extension.externalId).toBeUndefined();
    expect(extension.sluiceMetadataOriginalEventUid).toBe(long);
    expect(extension.act).toBe('x'.repeat(63));
    expect(extension.sluiceApiOperation).toBe('x'.repeat(100));
  });
});

describe('cef on a short line', () => {
  const event = anEvent({
    kind: 'log',
    ocsf: { unmapped: { note: 'n'.repeat(300), short: 'yes', list: ['l'.repeat(300)] } },
  });
  const at = (max_message: number) => {
    const line = textEncoder('syslog', { message: 'cef', hostname: 'gw', max_message })(event);
    expect(Buffer.byteLength(line)).toBeLessThanOrEqual(max_message);
    return Object.fromEntries(decodeCef(parse5424(line).message ?? '').extension);
  };

  test('drops the list first, then the longest key of its own, then keys of the dictionary', () => {
    const [whole, first, second, last] = [at(2_000), at(1_300), at(1_000), at(480)];

    expect(whole).toMatchObject({ sluiceShort: 'yes', sluiceNote: 'n'.repeat(300) });
    expect(JSON.parse(whole?.sluiceUnmapped ?? '')).toEqual({ list: ['l'.repeat(300)] });
    expect(whole).not.toHaveProperty('sluiceTruncated');
    expect(first).toMatchObject({ sluiceNote: 'n'.repeat(300), sluiceTruncated: 'true' });
    expect(first).not.toHaveProperty('sluiceUnmapped');
    expect(second).toMatchObject({ sluiceShort: 'yes', suser: 'Anna Schmidt', cs5: 'pol-9' });
    expect(second).not.toHaveProperty('sluiceNote');
    expect(last).toMatchObject({ cs6: event.uid, sluiceTruncated: 'true' });
  });
});

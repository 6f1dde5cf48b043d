// Masks: what each one leaves of a value, and that a masked value leaves no copy in any format.

import { createHmac } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { formats } from '../../formats/index.ts';
import type { OcsfEvent } from '../../src/contracts/event.ts';
import { type MaskKind, maskKinds, type Route } from '../../src/contracts/index.ts';
import { Secret } from '../../src/contracts/secret.ts';
import { compileNormaliser } from '../../src/normalise/normalise.ts';
import { encodeLines } from '../../src/send/encode.ts';
import { compileMask } from '../../src/send/mask.ts';
import { type FilterFailure, selectionFor } from '../../src/send/route.ts';
import { documentOf, makeFormat } from '../formats/make-format.ts';
import { anEvent } from '../support/an-event.ts';
import { compare } from '../transcode/differences.ts';

const key = new Secret(() => 'a key of some length');
const way = { source: 'audit', sink: 'siem' };

function route(mask: Record<string, MaskKind>, more: Partial<Route> = {}): Route {
  return { from: ['audit'], to: ['siem'], mask, maskKey: key, ...more };
}

function maskedBy(kind: MaskKind, value: unknown): unknown {
  const mask = compileMask({ masks: { 'unmapped.x': kind }, key });
  return mask.apply(anEvent({ ocsf: { unmapped: { x: value as never } } }).ocsf).unmapped?.x;
}

test.each([
  ['domain', 'Alice@Example.com', 'example.com'],
  ['domain', 'pc7.corp.example.com', 'corp.example.com'],
  ['domain', 'example.com', 'example.com'],
  ['domain', 'alice', undefined],
  ['domain', '192.0.2.7', undefined],
  ['domain', 'a@b c', undefined],
  ['last4', '4111111111111234', '1234'],
  ['last4', '12345678', '5678'],
  ['last4', '1234567', undefined],
  ['network', '192.0.2.77', '192.0.2.0'],
  ['network', '2001:db8:1:2::7', '2001:db8:1::'],
  ['network', '2001:DB8:0001:0002:3:4:5:6', '2001:db8:1::'],
  ['network', 'fe80::1%eth0', 'fe80::'],
  ['network', '::ffff:192.0.2.77', '192.0.2.0'],
  ['network', '::ffff:c000:24d', '192.0.2.0'],
  ['network', '::1', '::'],
  ['network', 'host-7', undefined],
  ['hash', '', ''],
] as const)('%s of %s is %s', (kind, value, expected) => {
  expect(maskedBy(kind, value)).toBe(expected);
});

test('hash is HMAC-SHA-256, 32 hex digits, the same for an address in upper or lower case', () => {
  const expected = createHmac('sha256', 'a key of some length').update('ann@example.com');

  expect(maskedBy('hash', 'Ann@Example.com')).toBe(expected.digest('hex').slice(0, 32));
  expect(maskedBy('hash', 'ann@example.com')).toBe(maskedBy('hash', 'ANN@EXAMPLE.COM'));
  expect(maskedBy('hash', 'ann')).not.toBe(maskedBy('hash', 'Ann'));
  expect(maskedBy('hash', ['ann', 7, { a: 'ann' }])).toEqual([
    maskedBy('hash', 'ann'),
    maskedBy('hash', '7'),
    { a: maskedBy('hash', 'ann') },
  ]);
});

test('a masked value is replaced in every other text, number and upstream key too', () => {
  const mask = compileMask({
    masks: { 'actor.user.email_addr': 'domain', 'src_endpoint.ip': 'network' },
  });
  const event = anEvent({
    ocsf: {
      message: 'Eve@example.com (mailto:eve%40example.com) from 192.0.2.7, not 192.0.2.77',
      actor: { user: { email_addr: 'eve@example.com', name: 'eve@example.com' } },
      src_endpoint: { ip: '192.0.2.7' },
      unmapped: {
        json: '{"who":"eve@example.com"}',
        'eve@example.com': { list: ['x eve@example.com'] },
      },
    },
  });

  const { ocsf } = { ocsf: mask.apply(event.ocsf) };

  expect(ocsf.message).toBe('example.com (mailto:example.com) from 192.0.2.0, not 192.0.2.77');
  expect(ocsf.actor?.user).toEqual({ email_addr: 'example.com', name: 'example.com' });
  expect(ocsf.unmapped).toEqual({
    json: '{"who":"example.com"}',
    'example.com': { list: ['x example.com'] },
  });
  expect(ocsf.metadata.uid).toBe(event.uid);
  expect(event.ocsf.actor?.user?.email_addr).toBe('eve@example.com');
});

test.each([
  ['a letter whose lower case is longer', 'İbrahim Kılıç'],
  ['a letter whose upper case is longer', 'Anna Groß-Weißhaupt'],
  ['a blank', 'Ann Smith'],
  ['letters beyond ASCII', 'Zoë Müller'],
])('a name with %s leaves no copy in a text', (_, name) => {
  const mask = compileMask({ masks: { 'actor.user.name': 'hash' }, key });
  const ascii = JSON.stringify({ name }).replace(
    /[^ -~]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
  const copies = [
    `by ${name}`,
    `by ${name.toUpperCase()}`,
    `by ${name.toLowerCase()}`,
    `by ${name.normalize('NFD')}`,
    `/q?${new URLSearchParams({ name })}&x=1`,
    `/q?name=${encodeURIComponent(name)}`,
    `raw ${ascii}`,
  ];
  const { ocsf } = anEvent({ ocsf: { actor: { user: { name } }, unmapped: { copies } } });

  const masked = mask.apply(ocsf);

  const hash = masked.actor?.user?.name as string;
  expect(masked.unmapped?.copies).toEqual([
    ...Array.from({ length: 4 }, () => `by ${hash}`),
    `/q?name=${hash}&x=1`,
    `/q?name=${hash}`,
    `raw {"name":"${hash}"}`,
  ]);
});

test('where reads the value before the mask, and the error of a filter shows none', () => {
  const failures: FilterFailure[] = [];
  const where =
    'event.actor.user.email_addr == "eve@example.com" || int(event.actor.user.email_addr) > 1';
  const selection = selectionFor(
    [route({ 'actor.user.email_addr': 'hash' }, { where })],
    way,
    (failure) => failures.push(failure),
  );
  const of = (email_addr: string) =>
    selection?.select(anEvent({ ocsf: { actor: { user: { email_addr } } } }))?.ocsf.actor?.user;

  expect(of('eve@example.com')?.email_addr).toMatch(/^[0-9a-f]{32}$/);
  expect(of('ana@example.com')?.email_addr).toMatch(/^[0-9a-f]{32}$/);
  expect(failures).toHaveLength(1);
  expect(JSON.stringify(failures.map(({ why }) => why))).not.toContain('ana@');
});

test('the first route that passes an event decides, also if a later one passes everything', () => {
  const where = 'event.severity_id >= 3';
  const mask = { 'actor.user.name': 'hash' } as const;
  const selection = selectionFor(
    [route(mask, { where }), { from: ['audit'], to: ['siem'] }],
    way,
    () => undefined,
  );
  const nameOf = (severity_id: number) =>
    selection?.select(anEvent({ ocsf: { severity_id, actor: { user: { name: 'eve' } } } }))?.ocsf
      .actor?.user?.name;

  expect(nameOf(4)).toMatch(/^[0-9a-f]{32}$/);
  expect(nameOf(1)).toBe('eve');
});

const canary = 'Canary.Äq"7/x@secret-place.example';
/** Other than a part of the canary that a mask may leave. */
const hidden = /canary|äq|%C3%84q|\\u00c4q/i;

/** Each path of a text in an event, lists and upstream's own keys included. */
function textPaths(value: unknown, path = ''): readonly string[] {
  if (typeof value === 'string') return [path];
  if (Array.isArray(value)) return value.flatMap((one) => textPaths(one, path));
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([k, one]) =>
    textPaths(one, path === '' ? k : `${path}.${k}`),
  );
}

function withAt(value: unknown, [step, ...rest]: readonly string[]): unknown {
  if (step === undefined) return canary;
  if (Array.isArray(value)) return value.map((one) => withAt(one, [step, ...rest]));
  const members = value as Record<string, unknown>;
  if (!Object.hasOwn(members, step)) return value;
  return { ...members, [step]: withAt(members[step], rest) };
}

const bySluice =
  /^(metadata\.(uid|version|product|profiles|log_name|logged_time|original_time|tenant_uid)|(class|category|type)_name)/;

function aNormalised(): OcsfEvent {
  const normalise = compileNormaliser('audit', { id: 'id', time: ['timestamp'] });
  const record = {
    id: 'e1',
    timestamp: '2026-11-23T12:34:56.789Z',
    action: 'policy.update',
    actor: { id: 'u1', name: 'Ann', email: 'ann@example.com', role: 'admin' },
    source_ip: '192.0.2.4',
    user_agent: 'curl/8',
    result: 'failure',
    resource: { type: 'policy', id: 'p1', name: 'Default' },
    note: { deep: [{ text: 'note' }] },
  };
  const context = { source: 'audit', stream: 'audit', kind: 'audit', fetchedAt: 0 } as const;
  return normalise(record as never, 'ab'.repeat(32), context);
}

describe('no format shows a masked value, whichever path it has', () => {
  const usual = aNormalised();
  const paths = [...new Set(textPaths(usual))].filter((path) => !bySluice.test(path));
  const makes = formats
    .filter(({ shape }) => shape !== 'rows')
    .flatMap(({ type }) => [
      () => makeFormat(type),
      ...(type === 'syslog'
        ? ['cef', 'leef', 'ecs', 'json', 'text'].flatMap((message) => [
            () => makeFormat(type, { message }),
            () => makeFormat(type, { message, max_message: 500 }),
          ])
        : []),
      ...(type === 'otel' ? [() => makeFormat(type, { body: 'json' })] : []),
    ]);

  test('the paths of an audit event are many', () => {
    expect(paths.length).toBeGreaterThan(15);
    expect(makes.length).toBeGreaterThan(10);
  });

  test.each(paths)('%s', (path) => {
    const whole = withAt(usual, path.split('.')) as OcsfEvent;
    const ocsf = {
      ...whole,
      message: path === 'message' ? canary : `by ${canary}, and ${canary.toUpperCase()}`,
      unmapped: {
        ...whole.unmapped,
        copy: [canary, `<${canary}>`, JSON.stringify({ who: canary }), encodeURIComponent(canary)],
        [canary]: { [`x ${canary}`]: 1 },
      },
    } as OcsfEvent;
    const event = { ...anEvent(), ocsf };
    for (const kind of maskKinds) {
      const selected = selectionFor([route({ [path]: kind })], way, () => {})?.select(event);
      expect(selected?.uid).toBe(event.uid);
      for (const make of makes) {
        const format = make();
        const { bytes } = encodeLines([selected ?? event], format);
        const document = documentOf(format, [selected ?? event]) ?? new Uint8Array();
        expect(`${Buffer.from(bytes)}`).not.toMatch(hidden);
        expect(`${Buffer.from(document)}`).not.toMatch(hidden);
      }
    }
  });
});

describe('lines of masked events are never copied from records', () => {
  const pages = Array.from({ length: 4 }, (_, page) => {
    const records = Array.from({ length: 40 }, (_, i) => {
      const n = page * 40 + i;
      return `{"id":"e${n}","timestamp":"2026-11-23T12:34:56.789Z","action":"policy.update","actor":{"name":"ann ${n}","email":"ann${n}@example.com"},"source_ip":"192.0.2.${n % 250}","note":"by ann ${n}"}`;
    });
    return Buffer.from(`{"data":[${records.join(',')}]}`);
  });
  const varied = { 'src_endpoint.ip': 'network', 'actor.user.email_addr': 'hash' } as const;
  // Removes each of these names, so a line made from samples looks constant: the copy in `note` would be copied.
  const removing = { 'actor.user.name': 'domain' } as const;
  const types = ['json', 'cef', 'ecs', 'otel', 'leef', 'gelf'];
  test.each(types.flatMap((type) => [varied, removing].map((mask) => [type, mask] as const)))(
    'as %s with %o',
    async (type, mask) => {
      const routes = [{ ...route(mask), to: ['s'] }];
      const context = { source: 'audit', stream: 'audit' };

      const found = await compare(
        pages,
        makeFormat(type),
        context,
        [['timestamp']],
        undefined,
        routes,
      );

      expect(found.differences).toEqual([]);
      expect(found.written).toBe(0);
      expect(found.records).toBe(160);
    },
  );
});

// What is taken for a delivery of upstream's, as a table: what its headers say, and what has signed its body.

import { createHmac } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { Secret } from '../../src/contracts/secret.ts';
import type { DeliveryRules } from '../../src/contracts/source.ts';
import { type DeliveryHead, refusalOfBody, refusalOfHead } from '../../src/webhooks/delivery.ts';

const rules: DeliveryRules = {
  secrets: [new Secret(() => 'one'), new Secret(() => 'two')],
  secretEncoding: 'utf8',
  signatureHeader: 'svc-signature',
  signsTime: false,
  deliveryHeader: 'svc-delivery',
  eventHeader: 'svc-event',
  timestampHeader: null,
  maxAgeMs: 300_000,
  bodyBytesMax: 100,
};
const nowMs = Date.parse('2026-11-22T12:00:00Z');
const body = Buffer.from('{"id":"evt-1"}');

function signed(text: string | Buffer = body, key: string | Buffer = 'one'): string {
  return `sha256=${createHmac('sha256', key).update(text).digest('hex')}`;
}

function head(
  headers: Readonly<Record<string, string | readonly string[]>> = {},
  method = 'POST',
): DeliveryHead {
  const all = { 'svc-signature': signed(), 'content-type': 'application/json', ...headers };
  const lists = Object.entries(all).map(([name, value]) => [name, [value].flat()] as const);
  return {
    method,
    headers: Object.fromEntries(lists.map(([name, values]) => [name, values.join(', ')])),
    headersDistinct: Object.fromEntries(lists.map(([name, values]) => [name, [...values]])),
  };
}

test.for([
  ['as the document shows it', head(), null],
  ['upper-case hex', head({ 'svc-signature': signed().toUpperCase().replace('SHA', 'sha') }), null],
  ['a charset', head({ 'content-type': 'application/json; charset=utf-8' }), null],
  ['a type of its own', head({ 'content-type': 'application/vnd.svc+json' }), null],
  ['a GET', head({}, 'GET'), 'wrong_method'],
  ['no type', head({ 'content-type': [] }), null],
  ['no type, and no signature', head({ 'content-type': [], 'svc-signature': [] }), 'unsigned'],
  ['an empty type', head({ 'content-type': '' }), 'wrong_type'],
  [
    'two types, one wrong',
    head({ 'content-type': ['application/json', 'text/plain'] }),
    'wrong_type',
  ],
  ['a form', head({ 'content-type': 'application/x-www-form-urlencoded' }), 'wrong_type'],
  ['nearly JSON', head({ 'content-type': 'application/json-seq' }), 'wrong_type'],
  ['a packed body', head({ 'content-encoding': 'gzip' }), 'wrong_type'],
  ['a long body', head({ 'content-length': '101' }), 'too_large'],
  ['no signature', head({ 'svc-signature': [] }), 'unsigned'],
  ['an empty one', head({ 'svc-signature': '' }), 'unsigned'],
  ['two', head({ 'svc-signature': [signed(), signed()] }), 'unsigned'],
  ['two in one', head({ 'svc-signature': `${signed()}, ${signed()}` }), 'unsigned'],
  ['another digest', head({ 'svc-signature': signed().replace('256', '1') }), 'unsigned'],
  ['a short one', head({ 'svc-signature': signed().slice(0, -2) }), 'unsigned'],
  ['a long one', head({ 'svc-signature': `${signed()}00` }), 'unsigned'],
] as const)('by its headers: %s', ([, given, requested]) => {
  expect(refusalOfHead(given, rules)).toBe(requested);
});

describe('by its body', () => {
  const refusal = (
    headers: Parameters<typeof head>[0],
    its: Partial<DeliveryRules> = {},
    text = body,
  ) => refusalOfBody(head(headers), text, { rules: { ...rules, ...its }, nowMs });

  test.for([
    ['the first secret', signed(), null],
    ['the second one, while secrets change', signed(body, 'two'), null],
    ['one that is none', signed(body, 'three'), 'forged'],
    ['another body', signed('{"id":"evt-2"}'), 'forged'],
    ['an empty key', signed(body, ''), 'forged'],
  ] as const)('signed with %s', ([, signature, requested]) => {
    expect(refusal({ 'svc-signature': signature })).toBe(requested);
  });

  test('one bit of the signature decides, wherever it stands', () => {
    const digest = Buffer.from(signed().slice(7), 'hex');
    for (let bit = 0; bit < 256; bit += 1) {
      const other = Buffer.from(digest);
      other[bit >> 3] = (other[bit >> 3] ?? 0) ^ (1 << (bit & 7));
      expect(refusal({ 'svc-signature': `sha256=${other.toString('hex')}` })).toBe('forged');
    }
  });

  test('a secret may stand for bytes', () => {
    const key = Buffer.from([0, 255, 10, 128]);
    const secrets = [new Secret(() => key.toString('base64'))];

    const given = { 'svc-signature': signed(body, key) };

    expect(refusal(given, { secrets, secretEncoding: 'base64' })).toBe(null);
    expect(refusal(given, { secrets })).toBe('forged');
  });

  test('a secret that is empty or cannot be read accepts no delivery', () => {
    const empty = [new Secret(() => '')];
    const gone = [
      new Secret(() => {
        throw new Error('ENOENT');
      }),
    ];

    expect(refusal({ 'svc-signature': signed(body, '') }, { secrets: empty })).toBe('no_secret');
    expect(refusal({}, { secrets: gone })).toBe('no_secret');
  });

  const at = (text: string, key = `${text}.${body}`) => ({
    'svc-signature': signed(key),
    'svc-time': text,
  });
  const seconds = nowMs / 1_000;
  test.for([
    ['now, in seconds', at(String(seconds)), null],
    ['now, in milliseconds', at(String(nowMs)), null],
    ['now, as a date', at('2026-11-22T12:00:00Z'), null],
    ['at the bound', at(String(seconds - 300)), null],
    ['beyond it', at(String(seconds - 301)), 'stale'],
    ['from a clock that is ahead', at(String(seconds + 299)), null],
    ['from one too far ahead', at(String(seconds + 301)), 'stale'],
    ['no time', { 'svc-signature': signed(`.${body}`) }, 'stale'],
    ['no time that can be read', at('yesterday'), 'stale'],
    ['another time than the signed one', at(String(seconds), `1.${body}`), 'forged'],
    ['a time that is not signed', at(String(seconds), String(body)), 'forged'],
  ] as const)('its age: %s', ([, headers, requested]) => {
    expect(refusal(headers, { timestampHeader: 'svc-time', signsTime: true })).toBe(requested);
  });

  test('without a header for it no age is checked', () => {
    expect(refusal({ 'svc-time': '1' })).toBe(null);
  });

  test.for([
    ['', 'not_json'],
    ['{', 'not_json'],
    ['1,2', 'not_json'],
    ['],[', 'not_json'],
    ['\ufeff{}', 'not_json'],
    [`${'['.repeat(5_000)}${']'.repeat(5_000)}`, 'not_json'],
    ['null', null],
    [' {"a":1}\n', null],
  ] as const)('JSON: %j', ([text, requested]) => {
    const given = Buffer.from(text);
    expect(refusal({ 'svc-signature': signed(given) }, {}, given)).toBe(requested);
  });
});

// Events that no normaliser would make, for properties that must hold for any event: hostile texts where texts belong,
// and anything at all where anything might come.

import fc from 'fast-check';
import type { Event, OcsfEvent } from '../../src/contracts/event.ts';
import { anEvent } from '../support/an-event.ts';
import { anyText } from '../support/any-text.ts';

const hostile = [
  'a\nb',
  'a\r\nCEF:0|forged|x|1|1|x|10|cs6=0',
  '\n<165>1 2003-10-11T22:14:15.003Z evil app - - - forged',
  '"] [sluice@32473 uid="forged"',
  '\\',
  '\\\\\\',
  '=',
  'x msg=forged',
  'a\\=b',
  '|',
  'a\\|b|c',
  '\u0000',
  '\u0085',
  '\u2028\u2029',
  '\u007f\u009b31m',
  '\ud800',
  'x\udc00y',
  '\ufeffbom',
  '👨‍👩‍👧',
  ' lead and trail ',
  '   ',
  '',
  '__proto__',
  'zlib',
  'é漢😀'.repeat(400),
  '='.repeat(1500),
  '\\'.repeat(4001),
];

/** Text with whatever could end a line, a field or a frame. */
export const hostileText: fc.Arbitrary<string> = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom(...hostile) },
  { weight: 3, arbitrary: anyText({ maxLength: 60 }) },
  {
    weight: 2,
    arbitrary: fc
      .array(fc.oneof(fc.constantFrom(...hostile), fc.string({ maxLength: 8 })), { maxLength: 4 })
      .map((parts) => parts.join('')),
  },
);

/** Any value at all, of JSON or not. */
export const anyValue: fc.Arbitrary<unknown> = fc.oneof(
  hostileText,
  fc.anything({
    maxDepth: 2,
    maxKeys: 4,
    key: hostileText,
    values: [hostileText, fc.integer(), fc.double(), fc.boolean(), fc.constant(null)],
    withBigInt: true,
    withDate: true,
    withMap: true,
    withNullPrototype: true,
    withSparseArray: true,
    withTypedArray: true,
  }),
  fc.constantFrom(NaN, Infinity, -0, -1, 1e21, 2 ** 53, -(2 ** 63), 8.64e15 + 1, 65_536),
);

// The attributes that formats read, at whatever level.
const names = [
  ...['activity_id', 'activity_name', 'category_uid', 'class_uid', 'class_name', 'time', 'status'],
  ...['severity_id', 'severity', 'status_id', 'status_code', 'status_detail', 'message', 'count'],
  ...['metadata', 'actor', 'user', 'src_endpoint', 'dst_endpoint', 'device', 'api', 'entity'],
  ...['resources', 'unmapped', 'raw_data', 'traffic', 'connection_info', 'http_request', 'query'],
  ...['http_response', 'url', 'file', 'hashes', 'attacks', 'technique', 'finding_info', 'policy'],
  ...['firewall_rule', 'evidences', 'start_time', 'end_time', 'action', 'operation', 'service'],
  ...['name', 'uid', 'type', 'type_id', 'ip', 'hostname', 'port', 'mac', 'email_addr', 'title'],
  ...['event_code', 'original_event_uid', 'tenant_uid', 'correlation_uid', 'logged_time'],
  ...['product', 'version', 'url_string', 'path', 'user_agent', 'code', 'bytes_in', 'bytes_out'],
  ...['direction_id', 'protocol_name', 'interface_name', 'size', 'value', 'rcode', 'request'],
];

const { attributes } = fc.letrec<{ attributes: Record<string, unknown>; value: unknown }>(
  (tie) => ({
    attributes: fc.dictionary(fc.constantFrom(...names), tie('value'), { maxKeys: 12 }),
    value: fc.oneof(
      { depthSize: 'small' },
      anyValue,
      tie('attributes'),
      fc.array(tie('attributes'), { maxLength: 2 }),
    ),
  }),
);

/** An event whose OCSF form is made of known attribute names and any values: not even `metadata` is sure. */
export const weirdEvent: fc.Arbitrary<Event> = fc
  .record({
    uid: fc.constantFrom('0123456789abcdef'.repeat(4), 'f'.repeat(64)),
    source: hostileText,
    stream: hostileText,
    raw: fc.oneof(hostileText, fc.uint8Array({ maxLength: 80 })),
    attributes,
  })
  .map(({ attributes, ...wishes }) => ({
    ...anEvent(wishes),
    // The point of these events is not to keep to the type.
    ocsf: attributes as unknown as OcsfEvent,
  }));

/** An event as the normaliser makes it, with hostile text in every text that formats read. */
export const hostileEvent: fc.Arbitrary<Event> = fc
  .record({
    source: hostileText,
    stream: hostileText,
    text: fc.array(hostileText, { minLength: 24, maxLength: 24 }),
    ip: fc.oneof(fc.ipV4(), fc.ipV6(), hostileText),
    time: fc.integer({ min: 0, max: Date.UTC(2100, 0) }),
    severity: fc.integer({ min: 0, max: 6 }),
  })
  .map(({ source, stream, text, ip, time, severity }) => {
    let next = 0;
    const given = () => text[next++] ?? '';
    return anEvent({
      source,
      stream,
      raw: { note: given() },
      ocsf: {
        time,
        severity_id: severity,
        class_name: given(),
        activity_name: given(),
        message: given(),
        status_detail: given(),
        actor: { user: { name: given(), uid: given(), type: given() }, app_name: given() },
        user: { name: given(), uid: given() },
        src_endpoint: { ip, hostname: given(), interface_name: given() },
        dst_endpoint: { ip, hostname: given() },
        api: { operation: given() },
        resources: [{ name: given(), uid: given(), type: given() }],
        http_request: { url: { url_string: given() }, user_agent: given(), http_method: given() },
        metadata: { event_code: given(), tenant_uid: given(), original_event_uid: given() },
        unmapped: { [given()]: given() },
      },
    });
  });

// Which numbers get a name, and that nothing of upstream's is changed or covered by one.

import { expect, test } from 'vitest';
import type { JsonObject } from '../../src/contracts/json.ts';
import { withNumberNames } from '../../src/normalise/number-names.ts';
import { makeFormat } from '../formats/make-format.ts';
import { anEvent } from '../support/an-event.ts';

const names = {
  ip_protocols: new Map([[6, 'TCP']]),
  icmp_types: new Map([[8, 'Echo']]),
  icmpv6_types: new Map([[128, 'Echo Request']]),
};
const named = (unmapped: JsonObject) =>
  withNumberNames({ ...anEvent().ocsf, unmapped }, names).unmapped;

test.each<[JsonObject, JsonObject]>([
  [{ protocol: 6 }, { protocol: 6, protocol_name: 'TCP' }],
  [{ ip_protocol: '6' }, { ip_protocol: '6', ip_protocol_name: 'TCP' }],
  [{ icmpType: 8 }, { icmpType: 8, icmpType_name: 'Echo' }],
  [
    { a: [{ 'icmpv6-type': 128 }] },
    { a: [{ 'icmpv6-type': 128, 'icmpv6-type_name': 'Echo Request' }] },
  ],
  [
    { protocol: 6, protocol_name: 'mine' },
    { protocol: 6, protocol_name: 'mine' },
  ],
  [{ protocols: [6, '6'] }, { protocols: [6, '6'], protocols_name: ['TCP', 'TCP'] }],
  [{ protocol: [6, 253] }, { protocol: [6, 253], protocol_name: ['TCP', 253] }],
  ...[
    { protocol: 253 },
    { protocol: 'tcp' },
    { protocol: 6.5 },
    { protocol: [253] },
    { protocols: 6 },
    { port: 6 },
  ].map((same): [JsonObject, JsonObject] => [same, same]),
  [
    JSON.parse('{"__proto__":{"protocol":6}}'),
    JSON.parse('{"__proto__":{"protocol":6,"protocol_name":"TCP"}}'),
  ],
])('%j becomes %j', (before, after) => {
  expect(JSON.stringify(named(before))).toBe(JSON.stringify(after));
});

test('a CEF line has the name and the number', () => {
  const ocsf = withNumberNames({ ...anEvent().ocsf, unmapped: { protocol: 6 } }, names);
  const line = String(makeFormat('cef').encode({ ...anEvent(), kind: 'log', ocsf }));

  expect(line).toMatch(/ proto=TCP .* sluiceProtocol=6/);
});

test('entities are named before and after', () => {
  const event = withNumberNames(
    {
      ...anEvent().ocsf,
      entity: { data: { protocol: 6 } },
      entity_result: { data: { protocol: 7 } },
    },
    names,
  );
  expect(event.entity).toEqual({ data: { protocol: 6, protocol_name: 'TCP' } });
  expect(event.entity_result).toEqual({ data: { protocol: 7 } });
});

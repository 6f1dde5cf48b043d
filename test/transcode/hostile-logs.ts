// Log records as text, and mappings of them: any class, any of its attributes, from values that suit it and from others.
// What a config could name is what comes here.

import type { Mapping } from '../../src/contracts/definition.ts';
import {
  type Attribute,
  classNames,
  classOf,
  objectOf,
  type Shape,
} from '../../src/normalise/schema.ts';
import { type Next, one, type Plan, text, upTo, type Value } from './hostile-records.ts';

const hex = (next: Next) => upTo(next, 256).toString(16).padStart(2, '0');
const timeOf = (next: Next) => 1_790_000_000_000 + upTo(next, 1e9);
const textOf: Readonly<Record<string, (next: Next) => string>> = {
  id: (next) => `f-${upTo(next, 1e9)}`,
  name: (next) => `${one(next, ['Anna', 'José', 'a=b|c', 'x^y'])} ${upTo(next, 50)}`,
  host: (next) => `h${upTo(next, 99)}.example`,
  mail: (next) => `p${upTo(next, 99)}@example.com`,
  ip: (next) =>
    next() < 0.9
      ? `192.0.2.${upTo(next, 256)}${one(next, ['', '', '', '', ':443', ', 10.0.0.1', ' '])}`
      : `2001:db8::${hex(next)}${one(next, ['', '', '%eth0', ':192.0.2.1'])}`,
  mac: (next) => Array.from({ length: 6 }, () => hex(next)).join(one(next, [':', ':', ':', '-'])),
  url: (next) => `${one(next, ['', 'https://w.example'])}/p/${upTo(next, 99)}?q=${upTo(next, 9)}`,
  time: (next) => new Date(timeOf(next)).toISOString(),
  fine: (next) =>
    new Date(timeOf(next))
      .toISOString()
      .replace('Z', one(next, ['000Z', '500Z', '123456Z', '+01:00', ' +0100', ' GMT'])),
  digits: (next) => `${upTo(next, one(next, [10, 70_000, 1e12]))}`,
  float: (next) => `${upTo(next, 100)}.${upTo(next, 100)}`,
  method: (next) => one(next, ['GET', 'POST', 'get']),
  word: (next) =>
    one(next, ['allow', 'Blocked', 'success', 'Low', 'high', 'Inbound', 'true', '6', '99']),
};
const texts: Readonly<Record<string, Value>> = Object.fromEntries(
  Object.entries(textOf).map(([name, make]) => [name, text(make)]),
);
const values: Readonly<Record<string, Value>> = {
  ...texts,
  count: (next) => `${upTo(next, one(next, [10, 70_000, 1e12]))}`,
  port: (next) => `${upTo(next, 65_536)}`,
  real: (next) => `${upTo(next, 100)}.${1 + upTo(next, 9)}`,
  seconds: (next) => `${Math.floor(timeOf(next) / 1000)}`,
  milliseconds: (next) => `${timeOf(next)}`,
  small: (next) => `${upTo(next, 7)}`,
  flag: (next) => one(next, ['true', 'false']),
  names: (next) =>
    `[${Array.from({ length: 1 + upTo(next, 2) }, () => texts.name?.(next)).join()}]`,
  addresses: (next) => `[${texts.ip?.(next)},${texts.ip?.(next)}]`,
  things: (next) => `[{"name":${texts.name?.(next)},"uid":${texts.id?.(next)}}]`,
};

/** What decides is of a few words, the same in all records of a kind. */
function likelyOf(next: Next, name: string): Value {
  const make = values[name] ?? (() => 'null');
  if (!['word', 'small', 'method', 'flag'].includes(name)) return make;
  const few = [make(next), make(next)];
  return (again) => one(again, few);
}

/** Attribute types, and what is likely to be mapped to them. */
const suits: Readonly<Record<string, readonly string[]>> = {
  text: ['id', 'name', 'host', 'url', 'word', 'count', 'digits', 'names', 'mail'],
  int: ['count', 'digits', 'small'],
  long: ['count', 'digits', 'seconds'],
  float: ['real', 'float', 'count'],
  bool: ['flag', 'word'],
  time: ['time', 'fine', 'seconds', 'milliseconds'],
  ip: ['ip', 'addresses'],
  port: ['port', 'digits'],
  mac: ['mac'],
  email: ['mail'],
  json: ['things', 'name', 'count'],
  choice: ['method', 'word'],
  enum: ['word', 'small'],
};

/** Attributes of a shape by path, so many levels deep. */
function attributesOf(
  shape: Shape,
  depth: number,
  before: string,
): [path: string, attribute: Attribute][] {
  return [...shape.attributes].flatMap(([name, attribute]): [string, Attribute][] => {
    const path = before + name;
    if (attribute.type !== 'object') return [[path, attribute]];
    return depth === 0 ? [] : attributesOf(objectOf(attribute.object), depth - 1, `${path}.`);
  });
}

const known = new Map(
  classNames.map((name) => [
    name,
    attributesOf(classOf(name) ?? { attributes: new Map(), some: [], one: [] }, 2, ''),
  ]),
);
/** What classes need, some of which is mapped first. */
const needed =
  'user.name user.uid service.name entity.name entity.uid group.name privileges finding_info.uid finding_info.title ' +
  'finding_info_list.uid assignee.name src_endpoint.ip src_endpoint.port dst_endpoint.hostname dst_endpoint.ip ' +
  'http_request.url.path http_request.http_method http_response.code connection_info.uid traffic.bytes traffic.bytes_in ' +
  'traffic.bytes_out device.name device.ip device.mac app.name actor.user.name actor.user.email_addr api.operation ' +
  'query.hostname answers.rdata message time start_time severity status status_id metadata.event_code activity_id';
const neededPaths = new Set(needed.split(' '));

/** A mapping and records that it suits. */
export interface HostileLog {
  readonly mapping: Mapping;
  plan(next: Next): readonly Plan[];
}

/** Chooses a class, some attributes, and the source of each within a record. */
export function logOf(next: Next): HostileLog {
  const name = one(next, classNames);
  const all = known.get(name) ?? [];
  const fields: [path: string, from: string | string[]][] = [];
  const plans: Plan[] = [];
  const first = all.filter(([path]) => neededPaths.has(path) && next() < 0.4);
  const others = Array.from({ length: upTo(next, 6) }, () => one(next, all));
  for (const [path, { type }] of [...first, ...others]) {
    const key = one(next, [
      `k${plans.length}`,
      path.replaceAll('.', '_'),
      path.split('.').at(-1) ?? path,
    ]);
    const likely = next() < 0.95 ? (suits[type] ?? []) : Object.keys(values);
    const value = likelyOf(next, one(next, likely));
    const isWithin = next() < 0.2;
    plans.push(
      isWithin
        ? { key: 'in', value: [{ key, value, isList: false }], isList: next() < 0.1 }
        : { key, value, isList: false },
    );
    const at = isWithin ? `in.${key}` : key;
    // Values of others, and paths that lead nowhere, come second or first.
    const more = next() < 0.15 ? [one(next, plans).key] : [];
    fields.push([path, more.length === 0 ? at : next() < 0.5 ? [at, ...more] : [...more, at]]);
    if (next() < 0.1) fields.push([one(next, all)[0], at]);
  }
  const usual: Plan[] = [
    { key: one(next, ['id', 'uuid', 'event_id']), value: likelyOf(next, 'id'), isList: false },
    {
      key: one(next, ['timestamp', 'time', 'ts']),
      value: likelyOf(next, one(next, suits.time ?? [])),
      isList: false,
    },
    ...[
      'action',
      'protocol',
      'src_ip',
      'dst_port',
      'bytes_in',
      'user',
      'message',
      'level',
      'client_mac',
    ].map((key) => ({
      key,
      value: likelyOf(next, one(next, ['word', 'ip', 'port', 'count', 'name', 'small', 'mac'])),
      isList: false,
    })),
  ];
  const mapping = { class: name, fields: Object.fromEntries(fields) };
  return {
    mapping,
    plan: (again) =>
      [...usual.filter(() => again() < 0.4), ...plans.filter(() => again() < 0.95)].filter(
        ({ key }, i, list) => list.findIndex((other) => other.key === key) === i,
      ),
  };
}

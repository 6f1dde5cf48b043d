// Adds names to the numbers that IANA assigns: IP protocols and ICMP types. A pure function of the
// event and the tables, applied on the way out, so that neither stored data nor a uid depends on a
// look-up. Invariants: nothing that upstream sent is changed or hidden; a number without a name
// stays unchanged.

import type { LookupName, NumberNames } from '../contracts/config.ts';
import { isObject, type Json, type JsonObject, type OcsfEvent } from '../contracts/index.ts';
import { canonicalName } from './slots.ts';

/** Members that hold an assigned number, by the names that upstreams use. */
const members: ReadonlyMap<string, LookupName> = new Map(
  Object.entries({
    ip_protocols:
      'protocol protocolnumber protocolnum protocolid ipprotocol ipprotocolnumber proto protonum ipproto transportprotocol',
    icmp_types: 'icmptype icmp4type icmpv4type icmptypenumber',
    icmpv6_types: 'icmpv6type icmp6type icmpv6typenumber',
  } satisfies Record<LookupName, string>).flatMap(([lookup, names]) =>
    names.split(' ').map((name) => [name, lookup as LookupName] as const),
  ),
);

/** Deeper than any meaningful record. */
const depthMax = 16;

/** The event with the names found in the tables. */
export function withNumberNames(event: OcsfEvent, names: NumberNames): OcsfEvent {
  const { connection_info: connection, unmapped, entity, entity_result: result } = event;
  const { evidences, resources } = event;
  return {
    ...event,
    ...(isObject(connection) && { connection_info: protocolNamed(connection, names) }),
    ...(Array.isArray(evidences) && {
      evidences: evidences.map((one: Json) => evidenceNamed(one, names)),
    }),
    ...(resources !== undefined && { resources: resources.map((one) => dataNamed(one, names)) }),
    ...(unmapped !== undefined && { unmapped: namedIn(unmapped, names) as JsonObject }),
    ...(isObject(entity) && { entity: dataNamed(entity, names) }),
    ...(isObject(result) && { entity_result: dataNamed(result, names) }),
  };
}

/** OCSF requires `protocol_name` in lower case. */
function protocolNamed(connection: JsonObject, { ip_protocols: names }: NumberNames): JsonObject {
  const name = names?.get(numberOf(connection.protocol_num));
  if (name === undefined || connection.protocol_name !== undefined) return connection;
  return { ...connection, protocol_name: name.toLowerCase() };
}

function evidenceNamed(evidence: Json, names: NumberNames): Json {
  if (!isObject(evidence) || !isObject(evidence.connection_info)) return evidence;
  return { ...evidence, connection_info: protocolNamed(evidence.connection_info, names) };
}

function dataNamed(entity: JsonObject, names: NumberNames): JsonObject {
  return entity.data === undefined ? entity : { ...entity, data: namedIn(entity.data, names) };
}

/** Returns the same value if it has nothing to name. */
function namedIn(value: Json | undefined, names: NumberNames, depth = 0): Json {
  if (typeof value !== 'object' || value === null || depth > depthMax) return value ?? null;
  if (Array.isArray(value)) return value.map((one) => namedIn(one, names, depth + 1));
  const added: [string, Json][] = [];
  const named = Object.entries(value).map(([key, inner]): [string, Json] => {
    const name = nameFor(key, inner, names);
    if (name !== undefined && !Object.hasOwn(value, `${key}_name`))
      added.push([`${key}_name`, name]);
    return [key, namedIn(inner, names, depth + 1)];
  });
  return Object.fromEntries([...named, ...added]);
}

/** The name of a number, or the names of several if at least one is known. */
function nameFor(key: string, value: Json | undefined, names: NumberNames): Json | undefined {
  const known = lookupFor(key, Array.isArray(value));
  const table = known && names[known];
  if (table === undefined) return undefined;
  if (!Array.isArray(value)) return table.get(numberOf(value));
  const found = value.map((one) => table.get(numberOf(one)));
  if (found.every((name) => name === undefined)) return undefined;
  // A number without a name is kept at its index, so that both lists have the same length.
  return found.map((name, at) => name ?? value[at] ?? null);
}

/** Member names for one or several numbers: `protocol`, `protocols`. */
function lookupFor(key: string, isList: boolean): LookupName | undefined {
  const name = canonicalName(key);
  return members.get(name) ?? (isList ? members.get(name.replace(/s$/, '')) : undefined);
}

/** NaN for anything except a number of one byte. */
function numberOf(value: unknown): number {
  if (typeof value === 'string') return /^\d{1,3}$/.test(value) ? Number(value) : Number.NaN;
  return typeof value === 'number' ? value : Number.NaN;
}

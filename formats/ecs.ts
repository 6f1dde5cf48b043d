// The `ecs` format: one event of the Elastic Common Schema per line. Each attribute of the OCSF
// event goes to its field in the table (ecs-fields.ts); attributes without a field, values that
// their field does not accept, and values whose field a better source has taken keep their OCSF
// name below `sluice.ocsf`; the unmapped part is in `sluice.unmapped`. Invariants: every value is
// present; no value is in a field of another type, which would make Elasticsearch reject the event.

import { isIP } from 'node:net';
import { z } from 'zod';
import { defineFormat } from '../src/contracts/config.ts';
import { type Event, isObject, type Look, type OcsfEvent } from '../src/contracts/index.ts';
import { ecsClassOf } from './ecs-class.ts';
import { type EcsKind, ecsFields, ecsVersion, writtenInFields } from './ecs-fields.ts';
import { ownFieldsOf, rolesOf } from './ecs-own.ts';
import { rawData as rawDataOf } from './json.ts';
import { jsonText } from './json-text.ts';
import { actionOf, epochMsOf, part, portOf, resultOf, textOf } from './parts.ts';
import { textsOfSentence, wholeSentence } from './sentence.ts';

/** The settings of `ecs`, also as the message of a syslog line. */
export const ecsFormatFields = {
  raw_data: z
    .boolean()
    .default(false)
    .describe('adds the original record of upstream, as `event.original`'),
};

/** The `ecs` format. */
export const ecs = defineFormat({
  type: 'ecs',
  shape: 'json',
  summary:
    'One event of the Elastic Common Schema (ECS 9) per line, with the fields that ECS does not have.',
  fields: ecsFormatFields,
  make({ raw_data: rawData }) {
    const encode = (event: Event) => jsonText(ecsEvent(event, rawData));
    const made = { name: 'ecs', contentType: 'application/json', encode };
    return rawData ? made : { ...made, copying: { ...copying, write: encode } };
  },
});

const copying = {
  form: 'json',
  lineBytesMax: Number.POSITIVE_INFINITY,
  looks: ecsLooks,
} as const;

/** A path of the OCSF event. */
interface Place {
  readonly below: Map<string, Place>;
  /** Index of the field, or -1. */
  slot: number;
  /** Rank of this path among the field's sources; less is better. */
  rank: number;
  isElsewhere: boolean;
  readonly path: readonly string[];
}

function place(path: readonly string[]): Place {
  return { below: new Map(), slot: -1, rank: 0, isElsewhere: false, path };
}

/** The paths of the table; at a login the user in the event is the actor. */
function placesOf(isLogin: boolean): Place {
  const root = place([]);
  const find = (path: string): Place => {
    let at = root;
    for (const name of path.split('.')) {
      const next = at.below.getOrInsertComputed(name, () => place([...at.path, name]));
      at = next;
    }
    return at;
  };
  ecsFields.forEach(({ from, field }, slot) => {
    for (const [rank, path] of from.entries()) {
      const moved = isLogin && path.startsWith('user.');
      const to = moved ? field.replace('.target', '') : field;
      const at = moved ? ecsFields.findIndex((one) => one.field === to) : slot;
      Object.assign(find(path), { slot: at, rank });
    }
  });
  for (const path of writtenInFields) find(path).isElsewhere = true;
  return root;
}

const usual = placesOf(false);
const ofLogin = placesOf(true);
const authentication = 3002;
const paths = ecsFields.map(({ field }) => field.split('.'));
const slotOf = (name: string) => ecsFields.findIndex(({ field }) => field === name);
const actionSlot = slotOf('event.action');
const originalUrlSlot = slotOf('url.original');
const fullUrlSlot = slotOf('url.full');
const urlDomainSlot = slotOf('url.domain');
const rolesSlot = slotOf('user.roles');
const httpActivity = 4002;
const userSlots = ['user.name', 'user.id'].map(slotOf);
const noValues = ecsFields.map((): unknown => undefined);
const noPlaces = ecsFields.map((): Place | undefined => undefined);
const macAddress = /^[0-9A-Fa-f]{2}([:-][0-9A-Fa-f]{2}){5}$/;
/** In UTF-16 units, which stay below the 32,766 bytes of an indexed term. */
const ownMessageMax = 8_000;
const epoch = new Date(0).toISOString();
const yearOneMs = -62_135_596_800_000;
const year10kMs = 253_402_300_800_000;

type Members = Record<string, unknown>;

/** Builds one event. */
class Filling {
  /** By field: the converted value, the original value, and its path. */
  readonly values: unknown[] = noValues.slice();
  readonly #given: unknown[] = noValues.slice();
  readonly #from: (Place | undefined)[] = noPlaces.slice();
  /** Values whose field a better one has taken. */
  readonly #put: (readonly [Place, unknown])[] = [];
  readonly #looks: Look[] | undefined;

  /** `looks` collects the inspected properties of values. */
  constructor(looks: Look[] | undefined) {
    this.#looks = looks;
  }

  /** The members without a field; undefined: none. */
  rest(above: Place, members: Members): Members | undefined {
    let rest: Members | undefined;
    for (const name in members) {
      const value = members[name];
      if (value === undefined) continue;
      const at = above.below.get(name);
      const left = at === undefined ? value : this.#left(at, value);
      if (left === undefined) continue;
      rest ??= {};
      // A plain assignment of this name would set the prototype.
      if (name === '__proto__')
        Object.defineProperty(rest, name, { value: left, enumerable: true });
      else rest[name] = left;
    }
    return rest;
  }

  /** Puts values back to their original paths. */
  restore(rest: Members): void {
    for (const [{ path }, value] of this.#put) {
      let at = rest;
      for (const name of path.slice(0, -1)) at = within(at, name);
      at[path.at(-1) ?? ''] = value;
    }
  }

  #left(at: Place, value: unknown): unknown {
    if (at.isElsewhere) return undefined;
    if (at.slot >= 0) return this.#take(at, value) ? undefined : value;
    if (isObject(value)) return this.rest(at, value);
    if (!Array.isArray(value) || !isObject(value[0])) return value;
    // Of a list, fields are filled from the first member.
    const first = this.rest(at, value[0]);
    return first === undefined && value.length === 1 ? undefined : [first ?? {}, ...value.slice(1)];
  }

  #take(at: Place, given: unknown): boolean {
    const { slot, rank } = at;
    const { kind = 'keyword' } = ecsFields[slot] ?? {};
    this.#looks?.push({ ...looked(given, asOf(kind, given)), rival: this.#given[slot] });
    const value = fieldValue(kind, given);
    if (value === undefined) return false;
    const held = this.values[slot];
    if (held !== undefined) {
      if (held === value) return true;
      const before = this.#from[slot];
      if (before === undefined || before.rank <= rank) return false;
      this.#put.push([before, this.#given[slot]]);
    }
    this.values[slot] = value;
    this.#from[slot] = at;
    this.#given[slot] = given;
    // A field of a fixed form is less precise than the original.
    return kind !== 'mac' || value === given;
  }
}

function looked(value: unknown, as: Look['as']): Look {
  return { value, as, bytesMax: Number.POSITIVE_INFINITY, rival: undefined };
}

/** The inspected property of a value for a field of this kind. */
function asOf(kind: EcsKind, value: unknown): Look['as'] {
  switch (kind) {
    case 'lower':
    case 'mac':
      return 'other';
    case 'ip':
      return 'address';
    case 'long':
    case 'port':
      // Neither kind accepts a text.
      if (typeof value !== 'number') return 'text';
      return kind === 'port' ? 'port' : 'integer';
    default:
      return 'text';
  }
}

/** The value converted for a field of this kind; undefined if it is not accepted. */
function fieldValue(kind: EcsKind, value: unknown): unknown {
  switch (kind) {
    case 'keyword':
    case 'text':
    case 'wildcard':
      return textOf(value) ?? (typeof value === 'number' ? String(value) : undefined);
    case 'lower':
      return textOf(value)?.toLowerCase();
    case 'ip':
      return typeof value === 'string' && isIP(value) !== 0 && !value.includes('%')
        ? value
        : undefined;
    case 'mac':
      return typeof value === 'string' && macAddress.test(value)
        ? value.toUpperCase().replaceAll(':', '-')
        : undefined;
    case 'long':
      return Number.isSafeInteger(value) ? value : undefined;
    case 'port':
      return portOf(value);
    case 'float':
      return Number.isFinite(value) ? value : undefined;
    case 'date':
      return dateOf(value);
  }
}

/** Years that Elasticsearch accepts without a declared format. */
function dateOf(value: unknown): string | undefined {
  const time = epochMsOf(value);
  if (time === undefined || time < yearOneMs || time >= year10kMs) return undefined;
  return new Date(time).toISOString();
}

/** The inspected properties of an event's values. */
export function ecsLooks(event: Event): readonly Look[] {
  const looks: Look[] = [];
  ecsEvent(event, false, looks);
  return looks;
}

/**
 * The event as an object; `rawData`: with the record as sent; `looks` collects the inspected
 * properties of its values. Pure and total.
 */
export function ecsEvent(event: Event, rawData: boolean, looks?: Look[]): Readonly<Members> {
  const { ocsf, source, stream, context, uid } = event;
  const filling = new Filling(looks);
  const isLogin = ocsf.class_uid === authentication && ocsf.actor?.user === undefined;
  const rest = filling.rest(isLogin ? ofLogin : usual, ocsf) ?? {};
  filling.restore(rest);
  const { values } = filling;
  values[actionSlot] ??= actionOf(ocsf);
  addAgent(values, ocsf);
  addUrl(values, ocsf, looks);
  values[rolesSlot] = rolesOf(ocsf, looks);
  const { texts, message } = textsOfSentence(event);
  looks?.push(...texts.map((text) => looked(text, 'line')));
  if (message !== undefined) looks?.push({ ...looked(message, 'text'), bytesMax: ownMessageMax });
  // The sentence contains the whole message; OpenSearch accepts no longer term.
  if (message !== undefined && message.length > ownMessageMax) delete rest.message;
  const time = dateOf(ocsf.time);
  if (time === undefined) rest.time = ocsf.time;
  const doc: Members = {
    '@timestamp': time ?? dateOf(context.fetchedAt) ?? epoch,
    ecs: { version: ecsVersion },
    message: wholeSentence(event),
    event: {
      id: uid,
      ...ecsClassOf(ocsf),
      ...outcomeOf(ocsf),
      module: 'sluice',
      dataset: `sluice.${source}`,
      ingested: dateOf(context.fetchedAt),
      ...(rawData && { original: rawDataOf(event) }),
    },
  };
  for (let slot = 0; slot < values.length; slot += 1) {
    const value = values[slot];
    if (value === undefined) continue;
    set(doc, paths[slot] ?? [], ecsFields[slot]?.isList && !Array.isArray(value) ? [value] : value);
    const kind = ecsFields[slot]?.related;
    if (kind) gather(within(doc, 'related'), kind, value, looks);
  }
  const { unmapped } = ocsf;
  doc.sluice = {
    source,
    stream,
    ...ownFieldsOf(ocsf, looks),
    ocsf: rest,
    ...(unmapped !== undefined && { unmapped }),
  };
  return doc;
}

/** A program that acts by itself is the user; `sluice.ocsf.actor` shows that it is a program. */
function addAgent(values: unknown[], { actor }: OcsfEvent): void {
  const { app_name: name, app_uid: id } = part(actor);
  const [nameSlot = -1, idSlot = -1] = userSlots;
  if (values[nameSlot] !== undefined || values[idSlot] !== undefined) return;
  values[nameSlot] = textOf(name);
  values[idSlot] = textOf(id);
}

/**
 * A whole URL is `url.full` as well. `url.domain` is its host, except for web logs, where a mapping
 * names the host: to parse each URL there would cost more than all other fields.
 */
function addUrl(values: unknown[], { class_uid }: OcsfEvent, looks?: Look[]): void {
  const url = values[originalUrlSlot];
  if (typeof url !== 'string') return;
  values[fullUrlSlot] = url;
  if (class_uid === httpActivity || values[urlDomainSlot] !== undefined) return;
  looks?.push(looked(url, 'other'));
  values[urlDomainSlot] = hostOf(url);
}

/** As a client of the URL reads it: user info and look-alikes of separators must not hide the host. */
function hostOf(url: string): string | undefined {
  return URL.parse(url)?.hostname.toLowerCase() || undefined;
}

/** A finding's status is the progress of its investigation. */
function outcomeOf(ocsf: OcsfEvent): { readonly outcome?: string } {
  if (ocsf.category_uid === 2 || ocsf.status_id === undefined) return {};
  const result = resultOf(ocsf);
  return { outcome: result === 1 ? 'success' : result === 2 ? 'failure' : 'unknown' };
}

function gather(related: Members, kind: string, value: unknown, looks?: Look[]): void {
  const known = related[kind];
  if (Array.isArray(known))
    looks?.push(...known.map((rival) => ({ ...looked(value, 'text'), rival })));
  if (!Array.isArray(known)) related[kind] = [value];
  else if (!known.includes(value)) known.push(value);
}

function set(doc: Members, path: readonly string[], value: unknown): void {
  let at = doc;
  const last = path.length - 1;
  for (let i = 0; i < last; i += 1) at = within(at, path[i] ?? '');
  at[path[last] ?? ''] = value;
}

/** The object there, created if missing; of a list the first member, as when fields are read. */
function within(at: Members, name: string): Members {
  const held = at[name] ?? {};
  at[name] = held;
  return (Array.isArray(held) ? held[0] : held) as Members;
}

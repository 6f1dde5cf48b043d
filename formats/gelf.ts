// The `gelf` format: Graylog Extended Log Format 1.1, one JSON object per event. Each value of the
// OCSF event is an additional field named after its path (`_src_endpoint_ip`), as text or number,
// the only types in GELF. Graylog accepts a message and rejects it later if its index cannot hold
// it. Invariants: a name has one type in all events; a field has at most 32,766 bytes; the number
// of names is bounded, whatever a source sends. All other values are in `_sluice_rest`, a JSON
// object by their paths, split into numbered parts if long: lists, members with the source's own
// names, names that GELF does not allow or that would collide, long texts, and values beyond the
// maximum number of fields. So every value is present.

import { hostname } from 'node:os';
import { z } from 'zod';
import { defineFormat } from '../src/contracts/config.ts';
import { type Event, isObject, type Look } from '../src/contracts/index.ts';
import { flatFactsOf } from './flat-facts.ts';
import { isFreeName, isNumberName } from './gelf-names.ts';
import { jsonText } from './json-text.ts';
import { epochMsOf, severityOf, textOf } from './parts.ts';
import { textsOfSentence, wholeSentence } from './sentence.ts';
import { cutToBytes, fits } from './text.ts';

const shortMax = 250;
const nameLengthMax = 100;
/** Graylog creates an index field for each, and an index has 1,000 for all its events. */
const fieldsMax = 200;
/** Maximum length of a Lucene term, in bytes of UTF-8; an event with a longer one is rejected. */
const fieldBytesMax = 32_766;
/** As much as Graylog accepts in a message over TCP, 2 MiB. */
const partsMax = 64;
const depthMax = 16;
// OCSF levels 0 to 6 as syslog's.
const levels = [6, 6, 5, 4, 3, 2, 1];

/** The `gelf` format. */
export const gelf = defineFormat({
  type: 'gelf',
  shape: 'gelf',
  summary: 'Graylog Extended Log Format 1.1: one JSON object with a field for each value.',
  fields: {
    host: z.string().min(1).optional().describe('`host`; default: this machine’s name'),
  },
  make({ host = hostname() }) {
    const encode = (event: Event) => jsonText(fieldsOf(event, host || 'sluice').fields);
    const copying = {
      form: 'json' as const,
      lineBytesMax: Number.POSITIVE_INFINITY,
      looks: looksOf,
      write: encode,
    };
    return { name: 'gelf', contentType: 'application/json', encode, copying };
  },
});

type Fields = Record<string, string | number>;

/** The inspected properties of an event's values in addition to their output. */
function looksOf(event: Event): readonly Look[] {
  const looked = (value: unknown, as: Look['as'], bytesMax = Number.POSITIVE_INFINITY): Look => {
    return { value, as, bytesMax, rival: undefined };
  };
  const facts: Look[] = [];
  flatFactsOf(event.ocsf, facts);
  const { left, fields } = fieldsOf(event, '');
  const looks = [
    ...facts,
    ...Object.values(fields).map((value) => looked(value, 'text', fieldBytesMax)),
    // The rest is JSON within JSON.
    ...textsIn(left).map((text) => looked(text, 'plain')),
    ...looksOfLength(left).map(({ value, as, bytesMax }) => looked(value, as, bytesMax)),
  ];
  const { texts, message } = textsOfSentence(event);
  const all = message === undefined ? texts : [...texts, message];
  // Every character has at least one byte.
  const between = wholeSentence(event).length - all.join('').length;
  return [
    ...looks,
    ...texts.map((text) => looked(text, 'line')),
    looked(all, 'together', shortMax - between),
  ];
}

/** If the rest fits one field, only the lengths of its values are inspected. */
function looksOfLength(left: Left): readonly Pick<Look, 'value' | 'as' | 'bytesMax'>[] {
  const scalars = scalarsIn(left).map(String);
  if (scalars.length === 0) return [];
  const bytesOf = (text: string) => Buffer.byteLength(text);
  const still = scalars.reduce((bytes, text) => bytes - bytesOf(text), bytesOf(jsonText(left)));
  if (still < fieldBytesMax) {
    return [{ value: scalars, as: 'together', bytesMax: fieldBytesMax - still }];
  }
  return scalars.map((value) => ({ value, as: 'other', bytesMax: fieldBytesMax }));
}

function scalarsIn(value: unknown): readonly unknown[] {
  if (typeof value === 'object' && value !== null) return Object.values(value).flatMap(scalarsIn);
  return value === undefined ? [] : [value];
}

function textsIn(value: unknown): readonly string[] {
  if (typeof value === 'string') return [value];
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(textsIn) : [];
}

/** All fields; the last contains the rest. */
function fieldsOf(event: Event, host: string): Pick<Filling, 'fields' | 'left'> {
  const { ocsf, uid, source, stream } = event;
  const short = wholeSentence(event);
  const time = epochMsOf(ocsf.time);
  const message = textOf(ocsf.message);
  const fields: Fields = {
    version: '1.1',
    host,
    short_message: short.length > shortMax ? `${short.slice(0, shortMax)}…`.toWellFormed() : short,
    ...(short.length > shortMax && { full_message: cutToBytes(short, fieldBytesMax) }),
    ...(time !== undefined && { timestamp: time / 1000 }),
    level: levels[severityOf(ocsf.severity_id)] ?? 6,
    _uid: uid,
    _source_name: source,
    _stream_name: stream,
    // Graylog renames short_message to `message`, which an additional field must not replace.
    ...(message !== undefined && fits(message, fieldBytesMax) && { _record_message: message }),
    ...ruleFields(ocsf),
  };
  const left: Left = { __proto__: null };
  if (message !== undefined && !fits(message, fieldBytesMax)) left.message = message;
  const room = { fields: fieldsMax };
  for (const [name, value] of Object.entries(ocsf)) {
    // The unmapped part uses its own names, after all mapped ones.
    if (name !== 'unmapped' && name !== 'message') add({ fields, left, room }, name, value, 0);
  }
  if (ocsf.unmapped !== undefined) add({ fields, left, room }, 'unmapped', ocsf.unmapped, 0);
  if (Object.keys(left).length > 0) addRest(fields, jsonText(left));
  return { fields, left };
}

/** The facts that detection rules search. */
function ruleFields(ocsf: Event['ocsf']): Fields {
  const facts = Object.entries(flatFactsOf(ocsf));
  return Object.fromEntries(facts.map(([name, value]) => [`_sluice_${name}`, value]));
}

/** In one field, or in numbered parts, which give the JSON text when joined. */
function addRest(fields: Fields, text: string): void {
  if (fits(text, fieldBytesMax)) {
    fields._sluice_rest = text;
    return;
  }
  let rest = text;
  for (let part = 1; part <= partsMax && rest !== ''; part += 1) {
    const piece = cutToBytes(rest, fieldBytesMax);
    fields[`_sluice_rest_${part}`] = piece;
    rest = rest.slice(piece.length);
  }
  if (rest !== '') fields._sluice_rest_cut_bytes = Buffer.byteLength(rest);
}

type Left = { [path: string]: unknown };

interface Filling {
  readonly fields: Fields;
  readonly left: Left;
  readonly room: { fields: number };
}

function add(filling: Filling, path: string, value: unknown, depth: number): void {
  if (value === undefined) return;
  const own = path.slice(path.lastIndexOf('.') + 1);
  if (isObject(value) && depth < depthMax && !isFreeName(own)) {
    for (const [name, member] of Object.entries(value)) {
      add(filling, `${path}.${name}`, member, depth + 1);
    }
    return;
  }
  const { fields, left, room } = filling;
  const name = `_${path.replaceAll('.', '_')}`;
  const plain = isNumberName(own) ? numberOf(value) : textValue(value);
  const usable =
    plain !== undefined && room.fields > 0 && name.length <= nameLengthMax && /^[\w-]+$/.test(name);
  if (!usable || Object.hasOwn(fields, name)) {
    leave(left, path, value);
    return;
  }
  room.fields -= 1;
  fields[name] = plain;
}

/** A record can have `a.b` and an `a` with a `b`. */
function leave(left: Left, path: string, value: unknown): void {
  let free = path;
  while (Object.hasOwn(left, free)) free = `${free}'`;
  left[free] = value;
}

function numberOf(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isFinite(value) ? value : undefined;
}

/** A text or boolean as text; undefined for other values, or if too long. */
function textValue(value: unknown): string | undefined {
  if (typeof value === 'boolean') return String(value);
  return typeof value === 'string' && fits(value, fieldBytesMax) ? value : undefined;
}

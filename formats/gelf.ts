// The `gelf` format: Graylog Extended Log Format 1.1, one JSON object an event. Each value of the
// OCSF event is an additional field named after its path (`_src_endpoint_ip`), as text or number,
// since GELF knows nothing else; lists, values whose names GELF does not allow or two would have,
// and what would be one field too many stand in `_sluice_rest`, a JSON object by their paths. So
// every value is there.

import { hostname } from 'node:os';
import { z } from 'zod';
import type { Look } from '../src/contracts/copying.ts';
import { defineFormat } from '../src/contracts/definition.ts';
import type { Event } from '../src/contracts/event.ts';
import { isObject } from '../src/contracts/json.ts';
import { jsonText } from './json-text.ts';
import { severityOf, textOf, timeOf } from './parts.ts';
import { textsOfSentence, wholeSentence } from './sentence.ts';

const shortMax = 250;
const nameLengthMax = 100;
/** Graylog makes a field of an index of each, of which an index has 1,000 for all its events. */
const fieldsMax = 200;
const depthMax = 16;
// OCSF levels 0 to 6 as syslog's.
const levels = [6, 6, 5, 4, 3, 2, 1];

/** The `gelf` format. */
export const gelf = defineFormat({
  type: 'gelf',
  shape: 'gelf',
  summary: 'Graylog Extended Log Format 1.1: one JSON object with a field for each value.',
  fields: {
    host: z.string().min(1).optional().describe('`host`; this machine’s name if left out'),
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

/** What is looked at of an event's values besides what they are written as. */
function looksOf(event: Event): readonly Look[] {
  const looked = (value: unknown, as: Look['as'], bytesMax = Number.POSITIVE_INFINITY): Look => {
    return { value, as, bytesMax, rival: undefined };
  };
  const { left } = fieldsOf(event, '');
  // What is left is JSON within JSON.
  const looks = textsIn(left).map((text) => looked(text, 'plain'));
  const { texts, message } = textsOfSentence(event);
  const all = message === undefined ? texts : [...texts, message];
  // No character takes less than a byte.
  const between = wholeSentence(event).length - all.join('').length;
  return [
    ...looks,
    ...texts.map((text) => looked(text, 'line')),
    looked(all, 'together', shortMax - between),
  ];
}

function textsIn(value: unknown): readonly string[] {
  if (typeof value === 'string') return [value];
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(textsIn) : [];
}

/** All fields, of which the last has what is left. */
function fieldsOf(event: Event, host: string): Pick<Filling, 'fields' | 'left'> {
  const { ocsf, uid, source, stream } = event;
  const short = wholeSentence(event);
  const time = timeOf(ocsf.time);
  const message = textOf(ocsf.message);
  const fields: Fields = {
    version: '1.1',
    host,
    short_message: short.length > shortMax ? `${short.slice(0, shortMax)}…`.toWellFormed() : short,
    ...(short.length > shortMax && { full_message: short }),
    ...(time !== undefined && { timestamp: time / 1000 }),
    level: levels[severityOf(ocsf.severity_id)] ?? 6,
    _uid: uid,
    _source_name: source,
    _stream_name: stream,
    // Graylog calls short_message `message`, which an additional field must not cover.
    ...(message !== undefined && { _record_message: message }),
  };
  const left: { [path: string]: unknown } = { __proto__: null };
  const room = { fields: fieldsMax };
  for (const [name, value] of Object.entries(ocsf)) {
    // What was not mapped goes by its own names, behind all that was.
    if (name !== 'unmapped' && name !== 'message') add({ fields, left, room }, name, value, 0);
  }
  if (ocsf.unmapped !== undefined) add({ fields, left, room }, 'unmapped', ocsf.unmapped, 0);
  if (Object.keys(left).length > 0) fields._sluice_rest = jsonText(left);
  return { fields, left };
}

interface Filling {
  readonly fields: Fields;
  readonly left: { [path: string]: unknown };
  readonly room: { fields: number };
}

function add(filling: Filling, path: string, value: unknown, depth: number): void {
  if (value === undefined) return;
  if (isObject(value) && depth < depthMax) {
    for (const [name, member] of Object.entries(value)) {
      add(filling, `${path}.${name}`, member, depth + 1);
    }
    return;
  }
  const { fields, left, room } = filling;
  const name = `_${path.replaceAll('.', '_')}`;
  const plain = plainValue(value);
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
function leave(left: { [path: string]: unknown }, path: string, value: unknown): void {
  let free = path;
  while (Object.hasOwn(left, free)) free = `${free}'`;
  left[free] = value;
}

function plainValue(value: unknown): string | number | undefined {
  switch (typeof value) {
    case 'string':
      return value;
    case 'number':
      return Number.isFinite(value) ? value : String(value);
    case 'boolean':
    case 'bigint':
      return String(value);
    default:
      return undefined;
  }
}

// Shortens JSON to a number of bytes, because a syslog receiver would cut or drop a longer line.
// Invariant: the result is always valid JSON, always marked as shortened, and keeps the uid, by
// which the full record is found. The least meaningful parts are removed first: the record as sent,
// then the unmapped part, then the lengths of texts and lists, then everything except OCSF's base
// attributes.

import type { Event } from '../src/contracts/index.ts';
import { ecsEvent } from './ecs.ts';
import { rawData } from './json.ts';
import { jsonText, visibleJson } from './json-text.ts';
import { part } from './parts.ts';
import { cutToBytes, cutToCodePoints, fits } from './text.ts';

const depthMax = 8;
const baseAttributes = [
  'activity_id',
  'activity_name',
  'category_uid',
  'class_uid',
  'class_name',
  'type_uid',
  'time',
  'severity_id',
  'status_id',
  'message',
];

/**
 * The OCSF event in at most `bytesMax` bytes, with `metadata.is_truncated` and
 * `metadata.untruncated_size` (kilobytes of `full`, the text that was too long).
 */
export function shortOcsf(event: Event, full: string, bytesMax: number): string {
  const { raw_data: _, unmapped, ...mapped } = event.ocsf;
  const mark = { is_truncated: true, untruncated_size: kilobytes(full) };
  const whole = { ...mapped, metadata: { ...part(mapped.metadata), ...mark } };
  const base = Object.fromEntries(baseAttributes.map((name) => [name, event.ocsf[name]]));
  const { version, product, uid } = whole.metadata as Partial<Event['ocsf']['metadata']>;
  const steps: readonly (() => unknown)[] = [
    () => ({ ...whole, unmapped }),
    () => ({ ...whole, unmapped: bounded(unmapped, 256, 16) }),
    () => whole,
    () => bounded(whole, 1024, 16),
    () => bounded(whole, 256, 8),
    () => bounded(whole, 64, 4),
    () => bounded({ ...base, metadata: { version, product, uid, ...mark } }, 64, 16),
    () => ({ metadata: { uid: event.uid, is_truncated: true } }),
  ];
  return firstThatFits(steps, bytesMax);
}

/** The ECS event in at most `bytesMax` bytes, tagged `sluice_truncated`. */
export function shortEcs(event: Event, bytesMax: number): string {
  const { sluice, ...fields } = ecsEvent(event, false);
  const { source, stream, ocsf, unmapped } = part(sluice);
  const tags = ['sluice_truncated'];
  const whole = { ...fields, tags, sluice: { source, stream } };
  const { '@timestamp': time, ecs } = fields;
  const steps: readonly (() => unknown)[] = [
    () => ({ ...whole, sluice: { source, stream, ocsf, unmapped: bounded(unmapped, 256, 16) } }),
    () => ({ ...whole, sluice: { source, stream, ocsf } }),
    () => whole,
    () => bounded(whole, 256, 8),
    () => bounded(whole, 64, 4),
    () => ({ '@timestamp': time, ecs, event: { id: event.uid }, tags }),
    () => ({ event: { id: event.uid }, tags }),
  ];
  return firstThatFits(steps, bytesMax);
}

function firstThatFits(steps: readonly (() => unknown)[], bytesMax: number): string {
  for (const step of steps) {
    const text = visibleJson(jsonText(step()));
    if (fits(text, bytesMax)) return text;
  }
  return '{}';
}

/**
 * A too long record as sent: a JSON object with the uid and as much of the record as fits, as a
 * text, because half a record is not JSON.
 */
export function shortOriginal(event: Event, bytesMax: number): string {
  const raw = rawData(event);
  const mark = {
    uid: event.uid,
    is_truncated: true,
    untruncated_size: Math.ceil(event.raw.byteLength / 1024),
  };
  for (let room = bytesMax; room > 0; room = Math.floor(room * 0.9)) {
    const text = visibleJson(jsonText({ ...mark, raw_data: cutToBytes(raw, room) }));
    if (fits(text, bytesMax)) return text;
  }
  return '{}';
}

function kilobytes(text: string): number {
  return Math.ceil(Buffer.byteLength(text) / 1024);
}

/** A copy with bounded texts, lists and objects. */
function bounded(value: unknown, textMax: number, membersMax: number, depth = 0): unknown {
  if (typeof value === 'string') {
    const cut = cutToCodePoints(value, textMax);
    return cut.length === value.length ? value : `${cut}…`;
  }
  if (typeof value !== 'object' || value === null) return value;
  if (depth >= depthMax) return undefined;
  if (Array.isArray(value)) {
    return value.slice(0, membersMax).map((item) => bounded(item, textMax, membersMax, depth + 1));
  }
  // The event itself keeps its attributes: they are its meaning, and the schema bounds them.
  const membersKept = depth === 0 ? Number.POSITIVE_INFINITY : membersMax * 4;
  const copy = Object.create(null);
  for (const [key, member] of Object.entries(value).slice(0, membersKept)) {
    copy[key] = bounded(member, textMax, membersMax, depth + 1);
  }
  return copy;
}

// An event as rows of a Log Analytics table, in JSON. A data collection rule silently drops columns
// that it does not declare and cuts values over 64 KB. So the columns are a small fixed set, one of
// them contains the whole event, and a value that would be cut is split over several rows if
// configured, or reported by the sink before sending.

import { actingUser, cutToBytes, textOf, wholeSentence } from '../../../formats/texts.ts';
import {
  type DocumentForm,
  type EncodedLines,
  type Event,
  type Format,
  isObject,
  type Json,
} from '../../../src/contracts/index.ts';
import { lineAt } from '../../shared/lines.ts';

/** UTF-8 bytes that a column holds uncut: 64 KB, in the stricter reading. */
export const columnBytesMax = 64_000;

/** The columns of a row, as a rule must declare them. */
export const columns = {
  TimeGenerated: 'datetime',
  EventStartTime: 'datetime',
  EventUid: 'string',
  EventOriginalUid: 'string',
  EventVendor: 'string',
  EventProduct: 'string',
  EventClass: 'string',
  EventType: 'string',
  EventResult: 'string',
  EventSeverity: 'string',
  EventMessage: 'string',
  ActorUsername: 'string',
  SrcIpAddr: 'string',
  Source: 'string',
  Stream: 'string',
  Part: 'int',
  Parts: 'int',
  Event: 'dynamic',
} as const satisfies Readonly<Record<string, 'datetime' | 'string' | 'int' | 'dynamic'>>;

/** Maximum length of a column if an event is split; the full value is in `Event`. */
const shortMax = 1_000;

/** Rows of this format's documents; a request is a JSON array of them. */
export function rowForm(format: Format, oversize: 'dead_letter' | 'split'): DocumentForm {
  return {
    contentType: 'application/json',
    encode(event) {
      const encoded = format.encode(event);
      const text = typeof encoded === 'string' ? encoded : Buffer.from(encoded).toString();
      const fields = fieldsOf(event);
      const bytes = Buffer.byteLength(text);
      const isLong = (value: Json) => Buffer.byteLength(String(value)) > columnBytesMax;
      if (
        oversize === 'dead_letter' ||
        !(bytes > columnBytesMax || Object.values(fields).some(isLong))
      ) {
        return row({ ...fields, Part: 1, Parts: 1 }, text);
      }
      const parts = piecesOf(text, bytes);
      const short = Object.fromEntries(Object.entries(fields).map(shortened));
      return parts
        .map((part, i) => row({ ...short, Part: i + 1, Parts: parts.length }, JSON.stringify(part)))
        .join(',');
    },
    join: rowsOf,
  };
}

function row(fields: Readonly<Record<string, Json>>, event: string): string {
  return `${JSON.stringify(fields).slice(0, -1)},"Event":${event}}`;
}

/** The name of a column that would be cut, or null. Only rows longer than a column are parsed. */
export function longColumn(line: Uint8Array): string | null {
  if (line.length <= columnBytesMax) return null;
  // Several rows are one split event.
  const rows: unknown = JSON.parse(`[${Buffer.from(line).toString()}]`);
  for (const one of Array.isArray(rows) ? rows : []) {
    for (const [name, value] of Object.entries(one ?? {})) {
      const text = typeof value === 'string' ? value : JSON.stringify(value);
      if (Buffer.byteLength(text) > columnBytesMax) return name;
    }
  }
  return null;
}

function fieldsOf({ ocsf, uid, context }: Event): Record<string, Json> {
  const { metadata, class_name, activity_name, status, severity, src_endpoint } = ocsf;
  const actor = actingUser(ocsf);
  const product = member(metadata, 'product');
  const time = timeText(ocsf.time);
  const fields: Record<string, Json | undefined> = {
    // Azure replaces this by its own time if it is older than two days; the next column keeps it.
    TimeGenerated: time,
    EventStartTime: time,
    EventUid: uid,
    EventOriginalUid: member(metadata, 'original_event_uid'),
    EventVendor: member(product, 'vendor_name'),
    EventProduct: member(product, 'name'),
    EventClass: class_name,
    EventType: activity_name,
    EventResult: status,
    EventSeverity: severity,
    // The complete message is in the event.
    EventMessage: cutToBytes(wholeSentence({ ocsf }), columnBytesMax),
    ActorUsername: textOf(actor.name) ?? textOf(actor.email_addr) ?? textOf(actor.uid),
    SrcIpAddr: member(src_endpoint, 'ip'),
    Source: context.source,
    Stream: context.stream,
  };
  const texts = Object.entries(fields).filter(([, value]) => typeof value === 'string');
  return Object.fromEntries(texts) as Record<string, Json>;
}

function member(value: unknown, name: string): Json | undefined {
  return isObject(value) ? value[name] : undefined;
}

/** RFC 3339; undefined if no date represents it, so that the service sets the current time. */
function timeText(timeMs: number): string | undefined {
  return Math.abs(timeMs) < 253_402_300_800_000 ? new Date(timeMs).toISOString() : undefined;
}

function shortened([name, value]: readonly [string, Json]): [string, Json] {
  const text = String(value);
  const isLong = text.length > shortMax;
  return [name, isLong ? `${text.slice(0, shortMax)}…`.toWellFormed() : value];
}

/** The text in pieces that fit a column, none cut inside a character; joined they equal it. */
function piecesOf(text: string, bytes: number): readonly string[] {
  const pieces: string[] = [];
  // A UTF-16 unit is at most three bytes of UTF-8; in ASCII one, or two if escaped.
  const unitsMax = Math.floor(columnBytesMax / (bytes === text.length ? 2 : 3));
  for (let at = 0; at < text.length; ) {
    let end = Math.min(text.length, at + unitsMax);
    if (end < text.length && /[\ud800-\udbff]/.test(text[end - 1] ?? '')) end -= 1;
    pieces.push(text.slice(at, end));
    at = end;
  }
  return pieces;
}

/** A range of rows as a request body. */
export function rowsOf(
  lines: EncodedLines,
  { from, to }: { readonly from: number; readonly to: number },
): Uint8Array {
  const parts: Uint8Array[] = [];
  for (let i = from; i < to; i++) parts.push(i === from ? open : comma, lineAt(lines, i));
  return Buffer.concat([...(parts.length === 0 ? [open] : parts), close]);
}

const open = Buffer.from('[');
const comma = Buffer.from(',');
const close = Buffer.from(']');

// How events become objects: cut at an offset, named by epoch and first event, with metadata that
// lists its events. Invariant: a name is never used for other events. So the cut is stored with the
// position before its first byte is sent, and a process that finds it unfinished repeats it
// identically.

import { hash } from 'node:crypto';
import { z } from 'zod';
import type { Json, Offset, SinkPosition } from '../../../src/contracts/index.ts';
import type { ObjectFacts } from '../../../src/objects/index.ts';

/** An object of a cut. The last has the cut's name; tables come before it. */
export interface CutPart {
  readonly name: string;
  readonly body: readonly Uint8Array[];
  readonly contentType: string;
  readonly events: number;
  /** The kept parts of the events' uids, in order. */
  readonly uids: Uint8Array;
}

const cutShape = z.object({
  /** `YYYY/MM/DD` of its start. */
  day: z.string(),
  /** `EPOCH-FIRST`. */
  stem: z.string(),
  /** It contains the events before this offset. */
  end: z.int(),
});

/** The end of the objects of one cut, and their names. */
export type Cut = Readonly<z.output<typeof cutShape>>;

const markShape = z.object({
  /** Names up to this one are known; empty: none is. */
  after: z.string(),
  cut: cutShape.nullable(),
});

/** The mark stored with the position. */
export type CutMark = Readonly<z.output<typeof markShape>>;

/** Parses a mark; without a mark nothing was ever written. */
export function readMark(mark: Json | null): CutMark {
  return markShape.safeParse(mark).data ?? { after: '', cut: null };
}

/** The name of objects that begin with an event, in one epoch. */
export function stemOf(epoch: number, first: Offset): string {
  return `${String(epoch).padStart(13, '0')}-${String(first).padStart(16, '0')}`;
}

/** The first event in a stem. */
export function firstOffsetOf(stem: string): Offset {
  return Number(stem.slice(stem.indexOf('-') + 1));
}

/** The last cut's day may be so much later than today; beyond that, the clock was ahead. */
const laterMsMax = 31 * 86_400_000;

/**
 * The day of a cut: not before the last cut's, so that names keep the order of cuts. If the clock was far ahead at the last
 * cut, it is today all the same; otherwise all cuts would have that day for years. A clock that is before `epochMs`, when the
 * present epoch began, is behind by itself. `epochMs` infinite: always in order.
 */
export function dayOf(nowMs: number, after: string, epochMs: number): string {
  const today = dayText(nowMs);
  const last = after.slice(0, 10);
  if (!/^\d{4}\/\d\d\/\d\d$/.test(last) || last <= today) return today;
  return nowMs >= epochMs && last > dayText(nowMs + laterMsMax) ? today : last;
}

function dayText(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10).replaceAll('-', '/');
}

const namePattern = /^\d{4}\/\d\d\/\d\d\/(\d{13}-\d{16})\./;

/** The stem in an object's name; null if it is not sluice's. */
export function stemIn(name: string): string | null {
  return namePattern.exec(name)?.[1] ?? null;
}

/** The metadata of a part. */
export function metadataOf(part: CutPart, place: SinkPosition): Record<string, string> {
  return {
    'sluice-spool': place.spool,
    'sluice-epoch': String(place.epoch),
    'sluice-next': String(place.next),
    'sluice-events': String(part.events),
    'sluice-uids': digestOfUids(part.uids),
  };
}

/** Equal for the same events. */
export function digestOfUids(uids: Uint8Array): string {
  return hash('sha256', uids);
}

const metadataShape = z.object({
  'sluice-spool': z.string(),
  'sluice-epoch': z.coerce.number(),
  'sluice-next': z.coerce.number().int(),
  'sluice-events': z.coerce.number().int().nonnegative(),
  'sluice-uids': z.string(),
});

/** An object written by sluice, from its metadata. */
export interface WrittenObject {
  readonly name: string;
  readonly bytes: number;
  readonly place: SinkPosition;
  readonly events: number;
  readonly uidsDigest: string;
}

/** Parses an object's metadata; null if it is not sluice's. */
export function writtenOf(name: string, facts: ObjectFacts | null): WrittenObject | null {
  const { data } = metadataShape.safeParse(facts?.metadata);
  if (facts === null || data === undefined) return null;
  return {
    name,
    bytes: facts.bytes,
    place: {
      spool: data['sluice-spool'],
      epoch: data['sluice-epoch'],
      next: data['sluice-next'],
    },
    events: data['sluice-events'],
    uidsDigest: data['sluice-uids'],
  };
}

// How events become objects: cut at an offset, named by epoch and first event, and with facts beside
// the bytes that say which events they are. What must stay true: a name is never used for other
// events. So the cut is kept with the position before its first byte goes, and made the same way
// again by whoever finds it there unfinished.

import { hash } from 'node:crypto';
import { z } from 'zod';
import type { Offset } from '../../../src/contracts/event.ts';
import type { Json } from '../../../src/contracts/json.ts';
import type { SinkPosition } from '../../../src/contracts/numbering.ts';
import type { ObjectFacts } from '../../../src/objects/store.ts';

/** An object of a cut. The last has the cut's name; tables stand before it. */
export interface CutPart {
  readonly name: string;
  readonly body: readonly Uint8Array[];
  readonly contentType: string;
  readonly events: number;
  /** What is kept of each event's uid, in order. */
  readonly uids: Uint8Array;
}

const cutShape = z.object({
  /** `YYYY/MM/DD`, when it was begun. */
  day: z.string(),
  /** `EPOCH-FIRST`. */
  stem: z.string(),
  /** It holds what is before this. */
  end: z.int(),
});

/** Where objects were cut, and what they are called. */
export type Cut = Readonly<z.output<typeof cutShape>>;

const markShape = z.object({
  /** Names up to this one need not be looked at; empty: all are to be. */
  after: z.string(),
  cut: cutShape.nullable(),
});

/** What is kept with the position. */
export type CutMark = Readonly<z.output<typeof markShape>>;

/** Reads a mark; none is as if nothing was ever written. */
export function readMark(mark: Json | null): CutMark {
  return markShape.safeParse(mark).data ?? { after: '', cut: null };
}

/** The name of what begins with an event, in one epoch. */
export function stemOf(epoch: number, first: Offset): string {
  return `${String(epoch).padStart(13, '0')}-${String(first).padStart(16, '0')}`;
}

/** The day of a cut: never one before the last's, so that names keep the order of cuts. */
export function dayOf(nowMs: number, after: string): string {
  const today = new Date(nowMs).toISOString().slice(0, 10).replaceAll('-', '/');
  const last = after.slice(0, 10);
  return /^\d{4}\/\d\d\/\d\d$/.test(last) && last > today ? last : today;
}

const namePattern = /^\d{4}\/\d\d\/\d\d\/(\d{13}-\d{16})\./;

/** The stem in an object's name; null where it is none of ours. */
export function stemIn(name: string): string | null {
  return namePattern.exec(name)?.[1] ?? null;
}

/** What is told of a part beside its bytes. */
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

/** An object of ours, as its facts tell. */
export interface WrittenObject {
  readonly name: string;
  readonly bytes: number;
  readonly place: SinkPosition;
  readonly events: number;
  readonly uidsDigest: string;
}

/** What facts tell of an object; null where it is not ours. */
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

// The cuts of an archive's lake: its events as Parquet, for queries. The lake is derived data and
// can be rebuilt from the pages. Below `lake/` in the archive's location:
//
//   <class_uid>/region=R/accountId=A/eventDay=YYYYMMDD/<first>-<last>-<12 hex>.parquet
//                                     times of the first and last event in milliseconds, SHA-256
//   cuts/YYYY/MM/DD/<epoch>-<first>.cut
//                                     written after the objects that it lists
//
// The first line of a cut is its end in the spool, the second lists its objects and their events,
// each a line of JSON; then follows the list of its events' uids
// (connectors/sinks/s3/uid-list.ts).

import { z } from 'zod';
import { jsonIn } from './small-objects.ts';

/** Prefix of the names in a lake. */
export const lakePrefix = 'lake/';
/** Prefix of the names of its cuts. */
export const cutsPrefix = `${lakePrefix}cuts/`;

/** Limit in bytes; sluice writes no longer objects (connectors/sinks/s3/parquet-body.ts). */
export const lakeBytesMax = 96 * 1024 * 1024;

const count = z.int().min(0);

const objectShape = z.object({
  /** Its name, relative to the archive's location. */
  object: z.string(),
  bytes: count,
  sha256: z.string(),
  /** One for each of its events. */
  rows: count,
  /** Times of its first and last event, epoch milliseconds. */
  first: z.int(),
  last: z.int(),
});

/** An object of a lake. */
export type LakeObject = Readonly<z.output<typeof objectShape>>;

const madeShape = z.object({
  objects: z.array(objectShape),
  /** Number of its first event in the spool, and of the one after its last; null: it has none. */
  events: z.tuple([count, count]).nullable(),
  /** Reading times of the first and the last of their pages, epoch milliseconds. */
  read: z.tuple([z.int(), z.int()]).nullable(),
});

/** The objects of a cut, and their events. */
export type LakeMade = Readonly<z.output<typeof madeShape>>;

/** The line of a cut that lists its objects. */
export function encodeLakeMade(made: LakeMade): Buffer {
  return Buffer.from(`${JSON.stringify(made)}\n`);
}

const placeShape = z.object({
  'sluice-spool': z.string(),
  'sluice-epoch': z.coerce.number(),
  'sluice-next': z.coerce.number(),
});

/** The end of a cut in its spool, and its objects. Throws a SyntaxError. */
export function parseLakeCut(bytes: Uint8Array) {
  const [facts = '', line = ''] = Buffer.from(bytes).toString('latin1').split('\n', 2);
  const place = placeShape.safeParse(jsonIn(Buffer.from(facts, 'latin1')));
  const made = madeShape.safeParse(jsonIn(Buffer.from(line, 'latin1')));
  if (!place.success || !made.success) throw new SyntaxError('it is no cut of a lake');
  const { 'sluice-spool': spool, 'sluice-epoch': epoch, 'sluice-next': next } = place.data;
  return { place: { spool, epoch, next }, ...(made.data as LakeMade) };
}

/** The part of a cut's name with its epoch and first event; names sort in the order of cuts. */
export function stemOfCut(name: string): string {
  return name.slice(name.lastIndexOf('/') + 1).replace(/\.cut$/, '');
}

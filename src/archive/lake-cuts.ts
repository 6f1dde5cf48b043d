// The cuts of an archive's lake: its events as Parquet, for whoever asks questions of them. The lake is
// derived, and may be made again from the pages. Below `lake/` of the archive's place:
//
//   <class_uid>/region=R/accountId=A/eventDay=YYYYMMDD/<first>-<last>-<12 hex>.parquet
//                                     times of the first and last event in milliseconds, SHA-256
//   cuts/YYYY/MM/DD/<epoch>-<first>.cut
//                                     written behind the objects that it lists
//
// The first line of a cut says how far it reaches in the spool, the second which objects it made of
// which events, each a line of JSON; behind them is the list of its events' uids
// (connectors/sinks/s3/uid-list.ts).

import { z } from 'zod';
import { jsonIn } from './small-objects.ts';

/** What names in a lake begin with. */
export const lakePrefix = 'lake/';
/** What names of its cuts begin with. */
export const cutsPrefix = `${lakePrefix}cuts/`;

/** Longer objects are none that sluice writes (connectors/sinks/s3/parquet-body.ts). */
export const lakeBytesMax = 96 * 1024 * 1024;

const count = z.int().min(0);

const objectShape = z.object({
  /** Its name, from the archive's place on. */
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
  /** Number of its first event in the spool, and of the one behind its last; null: it has none. */
  events: z.tuple([count, count]).nullable(),
  /** When the first and the last of their pages were read, epoch milliseconds. */
  read: z.tuple([z.int(), z.int()]).nullable(),
});

/** What a cut made of which events. */
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

/** How far a cut reaches in which spool, and what it made. Throws a SyntaxError. */
export function parseLakeCut(bytes: Uint8Array) {
  const [facts = '', line = ''] = Buffer.from(bytes).toString('latin1').split('\n', 2);
  const place = placeShape.safeParse(jsonIn(Buffer.from(facts, 'latin1')));
  const made = madeShape.safeParse(jsonIn(Buffer.from(line, 'latin1')));
  if (!place.success || !made.success) throw new SyntaxError('it is no cut of a lake');
  const { 'sluice-spool': spool, 'sluice-epoch': epoch, 'sluice-next': next } = place.data;
  return { place: { spool, epoch, next }, ...(made.data as LakeMade) };
}

/** What stands in a cut's name: its epoch and first event; the order of them is that of names. */
export function stemOfCut(name: string): string {
  return name.slice(name.lastIndexOf('/') + 1).replace(/\.cut$/, '');
}

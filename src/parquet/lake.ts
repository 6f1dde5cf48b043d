// The lake of an archive: its events as Parquet, for whoever asks questions of them. It is derived,
// and may be made again from the pages. Below `lake/` of the archive's place:
//
//   <class_uid>/region=R/accountId=A/eventDay=YYYYMMDD/<first>-<last>-<12 hex>.parquet
//                                     times of the first and last event in milliseconds, SHA-256
//   cuts/YYYY/MM/DD/<epoch>-<first>.cut
//                                     written behind the objects that it lists
//
// The first line of a cut says how far it reaches in the spool, the second which objects it made,
// each a line of JSON; behind them is the list of its events' uids (connectors/sinks/s3/uid-list.ts).

import { z } from 'zod';
import { type ParquetObject, partitionPath } from './partitions.ts';

/** What names in a lake begin with. */
export const lakePrefix = 'lake/';
/** What names of its cuts begin with. */
export const cutsPrefix = `${lakePrefix}cuts/`;

const objectShape = z.object({
  /** Its name, from the archive's place on. */
  object: z.string(),
  sha256: z.string(),
  /** Times of its first and last event, epoch milliseconds. */
  first: z.int(),
  last: z.int(),
});

/** An object of a lake. */
export type LakeObject = Readonly<z.output<typeof objectShape>>;

const digitsOfTime = 13;
const digitsOfHash = 12;
const namePattern =
  /^lake\/(\d+)\/(?:[^/]+\/)*eventDay=\d{8}\/(\d{13,16})-(\d{13,16})-[0-9a-f]{12}\.parquet$/;

/** An object's name. Times before 1970 stand as 1970. */
export function lakeName(object: ParquetObject, region: string): string {
  const [first, last] = [object.first, object.last].map((time) =>
    String(Math.max(0, time)).padStart(digitsOfTime, '0'),
  );
  const name = `${first}-${last}-${object.sha256.slice(0, digitsOfHash)}.parquet`;
  return `${lakePrefix}${object.classUid}/${partitionPath(object, { region })}/${name}`;
}

/** What an object's name says of its events; null where it is no object of a lake. */
export function lakeNameParts(name: string) {
  const [, classUid, first, last] = namePattern.exec(name) ?? [];
  if (classUid === undefined) return null;
  return { classUid: Number(classUid), first: Number(first), last: Number(last) };
}

/** The line of a cut that lists its objects. */
export function encodeLakeObjects(objects: readonly LakeObject[]): Buffer {
  return Buffer.from(`${JSON.stringify(objects)}\n`);
}

/** The objects that a cut lists. Throws a SyntaxError where it is none. */
export function parseLakeCut(bytes: Uint8Array): readonly LakeObject[] {
  const [, line = ''] = Buffer.from(bytes).toString('latin1').split('\n', 2);
  const objects = z.array(objectShape).safeParse(JSON.parse(line));
  if (!objects.success) throw new SyntaxError('the cut does not list its objects');
  return objects.data;
}

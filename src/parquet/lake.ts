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
import type { OcsfEvent } from '../contracts/event.ts';
import type { ObjectStore } from '../objects/store.ts';
import { type ParquetObject, partitionPath } from './partitions.ts';
import { type ObjectBytes, readParquet, type Wanted } from './read.ts';

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

const cutShape = z.object({
  'sluice-epoch': z.coerce.number(),
  'sluice-next': z.coerce.number(),
});

/** How far a cut reaches in the spool, and the objects that it lists. Throws a SyntaxError. */
export function parseLakeCut(bytes: Uint8Array) {
  const [facts = '', line = ''] = Buffer.from(bytes).toString('latin1').split('\n', 2);
  const place = cutShape.safeParse(JSON.parse(facts));
  const objects = z.array(objectShape).safeParse(JSON.parse(line));
  if (!place.success || !objects.success) throw new SyntaxError('it is no cut of a lake');
  const { 'sluice-epoch': epoch, 'sluice-next': next } = place.data;
  return { place: [epoch, next] as const, objects: objects.data as readonly LakeObject[] };
}

/** How far a lake reaches in the spool; null: there is none. Throws a SyntaxError. */
export async function lakePlace(store: ObjectStore): Promise<readonly [number, number] | null> {
  let last: string | null = null;
  for await (const { name } of store.list(cutsPrefix)) last = name;
  const found = last === null ? null : await store.read(last);
  return found === null ? null : parseLakeCut(found.body).place;
}

/** The events of a lake that have what is wanted, object by object, each in the order of time. */
export async function* lakeEvents(store: ObjectStore, wanted: Wanted): AsyncGenerator<OcsfEvent> {
  const { from = Number.NEGATIVE_INFINITY, to = Number.POSITIVE_INFINITY } = wanted;
  for await (const { name, bytes } of store.list(lakePrefix)) {
    const parts = lakeNameParts(name);
    if (parts === null || parts.first >= to || parts.last < from) continue;
    yield* await readParquet(objectOf(store, name, bytes), wanted);
  }
}

/** Bytes are read as they are asked for: of an object that cannot match no more than its end. */
function objectOf(store: ObjectStore, name: string, bytes: number): ObjectBytes {
  return {
    byteLength: bytes,
    async slice(from, to = bytes) {
      const found = await store.read(name, { from, length: to - from });
      if (found === null) throw new SyntaxError(`${name} is gone`);
      return Uint8Array.from(found.body).buffer;
    },
  };
}

// The objects of an archive's lake (src/archive/lake-cuts.ts) by their names, and their events.

import { ExportError, errorText, type OcsfEvent } from '../contracts/index.ts';
import type { ObjectStore } from '../objects/index.ts';
import { type ParquetObject, partitionPath } from './partitions.ts';
import { bufferOf, type ObjectBytes, type RowFilter, readParquet } from './read.ts';

/** Prefix of names in a lake. */
const lakePrefix = 'lake/';

const digitsOfTime = 13;
const digitsOfHash = 12;
const namePattern =
  /^lake\/(\d+)\/(?:[^/]+\/)*eventDay=\d{8}\/(\d{13,16})-(\d{13,16})-[0-9a-f]{12}\.parquet$/;

/** An object's name. Times before 1970 are written as 1970. */
export function lakeName(object: ParquetObject, region: string): string {
  const [first, last] = [object.first, object.last].map((time) =>
    String(Math.max(0, time)).padStart(digitsOfTime, '0'),
  );
  const name = `${first}-${last}-${object.sha256.slice(0, digitsOfHash)}.parquet`;
  return `${lakePrefix}${object.classUid}/${partitionPath(object, { region })}/${name}`;
}

/** The facts in an object's name; null if it is not an object of a lake. */
export function lakeNameParts(name: string) {
  const [, classUid, first, last] = namePattern.exec(name) ?? [];
  if (classUid === undefined) return null;
  return { classUid: Number(classUid), first: Number(first), last: Number(last) };
}

/** How the objects of a lake are read. */
export interface LakeReading {
  readonly store: ObjectStore;
  /** Names of the objects that may be read. */
  readonly objects: Pick<ReadonlySet<string>, 'keys'>;
  /** Reads a whole object. Throws a SyntaxError if its bytes are not the expected ones. */
  whole(name: string): Promise<Uint8Array>;
  /**
   * True: every object with a matching class and time is read whole. False: the unchecked end of an object decides whether
   * it can match, so events of a changed object can be missing from the result.
   */
  readonly skipsNothing: boolean;
}

/**
 * The events of a lake that match, object by object, each in the order of time; only from objects that
 * were read whole. Throws a SyntaxError for a missing or damaged one.
 */
export async function* lakeEvents(
  { store, objects, whole, skipsNothing }: LakeReading,
  requested: RowFilter,
): AsyncGenerator<OcsfEvent> {
  const { from = Number.NEGATIVE_INFINITY, to = Number.POSITIVE_INFINITY, values } = requested;
  const classes = values?.class_uid;
  const left = new Set(
    [...objects.keys()].filter((name) => {
      const parts = lakeNameParts(name);
      if (parts === null || parts.first >= to || parts.last < from) return false;
      return classes?.includes(parts.classUid) !== false;
    }),
  );
  for await (const { name, bytes } of store.list(lakePrefix)) {
    if (!left.delete(name)) continue;
    const mayMatch =
      skipsNothing || (await eventsIn(objectOf(store, name, bytes), name, requested)).length > 0;
    if (mayMatch) yield* await eventsIn(bufferOf(await whole(name)), name, requested);
  }
  const [missing] = left;
  if (missing !== undefined) throw new SyntaxError(`${missing} is missing`);
}

/** The library's errors on a damaged object have no type of their own. */
async function eventsIn(
  object: ObjectBytes,
  name: string,
  requested: RowFilter,
): Promise<OcsfEvent[]> {
  try {
    return await readParquet(object, requested);
  } catch (error) {
    if (error instanceof ExportError) throw error;
    throw new SyntaxError(`${name} is damaged: ${errorText(error)}`, { cause: error });
  }
}

/** Bytes are read on demand: of an object that cannot match, only its end. */
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

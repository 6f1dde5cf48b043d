// The body of a cut written as Parquet: an object for each class, company and day of its events,
// and after them one that lists their uids, which exists only if all others do. That one has the
// cut's name; the others are named for readers of tables.

import { setImmediate } from 'node:timers/promises';
import type { LakeMade, LakeObject } from '../../../src/archive/index.ts';
import { uidBytes } from '../../../src/contracts/index.ts';
import {
  cutFact,
  type ParquetObject,
  PartitionedEvents,
  partitionPath,
  UidBytes,
} from '../../../src/parquet/index.ts';
import { keptUid } from '../../shared/known-events.ts';
import type { Cut, CutPart } from './cut.ts';
import type { CutBody } from './lines-body.ts';
import { keptBytes, uidList } from './uid-list.ts';

/** The layout of objects. */
export interface ParquetLayout {
  readonly layout: 'plain' | 'security_lake';
  /** Path elements of Amazon Security Lake, which requires the first two. */
  readonly region?: string | undefined;
  readonly account_id?: string | undefined;
  readonly source_name: string;
}

/** The names of a cut's objects, and the content of the one that lists the others. */
export interface TableNames {
  nameOf(object: ParquetObject, cut: Cut): string;
  list(
    made: LakeMade,
    uids: Uint8Array,
  ): { readonly ending: string; readonly body: readonly Uint8Array[] };
}

/** Maximum size of a row group, which readers keep in memory. */
export const parquetBytesMax = 64 * 1024 * 1024;

/** The event loop runs after this many events. */
const turnEvery = 256;

/** A body of Parquet objects. */
export function parquetBody(names: TableNames): CutBody {
  const partitions = new PartitionedEvents();
  const uids = new UidBytes();
  let events: [number, number] | null = null;
  let read: [number, number] | null = null;
  return {
    get bytes() {
      return partitions.isScattered ? Number.POSITIVE_INFINITY : partitions.bytes;
    },
    async add(batch) {
      for (const [at, event] of batch.events.entries()) {
        if (at % turnEvery === turnEvery - 1) await setImmediate();
        partitions.add(event);
        uids.add(keptUid(event));
        const { offset, context } = event;
        events = [events?.[0] ?? offset, offset + 1];
        read = [
          Math.min(read?.[0] ?? context.fetchedAt, context.fetchedAt),
          Math.max(read?.[1] ?? context.fetchedAt, context.fetchedAt),
        ];
      }
    },
    async finish(cut) {
      const parts: CutPart[] = [];
      const objects: LakeObject[] = [];
      for await (const object of partitions.objects({ [cutFact]: cut.stem })) {
        const { body, sha256, events: rows, first, last } = object;
        const name = names.nameOf(object, cut);
        parts.push(partOf(name, [body], keptOf(object)));
        objects.push({ object: name, bytes: body.length, sha256, rows, first, last });
      }
      const all = uids.all();
      const { ending, body } = names.list({ objects, events, read }, all);
      return [...parts, partOf(`${cut.day}/${cut.stem}.${ending}`, body, all)];
    },
  };
}

function partOf(name: string, body: readonly Uint8Array[], uids: Uint8Array): CutPart {
  const contentType = 'application/vnd.apache.parquet';
  return { name, body, contentType, events: uids.length / keptBytes, uids };
}

/** The names that `type: s3` gives to the objects of one cut, all distinct. */
export function tableNames({ layout, ...given }: ParquetLayout): TableNames {
  const { region, account_id: account, source_name: source } = given;
  const pathOf = (object: ParquetObject) =>
    layout === 'plain'
      ? `${object.classUid}/${partitionPath(object)}`
      : `ext/${source}_${object.className}/${partitionPath(object, { region, account })}`;
  // Security Lake's path has no company, and `accountId=none` may be a company's name: several
  // partitions of a cut may share a path. The first keeps the plain name, for compatibility.
  const taken = new Map<string, number>();
  return {
    nameOf(object, { stem }) {
      const path = `${pathOf(object)}/${stem}`;
      const number = (taken.get(path) ?? 0) + 1;
      taken.set(path, number);
      return number === 1 ? `${path}.parquet` : `${path}-${number}.parquet`;
    },
    list: (_, uids) => ({ ending: 'uids.zst', body: [uidList(uids, 'zstd')] }),
  };
}

/** The kept parts of the uids, concatenated. */
function keptOf({ uids, events }: ParquetObject): Uint8Array {
  const kept = new Uint8Array(events * keptBytes);
  for (let i = 0; i < events; i++) {
    kept.set(uids.subarray(i * uidBytes, i * uidBytes + keptBytes), i * keptBytes);
  }
  return kept;
}

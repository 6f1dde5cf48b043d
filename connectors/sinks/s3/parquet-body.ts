// The body of a cut that is written as Parquet: an object for each class, company and day of its
// events, and behind them, so that it is there only when they all are, one that lists their uids.
// That one has the cut's name; the others are named for whoever reads tables.

import { setImmediate } from 'node:timers/promises';
import { type ParquetObject, Partitions, partitionPath } from '../../../src/parquet/partitions.ts';
import { keptUid } from '../../shared/known-events.ts';
import type { Part } from './cut.ts';
import type { Body } from './lines-body.ts';
import { uidList } from './uid-list.ts';

/** How objects are laid out. */
export interface ParquetLayout {
  readonly layout: 'plain' | 'security_lake';
  /** What Amazon Security Lake has in the path; the first two are needed for it. */
  readonly region?: string | undefined;
  readonly account_id?: string | undefined;
  readonly source_name: string;
}

/** A row group holds at most so much, as readers have it in memory. */
export const parquetBytesMax = 64 * 1024 * 1024;

/** Others have their turn after so many events. */
const turnEvery = 256;

/** A body of Parquet objects. */
export function parquetBody(layout: ParquetLayout): Body {
  const partitions = new Partitions();
  const uids: string[] = [];
  return {
    get bytes() {
      return partitions.isScattered ? Number.POSITIVE_INFINITY : partitions.bytes;
    },
    async add({ events }) {
      for (const [at, event] of events.entries()) {
        if (at % turnEvery === turnEvery - 1) await setImmediate();
        partitions.add(event);
        uids.push(event.uid);
      }
    },
    async finish({ day, stem }) {
      const parts: Part[] = [];
      for await (const object of partitions.objects()) {
        parts.push({
          name: `${pathOf(object, layout)}/${stem}.parquet`,
          body: [object.body],
          contentType: 'application/vnd.apache.parquet',
          events: object.uids.length,
          uids: keptOf(object.uids),
        });
      }
      const all = keptOf(uids);
      const list = {
        name: `${day}/${stem}.uids.zst`,
        body: [uidList(all, 'zstd')],
        contentType: 'application/zstd',
        events: uids.length,
        uids: all,
      };
      return [...parts, list];
    },
  };
}

function pathOf(object: ParquetObject, { layout, region, account_id, source_name }: ParquetLayout) {
  if (layout === 'plain') return `${object.classUid}/${partitionPath(object)}`;
  const place = partitionPath(object, { region, account: account_id });
  return `ext/${source_name}_${object.className}/${place}`;
}

/** The uids side by side. */
function keptOf(uids: readonly string[]): Uint8Array {
  return Buffer.from(uids.map((uid) => keptUid({ uid })).join(''), 'hex');
}

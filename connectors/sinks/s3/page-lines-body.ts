// The body of a cut whose prefix has `{company}` or `{source}`: an object of lines for each destination, and after them one
// that lists the uids of all, which has the cut's name and exists only if all others do, as with Parquet. The lines stay
// uncompressed until the cut is finished, so that 300 companies need one compressor and not 300; the size of a cut bounds
// them. Invariant: these names are never names of cuts, also not for another sink that writes to the directory of one
// company.

import { promisify } from 'node:util';
import { constants, gzip, zstdCompress } from 'node:zlib';
import type { Event } from '../../../src/contracts/index.ts';
import { eventsAt, keptUid } from '../../shared/known-events.ts';
import { linesOf } from '../../shared/lines.ts';
import { type Cut, type CutPart, stemIn } from './cut.ts';
import { type CutBody, lineExtensions } from './lines-body.ts';
import type { CutStore } from './stored-object.ts';
import { keptBytes, type ObjectCompression, uidList } from './uid-list.ts';

/** How the objects are named and compressed. */
export interface PageLines {
  readonly method: ObjectCompression;
  /** The extension, such as `ndjson`. */
  readonly ending: string;
  /** The directory of an event's object, with `/` at its end. */
  directoryOf(event: Event): string;
}

interface Lines {
  readonly chunks: Uint8Array[];
  readonly uids: string[];
}

/** A body of lines for several destinations. */
export function pageLinesBody({ method, ending, directoryOf }: PageLines): CutBody {
  const destinations = new Map<string, Lines>();
  const uids: string[] = [];
  const body = {
    bytes: 0,
    async add(batch: Parameters<CutBody['add']>[0]) {
      const parts = Map.groupBy(batch.events.keys(), (i) => directoryOf(batch.events[i] as Event));
      for (const [directory, indexes] of parts) {
        const { events, lines } = eventsAt(batch, indexes);
        const into = destinations.getOrInsertComputed(directory, () => ({ chunks: [], uids: [] }));
        // Copied: the batch's memory is reused once the batch is answered.
        const text = Uint8Array.from(linesOf(lines, { from: 0, to: events.length }));
        into.chunks.push(text);
        for (const event of events) into.uids.push(keptUid(event));
        body.bytes += text.length;
      }
      for (const event of batch.events) uids.push(keptUid(event));
    },
    async finish({ day, stem }: Cut) {
      const parts: CutPart[] = [];
      for (const [directory, { chunks, uids: own }] of destinations) {
        const name = `${directory}${day}/${stem}-events.${ending}.${lineExtensions[method]}`;
        const data = await compressed[method](Buffer.concat(chunks));
        parts.push(partOf(name, data, { uids: own, method }));
        destinations.delete(directory);
      }
      const list = `${day}/${stem}.uids.${lineExtensions[method]}`;
      return [...parts, partOf(list, new Uint8Array(0), { uids, method })];
    },
  };
  return body;
}

/**
 * The store with the objects that have a cut's name in a directory of their own, which no company and no other shard has;
 * other names are unchanged.
 */
export function cutsBelow(store: CutStore, directory: string): CutStore {
  const placed = (name: string) => (stemIn(name) === null ? name : `${directory}${name}`);
  return {
    location: store.location,
    create: (name, ...others) => store.create(placed(name), ...others),
    read: (name, range) => store.read(placed(name), range),
    facts: (name) => store.facts(placed(name)),
    async *list(prefix, after) {
      const from = after === undefined || after === '' ? after : `${directory}${after}`;
      for await (const one of store.list(`${directory}${prefix}`, from)) {
        yield { ...one, name: one.name.slice(directory.length) };
      }
    },
    close: () => store.close(),
  };
}

const compressed: Readonly<Record<ObjectCompression, (bytes: Buffer) => Promise<Uint8Array>>> = {
  gzip: async (bytes) => await promisify(gzip)(bytes, { level: 1 }),
  zstd: async (bytes) => {
    const params = { [constants.ZSTD_c_compressionLevel]: 3 };
    return await promisify(zstdCompress)(bytes, { params });
  },
};

function partOf(
  name: string,
  data: Uint8Array,
  { uids, method }: { readonly uids: readonly string[]; readonly method: ObjectCompression },
): CutPart {
  const kept = Buffer.from(uids.join(''), 'hex');
  const contentType = `application/${method}`;
  const body = [data, uidList(kept, method)];
  return { name, body, contentType, events: kept.length / keptBytes, uids: kept };
}

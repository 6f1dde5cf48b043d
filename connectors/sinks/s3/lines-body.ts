// The body of an object of lines: compressed as they arrive, so that only the bytes to send are in
// memory, and on Node's thread pool.

import { once } from 'node:events';
import { constants, createGzip, createZstdCompress } from 'node:zlib';
import type { Batch } from '../../../src/contracts/index.ts';
import { keptUid } from '../../shared/known-events.ts';
import { linesOf } from '../../shared/lines.ts';
import type { Cut, CutPart } from './cut.ts';
import { keptBytes, type ObjectCompression, uidList } from './uid-list.ts';

/** Collects the events of one cut. */
export interface CutBody {
  /** Before compression. */
  readonly bytes: number;
  /** Adds the events of a batch; one call at a time. */
  add(batch: Batch): Promise<void>;
  /** The objects made of the events; called once, nothing is added afterwards. */
  finish(cut: Cut): Promise<readonly CutPart[]>;
}

/** Extensions of compressed objects. */
export const lineExtensions: Readonly<Record<ObjectCompression, string>> = {
  gzip: 'gz',
  zstd: 'zst',
};

/** A body of lines; `ending` is the extension, such as `ndjson`. */
export function linesBody(method: ObjectCompression, ending: string): CutBody {
  const chunks: Uint8Array[] = [];
  const uids: Uint8Array[] = [];
  const stream =
    method === 'gzip'
      ? createGzip({ level: 1 })
      : createZstdCompress({ params: { [constants.ZSTD_c_compressionLevel]: 3 } });
  stream.on('data', (chunk: Uint8Array) => chunks.push(chunk));
  const body = {
    bytes: 0,
    async add({ events, lines }: Batch) {
      const text = linesOf(lines, { from: 0, to: events.length });
      body.bytes += text.length;
      uids.push(Buffer.from(events.map(keptUid).join(''), 'hex'));
      await new Promise<void>((resolve, reject) => {
        stream.write(text, (error) => (error ? reject(error) : resolve()));
      });
    },
    async finish({ day, stem }: Cut) {
      stream.end();
      await once(stream, 'end');
      const all = Buffer.concat(uids);
      return [
        {
          name: `${day}/${stem}.${ending}.${lineExtensions[method]}`,
          body: [...chunks, uidList(all, method)],
          contentType: `application/${method}`,
          events: all.length / keptBytes,
          uids: all,
        },
      ];
    },
  };
  return body;
}

// What kafkajs 2.2.4 lacks and is put into it, for the whole process: codecs, a timer that it sets
// for nothing, and the end of a topic as every record has it.

import { createRequire } from 'node:module';
import { promisify } from 'node:util';
import { gunzip, zstdDecompress } from 'node:zlib';
import kafkajs from 'kafkajs';
import { type Compression, compressed } from '../../shared/compression.ts';

const { CompressionCodecs, CompressionTypes } = kafkajs;

interface OffsetLister {
  listOffsets(asked: object): Promise<unknown>;
}

interface RequestQueue {
  readonly pending: readonly unknown[];
  scheduleCheckPendingRequests(): void;
}

let prepared = false;

/** Puts in what is missing, once for the process. */
export function prepareKafkajs(): void {
  if (prepared) return;
  prepared = true;
  // zstd, and gzip at the level that other sinks use.
  CompressionCodecs[CompressionTypes.GZIP] = () => codecOf('gzip', promisify(gunzip));
  CompressionCodecs[CompressionTypes.ZSTD] = () => codecOf('zstd', promisify(zstdDecompress));
  // What follows is not exported by kafkajs, hence without a type; the version is pinned, and a
  // test sees when this stops working.
  const load = createRequire(import.meta.url);
  // After every answer it sets a timer for a moment in the past, of which Node warns
  // (tulios/kafkajs issue 1751): without requests that wait there is nothing that the timer would
  // look for.
  const queue = load('kafkajs/src/network/requestQueue').prototype as RequestQueue;
  const schedule = queue.scheduleCheckPendingRequests;
  queue.scheduleCheckPendingRequests = function scheduleIfPending(this: RequestQueue): void {
    if (this.pending.length > 0) schedule.call(this);
  };
  // The end of a topic as kafkajs asks for it is where the oldest unfinished transaction begins,
  // and one that was answered as committed may not be finished yet.
  const lister = load('kafkajs/src/broker').prototype as OffsetLister;
  const list = lister.listOffsets;
  lister.listOffsets = function listAll(this: OffsetLister, asked) {
    return list.call(this, { ...asked, isolationLevel: 0 });
  };
}

function codecOf(method: Compression, decompress: (bytes: Buffer) => Promise<Buffer>) {
  return {
    compress: async ({ buffer }: { readonly buffer: Buffer }) =>
      Buffer.from(await compressed(buffer, method)),
    decompress,
  };
}

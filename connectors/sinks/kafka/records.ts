// Converts the engine's batch to Kafka records: key, value and the header `uid`, with sizes as the
// broker counts them, cut into requests that it accepts.

import type { Batch, Event } from '../../../src/contracts/index.ts';
import { batchHeadBytes, KafkaRecord, recordBytes } from '../../../src/kafka/index.ts';
import { lineAt } from '../../shared/lines.ts';

/** The source of a record's key. */
export type KeyChoice = 'stream' | 'uid' | 'source' | 'none';

/** Creates records; caches the few keys of streams and sources in encoded form. */
export class RecordMaker {
  readonly #choice: KeyChoice;
  readonly #keys = new Map<string, Buffer>();

  constructor(choice: KeyChoice) {
    this.#choice = choice;
  }

  /** The batch's events as records, same order. */
  recordsOf(batch: Batch): KafkaRecord[] {
    return batch.events.map(
      (event, i) => new KafkaRecord(this.#keyOf(event), lineAt(batch.lines, i), event.uid),
    );
  }

  #keyOf(event: Event): Buffer | null {
    switch (this.#choice) {
      case 'stream':
        return this.#kept(event.stream);
      case 'source':
        return this.#kept(event.source);
      case 'uid':
        return Buffer.from(event.uid, 'latin1');
      case 'none':
        return null;
    }
  }

  #kept(name: string): Buffer {
    let key = this.#keys.get(name);
    if (key === undefined) {
      key = Buffer.from(name);
      this.#keys.set(name, key);
    }
    return key;
  }
}

/** Bytes of a request with this record alone, uncompressed; at least the broker's count. */
export function aloneBytes(record: KafkaRecord): number {
  return batchHeadBytes + recordBytes(record);
}

/** The records cut into requests of at most `bytesMax`, same order; each record alone must fit. */
export function requestsOf(records: readonly KafkaRecord[], bytesMax: number): KafkaRecord[][] {
  const requests: KafkaRecord[][] = [];
  let request: KafkaRecord[] = [];
  let bytes = batchHeadBytes;
  for (const record of records) {
    const size = recordBytes(record);
    if (request.length > 0 && bytes + size > bytesMax) {
      requests.push(request);
      request = [];
      bytes = batchHeadBytes;
    }
    request.push(record);
    bytes += size;
  }
  if (request.length > 0) requests.push(request);
  return requests;
}

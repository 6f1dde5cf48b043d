// Groups events into Parquet objects: one object per class, company and day of the events' time, as
// Amazon Security Lake and readers of partitioned tables require. Invariants: the same events in
// the same order give the same objects, byte for byte; upstream's text never becomes part of an
// object's name, except as a number.

import { hash } from 'node:crypto';
import type { Event } from '../contracts/index.ts';
import { Rows } from './rows.ts';
import { tableOf } from './schema.ts';
import { type Facts, writeParquet } from './write.ts';

/** The partition of an object's events. */
export interface ObjectPartition {
  readonly classUid: number;
  /** The company of the stream; empty: no company. */
  readonly company: string;
  /** `YYYYMMDD`, UTC. */
  readonly day: string;
}

/** A finished object. */
export interface ParquetObject extends ObjectPartition {
  /** The schema's name, e.g. `api_activity`. */
  readonly className: string;
  readonly body: Uint8Array;
  readonly sha256: string;
  readonly events: number;
  /** The uids of its events as bytes, in insertion order. */
  readonly uids: Uint8Array;
  /** Earliest and latest time of its events, epoch milliseconds. */
  readonly first: number;
  readonly last: number;
}

/**
 * More at once would be many small objects: hostile times could create any number of partitions.
 */
const openMax = 256;

interface Open extends ObjectPartition {
  readonly rows: Rows;
  readonly uids: UidBytes;
  first: number;
  last: number;
}

/** Number of uids converted to bytes together. */
const uidsConverted = 256;

/** Collects uids as bytes: as texts they would be an object each. */
export class UidBytes {
  readonly #parts: Uint8Array[] = [];
  #hex = '';
  #count = 0;

  /** Adds a uid, or the first part of each. */
  add(uid: string): void {
    this.#hex += uid;
    this.#count += 1;
    if (this.#count % uidsConverted === 0) this.#convert();
  }

  all(): Uint8Array {
    this.#convert();
    return Buffer.concat(this.#parts);
  }

  #convert(): void {
    this.#parts.push(Buffer.from(this.#hex, 'hex'));
    this.#hex = '';
  }
}

/** Collects events until their objects are written. */
export class PartitionedEvents {
  readonly #open = new Map<string, Open>();
  /** Of the last event: adjacent ones mostly share it. */
  #last: Open | null = null;

  /** Approximate bytes of the events in memory. */
  get bytes(): number {
    let bytes = 0;
    for (const { rows } of this.#open.values()) bytes += rows.bytes;
    return bytes;
  }

  /** True if the objects should be written, however few the bytes. */
  get isScattered(): boolean {
    return this.#open.size > openMax;
  }

  add({ uid, ocsf, context }: Event): void {
    const { class_uid: classUid } = ocsf;
    const { company = '', fetchedAt } = context;
    const time = Number.isSafeInteger(ocsf.time) ? ocsf.time : fetchedAt;
    const day = dayOf(time, fetchedAt);
    let open = this.#last;
    if (open?.classUid !== classUid || open.day !== day || open.company !== company) {
      open = this.#opened({ classUid, company, day }, time);
      this.#last = open;
    }
    open.rows.add(ocsf);
    open.uids.add(uid);
    open.first = Math.min(open.first, time);
    open.last = Math.max(open.last, time);
  }

  #opened(partition: ObjectPartition, time: number): Open {
    const { classUid, company, day } = partition;
    const key = `${classUid} ${day} ${company}`;
    const known = this.#open.get(key);
    if (known !== undefined) return known;
    const rows = new Rows(tableOf(classUid));
    const made = { ...partition, rows, uids: new UidBytes(), first: time, last: time };
    this.#open.set(key, made);
    return made;
  }

  /**
   * The objects with these facts in their footers, one after the other, so that only one's bytes
   * are in memory.
   */
  async *objects(facts: Facts = {}): AsyncGenerator<ParquetObject> {
    this.#last = null;
    for (const [key, { rows, uids, ...about }] of this.#open) {
      const events = rows.count;
      const body = await writeParquet(rows, facts);
      this.#open.delete(key);
      const { name: className } = rows.table;
      yield { ...about, className, events, uids: uids.all(), body, sha256: hash('sha256', body) };
    }
  }
}

const earliest = Date.UTC(2000, 0, 1);
const dayMs = 24 * 60 * 60 * 1000;

/** An event with an impossible time belongs to the day on which it was read. */
function dayOf(time: number, fetchedAt: number): string {
  const at = time >= earliest && time <= fetchedAt + dayMs ? time : fetchedAt;
  const number = Math.floor(at / dayMs);
  if (number !== lastDay.number) {
    lastDay = { number, text: new Date(at).toISOString().slice(0, 10).replaceAll('-', '') };
  }
  return lastDay.text;
}

/** Cache of the last day: adjacent events mostly share one. */
let lastDay = { number: Number.NaN, text: '' };

/** A partition's path, in the form of Hive and Amazon Security Lake. */
export function partitionPath(
  { company, day }: ObjectPartition,
  given: { readonly region?: string | undefined; readonly account?: string | undefined } = {},
): string {
  const { region = '', account = company === '' ? 'none' : encodeURIComponent(company) } = given;
  return `${region === '' ? '' : `region=${region}/`}accountId=${account}/eventDay=${day}`;
}

// A second copy of what matters most, beside the database: for each stream, its checkpoint as of a
// moment by which every sink had passed all that was read until then. Where the database is damaged
// beyond reading, streams go on from there. What must stay true: it may be old, which only repeats
// events, but it is never ahead of what was delivered. A stream with entities has no place here:
// its checkpoint means nothing without them.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import type { Offset } from '../contracts/event.ts';
import type { Json } from '../contracts/json.ts';
import { replacePrivateFile } from './private-files.ts';

/** Where a stream had come when everything until then was delivered. */
export interface DeliveredPlace {
  readonly checkpoint: Json;
  /** The newest block of identities by then: later ones may not have been delivered. */
  readonly block: number;
  /** When that was so, epoch milliseconds. */
  readonly at: number;
}

/** The copy as it is written. */
export interface DeliveredCopy {
  /** Its spool, and how far that had come: of a database behind it, it says nothing. */
  readonly spool: string;
  readonly end: Offset;
  readonly streams: Readonly<Record<string, DeliveredPlace>>;
}

/** The copy's name within the state directory. */
export const deliveredName = 'delivered.json';
const saveEveryMs = 60_000;

/** Reads the copy in a state directory; null where there is none that can be trusted. */
export function readDelivered(dir: string): DeliveredCopy | null {
  try {
    const [text = '', check] = readFileSync(join(dir, deliveredName), 'utf8').split('\n');
    return Number(check) === crc32(text) ? JSON.parse(text) : null;
  } catch {
    return null;
  }
}

/** Writes the copy: the old one, or the new one, is there at each moment. */
export function writeDelivered(dir: string, copy: DeliveredCopy): void {
  const text = JSON.stringify(copy);
  replacePrivateFile(join(dir, deliveredName), `${text}\n${crc32(text)}\n`, true);
}

/** Takes a stream out of the copy: its checkpoint was moved by an operator. */
export function forgetDelivered(dir: string, stream: string): void {
  const copy = readDelivered(dir);
  if (copy === null || !Object.hasOwn(copy.streams, stream)) return;
  const { [stream]: _, ...streams } = copy.streams;
  writeDelivered(dir, { ...copy, streams });
}

/** A place that becomes a delivered one once every sink is there. */
interface Step {
  readonly end: Offset;
  readonly place: DeliveredPlace;
}

/** A stream's delivered place and the two later steps that are watched: next and latest. */
interface Track {
  delivered: DeliveredPlace | null;
  next: Step | null;
  latest: Step | null;
}

/** The copy as it is kept up to date while the spool is open. */
export class Delivered {
  readonly #dir: string;
  readonly #spool: string;
  readonly #tracks = new Map<string, Track>();
  /** Of all streams: their blocks have one sequence of numbers. */
  #newestBlock = 0;
  #changed = true;
  #savedAt = 0;

  /** Goes on from the copy in the directory, where it is one of this spool. */
  constructor(dir: string, spool: { readonly id: string; readonly end: Offset }) {
    this.#dir = dir;
    this.#spool = spool.id;
    const copy = readDelivered(dir);
    if (copy === null || copy.spool !== spool.id || copy.end > spool.end) return;
    for (const [stream, delivered] of Object.entries(copy.streams)) {
      this.#tracks.set(stream, { delivered, next: null, latest: null });
    }
  }

  /** A stream's place, delivered once every sink has passed `end`. Block 0: it brings none. */
  note(stream: string, end: Offset, place: DeliveredPlace): void {
    this.#newestBlock = Math.max(this.#newestBlock, place.block);
    const track = this.#tracks.get(stream) ?? { delivered: null, next: null, latest: null };
    this.#tracks.set(stream, track);
    const step = { end, place: { ...place, block: this.#newestBlock } };
    if (track.next === null) track.next = step;
    else track.latest = step;
  }

  /** A stream that has no delivered place, or none any more. */
  forget(stream: string): void {
    if (this.#tracks.delete(stream)) this.#changed = true;
  }

  /** Every sink has passed this offset. */
  advance(passed: Offset): void {
    for (const track of this.#tracks.values()) {
      while (track.next !== null && track.next.end <= passed) {
        track.delivered = track.next.place;
        track.next = track.latest;
        track.latest = null;
        this.#changed = true;
      }
    }
  }

  /** Writes the copy where it has changed, at most once a minute unless it has to be now. */
  save(end: Offset, now: number, must = false): void {
    if (!this.#changed || (!must && now - this.#savedAt < saveEveryMs)) return;
    const places = [...this.#tracks].flatMap(([stream, { delivered }]) =>
      delivered === null ? [] : [[stream, delivered] as const],
    );
    this.#savedAt = now;
    try {
      writeDelivered(this.#dir, { spool: this.#spool, end, streams: Object.fromEntries(places) });
      this.#changed = false;
    } catch {
      // On a full disk, say. The older copy stays, which is as true as it was.
    }
  }
}

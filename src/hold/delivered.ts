// A second copy of the essential state, beside the database: for each stream, its checkpoint at a
// time by which every sink had passed everything read before. If the database is unreadable,
// streams resume from there. Invariant: the copy may be old, which only repeats events, but it is
// never ahead of the deliveries. A stream with entities is not in it: its checkpoint is useless
// without them.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import type { Json, Offset } from '../contracts/index.ts';
import { replacePrivateFile } from './private-files.ts';

/** A stream's position at which every earlier event was delivered. */
export interface DeliveredPosition {
  readonly checkpoint: Json;
  /** The newest block of identities by then: later ones may not have been delivered. */
  readonly block: number;
  /** Time of that state, epoch milliseconds. */
  readonly at: number;
}

/** The copy as stored. */
export interface DeliveredCopy {
  /** Spool id and end offset: the copy is not valid for a database with a smaller end. */
  readonly spool: string;
  readonly end: Offset;
  readonly streams: Readonly<Record<string, DeliveredPosition>>;
}

/** The copy's name within the state directory. */
export const deliveredName = 'delivered.json';
const saveEveryMs = 60_000;

/** Reads the copy in a state directory; null if there is no valid one. */
export function readDelivered(dir: string): DeliveredCopy | null {
  try {
    const [text = '', check] = readFileSync(join(dir, deliveredName), 'utf8').split('\n');
    return Number(check) === crc32(text) ? JSON.parse(text) : null;
  } catch {
    return null;
  }
}

/** Writes the copy atomically: at each moment the old or the new one exists. `isDurable`: it survives a power cut. */
export function writeDelivered(dir: string, copy: DeliveredCopy, isDurable = true): void {
  const text = JSON.stringify(copy);
  replacePrivateFile(join(dir, deliveredName), `${text}\n${crc32(text)}\n`, isDurable);
}

/** Removes a stream from the copy, because an operator moved its checkpoint. */
export function forgetDelivered(dir: string, stream: string): void {
  const copy = readDelivered(dir);
  if (copy === null || !Object.hasOwn(copy.streams, stream)) return;
  const { [stream]: _, ...streams } = copy.streams;
  writeDelivered(dir, { ...copy, streams });
}

/** A position that counts as delivered once every sink has reached `end`. */
interface Step {
  readonly end: Offset;
  readonly place: DeliveredPosition;
}

/** A stream's delivered position and the two later candidates: next and latest. */
interface Track {
  delivered: DeliveredPosition | null;
  next: Step | null;
  latest: Step | null;
}

/** Maintains the copy while the spool is open. */
export class Delivered {
  readonly #dir: string;
  readonly #spool: string;
  readonly #isDurable: boolean;
  readonly #tracks = new Map<string, Track>();
  /** Of all streams: their blocks share one sequence of numbers. */
  #newestBlock = 0;
  #changed = true;
  #savedAt = 0;

  /** Loads the copy in the directory if it belongs to this spool. `isDurable`: as of `writeDelivered`. */
  constructor(
    dir: string,
    spool: { readonly id: string; readonly end: Offset },
    { isDurable }: { readonly isDurable: boolean },
  ) {
    this.#dir = dir;
    this.#spool = spool.id;
    this.#isDurable = isDurable;
    const copy = readDelivered(dir);
    if (copy === null || copy.spool !== spool.id || copy.end > spool.end) return;
    for (const [stream, delivered] of Object.entries(copy.streams)) {
      this.#tracks.set(stream, { delivered, next: null, latest: null });
    }
  }

  /**
   * A stream's position, delivered once every sink has passed `end`. Block 0: no new identities.
   */
  note(stream: string, end: Offset, place: DeliveredPosition): void {
    this.#newestBlock = Math.max(this.#newestBlock, place.block);
    const track = this.#tracks.get(stream) ?? { delivered: null, next: null, latest: null };
    this.#tracks.set(stream, track);
    const step = { end, place: { ...place, block: this.#newestBlock } };
    if (track.next === null) track.next = step;
    else track.latest = step;
  }

  /** The stream has no delivered position (any more). */
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

  /** Writes a changed copy at most once a minute, or at once if `must`. */
  save(end: Offset, now: number, must = false): void {
    // A clock that was set back delays nothing.
    const isDue = must || Math.abs(now - this.#savedAt) >= saveEveryMs;
    if (!this.#changed || !isDue) return;
    const places = [...this.#tracks].flatMap(([stream, { delivered }]) =>
      delivered === null ? [] : [[stream, delivered] as const],
    );
    this.#savedAt = now;
    try {
      const copy = { spool: this.#spool, end, streams: Object.fromEntries(places) };
      writeDelivered(this.#dir, copy, this.#isDurable);
      this.#changed = false;
    } catch {
      // For example a full disk. The older copy stays valid.
    }
  }
}

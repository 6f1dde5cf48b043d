// Each sink's position, noted beside the database at the moment of the receiver's acknowledgement:
// a write at a fixed offset of a small file, which costs microseconds and survives the process, but
// not a power cut. The database has the same value some milliseconds later, durably. So a killed
// process repeats only what was in flight, and a database that has lost committed data is detected.
// Invariants: only settled events are noted; readers validate it with numbering.ts.

import { closeSync, openSync, readFileSync, renameSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import {
  type Numbering,
  type Offset,
  presentEpoch,
  reachOf,
  type SinkPosition,
} from '../contracts/index.ts';
import { makePrivateFile } from './private-files.ts';

/** The file's name within the state directory. */
export const reachedName = 'reached';
/** `0000000000000042 3f2a90c1` and a line end: the next offset, and a checksum. */
const numberLength = 16;
const lineLength = numberLength + 10;

/** The file's content by sink, also if of another spool or epoch. */
export function readReached(dir: string): ReadonlyMap<string, SinkPosition> {
  try {
    const [header = '', ...lines] = readFileSync(join(dir, reachedName), 'utf8').split('\n');
    const { spool, epoch, sinks } = JSON.parse(header) as Header;
    return new Map(
      sinks.flatMap((sink, index) => {
        const line = lines[index] ?? '';
        const next = Number(line.slice(0, numberLength));
        return `${line}\n` === lineOf(sink, next) ? [[sink, { spool, epoch, next }] as const] : [];
      }),
    );
  } catch {
    return new Map(); // No file yet, or an unreadable one: the database has nearly the same positions.
  }
}

interface Header {
  readonly spool: string;
  readonly epoch: number;
  /** In the order of their lines. */
  readonly sinks: readonly string[];
}

/** Maintains the file while the spool is open. */
export class Reached {
  readonly #dir: string;
  readonly #numbering: Numbering;
  readonly #positions = new Map<string, Offset>();
  #places: ReadonlyMap<string, number> = new Map();
  #file: number | null = null;

  /** Continues from the file's content. */
  constructor(dir: string, numbering: Numbering, sinks: readonly string[]) {
    this.#dir = dir;
    this.#numbering = numbering;
    for (const [sink, place] of readReached(dir)) {
      this.#positions.set(sink, reachOf(place, numbering).position);
    }
    this.keep(sinks);
  }

  at(sink: string): Offset {
    return this.#positions.get(sink) ?? 0;
  }

  /** Notes a position at once. */
  note(sink: string, position: Offset): void {
    if (position <= this.at(sink)) return;
    this.#positions.set(sink, position);
    const place = this.#places.get(sink);
    if (this.#file === null || place === undefined) return;
    try {
      writeSync(this.#file, lineOf(sink, position), place);
    } catch {
      // The database will have it soon.
    }
  }

  /** Rewrites the file for these sinks. Other sinks' positions stay while they are valid. */
  keep(sinks: readonly string[]): void {
    this.close();
    const names = [...new Set([...sinks, ...this.#positions.keys()])];
    const header = {
      spool: this.#numbering.spool,
      epoch: presentEpoch(this.#numbering),
      sinks: names,
    };
    const first = `${JSON.stringify(header satisfies Header)}\n`;
    const path = join(this.#dir, reachedName);
    try {
      makePrivateFile(`${path}.next`);
      this.#file = openSync(`${path}.next`, 'w');
      writeSync(this.#file, first + names.map((name) => lineOf(name, this.at(name))).join(''), 0);
      renameSync(`${path}.next`, path);
    } catch {
      // For example a full disk: the old file stays valid.
      this.close();
    }
    const start = Buffer.byteLength(first);
    this.#places = new Map(names.map((name, index) => [name, start + index * lineLength]));
  }

  close(): void {
    if (this.#file !== null) closeSync(this.#file);
    this.#file = null;
  }
}

function lineOf(sink: string, next: Offset): string {
  const number = String(next).padStart(numberLength, '0');
  return `${number} ${crc32(sink + number)
    .toString(16)
    .padStart(8, '0')}\n`;
}

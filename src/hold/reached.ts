// How far each sink has come, noted beside the database the moment that its far side has answered:
// a write to a place in a small file, which costs microseconds and outlives the process, though not
// a power cut. The database has the same some milliseconds later, durably. So a killed process
// sends again only what was under way, and a database that has lost what it held is noticed. What
// must stay true: it is written for what was settled only, and believed by numbering.ts.

import { closeSync, openSync, readFileSync, renameSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import type { Offset } from '../contracts/event.ts';
import {
  type Numbering,
  presentEpoch,
  reachOf,
  type SinkPosition,
} from '../contracts/numbering.ts';
import { makePrivateFile } from './private-files.ts';

/** The file's name within the state directory. */
export const reachedName = 'reached';
/** `0000000000000042 3f2a90c1` and a line end: the next event's number, and a check. */
const numberLength = 16;
const lineLength = numberLength + 10;

/** What the file says, by sink: of another spool, or of an epoch that is not ours, too. */
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
    return new Map(); // none yet, or nothing that can be read: the database knows nearly as much
  }
}

interface Header {
  readonly spool: string;
  readonly epoch: number;
  /** In the order of their lines. */
  readonly sinks: readonly string[];
}

/** The file as it is kept while the spool is open. */
export class Reached {
  readonly #dir: string;
  readonly #numbering: Numbering;
  readonly #positions = new Map<string, Offset>();
  #places: ReadonlyMap<string, number> = new Map();
  #file: number | null = null;

  /** Goes on from what the file says. */
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

  /** Notes it at once. */
  note(sink: string, position: Offset): void {
    if (position <= this.at(sink)) return;
    this.#positions.set(sink, position);
    const place = this.#places.get(sink);
    if (this.#file === null || place === undefined) return;
    try {
      writeSync(this.#file, lineOf(sink, position), place);
    } catch {
      // The database has it soon.
    }
  }

  /** Writes the file anew for these sinks. What others have reached stays while it is true. */
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
      // On a full disk, say: what the old file says stays true.
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

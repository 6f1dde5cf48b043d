// The frames of RELP (https://github.com/rsyslog/librelp/blob/master/doc/relp.html): `TXNR SP
// COMMAND SP DATALEN [SP DATA] LF`, DATALEN in bytes. sluice's frames are written for a whole batch
// into reused memory; the receiver's are parsed from its bytes as they arrive. Invariants: no
// content of a message can end its frame; bytes that are no frame are reported, never skipped.

import type { EncodedLines } from '../../../src/contracts/index.ts';
import type { Range } from '../../shared/halves.ts';

/** Transactions count from 1 to this, and then from 1 again; 0 is the server's own. */
const txnrMax = 999_999_999;

/** The transaction `steps` after another. */
export function txnrAfter(txnr: number, steps: number): number {
  return ((txnr - 1 + steps) % txnrMax) + 1;
}

/** Number of transactions between two. */
export function stepsBetween(first: number, txnr: number): number {
  return (txnr - first + txnrMax) % txnrMax;
}

/** One frame of the receiver. */
export interface RelpFrame {
  readonly txnr: number;
  readonly command: string;
  readonly data: string;
}

/** One frame of sluice that is no message. */
export function frameOf({ txnr, command, data }: RelpFrame): string {
  const length = Buffer.byteLength(data);
  return length === 0 ? `${txnr} ${command} 0\n` : `${txnr} ${command} ${length} ${data}\n`;
}

/** The messages of a range as frames, back to back; frame i ends before `ends[i]`. */
export interface MessageFrames {
  readonly bytes: Uint8Array;
  readonly ends: Uint32Array;
}

const lf = 0x0a;
const space = 0x20;
const zero = 0x30;
const syslogCommand = Buffer.from(' syslog ');
/** Nine digits each for TXNR and DATALEN, blanks and LF. */
const overheadMax = 9 + syslogCommand.length + 9 + 2;
// The default batch is half a MiB; a larger buffer is not worth keeping.
const spareBytesMax = 4 * 1024 * 1024;

/** The buffer for frames of one session. */
export class FrameMemory {
  #spare: Uint8Array | null = null;

  /** Frames the messages, the first with number `first`. */
  frame(lines: EncodedLines, { from, to }: Range, first: number): MessageFrames {
    const { bytes, starts, ends } = lines;
    let length = 0;
    for (let i = from; i < to; i++) length += (ends[i] ?? 0) - (starts[i] ?? 0) + overheadMax;
    const spare = this.#spare;
    this.#spare = null;
    const memory = spare !== null && spare.length >= length ? spare : new Uint8Array(length);
    const frameEnds = new Uint32Array(to - from);
    let at = 0;
    for (let i = from; i < to; i++) {
      const start = starts[i] ?? 0;
      const end = ends[i] ?? 0;
      at = writeNumber(memory, at, txnrAfter(first, i - from));
      memory.set(syslogCommand, at);
      at = writeNumber(memory, at + syslogCommand.length, end - start);
      if (end > start) {
        memory[at++] = space;
        memory.set(bytes.subarray(start, end), at);
        at += end - start;
      }
      memory[at++] = lf;
      frameEnds[i - from] = at;
    }
    return { bytes: memory, ends: frameEnds };
  }

  /** They are no longer needed; omitting the call costs only memory. */
  release({ bytes }: MessageFrames): void {
    if (bytes.length <= spareBytesMax) this.#spare = bytes;
  }
}

function writeNumber(memory: Uint8Array, at: number, value: number): number {
  let end = at + 1;
  for (let rest = value; rest >= 10; rest = (rest / 10) | 0) end++;
  let rest = value;
  for (let i = end - 1; i >= at; i--) {
    memory[i] = zero + (rest % 10);
    rest = (rest / 10) | 0;
  }
  return end;
}

// A receiver's offers at `open`, or its text about a failure, have some hundred bytes.
const dataBytesMax = 64 * 1024;
// Without data there is no blank before LF; a blank is accepted.
const header = /(\d{1,9}) ([A-Za-z]{1,32}) (\d{1,9})(?:( )|(?=\n))/y;
const beginning = /^(?:\d{1,9}(?: (?:[A-Za-z]{1,32}(?: \d{0,9})?)?)?)?$/;

/** Parses the receiver's frames from its bytes, in pieces of any size. */
export class FrameReader {
  /** One character per byte. */
  #rest = '';

  /** The frames that are complete now; null: these bytes are no RELP. */
  push(bytes: Buffer): readonly RelpFrame[] | null {
    const text = this.#rest + bytes.toString('latin1');
    const frames: RelpFrame[] = [];
    let at = 0;
    for (;;) {
      header.lastIndex = at;
      const match = header.exec(text);
      if (match === null) break;
      const [, txnr, command = '', length, blank] = match;
      const dataAt = header.lastIndex;
      const end = dataAt + Number(length);
      if (end - dataAt > dataBytesMax || (blank === undefined && end > dataAt)) return null;
      if (end >= text.length) return this.#keep(text.slice(at), frames);
      if (text[end] !== '\n') return null;
      const data = Buffer.from(text.slice(dataAt, end), 'latin1').toString();
      frames.push({ txnr: Number(txnr), command, data });
      at = end + 1;
    }
    return beginning.test(text.slice(at)) ? this.#keep(text.slice(at), frames) : null;
  }

  #keep(rest: string, frames: readonly RelpFrame[]): readonly RelpFrame[] {
    this.#rest = rest;
    return frames;
  }
}

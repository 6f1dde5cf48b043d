// The shape of a record: the bytes between its values (keys, braces, commas, blanks, and `true`,
// `false`, `null` and empty strings, which are constant), and the path of each value. Invariant:
// for records with the same bytes between their values, `JSON.parse` creates objects that differ
// only in those values. So a record with a repeated or escaped key, or with `__proto__`, has no
// shape.

const quote = 0x22;
const backslash = 0x5c;
const comma = 0x2c;
const colon = 0x3a;
const openBracket = 0x5b;
const closeBracket = 0x5d;
const openBrace = 0x7b;
const closeBrace = 0x7d;

/** Records with more values are not learned. */
export const leavesMax = 256;
const depthMax = 32;

/** Stands in a path for a member of an array. */
export const inArray = Symbol('in an array');

/** The path of a value: its keys, the last of which is its own. */
export type LeafPath = readonly (string | typeof inArray)[];

/** The content of a record, in order: bytes, a value, bytes, a value … bytes. */
export interface RecordShape {
  /** One more than there are values. */
  readonly pieces: readonly Uint8Array[];
  readonly paths: readonly LeafPath[];
  /** True for a text, whose quotes belong to the bytes around it; false for a number. */
  readonly texts: readonly boolean[];
}

/** The shape of the well-formed record at `bytes[start, end)`; null if it has none. */
export function shapeOf(bytes: Uint8Array, start: number, end: number): RecordShape | null {
  return bytes[start] === openBrace ? new Cutter(bytes, start, end).cut() : null;
}

class Cutter {
  readonly #bytes: Uint8Array;
  readonly #end: number;
  readonly #pieces: Uint8Array[] = [];
  readonly #paths: LeafPath[] = [];
  readonly #texts: boolean[] = [];
  /** Start of the current piece, and the read position. */
  #from: number;
  #at: number;
  #has = true;

  constructor(bytes: Uint8Array, start: number, end: number) {
    this.#bytes = bytes;
    this.#end = end;
    this.#from = start;
    this.#at = start;
  }

  cut(): RecordShape | null {
    this.#value([]);
    if (!this.#has || this.#at !== this.#end) return null;
    this.#keep(this.#end);
    return { pieces: this.#pieces, paths: this.#paths, texts: this.#texts };
  }

  /** A copy: the `slice` of a Buffer would keep the page in memory as long as the shape is known. */
  #keep(to: number): void {
    this.#pieces.push(new Uint8Array(this.#bytes.subarray(this.#from, to)));
  }

  #value(path: LeafPath): void {
    const first = this.#bytes[this.#at] ?? 0;
    if (path.length > depthMax || this.#paths.length === leavesMax) this.#has = false;
    if (!this.#has) return;
    if (first === openBrace) this.#members(path);
    else if (first === openBracket) this.#elements(path);
    else if (first === quote) this.#text(path);
    else if (first === 0x2d || (first >= 0x30 && first <= 0x39)) this.#number(path);
    else while (isWordByte(this.#bytes[this.#at] ?? 0)) this.#at += 1;
  }

  #text(path: LeafPath): void {
    const start = this.#at + 1;
    const stop = this.#textEnd(start);
    if (stop > start) this.#leaf(path, { start, stop, isText: true });
    this.#at = stop + 1;
  }

  #number(path: LeafPath): void {
    const start = this.#at;
    while (isNumberByte(this.#bytes[this.#at] ?? 0)) this.#at += 1;
    this.#leaf(path, { start, stop: this.#at, isText: false });
  }

  #leaf(
    path: LeafPath,
    { start, stop, isText }: { start: number; stop: number; isText: boolean },
  ): void {
    this.#keep(start);
    this.#paths.push(path);
    this.#texts.push(isText);
    this.#from = stop;
  }

  #members(path: LeafPath): void {
    const keys = new Set<string>();
    this.#step();
    while (this.#has && this.#bytes[this.#at] !== closeBrace) {
      const start = this.#at + 1;
      const stop = this.#textEnd(start);
      const key = Buffer.from(this.#bytes.subarray(start, stop)).toString();
      if (keys.has(key) || key === '__proto__' || key.includes('\\')) this.#has = false;
      keys.add(key);
      this.#at = stop;
      this.#step();
      if (this.#bytes[this.#at] !== colon) this.#has = false;
      this.#step();
      this.#value([...path, key]);
      this.#next();
    }
    this.#at += 1;
  }

  #elements(path: LeafPath): void {
    this.#step();
    while (this.#has && this.#bytes[this.#at] !== closeBracket) {
      this.#value([...path, inArray]);
      this.#next();
    }
    this.#at += 1;
  }

  /** Skips the current byte and the blanks after it. */
  #step(): void {
    this.#at += 1;
    this.#blanks();
  }

  /** Skips the separator between two members. */
  #next(): void {
    this.#blanks();
    if (this.#bytes[this.#at] === comma) this.#step();
    if (this.#at >= this.#end) this.#has = false;
  }

  #blanks(): void {
    for (;;) {
      const byte = this.#bytes[this.#at];
      if (byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09) return;
      this.#at += 1;
    }
  }

  #textEnd(from: number): number {
    let at = from;
    while (at < this.#end && this.#bytes[at] !== quote) at += this.#bytes[at] === backslash ? 2 : 1;
    if (at >= this.#end) this.#has = false;
    return at;
  }
}

function isNumberByte(byte: number): boolean {
  return (
    (byte >= 0x30 && byte <= 0x39) ||
    byte === 0x2d ||
    byte === 0x2b ||
    byte === 0x2e ||
    (byte | 0x20) === 0x65
  );
}

function isWordByte(byte: number): boolean {
  return byte >= 0x61 && byte <= 0x7a;
}

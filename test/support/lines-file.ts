// A file that another program appends lines to, read a little further at each look. The last line may
// be half written and waits for its end. Bytes that are not UTF-8 become U+FFFD, so that a receiver
// that passes them on does not spoil the rest.
import { closeSync, existsSync, fstatSync, openSync, readSync } from 'node:fs';

/** Reads `path` line by line; each line is parsed once, by `parse`. */
export class LinesFile<T> {
  readonly #path: string;
  readonly #parse: (line: string) => T;
  readonly #items: T[] = [];
  #rest: Buffer = Buffer.alloc(0);
  #offset = 0;

  constructor(path: string, parse: (line: string) => T) {
    this.#path = path;
    this.#parse = parse;
  }

  /** Every complete line so far; none while the file does not exist. */
  read(): readonly T[] {
    const unread = Buffer.concat([this.#rest, this.#readFurther()]);
    const end = unread.lastIndexOf('\n') + 1;
    this.#rest = unread.subarray(end);
    const lines = unread.toString('utf8', 0, end).split('\n');
    for (const line of lines) if (line !== '') this.#items.push(this.#parse(line));
    return this.#items;
  }

  #readFurther(): Buffer {
    if (!existsSync(this.#path)) return Buffer.alloc(0);
    const file = openSync(this.#path, 'r');
    try {
      const bytes = Buffer.alloc(Math.max(0, fstatSync(file).size - this.#offset));
      const count = readSync(file, bytes, 0, bytes.length, this.#offset);
      this.#offset += count;
      return bytes.subarray(0, count);
    } finally {
      closeSync(file);
    }
  }
}

// A scan of JSON values without a digest (json-scan.ts computes one): whether a value is well-formed,
// and its end. For bodies that were stored before, of which only the ranges of records are needed.
// Invariant: a value is accepted exactly if JsonScan accepts it.

import { heldNestingMax, TooDeep } from './json-scan.ts';
import { malformed, skipSpace, TokenScan } from './json-tokens.ts';

const quote = 0x22;
const comma = 0x2c;
const colon = 0x3a;
const openBracket = 0x5b;
const closeBracket = 0x5d;
const openBrace = 0x7b;
const closeBrace = 0x7d;

/** One for all checks, because a check never awaits: whether each level is an object. */
const inObject = new Uint8Array(heldNestingMax + 1);

/** Checks values within one body. */
export class JsonCheck {
  /** Scans all tokens except plain strings. */
  readonly tokens: TokenScan;
  readonly bytes: Uint8Array;
  readonly #view: DataView;

  constructor(bytes: Uint8Array) {
    this.tokens = new TokenScan(bytes);
    this.bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  /**
   * Returns the end of the value that starts at `from`, without white space before it. Throws a
   * SyntaxError if it is not well-formed and TooDeep if it is nested too deeply.
   */
  value(from: number): number {
    const bytes = this.bytes;
    let depth = 0;
    let isKey = false;
    let at = from;
    for (;;) {
      const first = bytes[at];
      if (first === quote) at = this.#string(at + 1);
      else if (isKey) throw malformed(at);
      else if (first === openBrace || first === openBracket) {
        if (depth === heldNestingMax) {
          throw new TooDeep(`nested more than ${heldNestingMax} levels deep`);
        }
        const isObject = first === openBrace;
        at = skipSpace(bytes, at + 1);
        if (bytes[at] !== (isObject ? closeBrace : closeBracket)) {
          depth += 1;
          inObject[depth] = isObject ? 1 : 0;
          isKey = isObject;
          continue;
        }
        at += 1;
      } else at = this.tokens.wordEnd(at);
      if (isKey) {
        at = skipSpace(bytes, at);
        if (bytes[at] !== colon) throw malformed(at);
        at = skipSpace(bytes, at + 1);
        isKey = false;
        continue;
      }
      // A value has ended, and possibly the levels around it.
      for (;;) {
        if (depth === 0) return at;
        const isObject = inObject[depth] === 1;
        at = skipSpace(bytes, at);
        const byte = bytes[at];
        if (byte === comma) {
          at = skipSpace(bytes, at + 1);
          isKey = isObject;
          break;
        }
        if (byte !== (isObject ? closeBrace : closeBracket)) throw malformed(at);
        depth -= 1;
        at += 1;
      }
    }
  }

  /** The end of a string, from the byte after its quote. */
  #string(from: number): number {
    const bytes = this.bytes;
    const view = this.#view;
    const lastWord = bytes.length - 4;
    let at = from;
    for (;;) {
      const word = at <= lastWord ? view.getInt32(at, true) : 0;
      // As in json-scan.ts.
      const low = word ^ 0x02020202;
      const other = word ^ 0x5c5c5c5c;
      const ends = (((low - 0x21212121) & ~low) | ((other - 0x01010101) & ~other)) & 0x80808080;
      if (ends === 0) {
        at += 4;
        continue;
      }
      at += (31 - Math.clz32(ends & -ends)) >>> 3;
      return bytes[at] === quote ? at + 1 : this.tokens.string(from, 0, 0);
    }
  }
}

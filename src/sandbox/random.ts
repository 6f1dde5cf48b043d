// Repeatable randomness. Every invented value is drawn from a generator seeded with (seed, kind, index), so a record
// has the same text in every run with the same seed, in any order of requests. Tests rely on this: a record's exact
// text can be recomputed long after it was served.

/** A small seeded generator (mulberry32): fast and well distributed, not cryptographic. */
export class Random {
  #state: number;

  /** The same numbers in the same order give the same draws. */
  constructor(...salt: readonly number[]) {
    let state = 0x9e3779b9;
    for (const part of salt) state = mix(state ^ mix(part >>> 0) ^ Math.floor(part / 2 ** 32));
    this.#state = state;
  }

  /** The next number in [0, 1). */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    let t = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  }

  /** The next whole number in [0, bound). */
  below(bound: number): number {
    return Math.floor(this.next() * bound);
  }

  /** True with the given probability. */
  chance(probability: number): boolean {
    return this.next() < probability;
  }

  /** One member of a list; an empty list is a caller's error and throws. */
  pick<T>(list: readonly T[]): T {
    const member = list[this.below(list.length)];
    if (member === undefined) throw new RangeError('picking from an empty list');
    return member;
  }

  /** Lower-case hex digits, at most eight. */
  hex(digits: number): string {
    return this.below(16 ** digits)
      .toString(16)
      .padStart(digits, '0');
  }
}

/** A number for a text, so that names (a path, a company) can be part of a seed (FNV-1a). */
export function saltOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < text.length; at += 1) {
    hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  }
  return hash >>> 0;
}

function mix(value: number): number {
  let mixed = Math.imul(value ^ (value >>> 16), 0x85ebca6b);
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
  return mixed ^ (mixed >>> 16);
}

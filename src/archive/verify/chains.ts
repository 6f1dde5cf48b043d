// The chain of each stream: every entry has the next number and names the previous one by its leaf hash. Invariants:
// memory has only the head of each stream; a damaged or missing entry is identified by the next one, which has its
// hash.

import type { PageEntry } from '../entries.ts';
import type { Break } from './findings.ts';

/** Limit of remembered lost entries; more are reported without their streams. */
const lostMax = 100_000;

interface Head {
  readonly index: number;
  readonly seq: number;
  readonly leaf: string;
}

/** The facts on an unreadable entry. */
interface Lost {
  readonly index: number;
  /** Called with its stream and number. */
  readonly name: (stream: string, seq: number) => void;
}

/** Follows the chains of all streams. */
export class StreamChains {
  readonly #heads = new Map<string, Head>();
  /** By leaf hash. */
  readonly #lost = new Map<string, Lost>();
  readonly #found: (one: Break) => void;

  constructor(found: (one: Break) => void) {
    this.#found = found;
  }

  /** Remembers an unreadable entry with this leaf hash. */
  lose(leaf: Buffer, lost: Lost): void {
    if (this.#lost.size < lostMax) this.#lost.set(leaf.toString('hex'), lost);
  }

  /** The number of a stream's last page so far; null: none. */
  lastOf(stream: string): number | null {
    return this.#heads.get(stream)?.seq ?? null;
  }

  /** Checks the next entry of a stream. */
  take(index: number, leaf: Buffer, { stream, seq, prev }: PageEntry): void {
    const head = this.#heads.get(stream);
    this.#heads.set(stream, { index, seq, leaf: leaf.toString('hex') });
    const expected = (head?.seq ?? -1) + 1;
    if (seq === expected && prev === (head?.leaf ?? null)) return;
    const lost = prev === null ? undefined : this.#lost.get(prev);
    const at = { index, stream, seq, object: null };
    if (lost === undefined) {
      const what =
        seq === expected
          ? 'the entry does not follow the one before it in its stream: prev is not its hash'
          : `the stream goes from ${head === undefined ? 'its beginning' : head.seq} to ${seq}: ${missing(expected, seq)}`;
      this.#found({ ...at, what });
      return;
    }
    lost.name(stream, seq - 1);
    if (seq - 1 === expected) return;
    const what = `${missing(expected, seq - 1)}, among the lost entries before ${lost.index}`;
    this.#found({ ...at, index: lost.index, seq: expected, what });
  }
}

/** Text for the numbers `from` up to, not including, `to`. */
function missing(from: number, to: number): string {
  if (to <= from) return 'it goes back';
  return to - from === 1 ? `${from} is missing` : `${from} to ${to - 1} are missing`;
}

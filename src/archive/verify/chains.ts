// The chain of each stream: every entry of it counts on and names the one before by its leaf hash.
// What must stay true: of each stream no more than its head is kept, and an entry whose bytes are
// damaged or gone is named by the one behind it, which has its hash.

import type { PageEntry } from '../entries.ts';
import type { Break } from './findings.ts';

/** Entries that are lost and may still be named: more are told without their streams. */
const lostMax = 100_000;

interface Head {
  readonly index: number;
  readonly seq: number;
  readonly leaf: string;
}

/** What is known of an entry that cannot be read. */
interface Lost {
  readonly index: number;
  /** Tells its place in a stream. */
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

  /** An entry that stands in the log with this leaf hash, and cannot be read. */
  lose(leaf: Buffer, lost: Lost): void {
    if (this.#lost.size < lostMax) this.#lost.set(leaf.toString('hex'), lost);
  }

  /** The number of a stream's last page so far; null: it has none. */
  lastOf(stream: string): number | null {
    return this.#heads.get(stream)?.seq ?? null;
  }

  /** The next entry of a stream. */
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

/** Numbers `from` up to, not including, `to`. */
function missing(from: number, to: number): string {
  if (to <= from) return 'it goes back';
  return to - from === 1 ? `${from} is missing` : `${from} to ${to - 1} are missing`;
}

// The logs of the other shards, as named in one shard's log. Deleting a whole log leaves no broken proof, so each log
// enters from time to time the trees that the others have signed. Invariants: a checkpoint is entered only if the
// archive's own key has signed it under that shard's name; a missing, damaged or unreachable log delays no page.

import { type Clock, ExportError } from '../contracts/index.ts';
import type { ObjectStore } from '../objects/index.ts';
import { parseCheckpoint } from './checkpoint.ts';
import type { EntryOf } from './entries.ts';
import { checkpointPath } from './layout.ts';
import { keyOfLog, logOfShard } from './log-name.ts';
import { openNote, type Verifier } from './note.ts';
import { readSmall } from './small-objects.ts';

/** The location of another shard's log. */
export interface SiblingPlace {
  readonly shard: number;
  open(): Promise<ObjectStore>;
}

/** The tree that another shard's log has signed. */
export type Sibling = NonNullable<EntryOf<'checkpoint'>['siblings']>[number];

/** Limit of logs that one log names: the next shards in order. */
const siblingsMax = 16;
/** They are read at the first checkpoint, then after intervals that double up to this one, and at the end. */
const everyMsMax = 3_600_000;

/** The other shards in the order in which this one names them. */
export function inRing<T extends { readonly shard: number }>(
  places: readonly T[],
  own: number,
): readonly T[] {
  const inOrder = places.filter(({ shard }) => shard !== own).toSorted((a, b) => a.shard - b.shard);
  const after = inOrder.filter(({ shard }) => shard > own);
  return [...after, ...inOrder.filter(({ shard }) => shard < own)].slice(0, siblingsMax);
}

/** Reads the checkpoints of the other shards' logs. */
export class Siblings {
  readonly #places: readonly SiblingPlace[];
  /** The config's key, whatever the log's name. */
  readonly #key: Verifier;
  readonly #clock: Clock;
  readonly #entered = new Map<number, number>();
  #dueAt = Number.NEGATIVE_INFINITY;
  #waitMs: number;

  constructor(
    places: readonly SiblingPlace[],
    {
      key,
      clock,
      everyMs,
    }: { readonly key: Verifier; readonly clock: Clock; readonly everyMs: number },
  ) {
    this.#places = places;
    this.#key = key;
    this.#clock = clock;
    this.#waitMs = everyMs;
  }

  /** Trees signed since the last read; empty if a read is not due. */
  async signed(isLast: boolean): Promise<readonly Sibling[]> {
    const now = this.#clock.monotonic();
    if (this.#places.length === 0 || (now < this.#dueAt && !isLast)) return [];
    this.#dueAt = now + this.#waitMs;
    this.#waitMs = Math.min(everyMsMax, Math.max(1, this.#waitMs) * 2);
    const found = await Promise.all(this.#places.map((place) => this.#read(place)));
    const changed = found.filter(
      (one) => one !== null && this.#entered.get(one.shard) !== one.size,
    );
    for (const one of changed) if (one !== null) this.#entered.set(one.shard, one.size);
    return changed.filter((one) => one !== null);
  }

  /** Null: there is no checkpoint that the key has signed for that shard. */
  async #read({ shard, open }: SiblingPlace): Promise<Sibling | null> {
    try {
      await using closing = new AsyncDisposableStack();
      const store = closing.adopt(await open(), (one) => Promise.resolve(one.close()));
      const found = await readSmall(store, checkpointPath);
      if (found === null) return null;
      const name = logOfShard(this.#key, shard);
      const { text } = openNote(found.body, [keyOfLog(this.#key, name)]);
      const { size, root } = parseCheckpoint(text);
      return { shard, size, root: Buffer.from(root).toString('hex') };
    } catch (error) {
      if (error instanceof SyntaxError || error instanceof ExportError) return null;
      throw error;
    }
  }
}

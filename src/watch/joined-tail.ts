// The live tail of several shards as one: each shard is tailed by the process that works on it, and the events are
// reported together, as many as a person can read. Invariants: a shard that cannot be tailed here is named; a slow or
// stopped shard delays no other.

import type { Clock } from '../contracts/index.ts';
import type { EventTap, TailTake, TailView, TailWish } from './tail.ts';

/** A shard that can be tailed here. */
export interface TailPart {
  readonly shard: number;
  /** Opens a view that ends with the signal; it fails if the shard does. */
  tail(wish: TailWish, gone: AbortSignal): TailView;
}

/** Dependencies of the joined tail. */
export interface JoinedTailDeps extends Pick<EventTap, 'forms'> {
  /** Throws an ExportError if the query is invalid. */
  readonly check: (wish: TailWish) => void;
  /** The shards that can be tailed now. */
  readonly parts: () => readonly TailPart[];
  readonly shards: () => readonly number[];
  readonly clock: Clock;
}

/** As many lines as of a single shard. */
const linesMax = 50;
const lookEveryMs = 1_000;
/** Wait before a failed shard is tried again, which may be reloading its config. */
const againMs = 5_000;

/** A tap of all shards. */
export function joinedTap(deps: JoinedTailDeps): EventTap {
  return {
    forms: deps.forms,
    open(wish) {
      deps.check(wish);
      return new JoinedView(deps, wish);
    },
  };
}

class JoinedView implements TailView {
  readonly #deps: JoinedTailDeps;
  readonly #wish: TailWish;
  readonly #views = new Map<TailPart, TailView>();
  readonly #taking = new Set<TailPart>();
  /** When failed shards are tried again. */
  readonly #againAt = new Map<TailPart, number>();
  #come: TailTake[] = [];
  #wake = new AbortController();
  #unseen = '';

  constructor(deps: JoinedTailDeps, wish: TailWish) {
    this.#deps = deps;
    this.#wish = wish;
  }

  async take(signal: AbortSignal): Promise<TailTake> {
    for (;;) {
      const unseen = this.#ask(signal);
      const isNew = unseen.join() !== this.#unseen;
      if (this.#come.length > 0 || isNew) {
        this.#unseen = unseen.join();
        return { ...joined(this.#come.splice(0)), unseen };
      }
      this.#wake = new AbortController();
      const woken = AbortSignal.any([signal, this.#wake.signal]);
      await this.#deps.clock.sleep(lookEveryMs, woken).catch(() => undefined);
      signal.throwIfAborted();
    }
  }

  /** Opens the shards that are not open yet; returns the shards that are not available. */
  #ask(signal: AbortSignal): readonly number[] {
    const { parts, shards, clock } = this.#deps;
    const present = new Set(parts());
    for (const part of this.#views.keys()) if (!present.has(part)) this.#views.delete(part);
    const now = clock.monotonic();
    for (const part of present) {
      if (this.#taking.has(part) || now < (this.#againAt.get(part) ?? 0)) continue;
      const view = this.#views.getOrInsertComputed(part, () => part.tail(this.#wish, signal));
      this.#taking.add(part);
      void this.#takeOf(part, view, signal);
    }
    const seen = new Set(Array.from(this.#views.keys(), ({ shard }) => shard));
    return shards().filter((shard) => !seen.has(shard));
  }

  async #takeOf(part: TailPart, view: TailView, signal: AbortSignal): Promise<void> {
    try {
      this.#come.push(await view.take(signal));
    } catch {
      this.#views.delete(part);
      this.#againAt.set(part, this.#deps.clock.monotonic() + againMs);
    }
    this.#taking.delete(part);
    this.#wake.abort();
  }
}

/** Each shard gets its share of the lines plus unused shares of others; dropped lines are counted. */
function joined(takes: readonly TailTake[]): TailTake {
  let [room, left] = [linesMax, takes.length];
  const shares = new Map<TailTake, number>();
  for (const take of takes.toSorted((a, b) => a.lines.length - b.lines.length)) {
    const share = Math.min(take.lines.length, Math.floor(room / left));
    shares.set(take, share);
    room -= share;
    left -= 1;
  }
  const lines = takes.flatMap((take) =>
    take.lines.slice(take.lines.length - (shares.get(take) ?? 0)),
  );
  const sum = (count: (take: TailTake) => number) =>
    takes.reduce((total, take) => total + count(take), 0);
  const out = sum((take) => take.lines.length) - lines.length;
  return {
    lines,
    looked: sum(({ looked }) => looked) - out,
    missed: sum(({ missed }) => missed) + out,
    unjudged: sum(({ unjudged }) => unjudged),
  };
}

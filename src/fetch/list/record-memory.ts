// What one list stream remembers of its records, and what on a page is new by it. It is loaded with
// the checkpoint, and anew after a commit that failed, since judging a page adds to it at once.

import type { ListStream } from '../../contracts/source.ts';
import type { StreamMemory } from '../../contracts/spool.ts';
import type { Clock } from '../../contracts/tools.ts';
import { joinedChange, type ListCheckpoint } from './checkpoint.ts';
import { byOldVersion } from './checkpoint-shape.ts';
import { ReReadDrift } from './drift.ts';
import { type Identified, Identifier } from './identity.ts';
import { judgePage, type PageContext, type WalkCounts, type WalkSoFar } from './judge.ts';
import { KeyTable } from './key-table.ts';
import type { Page } from './page.ts';
import { timeSpan } from './record-time.ts';
import { asWords, identityWords, Repeats } from './repeats.ts';
import type { Taken } from './stage.ts';

/** What a page is to its walk; `horizon`: up to this event time records count as known. */
export type HowRead = Pick<
  PageContext,
  'reading' | 'counts' | 'overlap' | 'anchored' | 'resumePage' | 'horizon'
>;

interface MemoryDeps {
  readonly stream: ListStream;
  readonly clock: Clock;
  readonly patienceMs: number;
}

/** See the head of this file. */
export class RecordMemory {
  readonly identifier: Identifier;
  readonly #deps: MemoryDeps;
  #repeats = new Repeats();
  #drift: ReReadDrift;
  /** Latest event time met, also where it is one to come. */
  #latest = Number.NEGATIVE_INFINITY;
  /** What is known of each walk, by what it counts. */
  #walks = new WeakMap<WalkCounts, WalkSoFar>();

  constructor(deps: MemoryDeps) {
    const { source, company = '', name } = deps.stream;
    this.#deps = deps;
    this.identifier = new Identifier({ source, company, stream: name });
    this.#drift = this.#driftFrom(null);
  }

  /** Versions of records that are held back. */
  get drift(): ReReadDrift {
    return this.#drift;
  }

  /** Takes up what is held. */
  load(identities: StreamMemory['identities'], { start, memory }: ListCheckpoint): void {
    const repeats = new Repeats();
    for (const { block, bytes } of identities) {
      const isAnchored = start.openWalk === null || block < start.openWalk.block;
      if (block <= memory.olderUpTo) repeats.addOlder(asWords(bytes), isAnchored);
      else repeats.addAll(asWords(bytes), isAnchored);
    }
    this.#repeats = repeats;
    this.#drift = this.#driftFrom(memory.drift);
    this.#walks = new WeakMap();
  }

  #driftFrom(state: ListCheckpoint['memory']['drift']): ReReadDrift {
    const { patienceMs, stream } = this.#deps;
    return new ReReadDrift(state, patienceMs, stream.ignore ?? []);
  }

  /** How many of a page's records look like ones that are held. */
  countKnown({ count, words }: Identified): number {
    let known = 0;
    for (let i = 0; i < count; i += 1) {
      if (this.#repeats.value(words, i * identityWords) >= 0) known += 1;
    }
    return known;
  }

  /** Tells what on a page is new, and remembers it. */
  take(
    page: Page,
    identified: Identified,
    { checkpoint, ...how }: HowRead & { readonly checkpoint: ListCheckpoint },
  ): Taken {
    const { stream, clock } = this.#deps;
    const { time } = stream;
    const now = clock.now();
    const readBefore = this.#readBefore(how, checkpoint);
    const judged = judgePage(
      { page, identified, time, readBefore, now, ...checkpoint.wanted, ...how },
      { identifier: this.identifier, repeats: this.#repeats, drift: this.#drift },
    );
    const span = timeSpan(page.records, time);
    this.#latest = Math.max(this.#latest, span?.latest ?? this.#latest);
    return { page, judged, at: now, span };
  }

  /** What of a page was read before; null: nothing was. */
  #readBefore(
    { reading, counts }: HowRead,
    { whole, end, memory }: ListCheckpoint,
  ): PageContext['readBefore'] {
    const latest = Math.max(this.#latest, memory.watermark ?? this.#latest);
    const readUpTo = latest === Number.NEGATIVE_INFINITY ? Number.POSITIVE_INFINITY : latest;
    const walk = this.#walks.get(counts) ?? {
      readUpTo,
      met: new KeyTable(),
      moved: new KeyTable(),
    };
    this.#walks.set(counts, walk);
    const isUnread = reading === 'onward' || (reading === 'resume' && !end.atEnd);
    return whole.swept && !isUnread ? walk : null;
  }

  /** A walk has joined up with what was known. */
  anchorAll(): void {
    this.#repeats.anchorAll();
  }
}

/** The checkpoint where records are known by what is not ignored now. */
export function underIgnore(
  held: ListCheckpoint,
  ignore: string[],
  newest: number,
): ListCheckpoint {
  const { memory } = held;
  if (JSON.stringify(memory.ignore) === JSON.stringify(ignore)) {
    const isOld = memory.olderUpTo === byOldVersion && newest > 0;
    // Read in its order, the first content met under an id is the one that was delivered; but what
    // may be forgotten is not read as if it were new.
    const anew = isOld && memory.horizon === null ? { whole: { swept: false, round: null } } : {};
    return joinedChange(held, {
      memory: { olderUpTo: Math.min(memory.olderUpTo, newest) },
      ...anew,
    });
  }
  // Those without ids were counted by what was not ignored then.
  const anew = memory.nameless ? { end: { countAnew: true, resumePage: null } } : {};
  return joinedChange(held, { memory: { ignore, olderUpTo: newest, drift: null }, ...anew });
}

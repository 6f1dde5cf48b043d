// The memory of one list stream: which records are known, and which records of a page are new. It is loaded with the
// checkpoint, and again after a failed commit, because judging a page updates it at once.

import type { Clock, ListStream, StreamMemory } from '../contracts/index.ts';
import { joinedChange, type ListCheckpoint } from './checkpoint.ts';
import { byOldVersion } from './checkpoint-shape.ts';
import { ReReadDrift } from './drift.ts';
import { type Identified, Identifier } from './identity.ts';
import { type JudgedPage, judgePage } from './judge.ts';
import type { Page } from './page.ts';
import { timeSpan } from './record-time.ts';
import { asWords, identityWords, KeyTable, Repeats } from './repeats.ts';
import type { IdlessTally, Taken } from './stage.ts';

/** A page's role in its walk. `horizon`: records up to this event time count as known. */
export type HowRead = Pick<
  JudgedPage,
  'reading' | 'overlap' | 'anchored' | 'resumePage' | 'horizon'
> & { readonly tally: IdlessTally };

interface MemoryDeps {
  readonly stream: ListStream;
  readonly clock: Clock;
  readonly patienceMs: number;
}

/** Earlier settings of `ignore` that are remembered. */
const earlierMax = 4;

/** See the head of this file. */
export class RecordMemory {
  readonly identifier: Identifier;
  readonly #deps: MemoryDeps;
  #repeats = new Repeats();
  #drift: ReReadDrift;
  /** Latest event time seen, even in the future. */
  #latest = Number.NEGATIVE_INFINITY;

  constructor(deps: MemoryDeps) {
    const { source, company = '', name } = deps.stream;
    this.#deps = deps;
    this.identifier = new Identifier({ source, company, stream: name });
    this.#drift = this.#driftFrom(null);
  }

  /** Held-back versions of records. */
  get drift(): ReReadDrift {
    return this.#drift;
  }

  /** Loads the stored identities. */
  load(identities: StreamMemory['identities'], { start, memory }: ListCheckpoint): void {
    const repeats = new Repeats();
    this.identifier.setEarlier(memory.ignoredBefore, memory.ignore);
    for (const { block, bytes } of identities) {
      const isAnchored = start.openWalk === null || block < start.openWalk.block;
      if (block <= memory.olderUpTo) repeats.addOlder(asWords(bytes), isAnchored);
      else repeats.addAll(asWords(bytes), isAnchored);
    }
    this.#repeats = repeats;
    this.#drift = this.#driftFrom(memory.drift);
  }

  #driftFrom(state: ListCheckpoint['memory']['drift']): ReReadDrift {
    const { patienceMs, stream } = this.#deps;
    return new ReReadDrift(state, patienceMs, stream.ignore ?? []);
  }

  /** How many of a page's records look like stored ones. */
  countKnown({ count, words }: Identified): number {
    let known = 0;
    for (let i = 0; i < count; i += 1) {
      if (this.#repeats.value(words, i * identityWords) >= 0) known += 1;
    }
    return known;
  }

  /** Decides which records of a page are new, and remembers them. */
  take(
    page: Page,
    identified: Identified,
    { checkpoint, tally, ...how }: HowRead & { readonly checkpoint: ListCheckpoint },
  ): Taken {
    const { stream, clock } = this.#deps;
    const { time } = stream;
    const now = clock.now();
    const readBefore = this.#readBefore(how.reading, tally, checkpoint);
    const { counts } = tally;
    const judged = judgePage(
      { page, identified, time, readBefore, now, counts, ...checkpoint.wanted, ...how },
      { identifier: this.identifier, repeats: this.#repeats, drift: this.#drift },
    );
    const span = timeSpan(page.records, time);
    this.#latest = Math.max(this.#latest, span?.latest ?? this.#latest);
    return { page, judged, at: now, span };
  }

  /** What is known about earlier readings of a page; null: the page was not read before. */
  #readBefore(
    reading: HowRead['reading'],
    tally: IdlessTally,
    { whole, end, memory }: ListCheckpoint,
  ): JudgedPage['readBefore'] {
    const repeats = this.#repeats;
    if (tally.soFar?.repeats !== repeats) {
      const latest = Math.max(this.#latest, memory.watermark ?? this.#latest);
      const readUpTo = latest === Number.NEGATIVE_INFINITY ? Number.POSITIVE_INFINITY : latest;
      tally.soFar = { repeats, readUpTo, seen: new KeyTable(), moved: new KeyTable() };
    }
    const isUnread = reading === 'onward' || (reading === 'resume' && !end.atEnd);
    return whole.swept && !isUnread ? tally.soFar : null;
  }

  /** A walk has reached known records. */
  anchorAll(): void {
    this.#repeats.anchorAll();
  }
}

/** The checkpoint adapted to another `ignore`. */
export function underIgnore(
  held: ListCheckpoint,
  ignore: string[],
  { newest, lookbackMs }: { readonly newest: number; readonly lookbackMs: number },
): ListCheckpoint {
  const { memory } = held;
  if (JSON.stringify(memory.ignore) === JSON.stringify(ignore)) {
    const isOld = memory.olderUpTo === byOldVersion && newest > 0;
    // In reading order, the first content seen under an id is the delivered one. Records that may be forgotten must not
    // be read as new.
    const rescan = isOld && memory.horizon === null ? { whole: { swept: false, round: null } } : {};
    return joinedChange(held, {
      memory: { olderUpTo: Math.min(memory.olderUpTo, newest) },
      ...rescan,
    });
  }
  // Records without ids were counted by the content under the old `ignore`.
  const recount = memory.nameless ? { end: { countAnew: true, resumePage: null } } : {};
  const ignoredBefore = earlierOf(memory, ignore, lookbackMs);
  return joinedChange(held, {
    memory: { ignore, ignoredBefore, olderUpTo: newest, drift: null },
    ...recount,
  });
}

/** The earlier settings of `ignore`, newest last; none of them is empty, because records are always looked for by bytes. */
function earlierOf(
  { ignore: last, ignoredBefore, nameless, watermark }: ListCheckpoint['memory'],
  ignore: readonly string[],
  lookbackMs: number,
): ListCheckpoint['memory']['ignoredBefore'] {
  if (!nameless) return ignoredBefore;
  const isOther = (paths: readonly string[], other: readonly string[]) =>
    JSON.stringify(paths) !== JSON.stringify(other);
  return [
    ...ignoredBefore.filter(({ paths }) => isOther(paths, last)),
    // Records late by at most `lookback` are rather delivered twice than lost.
    { paths: last, upTo: watermark && watermark - lookbackMs },
  ]
    .filter(({ paths }) => paths.length > 0 && isOther(paths, ignore))
    .slice(-earlierMax);
}

// Decides when a rejected event is to blame (rule R2). A rejection alone proves nothing: the
// receiver may reject everything for a while. Invariant: an event becomes a dead letter only if it
// was rejected, then the same destination accepted another event, and then the event was rejected
// again, alone. One acceptance is evidence against one event of a rejected batch, or against a few
// that were rejected alone before: a fault that starts in the middle of a batch must not turn the
// rest into dead letters.

import type { Event, Offset, Verdict } from '../contracts/index.ts';

/**
 * Maximum number of events that one acceptance is evidence against, each rejected alone before and
 * after it.
 */
const usesMax = 8;

/** A moment, as the number of requests so far; starts at 1. */
export type RequestCount = number;

/** An event that was rejected while nothing was accepted. */
export interface Suspect {
  readonly offset: Offset;
  readonly uid: string;
  readonly stream: string;
  readonly destination: string;
  /** The receiver's response. */
  readonly reason: string;
  readonly by: Verdict;
  /** When it was first rejected alone. */
  readonly since: RequestCount;
}

/** The certainty that an event is to blame. */
export type Guilt = 'proven' | 'likely' | 'open';

/** Recent acceptances and rejections. */
export class Evidence {
  readonly #destinationOf: (event: Event) => string;
  #turn: RequestCount = 0;
  /** By destination: the last acceptance. */
  readonly #acceptedAt = new Map<string, RequestCount>();
  /** By destination: the number of events that the last acceptance was used against. */
  readonly #used = new Map<string, number>();
  readonly #suspects = new Map<Offset, Suspect>();

  constructor(destinationOf: ((event: Event) => string) | undefined) {
    this.#destinationOf = destinationOf ?? (() => '');
  }

  /** Counts a request; returns its number. */
  begin(): RequestCount {
    this.#turn += 1;
    return this.#turn;
  }

  get turn(): RequestCount {
    return this.#turn;
  }

  /** No event is suspected. */
  get isEmpty(): boolean {
    return this.#suspects.size === 0;
  }

  destinationOf(event: Event): string {
    return this.#destinationOf(event);
  }

  /** The destinations of these events. */
  destinationsOf(events: readonly Event[]): ReadonlySet<string> {
    return new Set(events.map((event) => this.#destinationOf(event)));
  }

  /** The last request's events were accepted. */
  accepted(events: readonly Event[]): void {
    for (const destination of this.destinationsOf(events)) {
      this.#acceptedAt.set(destination, this.#turn);
      this.#used.delete(destination);
    }
    for (const { offset } of events) this.#suspects.delete(offset);
  }

  /**
   * An event was rejected alone. `proven`: it is to blame, because it was rejected alone before and
   * another event was accepted in between. `likely`: it is to blame if the next event is accepted,
   * because only a batch with it was rejected before. `inBatchAt`: the time of that batch; null:
   * none.
   */
  refused(
    event: Event,
    {
      reason,
      by,
      inBatchAt,
    }: { readonly reason: string; readonly by: Verdict; readonly inBatchAt: RequestCount | null },
  ): Guilt {
    const { offset, uid, stream } = event;
    const destination = this.#destinationOf(event);
    const accepted = this.#acceptedAt.get(destination) ?? 0;
    const before = this.#suspects.get(offset);
    const used = this.#used.get(destination) ?? 0;
    const isFresh = inBatchAt !== null && accepted > inBatchAt && used === 0;
    const isProven = before !== undefined && accepted > before.since && used < usesMax;
    const isLikely = isFresh && by === 'receiver';
    if (isProven || isLikely) {
      this.#suspects.delete(offset);
    } else {
      const since = before?.since ?? this.#turn;
      this.#suspects.set(offset, { offset, uid, stream, destination, reason, by, since });
    }
    this.#used.set(destination, used + 1);
    return isProven ? 'proven' : isLikely ? 'likely' : 'open';
  }

  /** The event is settled in another way. */
  forget(offset: Offset): void {
    this.#suspects.delete(offset);
  }

  /** Events rejected alone while their destination accepted none, in spool order. */
  get suspects(): readonly Suspect[] {
    return [...this.#suspects.values()].toSorted((a, b) => a.offset - b.offset);
  }
}

// Decides when a refused event is to blame (R2). A refusal alone proves nothing: the receiver may
// refuse everything for a while. What must stay true: an event becomes a dead letter only if it was
// refused, then the same destination accepted another event, and then the event was refused again,
// alone. One acceptance is evidence against one event of a refused batch, or against a few that were
// refused alone before: a fault that starts in the middle of a batch must not bury the rest of it.

import type { Event, Offset } from '../contracts/event.ts';
import type { Verdict } from '../contracts/sink.ts';

/** Events that one acceptance is evidence against, each refused alone before and after it. */
const usesMax = 8;

/** A moment: requests are counted, starting at 1. */
export type RequestCount = number;

/** An event that was refused while nothing was accepted. */
export interface Suspect {
  readonly offset: Offset;
  readonly uid: string;
  readonly stream: string;
  readonly destination: string;
  /** The receiver's answer. */
  readonly reason: string;
  readonly by: Verdict;
  /** When it was first refused by itself. */
  readonly since: RequestCount;
}

/** How sure it is that an event is to blame. */
export type Guilt = 'proven' | 'likely' | 'open';

/** What was accepted and refused lately. */
export class Evidence {
  readonly #destinationOf: (event: Event) => string;
  #turn: RequestCount = 0;
  /** By destination: when it last accepted an event. */
  readonly #acceptedAt = new Map<string, RequestCount>();
  /** By destination: how many events the last acceptance was used against. */
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

  /** These events were accepted by the last request. */
  accepted(events: readonly Event[]): void {
    for (const destination of this.destinationsOf(events)) {
      this.#acceptedAt.set(destination, this.#turn);
      this.#used.delete(destination);
    }
    for (const { offset } of events) this.#suspects.delete(offset);
  }

  /**
   * An event was refused alone. `proven`: it is to blame, since it was refused alone before and another
   * was accepted between. `likely`: it is to blame if the next event is accepted, since only a batch
   * with it was refused before. `inBatchAt`: when that was; null: there was none.
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

  /** Events refused alone while nothing of their destination was accepted, in spool order. */
  get suspects(): readonly Suspect[] {
    return [...this.#suspects.values()].toSorted((a, b) => a.offset - b.offset);
  }
}

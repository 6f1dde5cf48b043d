// Suspects that an operator moves to the dead letters. Invariants: the answer to the operator follows the write of the dead letters,
// so that a kill after the answer undoes nothing; an event that the receiver accepts meanwhile is no dead letter.

import type { Event, Offset, Uid } from '../contracts/index.ts';
import type { Outlet } from './outlet.ts';

/** A suspect as it is chosen. */
export interface ChosenSuspect {
  readonly offset: Offset;
  readonly uid: Uid;
  /** Undefined: it is read again. */
  readonly event?: Event;
}

/** Dependencies. */
export interface GivenUpDeps {
  readonly outlet: Pick<Outlet, 'cut'>;
  /** Resolves when no request is under way and the answer of the last one has been settled. */
  readonly quiet: () => Promise<void>;
  /** Makes durable dead letters of events. */
  readonly bury: (events: readonly Event[]) => Promise<void>;
}

/** The suspects of one sink that an operator has moved. */
export class GivenUp {
  readonly #deps: GivenUpDeps;
  /** Those that are no dead letters yet. */
  readonly #open = new Set<Uid>();
  #burying: Promise<unknown> = Promise.resolve();

  constructor(deps: GivenUpDeps) {
    this.#deps = deps;
  }

  /** Whether an event is about to become a dead letter. */
  has(uid: Uid): boolean {
    return this.#open.has(uid);
  }

  /** These events are settled in another way. */
  spare(events: readonly Pick<Event, 'uid'>[]): void {
    if (this.#open.size > 0) for (const { uid } of events) this.#open.delete(uid);
  }

  /** Resolves when no event is about to become a dead letter. */
  async settled(): Promise<void> {
    while (this.#open.size > 0) await this.#burying;
  }

  /** Moves suspects; resolves with their number when they are durable. */
  move(chosen: readonly ChosenSuspect[]): Promise<number> {
    for (const { uid } of chosen) this.#open.add(uid);
    const burying = this.#move(chosen);
    this.#burying = Promise.allSettled([this.#burying, burying]);
    return burying;
  }

  async #move(chosen: readonly ChosenSuspect[]): Promise<number> {
    try {
      await this.#deps.quiet();
      const events: Event[] = [];
      for (const one of chosen) {
        const event = one.event ?? (await this.#read(one));
        if (event !== undefined) events.push(event);
      }
      const left = events.filter(({ uid }) => this.#open.has(uid));
      if (left.length > 0) await this.#deps.bury(left);
      return left.length;
    } finally {
      for (const { uid } of chosen) this.#open.delete(uid);
    }
  }

  async #read({ offset, uid }: ChosenSuspect): Promise<Event | undefined> {
    const batch = await this.#deps.outlet.cut(offset, offset + 1);
    return batch?.events.find((event) => event.uid === uid);
  }
}

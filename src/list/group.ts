// Groups the steps of a walk into one append. With small pages, a transaction, an fsync and a wake-up of the spool's
// thread per page cost more than the reading. So steps wait here for later ones, up to a size and a short time.
// Invariant: one append leaves the same state as the appends of its steps in sequence, with no moment between them. So
// all steps belong to one walk, whose identities are all anchored or none, and keep their order.

import type { Append, Clock } from '../contracts/index.ts';

/** One step: an optional page, its identities and its checkpoint. */
export type ListStep = Omit<Append, 'entities'>;

/** A group with this many bytes of pages is complete. */
const groupBytes = 512 * 1024;
/** Longest wait of a step for the next page. */
const groupMs = 20;

/** The wait of a group's first step. */
interface Wait {
  /** Resolves with true when the time is over. */
  readonly isOver: Promise<boolean>;
  readonly end: AbortController;
}

/** The steps that are not appended yet. */
export class StepGroup {
  readonly #clock: Clock;
  #steps: ListStep[] = [];
  #bytes = 0;
  #wait: Wait | null = null;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get isEmpty(): boolean {
    return this.#steps.length === 0;
  }

  get isWhole(): boolean {
    return this.#bytes >= groupBytes;
  }

  add(step: ListStep): void {
    this.#steps.push(step);
    for (const { body } of step.pages) this.#bytes += body.length;
  }

  /** Resolves when `coming` has settled or the first step has waited long enough; true in the second case. */
  async isLate(coming: Promise<unknown>): Promise<boolean> {
    if (this.isEmpty) return false;
    this.#wait ??= this.#begin();
    const isThere = () => false;
    return await Promise.race([coming.then(isThere, isThere), this.#wait.isOver]);
  }

  #begin(): Wait {
    const end = new AbortController();
    const isOver = this.#clock.sleep(groupMs, end.signal).then(
      () => true,
      () => false,
    );
    return { isOver, end };
  }

  /** Returns the steps as one append and empties the group; null if it is empty. */
  take(): Append | null {
    const steps = this.#steps;
    const last = steps.at(-1);
    this.clear();
    if (last === undefined) return null;
    const identities = steps.flatMap((step) => step.identities ?? []);
    return {
      ...last,
      pages: steps.flatMap(({ pages }) => pages),
      // A copy of their own memory: a shared buffer would be sent whole to the spool's thread.
      identities: new Uint8Array(Buffer.concat(identities)),
      trail: steps.flatMap(({ trail }) => trail ?? []),
    };
  }

  /** Drops the steps. */
  clear(): void {
    this.#steps = [];
    this.#bytes = 0;
    this.#wait?.end.abort();
    this.#wait = null;
  }
}

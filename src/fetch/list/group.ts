// Steps of a walk that are held together. Where pages are small, a transaction, an fsync and a
// waking of the spool's thread for each cost more than reading them does. So steps wait here for
// those that follow, up to a size and for a moment, and are appended as one. What must stay true:
// the one append leaves behind what the appends of its steps, one after the other, would have left,
// with no moment between them. So all are of one walk, whose identities are anchored all or none,
// and are given in their order.

import type { Append } from '../../contracts/spool.ts';
import type { Clock } from '../../contracts/tools.ts';

/** One step: a page or none, its identities and the checkpoint that follows it. */
export type ListStep = Omit<Append, 'entities'>;

/** A group is whole with so many bytes of pages: what lies beyond can have its own. */
const groupBytes = 512 * 1024;
/** A step waits no longer than this for the page behind it. */
const groupMs = 20;

/** The wait of a group's first step. */
interface Wait {
  /** Resolves with true when it has lasted long enough. */
  readonly isOver: Promise<boolean>;
  readonly end: AbortController;
}

/** The steps that are not asked to be held yet. */
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

  /** Resolves when `coming` has settled or a step has waited enough; true if that was first. */
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

  /** The steps as one append; null where there is none. The group is empty from then on. */
  take(): Append | null {
    const steps = this.#steps;
    const last = steps.at(-1);
    this.clear();
    if (last === undefined) return null;
    const identities = steps.flatMap((step) => step.identities ?? []);
    return {
      ...last,
      pages: steps.flatMap(({ pages }) => pages),
      // Memory of their own: what shares it would be sent to the spool's thread as well.
      identities: new Uint8Array(Buffer.concat(identities)),
      trail: steps.flatMap(({ trail }) => trail ?? []),
    };
  }

  /** Forgets the steps. */
  clear(): void {
    this.#steps = [];
    this.#bytes = 0;
    this.#wait?.end.abort();
    this.#wait = null;
  }
}

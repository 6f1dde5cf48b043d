// One bound on the bodies that are read and processed at the same time, over all streams. The size of a response is known
// only by reading it, so requests are sent and their reading waits. Above the bound two kinds of bodies are still read: the
// first large one, whatever its size, and small ones up to half of the bound, so that a huge or stalled body keeps no small
// one waiting. Invariant: the polls of the first large body and of the first small one never wait, so one always makes progress,
// and its end admits the next. A poll may need its next page to release the one before: that page may have nothing to store.

import { AsyncLocalStorage } from 'node:async_hooks';
import type { InFlight } from '../contracts/index.ts';

/** The bytes of one response. */
export interface Lease {
  /** Counts received bytes. False: read on only after the callback of `onTurn`. */
  add(bytes: number): boolean;
  /** Calls when reading may continue; at most one call is pending. */
  onTurn(call: () => void): void;
  /** The body is complete: it counts until its owner releases it. */
  complete(): void;
  /** The body is abandoned. */
  drop(): void;
}

/** Enough for every stream that may poll at the same time with pages of a megabyte. */
const bytesMaxDefault = 32 * 1024 * 1024;
/** A body above this share of the bound is large. */
const largeShare = 1 / 32;
/** Of one poll: the page being stored, and the next one. */
const leasesMax = 2;

/** Bodies of one poll, in request order. */
type Holder = { leases: CountedLease[]; over: boolean };

/** Counts bodies. */
export class BytesInFlight implements InFlight {
  readonly #max: number;
  readonly #holders = new AsyncLocalStorage<Holder>();
  /** Those that hold bytes, in the order in which they began to. */
  readonly #leases = new Set<CountedLease>();
  #bytes = 0;

  constructor(bytesMax: number = bytesMaxDefault) {
    this.#max = bytesMax;
  }

  /** Bytes counted now. */
  get bytes(): number {
    return this.#bytes;
  }

  async during<T>(work: () => Promise<T>): Promise<T> {
    const holder: Holder = { leases: [], over: false };
    try {
      return await this.#holders.run(holder, work);
    } finally {
      holder.over = true;
      for (const lease of holder.leases) {
        if (lease.isComplete && !lease.isLanding) this.release(lease);
      }
    }
  }

  landing(): () => void {
    const landed = (this.#holders.getStore()?.leases ?? []).filter(({ isComplete }) => isComplete);
    for (const lease of landed) lease.isLanding = true;
    return () => {
      for (const lease of landed) this.release(lease);
    };
  }

  /** For a response to a request of the current work; null if nothing is counted. */
  open(): Lease | null {
    const holder = this.#holders.getStore();
    if (holder === undefined || holder.over) return null;
    const lease = new CountedLease(this, holder);
    holder.leases = [...holder.leases.filter(({ isOver }) => !isOver), lease];
    if (holder.leases.length > leasesMax) {
      const [oldest] = holder.leases;
      if (oldest?.isComplete) this.release(oldest);
    }
    return lease;
  }

  /** Called by a lease. True if reading may continue. */
  count(lease: CountedLease, bytes: number): boolean {
    const wasSmall = !this.#isLarge(lease);
    lease.bytes += bytes;
    this.#bytes += bytes;
    this.#leases.add(lease);
    // It no longer counts among the small ones.
    if (wasSmall && this.#isLarge(lease)) this.#wake(lease);
    return this.#mayContinue(lease);
  }

  release(lease: CountedLease): void {
    if (lease.isOver) return;
    lease.isOver = true;
    this.#bytes -= lease.bytes;
    this.#leases.delete(lease);
    this.#wake();
  }

  #wake(but?: CountedLease): void {
    for (const waiting of this.#leases) {
      if (waiting !== but && this.#mayContinue(waiting)) waiting.wake();
    }
  }

  #mayContinue(lease: CountedLease): boolean {
    if (this.#bytes <= this.#max) return true;
    let small = 0;
    const isFirst = { large: true, small: true };
    for (const other of this.#leases) {
      const size = this.#isLarge(other) ? 'large' : 'small';
      if (isFirst[size] && isOfItsPoll(other, lease)) return true;
      isFirst[size] = false;
      if (size === 'small') small += other.bytes;
    }
    return !this.#isLarge(lease) && small <= this.#max / 2;
  }

  #isLarge({ bytes }: CountedLease): boolean {
    return bytes > this.#max * largeShare;
  }
}

/** True if `first` may end only after `lease`; a body that is being stored ends without it. */
function isOfItsPoll(first: CountedLease, lease: CountedLease): boolean {
  return first === lease || (first.holder === lease.holder && !first.isLanding);
}

class CountedLease implements Lease {
  bytes = 0;
  isComplete = false;
  /** The caller of `landing` releases it, whatever the result of the work. */
  isLanding = false;
  isOver = false;
  readonly holder: Holder;
  readonly #budget: BytesInFlight;
  #onTurn: (() => void) | null = null;

  constructor(budget: BytesInFlight, holder: Holder) {
    this.#budget = budget;
    this.holder = holder;
  }

  add(bytes: number): boolean {
    return this.isOver || this.#budget.count(this, bytes);
  }

  onTurn(call: () => void): void {
    this.#onTurn = call;
  }

  wake(): void {
    const call = this.#onTurn;
    this.#onTurn = null;
    call?.();
  }

  complete(): void {
    this.isComplete = true;
    if (this.holder.over) this.drop();
  }

  drop(): void {
    this.#onTurn = null;
    this.#budget.release(this);
  }
}

// One bound on the bodies that are being read and judged at the same time, over all streams. How
// large an answer is says only the answer, so requests go out and their reading waits: beyond the
// bound nobody is read on but the one whose body began first, which is then alone in coming closer
// to its end, whatever its size. What must stay true: that one never waits, so there is always one
// that goes on, and its end lets the next one go.

import { AsyncLocalStorage } from 'node:async_hooks';
import type { InFlight } from '../contracts/tools.ts';

/** One answer's bytes. */
export interface Lease {
  /** Counts bytes that have come. False: read on only once `onTurn` calls. */
  add(bytes: number): boolean;
  /** Calls when it may be read on; at most one call is pending. */
  onTurn(call: () => void): void;
  /** The body is whole: it counts until what it belongs to lets it go. */
  complete(): void;
  /** It comes to nothing. */
  drop(): void;
}

/** Enough for every stream that may poll at the same time with pages of a megabyte. */
const bytesMaxDefault = 32 * 1024 * 1024;
/** Of one poll: the page that is being held, and the next one. */
const leasesMax = 2;

/** Bodies of one poll, in the order of asking. */
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

  /** For an answer to what the current work asks; null where nothing is counted. */
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

  /** Called by a lease. True where it may be read on. */
  count(lease: CountedLease, bytes: number): boolean {
    lease.bytes += bytes;
    this.#bytes += bytes;
    this.#leases.add(lease);
    return this.#mayGoOn(lease);
  }

  release(lease: CountedLease): void {
    if (lease.isOver) return;
    lease.isOver = true;
    this.#bytes -= lease.bytes;
    this.#leases.delete(lease);
    for (const waiting of this.#leases) if (this.#mayGoOn(waiting)) waiting.wake();
  }

  #mayGoOn(lease: CountedLease): boolean {
    const [oldest] = this.#leases;
    return this.#bytes <= this.#max || lease === oldest;
  }
}

class CountedLease implements Lease {
  bytes = 0;
  isComplete = false;
  /** It is let go by who is holding it, whatever becomes of the work. */
  isLanding = false;
  isOver = false;
  readonly #budget: BytesInFlight;
  readonly #holder: Holder;
  #onTurn: (() => void) | null = null;

  constructor(budget: BytesInFlight, holder: Holder) {
    this.#budget = budget;
    this.#holder = holder;
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
    if (this.#holder.over) this.drop();
  }

  drop(): void {
    this.#onTurn = null;
    this.#budget.release(this);
  }
}

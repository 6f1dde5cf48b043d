// Conditions that must hold for a shard of a simulated cluster at each step. The oracle sees more than any
// process: the committed transactions, and the owner of each epoch.

import type { Producing, Sent, Witness } from './broker.ts';

/** Allowed per takeover, for two takeovers in a row; unused ones are not saved. */
const allowedMax = 2;

/** Checks the conditions. */
export class Oracle implements Witness {
  /** Records before this one are in committed pages. */
  checkpoint = 0;
  readonly #held = new Set<number>();
  readonly #delivered = new Set<number>();
  #owner: Producing | null = null;
  /** Number of requests that may exceed the limit. */
  #allowed = 0;
  #tooMany = 0;
  readonly #find: (what: string) => void;

  constructor(find: (what: string) => void) {
    this.#find = find;
  }

  began(by: Producing): void {
    this.#owner = by;
  }

  /** Of a shard's writers only the one that started last may write. */
  accepted(by: Producing): void {
    if (by === this.#owner) return;
    this.#find(`what ${by.id} writes with epoch ${by.epoch} is accepted beside its successor`);
  }

  /** Each record is stored once, and the checkpoint is the sum of the pages. */
  committed(records: readonly Sent[]): void {
    for (const { key, value } of records) {
      const [table] = JSON.parse(String(key)) as [string];
      const said: unknown = JSON.parse(String(value));
      if (table === 'page') this.#hold(said as number[]);
      if (table === 'checkpoint') this.checkpoint = said as number;
      if (table === 'position') this.#pass(said as number);
    }
    const held = this.#held.size;
    if (this.checkpoint !== held) {
      this.#find(`the checkpoint is ${this.checkpoint}, and ${held} records are in pages`);
    }
  }

  delivered(numbers: readonly number[]): void {
    for (const number of numbers) this.#delivered.add(number);
  }

  /** The state that a process read from the log, compared with the committed one before it was the only writer. */
  restored(who: string, checkpoint: number, known: number): void {
    this.#allowed = Math.min(allowedMax, this.#allowed + 1);
    if (checkpoint >= known) return;
    this.#find(`${who} goes on from ${checkpoint}, and ${known} stood before it began`);
  }

  /** A process that was confirmed knows the state at the time of its request. */
  confirmed(who: string, checkpoint: number, known: number): void {
    if (checkpoint >= known) return;
    this.#find(`${who} is confirmed with ${checkpoint}, and ${known} stood before it asked`);
  }

  /** Each takeover may cost one request too many. */
  asked(tooMany: number): void {
    this.#allowed -= tooMany - this.#tooMany;
    this.#tooMany = tooMany;
    if (this.#allowed < 0) this.#find(`${tooMany} requests were more than upstream allows`);
  }

  /** Reports if fewer than this number of records were delivered. */
  missing(records: number): readonly string[] {
    const delivered = this.#delivered.size;
    return delivered >= records ? [] : [`${delivered} of ${records} records are delivered`];
  }

  #hold(numbers: readonly number[]): void {
    for (const number of numbers) {
      if (this.#held.has(number)) this.#find(`record ${number} is in two pages that stand`);
      this.#held.add(number);
    }
  }

  #pass(position: number): void {
    for (let number = 0; number < position; number += 1) {
      if (this.#delivered.has(number)) continue;
      this.#find(`the sink's position is ${position}, and ${number} was never delivered`);
    }
  }
}

// What must be true of a shard of a simulated cluster at each step, whatever happens to it. It sees
// what no process sees: which transactions stand, and who was given which epoch.

import type { Producing, Sent, Witness } from './broker.ts';

/** Of two takeovers one after the other; what was not used is not saved up. */
const allowedMax = 2;

/** Judges. */
export class Oracle implements Witness {
  /** Records before it are in pages that stand. */
  checkpoint = 0;
  readonly #held = new Set<number>();
  readonly #delivered = new Set<number>();
  #owner: Producing | null = null;
  /** Requests that may be too many. */
  #allowed = 0;
  #tooMany = 0;
  readonly #find: (what: string) => void;

  constructor(find: (what: string) => void) {
    this.#find = find;
  }

  began(by: Producing): void {
    this.#owner = by;
  }

  /** Of a shard's writers only the one that has begun last may write. */
  accepted(by: Producing): void {
    if (by === this.#owner) return;
    this.#find(`what ${by.id} writes with epoch ${by.epoch} is accepted beside its successor`);
  }

  /** Each record once, and the checkpoint is what the pages come to. */
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

  /** What a process has made of the log, beside what stood before it was the only writer. */
  restored(who: string, checkpoint: number, known: number): void {
    this.#allowed = Math.min(allowedMax, this.#allowed + 1);
    if (checkpoint >= known) return;
    this.#find(`${who} goes on from ${checkpoint}, and ${known} stood before it began`);
  }

  /** Whoever is confirmed knows what stood before it asked. */
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

  /** What of so many records was not delivered. */
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

// Signs from outside that the program is at a certain point: a receiver has a request and has not answered yet, a file is
// written, a transaction is being committed. A torture run kills it right then. Nothing in the program knows of them.

import { statSync, watch } from 'node:fs';
import { basename, dirname } from 'node:path';

/** Receivers report their events here; a waiting act runs in the same turn of the loop. */
export class Signs {
  readonly #waiting = new Map<string, Set<() => void>>();

  /** Notifies all that wait for this sign, once. */
  give(name: string): void {
    const waiting = this.#waiting.get(name);
    this.#waiting.delete(name);
    for (const report of waiting ?? []) report();
  }

  /** Calls `act` at the next such sign, and resolves to true; to false if none comes `withinMs`. */
  async next(name: string, withinMs: number, act: () => void = () => {}): Promise<boolean> {
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const waiting = this.#waiting.get(name) ?? new Set();
    this.#waiting.set(name, waiting);
    const report = () => {
      act();
      resolve(true);
    };
    waiting.add(report);
    const late = setTimeout(() => resolve(false), withinMs);
    const came = await promise;
    clearTimeout(late);
    waiting.delete(report);
    return came;
  }
}

/**
 * Resolves to true as soon as something was written to a file, or made or renamed under a name that fits, in a
 * directory that exists; to false if nothing is `withinMs`.
 */
export async function written(
  path: string,
  withinMs: number,
  fits: (name: string) => boolean = (name) => name === basename(path),
): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const watcher = watch(dirname(path), (_event, name) => {
    if (name !== null && fits(name)) resolve(true);
  });
  const late = setTimeout(() => resolve(false), withinMs);
  const came = await promise;
  clearTimeout(late);
  watcher.close();
  return came;
}

/** The mark of a committed or aborted transaction, a batch of its own (KIP-98, "Control Messages"), without leader. */
const controlBatchBytes = 78;

/** Resolves to true as soon as Kafka has ended a transaction in this partition's log, to false if it does not `withinMs`. */
export async function transactionEnded(log: string, withinMs: number): Promise<boolean> {
  let size = statSync(log).size;
  return await written(log, withinMs, (name) => {
    if (name !== basename(log)) return false;
    const before = size;
    size = statSync(log).size;
    return size - before === controlBatchBytes;
  });
}

// Signs from outside that the program is at a certain point: a receiver has a request and has not answered yet, a file
// grows, a transaction is being written. A torture run kills it right then. Nothing in the program knows of them.

import { existsSync, statSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';

/** Receivers tell here what they see; whoever waits for it acts in the same turn of the loop. */
export class Signs {
  readonly #waiting = new Map<string, Set<() => void>>();

  /** Tells all who wait for this sign, once. */
  give(name: string): void {
    const waiting = this.#waiting.get(name);
    this.#waiting.delete(name);
    for (const tell of waiting ?? []) tell();
  }

  /** Calls `act` at the next such sign, or after `withinMs` if none comes. Resolves when it was called. */
  async next(name: string, withinMs: number, act: () => void): Promise<void> {
    await new Promise<void>((resolve) => {
      const waiting = this.#waiting.get(name) ?? new Set();
      this.#waiting.set(name, waiting);
      const tell = () => {
        clearTimeout(late);
        waiting.delete(tell);
        act();
        resolve();
      };
      const late = setTimeout(tell, withinMs);
      waiting.add(tell);
    });
  }
}

/** Resolves as soon as the size of a file has changed (or it came to be), or after `withinMs`. */
export async function sizeChange(path: string | null, withinMs: number): Promise<void> {
  if (path === null) return;
  const before = sizeOf(path);
  const end = performance.now() + withinMs;
  while (sizeOf(path) === before && performance.now() < end) await delay(1);
}

function sizeOf(path: string): number {
  return existsSync(path) ? (statSync(path, { throwIfNoEntry: false })?.size ?? 0) : 0;
}

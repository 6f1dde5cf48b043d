// In place of src/hold/rebuild.ts in a simulated cluster, whose processes keep their state in
// memory: what was read from the log, by its table and key.

import type { OutboxRow } from '../../../src/hold/outbox.ts';
import type { Rebuilt } from '../../../src/hold/rebuild.ts';

/** What each process holds, by the directory that it names. */
export const held = new Map<string, Map<string, Uint8Array>>();

/** The state of a process while it is made. */
export class Rebuilding {
  readonly #rows = new Map<string, Uint8Array>();

  constructor(dir: string) {
    held.set(dir, this.#rows);
  }

  put(rows: readonly OutboxRow[]): void {
    for (const { table, key, value } of rows) {
      const name = [table, ...key].join(' ');
      if (value === null) this.#rows.delete(name);
      else this.#rows.set(name, value);
    }
  }

  finish(): Rebuilt {
    return { lost: 0, streams: 1, pages: this.#rows.size, missing: null };
  }

  close(): void {
    // Nothing is open.
  }
}

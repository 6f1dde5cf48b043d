// Replaces src/hold/rebuild.ts in a simulated cluster, whose processes have their state in memory: the rows
// from the log, by table and key. A run by `node` replaces src/hold/open.ts with it (hooks.ts), of which the cluster needs
// only what is exported here.

import type { OutboxRow } from '../../../src/hold/outbox.ts';
import type { Rebuilt } from '../../../src/hold/rebuild.ts';

export { withReserveOf } from '../../../src/hold/reserve.ts';

/** The state of each process, by its directory. */
export const held = new Map<string, Map<string, Uint8Array>>();

/** The state of a process during its rebuild. */
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
    return { streams: 1, pages: this.#rows.size, missing: null };
  }

  close(): void {
    // No file is open.
  }
}

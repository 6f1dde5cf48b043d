// The state of parents as the real database holds it: one for all worlds of a process, each with a
// stream of its own. Pages are not held, since what is in them is looked at as it comes.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Append, FetchSpool } from '../../../src/contracts/spool.ts';
import { Store } from '../../../src/hold/store.ts';

let opened: Store | null = null;

/** The database; it goes with the process. */
function store(): Store {
  if (opened !== null) return opened;
  const dir = mkdtempSync(join(process.env.SLUICE_TEST_RUN_DIR ?? tmpdir(), 'parents-'));
  process.once('exit', () => rmSync(dir, { recursive: true, force: true }));
  opened = new Store({ dir, sync: 'normal', keepMs: 0 });
  return opened;
}

/** What is durable at once, without a process. */
export function change(entry: Append, now: number): number {
  return store().transaction(() => store().append({ ...entry, pages: [] }, now).block);
}

/** The spool as one run of the process sees it. */
export function spoolOf(
  take: (entry: Append) => void,
  { step, now }: { readonly step: () => Promise<void>; readonly now: () => number },
): Omit<FetchSpool, 'entities'> {
  return {
    append: async (entry) => {
      await step();
      const block = change(entry, now());
      take(entry);
      await step();
      return block;
    },
    recall: async (stream) => store().recall(stream),
    trail: async (stream) => store().streams.trail(stream),
    room: async () => undefined,
    parents: {
      due: async (...asked) => store().parents.due(...asked),
      answered: async (...asked) => store().parents.answered(...asked),
      counts: async (...asked) => store().parents.counts(...asked),
    },
  };
}

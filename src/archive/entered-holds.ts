// Whether the log already names a hold, for the operator who set it. A hold is only a file until the writer enters it,
// and a file deleted before leaves no trace. Invariants: an entry reported here is proven by the newest checkpoint; the
// log is read only from the day before the hold was set.

import type { Hold } from './holds.ts';
import { checkpointSizeOf, keptCheckpointsPrefix } from './layout.ts';
import { loggedEntries } from './logged.ts';
import type { ProvenReader } from './proven-reader.ts';

/** When entries name a hold and its release, RFC 3339; null: not yet. */
export interface EnteredHold {
  readonly entered_at: string | null;
  readonly release_entered_at: string | null;
}

const dayMs = 86_400_000;
/** Number of earlier days searched for a checkpoint; after that the log is read from its start. */
const daysMax = 4;

/** The entries of a hold. Throws a SyntaxError if the log is damaged. */
export async function enteredHold(reader: ProvenReader, hold: Hold): Promise<EnteredHold> {
  let entered: string | null = null;
  const { id, placed_at, released_at } = hold;
  const from = await sizeBefore(reader, Date.parse(placed_at));
  for await (const { entry } of loggedEntries(reader, reader.head.size, from)) {
    if (entry.t !== 'hold' || entry.id !== id) continue;
    entered ??= entry.at;
    if (entry.released_at !== null) return { entered_at: entered, release_entered_at: entry.at };
    if (released_at === null) break;
  }
  return { entered_at: entered, release_entered_at: null };
}

/** Number of entries under a checkpoint before the day of that time; 0 if none is found soon. */
async function sizeBefore(reader: ProvenReader, time: number): Promise<number> {
  for (let days = 1; days <= daysMax; days += 1) {
    const day = new Date(time - days * dayMs).toISOString().slice(0, 10).replaceAll('-', '/');
    let size = 0;
    for await (const { name } of reader.store.list(`${keptCheckpointsPrefix}${day}/`)) {
      size = Math.max(size, checkpointSizeOf(name) ?? 0);
    }
    if (size > 0) return Math.min(size, reader.head.size);
  }
  return 0;
}

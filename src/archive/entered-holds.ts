// Whether the log names a hold yet, for the person who set it. A hold is a file until the process that writes enters it, and
// a file that is deleted before leaves no trace. What must stay true: what is reported as entered leads to the newest
// checkpoint, and no more of the log is read than since the day before the hold was set.

import type { Hold } from './holds.ts';
import { checkpointSizeOf, keptCheckpointsPrefix } from './layout.ts';
import { loggedEntries } from './logged.ts';
import type { ProvenReader } from './proven-reader.ts';

/** When entries name a hold and its release, RFC 3339; null: none does yet. */
export interface EnteredHold {
  readonly entered_at: string | null;
  readonly release_entered_at: string | null;
}

const dayMs = 86_400_000;
/** So many days before are looked at for a checkpoint; then the log is read from its start. */
const daysMax = 4;

/** What the log says of a hold. Throws a SyntaxError where it is damaged. */
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

/** How many entries a checkpoint before the day of that time has; 0 where none is found soon. */
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

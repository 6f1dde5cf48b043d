// Which streams a shard has a checkpoint of, by the records committed in Kafka. Nothing of the records is kept in
// memory but the names.

import type { Clock } from '../../contracts/index.ts';
import { keyLengths } from '../../hold/index.ts';
import { clusterError } from '../failure.ts';
import { committedRecords, LogClient } from './client.ts';
import { RowReader } from './rows.ts';
import { type StateLogSettings, shardNames } from './settings.ts';

const table = 'checkpoint';
const stalledMs = 20_000;

/** The names of these streams. Throws `sink_unreachable` or `sink_refused`. */
export async function streamsHeld(
  settings: StateLogSettings,
  clock: Clock,
): Promise<ReadonlySet<string>> {
  using client = new LogClient(settings, clock);
  const held = new Set<string>();
  try {
    const { state } = shardNames(settings);
    if (!(await client.has(state.topic))) return held;
    const reader = new RowReader({ [table]: keyLengths[table] ?? 1 });
    // One that was killed may have left a transaction open, which only its successor ends.
    const end = await client.stableEnd(state);
    for await (const records of committedRecords(client, state, { clock, stalledMs, end })) {
      for (const { key, value } of reader.rowsOf(records)) {
        if (value === null) held.delete(String(key[0]));
        else held.add(String(key[0]));
      }
    }
    return held;
  } catch (error) {
    throw clusterError(error, `looking for streams in ${settings.prefix}`);
  }
}

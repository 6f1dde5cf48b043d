// Copies of a state in Kafka on a disk of one's own, for those who look at it from anywhere. Nobody
// who works with it is disturbed.

import type { Clock } from '../contracts/tools.ts';
import { keyLengths } from '../hold/outbox.ts';
import { Rebuilding } from '../hold/rebuild.ts';
import { LogClient } from './log/client.ts';
import { committedRecords } from './log/reader.ts';
import { RowReader } from './log/rows.ts';
import { type LogSettings, shardNames } from './log/settings.ts';

/** What the standing of streams and sinks is made of: neither pages nor what records are known by. */
const told = ['meta', 'checkpoint', 'position', 'dead_letter', 'note', 'request', 'trail'];
const stalledMs = 20_000;

/**
 * Copies what tells how streams and sinks stand into a directory; false: there is no state in Kafka.
 * Throws `sink_unreachable`, and a KafkaFailure where the cluster refuses.
 */
export async function copyStanding(
  settings: LogSettings,
  dir: string,
  clock: Clock,
): Promise<boolean> {
  const client = new LogClient(settings, clock);
  const { state, dead } = shardNames(settings);
  try {
    if (!(await client.has(state.topic))) return false;
    const lengths = Object.entries(keyLengths).filter(([table]) => told.includes(table));
    const reader = new RowReader(Object.fromEntries(lengths));
    const copy = new Rebuilding(dir);
    try {
      for (const part of [state, dead]) {
        // None was made by an older version.
        if (part === dead && !(await client.has(part.topic))) continue;
        // One that was killed may have left a transaction open, which only its successor ends.
        const end = await client.stableEnd(part);
        for await (const records of committedRecords(client, part, { clock, stalledMs, end })) {
          copy.put(reader.rowsOf(records));
        }
      }
    } finally {
      copy.close();
    }
    return true;
  } finally {
    client.close();
  }
}

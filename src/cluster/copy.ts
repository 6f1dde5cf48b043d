// Copies of a state in Kafka on a disk of one's own, for those who look at it from anywhere: of one
// shard, up to what is committed there, and on from there as often as one looks. Nobody who works
// with it is disturbed.

import type { Clock } from '../contracts/index.ts';
import { keyLengths } from '../hold/index.ts';
import { Rebuilding } from '../hold/open.ts';
import { LogClient, type TopicPartition } from './log/client.ts';
import { committedRecords } from './log/reader.ts';
import { RowReader } from './log/rows.ts';
import { type StateLogSettings, shardNames } from './log/settings.ts';

/** What the status of streams, sinks and pairs is made of: neither pages nor the identities of records. */
const fields = [
  ...['meta', 'checkpoint', 'position', 'dead_letter', 'note', 'request', 'trail'],
  ...['pair', 'pair_record', 'pair_waiting'],
];
const stalledMs = 20_000;

/** What tells how streams and sinks of a shard stand, in a directory. */
export class StateCopy {
  readonly #settings: StateLogSettings;
  readonly #clock: Clock;
  readonly #client: LogClient;
  readonly #dir: string;
  readonly #reader = new RowReader(
    Object.fromEntries(Object.entries(keyLengths).filter(([table]) => fields.includes(table))),
  );
  #copy: Rebuilding | null = null;
  /** By topic, the next offset to read. */
  readonly #positions = new Map<string, bigint>();
  #isClosed = false;

  constructor(settings: StateLogSettings, dir: string, clock: Clock) {
    this.#settings = settings;
    this.#clock = clock;
    this.#client = new LogClient(settings, clock);
    this.#dir = dir;
  }

  /**
   * Has all that is committed by now; false: there is no state in Kafka. Throws `sink_unreachable`,
   * and a KafkaFailure where the cluster refuses.
   */
  async catchUp(): Promise<boolean> {
    const { state, dead } = shardNames(this.#settings);
    if (!(await this.#client.has(state.topic))) return false;
    // One that was killed may have left a transaction open, which only its successor ends.
    const end = await this.#client.stableEnd(state);
    if (this.#isClosed) throw new Error('the copy is closed');
    // It ends before what was read where it was made anew.
    if (this.#copy === null || end < (this.#positions.get(state.topic) ?? 0n)) {
      this.#copy?.close();
      this.#copy = new Rebuilding(this.#dir);
      this.#positions.clear();
    }
    await this.#read(this.#copy, state, end);
    // None was made by an older version.
    if (await this.#client.has(dead.topic)) {
      await this.#read(this.#copy, dead, await this.#client.stableEnd(dead));
    }
    return true;
  }

  async #read(copy: Rebuilding, part: TopicPartition, end: bigint): Promise<void> {
    const from = this.#positions.get(part.topic) ?? (await this.#client.start(part));
    const reading = { clock: this.#clock, stalledMs, from, end };
    for await (const records of committedRecords(this.#client, part, reading)) {
      copy.put(this.#reader.rowsOf(records));
    }
    this.#positions.set(part.topic, end > from ? end : from);
  }

  /** Leaves the directory as it is. */
  close(): void {
    this.#isClosed = true;
    this.#copy?.close();
    this.#client.close();
  }
}

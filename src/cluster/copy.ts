// A copy of one shard of a state in Kafka on the local disk, for commands and pages on any machine. Each look
// continues from the position of the last one, up to the committed end. Invariant: the owner is not disturbed.

import type { Clock } from '../contracts/index.ts';
import { keyLengths } from '../hold/index.ts';
import { Rebuilding } from '../hold/open.ts';
import { committedRecords, LogClient, type TopicPartition } from './log/client.ts';
import { RowReader } from './log/rows.ts';
import { type StateLogSettings, shardNames } from './log/settings.ts';

/** The tables of the status of streams, sinks and pairs: neither pages nor identities of records. */
const fields = [
  ...['meta', 'checkpoint', 'position', 'dead_letter', 'note', 'request', 'trail'],
  ...['pair', 'pair_record', 'pair_waiting'],
];
const stalledMs = 20_000;

/** The status of the streams and sinks of a shard, in a directory. */
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
   * Reads to the committed end; false: there is no state in Kafka. Throws `sink_unreachable`, and a
   * KafkaFailure if the cluster refuses.
   */
  async catchUp(): Promise<boolean> {
    const { state, dead } = shardNames(this.#settings);
    if (!(await this.#client.has(state.topic))) return false;
    // A killed process may have left a transaction open, which only its successor ends.
    const end = await this.#client.stableEnd(state);
    if (this.#isClosed) throw new Error('the copy is closed');
    // If the topic was recreated, it ends before the position.
    if (this.#copy === null || end < (this.#positions.get(state.topic) ?? 0n)) {
      this.#copy?.close();
      this.#copy = new Rebuilding(this.#dir);
      this.#positions.clear();
    }
    await this.#read(this.#copy, state, end);
    // An older version creates none.
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

  /** Closes the connections. The directory remains. */
  close(): void {
    this.#isClosed = true;
    this.#copy?.close();
    this.#client.close();
  }
}

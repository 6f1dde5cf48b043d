// A compacted partition with messages between the processes of a state in Kafka: read from its start,
// then followed, and written one record at a time. Invariants: a record in another form is ignored,
// since other programs may write there; a write resolves only after Kafka has stored it.

import { ProduceAcks } from '@platformatic/kafka';
import {
  type Clock,
  ExportError,
  type Json,
  type JsonObject,
  type Log,
} from '../contracts/index.ts';
import { parsedObject } from '../hold/index.ts';
import { Client } from '../kafka/log-client.ts';
import { clusterError } from './failure.ts';
import { LogClient, type TopicPartition } from './log/client.ts';
import type { LogRecord } from './log/committed.ts';
import { parsedKey } from './log/rows.ts';
import { connectionOf, type StateLogSettings } from './log/settings.ts';

const readWaitMs = 1_000;
const pauseMs = 1_000;
const produceMsMax = 10_000;
const retries = 5;

/** The partition as one process has read it. */
export abstract class ControlLog {
  readonly #settings: StateLogSettings;
  readonly #clock: Clock;
  readonly #client: LogClient;
  readonly #place: TopicPartition;
  readonly #over = new AbortController();
  readonly #listeners = new Set<() => void>();
  #producer: Client | null = null;
  /** The next offset to read; null: the topic was not seen yet. */
  #position: bigint | null = null;

  constructor(settings: StateLogSettings, clock: Clock, place: TopicPartition) {
    this.#settings = settings;
    this.#clock = clock;
    this.#client = new LogClient(settings, clock);
    this.#place = place;
  }

  /** Applies a record, whose key is a list that begins with texts; null: the record was deleted. */
  protected abstract put(key: readonly (string | number)[], said: JsonObject | null): void;

  /** Calls back after each read; the returned function ends that. */
  listen(received: () => void): () => void {
    this.#listeners.add(received);
    return () => this.#listeners.delete(received);
  }

  /** Reads the next records, and waits for them up to `waitMs`. Throws `sink_unreachable` or `sink_refused`. */
  async read(waitMs = readWaitMs): Promise<void> {
    try {
      if (this.#position === null) {
        if (!(await this.#client.has(this.#place.topic))) {
          await this.#clock.sleep(waitMs, this.#over.signal);
          return;
        }
        this.#position = await this.#client.start(this.#place);
      }
      const { records, position } = await this.#client.fetch(this.#place, this.#position, waitMs);
      for (const record of records) this.#put(record);
      this.#position = position;
      for (const received of this.#listeners) received();
    } catch (error) {
      throw clusterError(error, `reading ${this.#place.topic}`);
    }
  }

  /** Reads to the present end. Not while the partition is followed. */
  async readAll(): Promise<void> {
    const end = await this.#end();
    while (end !== null && (this.#position ?? -1n) < end) await this.read();
  }

  /**
   * Reads to the present end, and then each new record, until closed. Rejects with `sink_refused`
   * if Kafka refuses the read; otherwise waits for Kafka.
   */
  async follow(log: Log): Promise<void> {
    const { signal } = this.#over;
    for (;;) {
      try {
        await this.readAll();
        break;
      } catch (error) {
        if (error instanceof ExportError && error.code === 'sink_refused') throw error;
        await this.#clock.sleep(pauseMs, signal);
      }
    }
    const on = async () => {
      while (!signal.aborted) {
        await this.read().catch(async (error) => {
          if (signal.aborted) return;
          log.debug(
            'remote_commands_unreadable',
            'cannot read remote commands from the control topic',
            {
              error: String(error),
            },
          );
          // The topic may be another one by now.
          this.#position = null;
          await this.#clock.sleep(pauseMs, signal);
        });
      }
    };
    on().catch(() => undefined);
  }

  /** While the partition is followed: resolves after all records that existed at this call were read. */
  async caughtUp(): Promise<void> {
    const end = await this.#end();
    if (end === null) return;
    await new Promise<void>((resolve) => {
      const look = () => {
        if ((this.#position ?? -1n) < end) return;
        unlisten();
        resolve();
      };
      const unlisten = this.listen(look);
      this.#over.signal.addEventListener('abort', () => resolve());
      look();
    });
  }

  async close(): Promise<void> {
    this.#over.abort(new Error('the control topic is closed'));
    this.#client.close();
    await this.#producer?.disconnect().catch(() => undefined);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #end(): Promise<bigint | null> {
    try {
      const { topic } = this.#place;
      return (await this.#client.has(topic)) ? await this.#client.stableEnd(this.#place) : null;
    } catch (error) {
      throw clusterError(error, `reading ${this.#place.topic}`);
    }
  }

  #put({ key: text, value }: LogRecord): void {
    const key = parsedKey(text);
    if (typeof key[1] !== 'string') return;
    const said = value === null ? null : parsedObject(value.toString());
    if (value === null || said !== null) this.put(key, said);
  }

  /** Resolves after Kafka has stored the record; null deletes the key. Throws `sink_unreachable` or `sink_refused`. */
  protected async write(key: readonly string[], value: Json): Promise<void> {
    await this.writeAll([[key, value]]);
  }

  /** As `write`; of several records Kafka stores all or none, since they are one batch of one partition. */
  protected async writeAll(
    records: readonly (readonly [readonly string[], Json])[],
  ): Promise<void> {
    if (records.length === 0) return;
    const { clientId } = connectionOf(this.#settings);
    this.#producer ??= new Client({
      brokers: this.#settings.brokers,
      connections: connectionOf(this.#settings),
      producer: {
        ...{ clientId, retries, autocreateTopics: false },
        timeout: produceMsMax,
      },
    });
    const messages = records.map(([key, value]) => ({
      ...this.#place,
      key: Buffer.from(JSON.stringify(key)),
      // The protocol uses null for a deleted key; the library's types do not know it.
      value: (value === null ? null : Buffer.from(JSON.stringify(value))) as Buffer,
    }));
    try {
      await this.#producer.send({
        ...{ messages, compression: 'none', acks: ProduceAcks.ALL },
      });
    } catch (error) {
      throw clusterError(error, `writing to ${this.#place.topic}`);
    }
  }
}

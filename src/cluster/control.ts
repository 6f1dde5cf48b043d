// What operators have asked of the processes of a state in Kafka, from any machine: records of the
// compacted topic `<prefix>.control`, of one partition. `["drain", INSTANCE]` is there while that
// process is to own nothing; `["command", ID]` until whoever asked has its answer, which is
// `["answer", ID]`; `["shards", "count"]` says in how many shards the state is, where there are
// several; `["import", "state"]` is there while an import into several is not through. What must stay
// true: a command and its answer have keys of their own, so that one that a broker has stored twice
// stays answered; and what is not as we write it is left alone, since others may write there.

import { ProduceAcks } from '@platformatic/kafka';
import { z } from 'zod';
import { Client } from '../../connectors/sinks/kafka/platformatic-client.ts';
import { ExportError } from '../contracts/errors.ts';
import { isObject, type Json, type JsonObject } from '../contracts/json.ts';
import type { Clock, Log } from '../contracts/tools.ts';
import { parsedObject, type Wish, wishOf } from '../hold/requests.ts';
import { clusterError } from './failure.ts';
import { LogClient } from './log/client.ts';
import type { LogRecord } from './log/committed.ts';
import { parsedKey } from './log/rows.ts';
import { connectionOf, type LogSettings } from './log/settings.ts';

/** Something that one of the processes is to do. */
export interface Command {
  readonly id: string;
  /** The stream, sink or source that it is about. */
  readonly name: string;
  readonly wish: Wish;
  /** Whose process is to do it. */
  readonly shard: number;
  /** When it was asked for, by the clock of who asked; epoch milliseconds. */
  readonly at: number;
}

/** Which record. */
type Key = readonly ['drain' | 'command' | 'answer' | 'shards' | 'import', string];

const commandShape = z.object({ name: z.string(), at: z.number(), shard: z.number().default(0) });
const readWaitMs = 1_000;
const pauseMs = 1_000;
const produceMsMax = 10_000;
const retries = 5;

/** The topic as one process has read it. */
export class Control {
  readonly #settings: LogSettings;
  readonly #clock: Clock;
  readonly #client: LogClient;
  readonly #place: { readonly topic: string; readonly partition: number };
  readonly #over = new AbortController();
  readonly #listeners = new Set<() => void>();
  #producer: Client | null = null;
  /** The next offset to read; null: the topic was not seen yet. */
  #position: bigint | null = null;
  readonly #drained = new Set<string>();
  readonly #commands = new Map<string, Command>();
  readonly #answers = new Map<string, JsonObject>();
  #shards: number | null = null;
  #isImporting = false;

  constructor(settings: LogSettings, clock: Clock) {
    this.#settings = settings;
    this.#clock = clock;
    this.#client = new LogClient(settings, clock);
    this.#place = { topic: `${settings.prefix}.control`, partition: 0 };
  }

  /** The instances that are to own nothing. */
  get drained(): ReadonlySet<string> {
    return this.#drained;
  }

  /** Commands by their ids, those that have an answer too. */
  get commands(): ReadonlyMap<string, Command> {
    return this.#commands;
  }

  get answers(): ReadonlyMap<string, JsonObject> {
    return this.#answers;
  }

  /** In how many shards the state is, by whoever began it; null: nobody has said, or there is one. */
  get shards(): number | null {
    return this.#shards;
  }

  /** Whether an import into several shards is under way, or was broken off. */
  get isImporting(): boolean {
    return this.#isImporting;
  }

  /** Calls back after whatever was read; returns what ends that. */
  listen(heard: () => void): () => void {
    this.#listeners.add(heard);
    return () => this.#listeners.delete(heard);
  }

  /** Reads on, up to `waitMs` where there is nothing yet. Throws `sink_unreachable` or `sink_refused`. */
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
      for (const heard of this.#listeners) heard();
    } catch (error) {
      throw clusterError(error, `reading ${this.#place.topic}`);
    }
  }

  /** Reads all there is by now. Not while it is followed. */
  async readAll(): Promise<void> {
    const end = await this.#end();
    while (end !== null && (this.#position ?? -1n) < end) await this.read();
  }

  /**
   * Reads all there is, and from then on whatever comes, until closed. Rejects with `sink_refused`
   * where it may not be read; else waits for Kafka.
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
          log.debug('commands from afar cannot be read', { error: String(error) });
          // The topic may be another one by now.
          this.#position = null;
          await this.#clock.sleep(pauseMs, signal);
        });
      }
    };
    on().catch(() => undefined);
  }

  /** While it is followed: resolves once all was read that was there when this was called. */
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

  async drain(instance: string, at: number): Promise<void> {
    await this.#write(['drain', instance], { at });
  }

  async undrain(instance: string): Promise<void> {
    await this.#write(['drain', instance], null);
  }

  /** Says in how many shards the state is, which holds for good. */
  async divide(shards: number): Promise<void> {
    await this.#write(['shards', 'count'], { count: shards });
    this.#shards = shards;
  }

  /** Says that an import into several shards has begun, or is through: no shard is worked on between. */
  async importing(isImporting: boolean): Promise<void> {
    await this.#write(['import', 'state'], isImporting ? {} : null);
    this.#isImporting = isImporting;
  }

  async ask({ id, ...command }: Command): Promise<void> {
    await this.#write(['command', id], { ...command, wish: { ...command.wish } });
  }

  async answer(id: string, answer: JsonObject): Promise<void> {
    await this.#write(['answer', id], answer);
    this.#answers.set(id, answer);
  }

  /** Nobody needs it any more: who asked has its answer, or does not wait for it. */
  async withdraw(id: string): Promise<void> {
    await this.#write(['command', id], null);
    if (this.#answers.has(id)) await this.#write(['answer', id], null);
    this.#commands.delete(id);
    this.#answers.delete(id);
  }

  async close(): Promise<void> {
    this.#over.abort(new Error('the control topic is closed'));
    this.#client.close();
    await this.#producer?.disconnect().catch(() => undefined);
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
    const [kind, name] = parsedKey(text);
    if (typeof name !== 'string') return;
    const said = value === null ? null : parsedObject(value.toString());
    if (value !== null && said === null) return;
    if (kind === 'drain') {
      if (said === null) this.#drained.delete(name);
      else this.#drained.add(name);
    } else if (kind === 'answer') {
      if (said === null) this.#answers.delete(name);
      else this.#answers.set(name, said);
    } else if (kind === 'shards') {
      const count = said?.count;
      this.#shards = typeof count === 'number' ? count : null;
    } else if (kind === 'import') {
      this.#isImporting = said !== null;
    } else if (kind === 'command') {
      const command = said && commandOf(name, said);
      if (command !== null) this.#commands.set(name, command);
      else if (said === null) this.#commands.delete(name);
    }
  }

  async #write(key: Key, value: Json): Promise<void> {
    const { clientId } = connectionOf(this.#settings);
    this.#producer ??= new Client({
      brokers: this.#settings.brokers,
      connections: connectionOf(this.#settings),
      producer: {
        ...{ clientId, retries, autocreateTopics: false },
        timeout: produceMsMax,
      },
    });
    const message = {
      ...this.#place,
      key: Buffer.from(JSON.stringify(key)),
      // A null is what the protocol has for what is gone; the library's types do not know it.
      value: (value === null ? null : Buffer.from(JSON.stringify(value))) as Buffer,
    };
    try {
      await this.#producer.send({
        ...{ messages: [message], compression: 'none', acks: ProduceAcks.ALL },
      });
    } catch (error) {
      throw clusterError(error, `writing to ${this.#place.topic}`);
    }
  }
}

function commandOf(id: string, said: JsonObject): Command | null {
  const shaped = commandShape.safeParse(said).data;
  const wish = wishOf(isObject(said.wish) ? said.wish : null);
  return shaped === undefined || wish === null ? null : { id, ...shaped, wish };
}

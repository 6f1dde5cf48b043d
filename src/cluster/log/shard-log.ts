// The log of one shard: its partition of the pages and its partition of the state. Whoever has
// taken the shard writes, a transaction at a time, pages and the state that follows them together;
// its state database is a cache, made of the log when the shard is taken (src/hold/rebuild.ts).
// What must stay true: nothing is written once another process has the shard, and what was written
// without an answer is written once more only after the log has said that it is not there.

import { randomUUID } from 'node:crypto';
import { KafkaFailure } from '../../../connectors/sinks/kafka/failure.ts';
import { ExportError } from '../../contracts/errors.ts';
import type { Offset } from '../../contracts/event.ts';
import type { Clock, Log } from '../../contracts/tools.ts';
import { keyLengths, type OutboxRow, pageTable } from '../../hold/outbox.ts';
import { Rebuilding, type Rebuilt } from '../../hold/rebuild.ts';
import type { SpoolLog } from '../../hold/spool.ts';
import { LogClient, type Partition } from './client.ts';
import { committedRecords } from './reader.ts';
import { parsedKey, RowReader, recordsOf } from './rows.ts';
import { type LogSettings, shardNames } from './settings.ts';
import { ensureTopics } from './topics.ts';
import { type NewRecord, TransactionalWriter } from './writer.ts';

/** What a shard's log works with. */
export interface ShardLogMeans {
  readonly log: Log;
  readonly clock: Clock;
  /** Resolves where this process is still the one that is to write, else rejects; left out: nobody knows. */
  readonly confirm?: ((signal: AbortSignal) => Promise<void>) | undefined;
}

/** The record that each transaction ends with: who wrote it, and how many it had written before. */
interface Mark {
  readonly writer: string;
  readonly transaction: number;
}

const markKey = Buffer.from(JSON.stringify(['transaction']));
const pauseMsMin = 100;
const pauseMsMax = 5_000;
const stalledMsMax = 60_000;
/** How long Kafka is waited for at the end, and how often that is looked at. */
const hurryMsMax = 5_000;
const hurryEveryMs = 500;
/** Pages that nobody needs are deleted so often. */
const forgetEveryMs = 5_000;

/** The log of a shard that this process has taken. */
export class ShardLog implements SpoolLog {
  readonly #settings: LogSettings;
  readonly #means: ShardLogMeans;
  readonly #pages: Partition;
  readonly #state: Partition;
  readonly #id: string;
  readonly #client: LogClient;
  readonly #name = randomUUID();
  #writer: TransactionalWriter;
  #transactions = 0;
  #hasWrittenPages = false;
  /** Since when a transaction is under way, by the monotonic clock; null: none is. */
  #writesSince: number | null = null;
  /** Behind what is known of the state's partition. */
  #known = 0n;
  /** Where each page stands that is held, oldest first. */
  #places: { readonly first: Offset; readonly offset: bigint }[] = [];
  #forgotAt = Number.NEGATIVE_INFINITY;
  readonly #over = new AbortController();

  private constructor(settings: LogSettings, means: ShardLogMeans) {
    const { pages, state, transactionalId } = shardNames(settings);
    this.#settings = settings;
    this.#means = means;
    this.#pages = pages;
    this.#state = state;
    this.#id = transactionalId;
    this.#client = new LogClient(settings, means.clock);
    this.#writer = new TransactionalWriter(settings, this.#id);
  }

  /** Takes a shard: from now on no other process can write there. Throws `sink_unreachable` or `sink_refused`. */
  static async take(settings: LogSettings, means: ShardLogMeans): Promise<ShardLog> {
    const log = new ShardLog(settings, means);
    try {
      await ensureTopics(log.#client, settings);
      await log.#writer.begin();
      return log;
    } catch (error) {
      log.cut();
      throw log.#told(error, 'taking');
    }
  }

  /** Makes the state database in a directory of all that the log holds: its cache, or on its own. */
  async rebuild(dir: string, { isCache = true } = {}): Promise<Rebuilt> {
    const rebuilding = new Rebuilding(dir);
    try {
      this.#known = await this.#client.end(this.#state);
      const reader = new RowReader(keyLengths);
      const reading = { clock: this.#means.clock, stalledMs: stalledMsMax };
      for await (const records of committedRecords(this.#client, this.#state, {
        ...reading,
        end: this.#known,
      })) {
        rebuilding.put(reader.rowsOf(records));
      }
      for await (const records of committedRecords(this.#client, this.#pages, reading)) {
        rebuilding.put(reader.rowsOf(records));
        for (const { key, offset } of records) this.#notePlace(key, offset);
      }
      // What a successor writes has older records compacted away, and pages deleted, that were not read yet.
      if ((await this.#newestMark()) !== null) throw this.#lost();
    } catch (error) {
      rebuilding.close();
      throw this.#told(error, 'reading');
    }
    return rebuilding.finish({ isCache });
  }

  /**
   * Writes rows, all or none. Waits for Kafka for as long as that takes. Throws `state_locked` where
   * another process has the shard, and `sink_refused` where it may not be written from the start.
   */
  readonly commit = async (rows: readonly OutboxRow[]): Promise<void> => {
    this.#transactions += 1;
    this.#writesSince = this.#means.clock.monotonic();
    const records = this.#recordsOf(rows);
    for (;;) {
      try {
        this.#learn(records, await this.#writer.write(records));
        break;
      } catch (error) {
        this.#over.signal.throwIfAborted();
        await this.#endWriter(error);
      }
      if (await this.#stands()) break;
    }
    this.#writesSince = null;
  };

  /** From now on a transaction that Kafka does not take in time is given up, and the shard with it. */
  hurry(): void {
    const { clock } = this.#means;
    const { signal } = this.#over;
    const from = clock.monotonic();
    const watch = async () => {
      for (;;) {
        await clock.sleep(hurryEveryMs, signal);
        const since = Math.max(from, this.#writesSince ?? Number.POSITIVE_INFINITY);
        if (clock.monotonic() - since > hurryMsMax) this.cut(this.#notTaken());
      }
    };
    watch().catch(() => undefined);
  }

  /** Whether the last transaction is in the log; begins another writer, so that it is decided. */
  async #stands(): Promise<boolean> {
    for (let pauseMs = pauseMsMin; ; pauseMs = Math.min(pauseMs * 2, pauseMsMax)) {
      await this.#means.clock.sleep(pauseMs, this.#over.signal);
      this.#writer = new TransactionalWriter(this.#settings, this.#id);
      let newest: Mark | null;
      try {
        await this.#writer.begin();
        newest = await this.#newestMark();
      } catch (error) {
        await this.#endWriter(error);
        continue;
      }
      if (newest !== null && newest.writer !== this.#name) throw this.#lost();
      return newest?.transaction === this.#transactions;
    }
  }

  /**
   * Lets go of a writer that has failed. Throws where the shard is another process's, where this
   * machine's clock is not taken, so that another one goes on, and where a right lacks from the
   * start: one that is taken away later may come back. Whoever is put out by a
   * process that has slept through its end, and is still to write, begins anew and puts that one out.
   */
  async #endWriter(error: unknown): Promise<void> {
    this.#writer.drop();
    const isDenied = error instanceof KafkaFailure && error.kind === 'denied';
    const isOfClock = error instanceof KafkaFailure && error.kind === 'clock';
    if (isOfClock || (isDenied && !this.#hasWrittenPages)) throw this.#told(error, 'writing');
    if (error instanceof KafkaFailure && error.kind === 'fenced') {
      if (this.#means.confirm === undefined) throw this.#lost();
      await this.#means.confirm(this.#over.signal);
    }
    this.#means.log.warn('the log of the shard did not take a transaction; it is tried again', {
      shard: this.#state.partition,
      error: String(error),
    });
  }

  /** Deletes pages before an offset from the log, some time soon. */
  forgetBefore(offset: Offset): void {
    const now = this.#means.clock.monotonic();
    // Of a page whose commit had no answer nobody knows the place: the one before it is safe.
    const kept = this.#places.findLastIndex(({ first }) => first <= offset);
    if (kept <= 0 || now - this.#forgotAt < forgetEveryMs) return;
    this.#forgotAt = now;
    const place = this.#places[kept]?.offset ?? 0n;
    this.#places = this.#places.slice(kept);
    this.#client.deleteBefore(this.#pages, place).catch((error) => {
      this.#means.log.warn('pages that every sink has could not be deleted from the log', {
        error: String(error),
      });
    });
  }

  /** Lets go of the shard; another process may take it. */
  async close(): Promise<void> {
    await this.#writer.close().catch(() => undefined);
    this.cut();
  }

  /** Cuts all connections at once, as a crash would. */
  cut(why: Error = new Error('the log is closed')): void {
    this.#over.abort(why);
    this.#writer.drop();
    this.#client.close();
  }

  #recordsOf(rows: readonly OutboxRow[]): readonly NewRecord[] {
    const mark: Mark = { writer: this.#name, transaction: this.#transactions };
    const records = rows
      // Pages go by deletion of all before an offset.
      .filter(({ table, value }) => table !== pageTable || value !== null)
      .flatMap((row) => {
        const to = row.table === pageTable ? this.#pages : this.#state;
        return recordsOf(row).map((record) => ({ ...record, to }));
      });
    return [
      ...records,
      { to: this.#state, key: markKey, value: Buffer.from(JSON.stringify(mark)) },
    ];
  }

  /** The newest of what has been committed since this process knew all of it. */
  async #newestMark(): Promise<Mark | null> {
    const reading = { clock: this.#means.clock, stalledMs: stalledMsMax, from: this.#known };
    let newest: Mark | null = null;
    for await (const records of committedRecords(this.#client, this.#state, reading)) {
      for (const { key, value } of records) {
        if (key?.equals(markKey) && value !== null) newest = JSON.parse(String(value)) as Mark;
      }
    }
    return newest;
  }

  #learn(records: readonly NewRecord[], firsts: ReadonlyMap<string, bigint>): void {
    const { topic, partition } = this.#state;
    this.#known = firsts.get(`${topic}:${partition}`) ?? this.#known;
    let offset = firsts.get(`${this.#pages.topic}:${this.#pages.partition}`) ?? 0n;
    for (const { to, key } of records) {
      if (to !== this.#pages) continue;
      this.#notePlace(key, offset);
      this.#hasWrittenPages = true;
      offset += 1n;
    }
  }

  #notePlace(key: Buffer | null, offset: bigint): void {
    const [table, first] = parsedKey(key);
    if (table !== pageTable || typeof first !== 'number') return;
    if (this.#places.at(-1)?.first !== first) this.#places.push({ first, offset });
  }

  #lost(): ExportError {
    const what = `another process has taken the shard ${this.#state.partition} of ${this.#settings.prefix} over`;
    return new ExportError('state_locked', what, {
      next: 'Nothing was lost: it goes on from what this one has committed. Run one process, or give each an instance name of its own.',
    });
  }

  #notTaken(): ExportError {
    const what = `Kafka does not take what is left of the shard ${this.#state.partition} of ${this.#settings.prefix}`;
    return new ExportError('sink_unreachable', what, {
      next: 'Nothing was lost: what was not committed is read again at the next start. Ask sluice check --connect what is wrong with state.kafka.',
    });
  }

  #told(error: unknown, doing: string): unknown {
    if (!(error instanceof KafkaFailure)) return error;
    const message = `${doing} the shard ${this.#state.partition} of ${this.#settings.prefix}: ${error.message}`;
    const code = error.kind === 'passing' ? 'sink_unreachable' : 'sink_refused';
    const next =
      error.kind === 'clock'
        ? `Set this machine’s clock right, which is further ahead than message.timestamp.after.max.ms of its topics allows, or their message.timestamp.type to LogAppendTime. Nothing was lost.`
        : 'Ask sluice check --connect what is wrong with state.kafka: brokers, rights or topics. Nothing was lost.';
    return new ExportError(code, message, { next, cause: error });
  }
}

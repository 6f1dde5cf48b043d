// The log of one shard: its partitions of the pages, of the state and of the dead letters. The owner writes pages and the
// state that belongs to them in one transaction at a time. Its state database is a cache, rebuilt from the log at a
// takeover (src/hold/rebuild.ts). Invariants: nothing is written once another process owns the shard; a transaction
// without a response is repeated only after the log shows that it was not committed.

import { randomUUID } from 'node:crypto';
import { asExportError, type Clock, type Log, type Offset } from '../../contracts/index.ts';
import { deadLetterTable, keyLengths, type OutboxRow, pageTable } from '../../hold/index.ts';
import { Rebuilding, type Rebuilt, type SpoolLog, withReserveOf } from '../../hold/open.ts';
import { KafkaFailure } from '../../kafka/index.ts';
import { logError, restNotTaken, shardLost, topicGone } from '../failure.ts';
import { committedRecords, LogClient, type TopicPartition } from './client.ts';
import { foreignTopic, isOurs, PagePlaces, RowReader, rowRecords } from './rows.ts';
import { type StateLogSettings, shardNames } from './settings.ts';
import { ensureTopics } from './topics.ts';
import { type NewRecord, TransactionalWriter, transactionMsMax } from './writer.ts';

/** Dependencies of a shard's log. */
export interface ShardLogDeps {
  readonly log: Log;
  readonly clock: Clock;
  /**
   * Resolves if this process still owns the shard, with the number of times that the group has removed it; otherwise
   * rejects. Default: there is no group.
   */
  readonly confirm?: ((signal: AbortSignal) => Promise<number>) | undefined;
}

/** The last record of each transaction: its writer, and the number of transactions of this writer. */
interface Mark {
  readonly writer: string;
  readonly transaction: number;
}

const markKey = Buffer.from(JSON.stringify(['transaction']));
const pauseMsMin = 100;
const pauseMsMax = 5_000;
const stalledMsMax = 60_000;
/** Limit of waiting for Kafka at the end, and the interval of checks. */
const hurryMsMax = 5_000;
const hurryEveryMs = 500;
/** Longer than a broker leaves a transaction open. */
const answerMsMax = transactionMsMax + 10_000;
/** A topic that no broker knows for so long is deleted: a broker that has just started may not know it yet. */
const missingMsMax = 20_000;
/** Interval of deleting pages that every sink has. */
const forgetEveryMs = 5_000;

/** The log of a shard that this process owns. */
export class ShardLog implements SpoolLog {
  readonly #settings: StateLogSettings;
  readonly #deps: ShardLogDeps;
  readonly #pages: TopicPartition;
  readonly #state: TopicPartition;
  readonly #dead: TopicPartition;
  readonly #id: string;
  readonly #client: LogClient;
  readonly #name = randomUUID();
  #writer: TransactionalWriter;
  #transactions = 0;
  #hasWrittenPages = false;
  /** How often the group had removed this process at the last look into the log. */
  #givenUp = 0;
  #turn: Promise<unknown> = Promise.resolve();
  /** Start of the present write or look, by the monotonic clock; null: none. */
  #worksSince: number | null = null;
  /** Duration of the last commit; null: none yet. */
  #commitMs: number | null = null;
  /** Start of the present commit, by the monotonic clock; null: none. */
  #commitsSince: number | null = null;
  /** Since when a topic is missing, by the monotonic clock; null: none is, or that is not known. */
  #missingSince: number | null = null;
  /** From this offset of the state's partition on, this process knows only its own records. */
  #known = 0n;
  /** Start of this process's last transaction in each topic. */
  readonly #wroteAt = new Map<TopicPartition, bigint>();
  #places = new PagePlaces();
  #forgotAt = Number.NEGATIVE_INFINITY;
  readonly #over = new AbortController();

  private constructor(settings: StateLogSettings, deps: ShardLogDeps) {
    const { pages, state, dead, transactionalId } = shardNames(settings);
    this.#settings = settings;
    this.#deps = deps;
    this.#pages = pages;
    this.#state = state;
    this.#dead = dead;
    this.#id = transactionalId;
    this.#client = new LogClient(settings, deps.clock);
    this.#writer = new TransactionalWriter(settings, this.#id);
  }

  /** Takes a shard over: fences all earlier owners. Throws `sink_unreachable` or `sink_refused`. */
  static async take(settings: StateLogSettings, deps: ShardLogDeps): Promise<ShardLog> {
    const log = new ShardLog(settings, deps);
    try {
      await ensureTopics(log.#client, settings);
      log.#givenUp = await log.#begin();
      return log;
    } catch (error) {
      log.cut();
      throw logError(error, 'taking', settings);
    }
  }

  /** Whether a topic exists. Throws `sink_unreachable` or `sink_refused`. */
  async has(topic: string): Promise<boolean> {
    try {
      return await this.#client.has(topic);
    } catch (error) {
      throw logError(error, 'reading', this.#settings);
    }
  }

  /** Rebuilds the state database in a directory from the log: as its cache, or as a separate database. */
  async rebuild(dir: string, { isCache = true } = {}): Promise<Rebuilt> {
    return await withReserveOf(dir, () => this.#rebuild(dir, isCache));
  }

  async #rebuild(dir: string, isCache: boolean): Promise<Rebuilt> {
    this.#places = new PagePlaces();
    const rebuilding = new Rebuilding(dir);
    try {
      this.#known = await this.#client.end(this.#state);
      const reader = new RowReader(keyLengths);
      const reading = { clock: this.#deps.clock, stalledMs: stalledMsMax };
      // Dead letters of older versions are in the state, and later changes of them in `.dead`.
      const parts = [
        { of: this.#state, end: this.#known },
        { of: this.#dead },
        { of: this.#pages },
      ];
      let isState = false;
      for (const { of, ...bound } of parts) {
        for await (const records of committedRecords(this.#client, of, { ...reading, ...bound })) {
          // A record of another program in a state of sluice is ignored.
          isState ||= records.some(isOurs);
          if (!isState) throw foreignTopic(of.topic);
          rebuilding.put(reader.rowsOf(records));
          for (const { key, offset } of records) this.#places.note(key, offset);
        }
      }
      // Writes of a successor let Kafka compact older records, and delete pages, that were not read yet.
      if ((await this.#newestMark()) !== null) throw shardLost(this.#settings);
    } catch (error) {
      rebuilding.close();
      throw logError(error, 'reading', this.#settings);
    }
    return rebuilding.finish({ isCache });
  }

  /**
   * Writes rows, all or none. Waits for Kafka without a limit. Throws `state_locked` if another process owns the shard,
   * and `sink_refused` if the first write is refused.
   */
  readonly commit = async (rows: readonly OutboxRow[]): Promise<void> => {
    const { clock } = this.#deps;
    const begunAt = clock.monotonic();
    this.#commitsSince ??= begunAt;
    await this.#inTurn(() => this.#commit(rows));
    this.#commitMs = clock.monotonic() - begunAt;
    this.#commitsSince = null;
  };

  /** Milliseconds of the last commit or of the present one, the longer one; null: none yet. */
  get commitMs(): number | null {
    const now = this.#deps.clock.monotonic();
    const underWay = this.#commitsSince === null ? null : now - this.#commitsSince;
    if (underWay === null || this.#commitMs === null) return underWay ?? this.#commitMs;
    return Math.max(underWay, this.#commitMs);
  }

  /**
   * Resolves if this process still owns the shard. Rejects with `state_locked` if the group has another owner, or if
   * another process has written after the group had removed this one: the group forgets owners that have ended since.
   * After that nothing more is written.
   */
  readonly confirm = async (signal?: AbortSignal): Promise<void> => {
    const { confirm } = this.#deps;
    const givenUp = (await confirm?.(signal ?? this.#over.signal)) ?? 0;
    if (givenUp === this.#givenUp) return;
    await this.#inTurn(async () => {
      if (givenUp === this.#givenUp) return;
      this.#writer.drop();
      await this.#stands();
    });
  };

  /** Runs writes and looks one after the other; after a refused one nothing is written any more. */
  #inTurn(work: () => Promise<void>): Promise<void> {
    const done = this.#turn.then(() => {
      this.#over.signal.throwIfAborted();
      this.#worksSince = this.#deps.clock.monotonic();
      return work();
    });
    this.#turn = done.then(
      () => {
        this.#worksSince = null;
      },
      (error) => this.cut(error),
    );
    return done;
  }

  async #commit(rows: readonly OutboxRow[]): Promise<void> {
    this.#transactions += 1;
    const records = this.#recordsOf(rows);
    for (;;) {
      try {
        this.#learn(records, await this.#bounded(this.#writer.write(records)));
        break;
      } catch (error) {
        this.#over.signal.throwIfAborted();
        await this.#endWriter(error);
      }
      if (await this.#stands()) break;
    }
  }

  /** From now on, if Kafka does not accept a transaction in time, the log is cut. */
  hurry(): void {
    const { clock } = this.#deps;
    const { signal } = this.#over;
    const from = clock.monotonic();
    const watch = async () => {
      for (;;) {
        await clock.sleep(hurryEveryMs, signal);
        const since = Math.max(from, this.#worksSince ?? Number.POSITIVE_INFINITY);
        if (clock.monotonic() - since > hurryMsMax) this.cut(restNotTaken(this.#settings));
      }
    };
    watch().catch(() => undefined);
  }

  /**
   * Fences the earlier owner. Rejects if this process does not own the shard: a process that was suspended would fence its
   * successor. Resolves with the number of `confirm`.
   */
  async #begin(): Promise<number> {
    const { confirm } = this.#deps;
    const { signal } = this.#over;
    const givenUp = (await confirm?.(signal)) ?? 0;
    await this.#bounded(this.#writer.begin());
    await confirm?.(signal);
    return givenUp;
  }

  /** With a limit: the client has been seen to wait for a response for ever. */
  async #bounded<T>(answer: Promise<T>): Promise<T> {
    const answered = new AbortController();
    const late = this.#deps.clock.sleep(answerMsMax, answered.signal).then(() => {
      const what = `no answer within ${answerMsMax} ms`;
      throw new KafkaFailure('passing', what, { answered: false });
    });
    late.catch(() => undefined);
    try {
      return await Promise.race([answer, late]);
    } finally {
      answered.abort(new Error('answered'));
    }
  }

  /** Whether the last transaction is in the log. Begins another writer, which decides an open transaction. */
  async #stands(): Promise<boolean> {
    for (let pauseMs = pauseMsMin; ; pauseMs = Math.min(pauseMs * 2, pauseMsMax)) {
      await this.#deps.clock.sleep(pauseMs, this.#over.signal);
      this.#writer = new TransactionalWriter(this.#settings, this.#id);
      let newest: Mark | null;
      let givenUp: number;
      try {
        givenUp = await this.#begin();
        newest = await this.#newestMark();
      } catch (error) {
        await this.#endWriter(error);
        continue;
      }
      if (newest !== null && newest.writer !== this.#name) throw shardLost(this.#settings);
      this.#givenUp = givenUp;
      return newest?.transaction === this.#transactions;
    }
  }

  /**
   * Drops a failed writer. Throws if another process owns the shard, if brokers refuse the clock of this machine (another
   * process can then continue), and if a right is missing from the start: a right that is removed later may come back. A
   * fenced process that still owns the shard begins again.
   */
  async #endWriter(error: unknown): Promise<void> {
    this.#writer.drop();
    const failure = error instanceof KafkaFailure ? error : null;
    // The answer of the group decides; an unreadable log is temporary.
    if (failure === null && asExportError(error, 'writing').code !== 'sink_unreachable')
      throw error;
    const kind = failure?.kind;
    const isRefused = kind === 'clock' || (kind === 'denied' && !this.#hasWrittenPages);
    if (isRefused) throw logError(error, 'writing', this.#settings);
    if (kind === 'fenced' && this.#deps.confirm === undefined) throw shardLost(this.#settings);
    this.#deps.log.warn(
      'kafka_commit_failed',
      'Kafka did not commit a transaction of the shard; retrying',
      {
        shard: this.#state.partition,
        error: String(error),
      },
    );
    if (kind === 'topic_missing') await this.#endWithout();
  }

  /** Throws if a topic was deleted for good: nothing that this process holds could be committed any more. */
  async #endWithout(): Promise<void> {
    const now = this.#deps.clock.monotonic();
    const topics = [this.#pages.topic, this.#state.topic, this.#dead.topic];
    const gone = await this.#client.missing(topics).catch(() => []);
    this.#missingSince = gone.length === 0 ? null : (this.#missingSince ?? now);
    if (this.#missingSince === null || now - this.#missingSince < missingMsMax) return;
    throw topicGone(`there is no topic ${gone.join(' and no topic ')} any more`);
  }

  /** Deletes pages before an offset from the log, soon. */
  forgetBefore(offset: Offset): void {
    const now = this.#deps.clock.monotonic();
    if (now - this.#forgotAt < forgetEveryMs) return;
    const place = this.#places.forgetBefore(offset);
    if (place === null) return;
    this.#forgotAt = now;
    this.#client.deleteBefore(this.#pages, place).catch((error) => {
      this.#deps.log.warn(
        'kafka_pages_not_deleted',
        'pages that every sink has could not be deleted from the log',
        {
          error: String(error),
        },
      );
    });
  }

  /** Releases the shard. */
  async close(): Promise<void> {
    if (!this.#over.signal.aborted) await this.#writer.close().catch(() => undefined);
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
      // Pages are deleted by offset, all before it.
      .filter(({ table, value }) => table !== pageTable || value !== null)
      .flatMap((row) => {
        return this.#placesOf(row).flatMap((to) =>
          rowRecords(row).map((record) => ({ ...record, to })),
        );
      });
    return [
      ...records,
      { to: this.#state, key: markKey, value: Buffer.from(JSON.stringify(mark)) },
    ];
  }

  #placesOf({ table, value }: OutboxRow): readonly TopicPartition[] {
    if (table === pageTable) return [this.#pages];
    if (table !== deadLetterTable) return [this.#state];
    // A deleted one may be of an older version, which stored it in the state.
    return value === null ? [this.#dead, this.#state] : [this.#dead];
  }

  /** The newest mark that was committed since this process knew the whole partition. */
  async #newestMark(): Promise<Mark | null> {
    const reading = { clock: this.#deps.clock, stalledMs: stalledMsMax, from: this.#known };
    let newest: Mark | null = null;
    for await (const records of committedRecords(this.#client, this.#state, reading)) {
      for (const { key, value } of records) {
        if (key?.equals(markKey) && value !== null) newest = JSON.parse(String(value)) as Mark;
      }
    }
    return newest;
  }

  #learn(records: readonly NewRecord[], firsts: ReadonlyMap<string, bigint>): void {
    const placeIn = ({ topic, partition }: TopicPartition) => firsts.get(`${topic}:${partition}`);
    const state = placeIn(this.#state) ?? 0n;
    for (const part of [this.#state, this.#dead]) {
      const at = placeIn(part);
      const isAnew = at !== undefined && at <= (this.#wroteAt.get(part) ?? -1n);
      if (isAnew || (part === this.#state && state < this.#known)) {
        throw topicGone(`the topic ${part.topic} was recreated while it was in use`);
      }
      if (at !== undefined) this.#wroteAt.set(part, at);
    }
    this.#known = state;
    const first = placeIn(this.#pages);
    if (first === undefined) return;
    this.#hasWrittenPages = true;
    this.#places.begins(first);
    let offset = first;
    for (const { to, key } of records) {
      if (to !== this.#pages) continue;
      this.#places.note(key, offset);
      offset += 1n;
    }
  }
}

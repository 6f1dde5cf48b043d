// The log of one shard: its partitions of the pages, of the state and of the dead letters. Whoever has
// taken the shard writes, a transaction at a time, pages and the state that follows them together;
// its state database is a cache, made of the log when the shard is taken (src/hold/rebuild.ts).
// What must stay true: nothing is written once another process has the shard, and what was written
// without an answer is written once more only after the log has said that it is not there.

import { randomUUID } from 'node:crypto';
import { asExportError, type Clock, type Log, type Offset } from '../../contracts/index.ts';
import { deadLetterTable, keyLengths, type OutboxRow, pageTable } from '../../hold/index.ts';
import { Rebuilding, type Rebuilt, type SpoolLog } from '../../hold/open.ts';
import { KafkaFailure } from '../../kafka/index.ts';
import { LogClient, type TopicPartition } from './client.ts';
import { logError, restNotTaken, shardLost, topicGone } from './errors.ts';
import { PagePlaces } from './page-places.ts';
import { committedRecords } from './reader.ts';
import { foreignTopic, isOurs, RowReader, rowRecords } from './rows.ts';
import { type StateLogSettings, shardNames } from './settings.ts';
import { ensureTopics } from './topics.ts';
import { type NewRecord, TransactionalWriter, transactionMsMax } from './writer.ts';

/** What a shard's log works with. */
export interface ShardLogDeps {
  readonly log: Log;
  readonly clock: Clock;
  /**
   * Resolves where this process is still the one that is to write, with how often it was given up
   * meanwhile; else rejects. Left out: nobody knows.
   */
  readonly confirm?: ((signal: AbortSignal) => Promise<number>) | undefined;
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
/** Longer than a broker leaves a transaction open. */
const answerMsMax = transactionMsMax + 10_000;
/** A topic that no broker knows for so long is gone: one that has just started may have to hear of it. */
const missingMsMax = 20_000;
/** Pages that nobody needs are deleted so often. */
const forgetEveryMs = 5_000;

/** The log of a shard that this process has taken. */
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
  /** How often this process had been given up when the log was looked at last. */
  #givenUp = 0;
  #turn: Promise<unknown> = Promise.resolve();
  /** Since when it writes or looks, by the monotonic clock; null: none is. */
  #worksSince: number | null = null;
  /** How long the last commit took; null: there was none. */
  #commitMs: number | null = null;
  /** Since when a commit is under way, by the monotonic clock; null: none is. */
  #commitsSince: number | null = null;
  /** Since when a topic is not there, by the monotonic clock; null: all are, or nobody knows. */
  #missingSince: number | null = null;
  /** From here on of the state's partition only what this process has written is known. */
  #known = 0n;
  /** Where the last transaction of this process begins in a topic; nothing: there was none. */
  readonly #wroteAt = new Map<TopicPartition, bigint>();
  readonly #places = new PagePlaces();
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

  /** Takes a shard: from now on no other process can write there. Throws `sink_unreachable` or `sink_refused`. */
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

  /** Makes the state database in a directory of all that the log holds: its cache, or on its own. */
  async rebuild(dir: string, { isCache = true } = {}): Promise<Rebuilt> {
    const rebuilding = new Rebuilding(dir);
    try {
      this.#known = await this.#client.end(this.#state);
      const reader = new RowReader(keyLengths);
      const reading = { clock: this.#deps.clock, stalledMs: stalledMsMax };
      // Dead letters of older versions are in the state, and what became of them is behind it.
      const parts = [
        { of: this.#state, end: this.#known },
        { of: this.#dead },
        { of: this.#pages },
      ];
      let isState = false;
      for (const { of, ...bound } of parts) {
        for await (const records of committedRecords(this.#client, of, { ...reading, ...bound })) {
          // A stray record in a state of ours is left alone.
          isState ||= records.some(isOurs);
          if (!isState) throw foreignTopic(of.topic);
          rebuilding.put(reader.rowsOf(records));
          for (const { key, offset } of records) this.#places.note(key, offset);
        }
      }
      // What a successor writes has older records compacted away, and pages deleted, that were not read yet.
      if ((await this.#newestMark()) !== null) throw shardLost(this.#settings);
    } catch (error) {
      rebuilding.close();
      throw logError(error, 'reading', this.#settings);
    }
    return rebuilding.finish({ isCache });
  }

  /**
   * Writes rows, all or none. Waits for Kafka for as long as that takes. Throws `state_locked` where
   * another process has the shard, and `sink_refused` where it may not be written from the start.
   */
  readonly commit = async (rows: readonly OutboxRow[]): Promise<void> => {
    const { clock } = this.#deps;
    const begunAt = clock.monotonic();
    this.#commitsSince ??= begunAt;
    await this.#inTurn(() => this.#commit(rows));
    this.#commitMs = clock.monotonic() - begunAt;
    this.#commitsSince = null;
  };

  /** Milliseconds that the last commit took, or that the one under way takes, whichever is more; null: none yet. */
  get commitMs(): number | null {
    const now = this.#deps.clock.monotonic();
    const underWay = this.#commitsSince === null ? null : now - this.#commitsSince;
    if (underWay === null || this.#commitMs === null) return underWay ?? this.#commitMs;
    return Math.max(underWay, this.#commitMs);
  }

  /**
   * Resolves where this process is still the one that is to work. Rejects with `state_locked` where
   * the group says otherwise, or another one has written while the group had given this one up: the
   * group forgets whoever has owned and is dead by now. Then nothing more is written here.
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

  /** Writing and looking take turns; after one that is refused nothing is written any more. */
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

  /** From now on a transaction that Kafka does not take in time is given up, and the shard with it. */
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
   * Takes the shard from whoever had it. Rejects where that is not this process's to do: one that was
   * asleep would put its successor out. Resolves with whether it was given up, as `confirm` tells it.
   */
  async #begin(): Promise<number> {
    const { confirm } = this.#deps;
    const { signal } = this.#over;
    const givenUp = (await confirm?.(signal)) ?? 0;
    await this.#bounded(this.#writer.begin());
    await confirm?.(signal);
    return givenUp;
  }

  /** The client has been seen to wait for an answer without an end. */
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

  /** Whether the last transaction is in the log; begins another writer, so that it is decided. */
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
   * Lets go of a writer that has failed. Throws where the shard is another process's, where this
   * machine's clock is not taken, so that another one goes on, and where a right lacks from the
   * start: one that is taken away later may come back. Whoever is put out and is still the one to
   * write begins anew.
   */
  async #endWriter(error: unknown): Promise<void> {
    this.#writer.drop();
    const failure = error instanceof KafkaFailure ? error : null;
    // What the group says counts; that the log cannot be read yet passes.
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

  /** Throws where a topic is gone, and that for good: nothing that this process holds could be committed any more. */
  async #endWithout(): Promise<void> {
    const now = this.#deps.clock.monotonic();
    const topics = [this.#pages.topic, this.#state.topic, this.#dead.topic];
    const gone = await this.#client.missing(topics).catch(() => []);
    this.#missingSince = gone.length === 0 ? null : (this.#missingSince ?? now);
    if (this.#missingSince === null || now - this.#missingSince < missingMsMax) return;
    throw topicGone(`there is no topic ${gone.join(' and no topic ')} any more`);
  }

  /** Deletes pages before an offset from the log, some time soon. */
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

  /** Lets go of the shard; another process may take it. */
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
      // Pages go by deletion of all before an offset.
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
    // One that is gone may be of an older version, which had it in the state.
    return value === null ? [this.#dead, this.#state] : [this.#dead];
  }

  /** The newest of what has been committed since this process knew all of it. */
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

// Writes pages into an archive. They wait, compressed, until a checkpoint is due; then their bodies become a segment,
// and their entries are published with it (log.ts). Invariants: a page counts as archived only once a checkpoint over
// it is durable; waiting pages are bounded; after a failure the writer is unusable, and another one is opened, as after
// a crash.

import { createHash } from 'node:crypto';
import {
  ExportError,
  type HeldPage,
  type Numbering,
  presentEpoch,
  type SinkPosition,
} from '../contracts/index.ts';
import { timeText, version } from '../tools/index.ts';
import type { Anchors } from './anchors/anchors.ts';
import type { RequestRules } from './authority.ts';
import { staleMsOf } from './claim.ts';
import { clockDifference, UpstreamClock } from './clocks.ts';
import type { Entry } from './entries.ts';
import { EraseRequests } from './erasing.ts';
import { type Heads, parseMark } from './heads.ts';
import { LakeEntries } from './lake-entries.ts';
import { segmentPath } from './layout.ts';
import type { ArchiveLog, NewObject, Published } from './log.ts';
import { enterDays } from './manifests.ts';
import { type PreparedPage, preparePage } from './page-entry.ts';
import { type ArchiveLogSettings, openArchiveLog } from './recovery.ts';
import { Retention, type RetentionSettings } from './retention.ts';
import { inRing, type SiblingPlace, Siblings } from './siblings.ts';

/** Dependencies of a writer. */
export interface WriterSettings
  extends Omit<ArchiveLogSettings, 'spool' | 'epoch' | 'staleMs'>,
    Pick<RetentionSettings, 'bodiesMs' | 'log'> {
  readonly numbering: Numbering;
  /** The sink that writes, by its name in the config. Default: not entered. */
  readonly sink?: string;
  /** The config's sinks. Default: none. */
  readonly sinks?: readonly string[];
  /** SHA-256 of the running config; null: none. */
  config(): string | null;
  /** Longest wait of a page for its checkpoint, milliseconds. */
  readonly checkpointEveryMs: number;
  /** Called for each checkpoint over new pages, before they count as archived. */
  signed(checkpoint: Published): Promise<void>;
  /** External parties that receive every checkpoint; no write waits for them. */
  readonly anchors?: Anchors | undefined;
  /** The logs of the other shards with work; undefined: the state has one shard. */
  readonly siblings?: readonly SiblingPlace[] | undefined;
}

/** A checkpoint is due at once when this many compressed bytes wait, about the limit of one segment. */
export const segmentBytesMax = 16 * 1024 * 1024;
const segmentPagesMax = 4_096;
/** No more pages are accepted while this much waits, including bodies under compression. */
const waitingBytesMax = 2 * segmentBytesMax;
const waitingPagesMax = 2 * segmentPagesMax;

/** Opens an archive for writing. Throws an ExportError with the reason if it cannot be opened. */
export async function openWriter(settings: WriterSettings): Promise<ArchiveWriter> {
  const { anchors, numbering, checkpointEveryMs } = settings;
  const staleMs = staleMsOf(checkpointEveryMs);
  const of = { spool: numbering.spool, epoch: presentEpoch(numbering) };
  const log = await openArchiveLog({ ...settings, ...of, staleMs });
  const other = otherSinkOf(log, settings);
  if (other !== null) {
    await log.deps.claim.renew(true);
    const { location } = settings.store;
    throw new ExportError(
      'sink_refused',
      `opening the archive ${location}: the sink ${other} wrote its last pages, and pages that wait for ${settings.sink} are not in it`,
      {
        next: `Give each archive sink a location of its own: undo the change of the location, or use a new one. Nothing is lost: events stay in the spool.`,
      },
    );
  }
  if (settings.sink !== undefined) await log.deps.claim.accept(settings.sink);
  if (log.published !== null) await anchors?.resume(log.published);
  return new ArchiveWriter(settings, log);
}

interface Waiting {
  readonly page: Promise<PreparedPage>;
  readonly done: PromiseWithResolvers<void>;
  /** Its share of the waiting bytes. */
  bytes: number;
}

/**
 * The other sink of this state that wrote the last pages; null: none. This sink's position would move past pages that the
 * other one never got. A sink that has signed no other archive may continue one whose sink is not in the config any more:
 * it was renamed.
 */
function otherSinkOf(
  { heads, deps }: ArchiveLog,
  { sink, sinks = [], mark, numbering }: WriterSettings,
): string | null {
  const last = heads.spool === numbering.spool ? heads.sink : null;
  if (last === null || last === sink) return null;
  const signed = mark === null ? null : parseMark(mark);
  const isMoved = signed !== null && signed.archive !== deps.archive;
  return isMoved || sinks.includes(last) ? last : null;
}

/** An archive open for writing. */
export class ArchiveWriter {
  readonly #settings: WriterSettings;
  readonly #log: ArchiveLog;
  readonly #retention: Retention;
  readonly #lake: LakeEntries;
  readonly #erasing: EraseRequests;
  readonly #siblings: Siblings;
  #waiting: Waiting[] = [];
  /** Of all pages without a checkpoint. */
  #bytes = 0;
  #pages = 0;
  /** Compressed bytes for the next segment. */
  #segmentBytes = 0;
  /** Publishes until no page waits; null: not running. */
  #publishing: Promise<void> | null = null;
  /** Aborted when the next checkpoint is due early. */
  #due = new AbortController();
  #isHurried = false;
  /** When the next checkpoint is due by time, on the monotonic clock; null: none is awaited. */
  #dueAt: number | null = null;
  #room = Promise.withResolvers<void>();
  #isStarted = false;
  #isClockReported = false;
  readonly #upstreamClock = new UpstreamClock();
  /** The last entered config. */
  #config: string | null = null;
  #place: SinkPosition | null;
  #failure: unknown = null;

  constructor(settings: WriterSettings, log: ArchiveLog) {
    this.#settings = settings;
    this.#log = log;
    this.#place = placeOf(log.heads);
    this.#retention = new Retention(settings);
    this.#lake = new LakeEntries(settings);
    this.#erasing = new EraseRequests(settings, this.#lake);
    const { clock, shard = 0, siblings = [], signer, checkpointEveryMs: everyMs } = settings;
    this.#siblings = new Siblings(inRing(siblings, shard), {
      ...{ key: signer.verifier, clock, everyMs },
    });
  }

  /** The spool position up to which checkpoints cover pages; null: none. */
  get place(): SinkPosition | null {
    return this.#place;
  }

  /** True after a failure: no page is accepted any more. */
  get isBroken(): boolean {
    return this.#failure !== null;
  }

  /** Milliseconds until waiting pages get their checkpoint; null: no page waits only for that. */
  get dueInMs(): number | null {
    const { clock } = this.#settings;
    return this.#dueAt === null ? null : Math.max(0, this.#dueAt - clock.monotonic());
  }

  /** The rules for accepting requests. */
  get rules(): RequestRules {
    return this.#log.deps.rules;
  }

  /** Resolves when there is room for more, or the writer is broken. */
  async ready(): Promise<void> {
    while (this.#isFull && !this.isBroken) await this.#room.promise;
  }

  get #isFull(): boolean {
    return this.#bytes >= waitingBytesMax || this.#pages >= waitingPagesMax;
  }

  /**
   * Adds pages, in order; resolves when a checkpoint covers them. Their bodies are not kept until then: `freePages` is
   * called when it reads them no more.
   */
  add(pages: readonly HeldPage[], freePages?: () => void): Promise<unknown> {
    if (this.#failure !== null) return Promise.reject(this.#failure);
    const taken = pages.map((page) => this.#take(page));
    // After the failure of one page, others may still be read.
    Promise.all(taken.map(({ page }) => page)).then(freePages, () => undefined);
    if (this.#waiting.length > 0) this.#publishing ??= this.#publishAll();
    return Promise.all(taken.map(({ done }) => done.promise));
  }

  /** Makes a checkpoint due now; resolves when no page waits, or none can be written. */
  async flush(): Promise<void> {
    this.#isHurried = true;
    this.#due.abort();
    await this.#publishing;
    this.#isHurried = false;
  }

  /** Publishes the waiting pages and releases the archive. Rejects with the failure, if there was one. */
  async close(): Promise<void> {
    await this.flush();
    if (this.#failure !== null) throw this.#failure;
    const now = this.#settings.clock.now();
    if (this.#isStarted || (await this.#lake.isBehind(this.#log))) {
      await this.#enterSigned(true);
      this.#start(now);
      await this.#lake.enter(this.#log, now);
      const days = enterDays(this.#log, now);
      this.#log.append({ t: 'stop', at: timeText(now) });
      await this.#sign(days, now);
    }
    await this.#log.deps.claim.renew(true);
  }

  #take(held: HeldPage): Waiting {
    const epoch = presentEpoch(this.#settings.numbering);
    const page = preparePage(held, { epoch, salt: this.#log.deps.salt });
    this.#reportClock(held);
    this.#upstreamClock.take(held.context);
    const waiting: Waiting = { page, done: Promise.withResolvers(), bytes: held.body.length };
    this.#waiting.push(waiting);
    this.#bytes += waiting.bytes;
    this.#pages += 1;
    if (this.#waiting.length >= segmentPagesMax) this.#due.abort();
    const prepared = ({ frames: [body, kept] }: PreparedPage) => {
      const bytes = body.length + kept.length;
      this.#bytes += bytes - waiting.bytes;
      this.#segmentBytes += bytes;
      waiting.bytes = bytes;
      if (this.#segmentBytes >= segmentBytesMax) this.#due.abort();
      this.#makeRoom();
    };
    page.then(prepared, (error: unknown) => this.#fail(error));
    return waiting;
  }

  #reportClock({ context: { stream, fetchedAt, answer } }: HeldPage): void {
    const difference = this.#isClockReported ? null : clockDifference(fetchedAt, answer?.date);
    if (difference === null) return;
    this.#isClockReported = true;
    const text = `the clock of this machine is ${difference} upstream’s, and entries of the archive have its times`;
    const next =
      'If this clock is wrong, set it (NTP). `check --connect` compares it with other servers as well.';
    this.#settings.log.warn('clock_differs', text, { stream, next });
  }

  async #publishAll(): Promise<void> {
    const { clock, checkpointEveryMs } = this.#settings;
    try {
      while (this.#waiting.length > 0) {
        const wait = this.#isHurried ? 0 : checkpointEveryMs;
        this.#dueAt = clock.monotonic() + wait;
        await clock.sleep(wait, this.#due.signal).catch(() => undefined);
        this.#dueAt = null;
        await this.#publish();
      }
    } catch (error) {
      this.#fail(error);
    } finally {
      this.#publishing = null;
    }
  }

  async #publish(): Promise<void> {
    const group = this.#waiting.splice(0, segmentPagesMax);
    this.#due = new AbortController();
    this.#segmentBytes = 0;
    try {
      const pages = await Promise.all(group.map(({ page }) => page));
      const now = this.#settings.clock.now();
      await this.#enterSigned(false);
      this.#start(now);
      await this.#lake.enter(this.#log, now);
      const gone = await this.#retention.enter(this.#log, now, this.#upstreamClock.reached);
      const erased = await this.#erasing.enter(this.#log, now);
      const days = enterDays(this.#log, now);
      const published = await this.#sign([...days, this.#append(pages, now)], now);
      this.#place = placeOf(this.#log.heads);
      await this.#settings.signed(published);
      await this.#retention.remove(this.#log, gone);
      await this.#erasing.carryOut(this.#log, erased);
    } catch (error) {
      for (const { done } of group) done.reject(error);
      throw error;
    }
    for (const { done, bytes } of group) {
      this.#bytes -= bytes;
      this.#pages -= 1;
      done.resolve();
    }
    this.#makeRoom();
  }

  /** Adds the entries about earlier checkpoints. */
  async #enterSigned(isLast: boolean): Promise<void> {
    this.#log.enterCheckpoint(this.#log.isDue ? await this.#siblings.signed(isLast) : []);
    for (const entry of this.#settings.anchors?.take() ?? []) this.#log.append(entry);
  }

  async #sign(objects: readonly NewObject[], now: number): Promise<Published> {
    const published = await this.#log.publish(objects, now);
    this.#settings.anchors?.signed(published);
    return published;
  }

  /** Written with a process's first page, so a process without pages leaves no entry. */
  #start(now: number): void {
    const at = timeText(now);
    if (!this.#isStarted) {
      const { numbering, shard, siblings, sink } = this.#settings;
      const { spool } = numbering;
      const { archive, rules, isResumedFromStore } = this.#log.deps;
      this.#log.append({
        ...{ t: 'start', at, archive, spool, version: version() },
        ...(sink !== undefined && { sink }),
        requests: rules.acceptsUnsigned ? 'accepted' : 'signed',
        ...(rules.operators.length > 0 && { operators: rules.operators.map(({ vkey }) => vkey) }),
        ...(shard !== undefined &&
          siblings !== undefined && {
            shards: [shard, ...siblings.map((one) => one.shard)].toSorted((a, b) => a - b),
          }),
        ...(isResumedFromStore && { resumed_from: 'store' }),
      });
    }
    this.#isStarted = true;
    // Pages read before the config changed may follow: they wait for this checkpoint too.
    const sha256 = this.#settings.config();
    if (sha256 !== null && sha256 !== this.#config) this.#log.append({ t: 'config', at, sha256 });
    this.#config = sha256;
  }

  /** Adds the entries of pages, and returns the segment that they name. */
  #append(pages: readonly PreparedPage[], now: number): NewObject {
    const log = this.#log;
    const segment = segmentPath(log.size, now);
    const parts = pages.flatMap(({ frames }) => frames);
    const digest = createHash('sha256');
    for (const part of parts) digest.update(part);
    log.append({
      t: 'segment',
      object: segment,
      bytes: parts.reduce((sum, { length }) => sum + length, 0),
      sha256: digest.digest('hex'),
      pages: pages.length,
    });
    let at = 0;
    const compared: Entry[] = [];
    const turned: (() => Entry)[] = [];
    for (const { frames, entry, body, comparison, succession } of pages) {
      const { stream, fetched_at: readAt } = entry;
      const [{ length }, kept] = frames;
      const chain = log.chainOf(entry);
      log.append({ ...entry, ...chain, body: { ...body, segment, at, length } });
      at += length + kept.length;
      if (comparison !== null) {
        compared.push({ t: 'reconciled', at: readAt, stream, seq: chain.seq, ...comparison });
      }
      if (succession !== null) {
        const { facts, streams } = succession;
        const about = { at: readAt, stream, seq: chain.seq, ...facts };
        const lastOf = (name: string) => (log.heads.streams[name]?.[0] ?? 0) - 1;
        turned.push(() => ({
          ...{ t: 'succession', ...about },
          streams: streams.map((one) => {
            const last = lastOf(one.stream);
            return { ...one, seq: last < 0 ? null : last };
          }),
        }));
      }
    }
    // After all pages, whose entries must be consecutive.
    for (const entry of compared) log.append(entry);
    for (const entryOf of turned) log.append(entryOf());
    return { name: segment, parts };
  }

  #fail(error: unknown): void {
    this.#failure ??= error;
    for (const { done } of this.#waiting.splice(0)) done.reject(error);
    this.#due.abort();
    this.#makeRoom();
  }

  #makeRoom(): void {
    this.#room.resolve();
    this.#room = Promise.withResolvers();
  }
}

function placeOf({ spool, place }: Heads): SinkPosition | null {
  return spool === null || place === null ? null : { spool, epoch: place[0], next: place[1] };
}

// An archive as an open sink. After any failure it is reopened before the next batch: a crash and a
// failure leave the same state, and only opening determines the archive's end.

import type { Signer, Verifier } from '../../../src/archive/index.ts';
import {
  type Anchor,
  Anchors,
  type ArchiveWriter,
  openWriter,
  type SiblingPlace,
} from '../../../src/archive/write.ts';
import {
  asExportError,
  type Batch,
  type Delivery,
  ExportError,
  type Json,
  type Notice,
  type PositionReach,
  reachOf,
  type Sink,
  type SinkOpening,
  untilAborted,
} from '../../../src/contracts/index.ts';
import type { ObjectStore } from '../../../src/objects/index.ts';
import { CheckpointEvents } from './checkpoint-events.ts';

/** How the archive is written. */
export interface ArchiveSettings {
  readonly store: ObjectStore;
  /** The location in the config. */
  readonly configured: string;
  /** Called at each opening, so that a repaired key applies. */
  readonly signer: () => Signer;
  /** The shard of this log, if the key signs several. */
  readonly shard: number | undefined;
  readonly checkpointEveryMs: number;
  /** How long bodies are kept, milliseconds; null: for ever. */
  readonly bodiesMs: number | null;
  /** Whether unsigned requests are executed; absent: as the archive declares. */
  readonly accept_requests: boolean | undefined;
  /** Keys that may sign requests in addition to the archive's own. */
  readonly operators: readonly Verifier[] | undefined;
  /** The logs of the other shards; absent: there is one shard. */
  readonly siblings: readonly SiblingPlace[] | undefined;
  /** The external witnesses of its checkpoints. */
  readonly anchors: readonly Anchor[];
}

/** Pages accepted by the writer; `added` resolves when a checkpoint covers them. */
interface Taken {
  readonly added: Promise<unknown>;
}

/** The archive. */
export class OpenArchive implements Sink {
  readonly #settings: ArchiveSettings;
  readonly #opening: SinkOpening;
  readonly #events: CheckpointEvents;
  readonly #anchors: Anchors;
  #mark: Json | null;
  #next: Promise<ArchiveWriter> | null = null;
  /** The last opened writer; null: none. */
  #last: ArchiveWriter | null = null;
  /** Nothing more comes for now; may be set before a writer is open. */
  #isHurried = false;
  #isClosed = false;

  constructor(settings: ArchiveSettings, opening: SinkOpening) {
    this.#settings = settings;
    this.#opening = opening;
    this.#events = new CheckpointEvents(opening, settings.checkpointEveryMs);
    const { store, anchors } = settings;
    this.#anchors = new Anchors(anchors, { store, ...opening.tools });
    this.#mark = opening.mark;
  }

  /**
   * The wait for the checkpoint does not reference the batch, whose pages would stay in memory
   * until then.
   */
  send(batch: Batch, signal: AbortSignal, freePages?: () => void): Promise<Delivery> {
    const settled = this.#settled(this.#take(batch, freePages));
    return untilAborted(settled, signal, () => this.#settings.store.close());
  }

  async #take(batch: Batch, freePages?: () => void): Promise<Taken | null> {
    this.#isHurried = false;
    if (((await this.#reach())?.position ?? 0) > batch.start) return null;
    const writer = await this.#writer();
    const added = writer.add(batch.pages, freePages);
    if (this.#isHurried) void writer.flush();
    return { added };
  }

  async #settled(taking: Promise<Taken | null>): Promise<Delivery> {
    try {
      const taken = await taking;
      if (taken === null) return alreadyThere(this.#opening.name);
      await taken.added;
      return { outcome: 'delivered' };
    } catch (error) {
      return failureMeaning(asExportError(error, `archiving in ${this.#settings.store.location}`));
    }
  }

  async ready(signal: AbortSignal): Promise<void> {
    // If it cannot be opened, sending reports the reason.
    const room = async () => (await this.#writer().catch(() => null))?.ready();
    await untilAborted(room(), signal);
  }

  flush(): void {
    this.#isHurried = true;
    void this.#last?.flush();
  }

  dueInMs(): number | null {
    return this.#last?.dueInMs ?? null;
  }

  notice(): Notice | null {
    const [first, ...others] = this.#anchors.failures;
    if (first === undefined) return this.#isOpenByDefault ? openToAll : null;
    const more = others.length === 0 ? '' : `, and ${others.length} more`;
    return { what: `has a checkpoint not seen outside: ${first.message}${more}`, next: first.next };
  }

  /**
   * True for an archive of an older version whose config does not decide whether requests must be
   * signed.
   */
  get #isOpenByDefault(): boolean {
    const { accept_requests } = this.#settings;
    return accept_requests === undefined && this.#last?.rules.acceptsUnsigned === true;
  }

  async committed(signal: AbortSignal): Promise<PositionReach | null> {
    return await untilAborted(this.#reach(), signal);
  }

  async close(): Promise<void> {
    // The engine closes a sink first to settle its batches, and again at the end.
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#isHurried = true;
    const { store } = this.#settings;
    try {
      await this.#last?.close();
      await Promise.all([this.#events.finish(), this.#anchors.finish()]);
    } catch (error) {
      const { code, message } = asExportError(error, `closing the archive ${store.location}`);
      const { name, tools } = this.#opening;
      const facts = { sink: name, code, error: message };
      tools.log.warn(
        'archive_close_failed',
        'the archive could not be closed in order; the next start repairs it',
        facts,
      );
    } finally {
      store.close();
    }
  }

  async #reach(): Promise<PositionReach | null> {
    const { place } = await this.#writer();
    return place === null ? null : reachOf(place, this.#opening.numbering);
  }

  async #writer(): Promise<ArchiveWriter> {
    if (this.#last?.isBroken === false) return this.#last;
    this.#next ??= this.#open().finally(() => {
      this.#next = null;
    });
    this.#last = await this.#next;
    return this.#last;
  }

  async #open(): Promise<ArchiveWriter> {
    const { name: sink, sinks, config, numbering, tools, remember } = this.#opening;
    const { signer, anchors: _, ...settings } = this.#settings;
    return await openWriter({
      ...settings,
      signer: signer(),
      anchors: this.#anchors,
      clock: tools.clock,
      log: tools.log,
      numbering,
      ...{ sink, sinks: sinks() },
      config,
      mark: this.#mark,
      remember: async (mark) => {
        await remember(mark);
        this.#mark = mark;
      },
      signed: async (checkpoint) => {
        await this.#events.signed(checkpoint);
        if (this.#isHurried) await this.#events.finish();
      },
    });
  }
}

const openToAll: Notice = {
  what: 'carries out requests in its store to prune, erase or release a hold without a signature',
  next: 'Set accept_requests: false and sign requests with --sign-with, or set accept_requests: true to keep it so.',
};

/**
 * The archive's position could not be read before: the engine reads it now and resumes from there.
 */
function alreadyThere(name: string): Delivery {
  const message = `sending to ${name}: pages of the batch are in the archive`;
  const next = 'No action needed: the sink continues after them.';
  const cause = new ExportError('sink_unreachable', message, { next });
  return { outcome: 'retry', afterMs: 0, cause };
}

/** Pages are never refused one by one: a fault of one is a fault of the archive. */
function failureMeaning(cause: ExportError): Delivery {
  switch (cause.code) {
    case 'disk_full':
    case 'sink_unreachable':
    case 'sink_throttled':
      return { outcome: 'retry', cause };
    default:
      return { outcome: 'refused', scope: 'sink', cause };
  }
}

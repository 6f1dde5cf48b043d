// An archive as an open sink. Whatever fails, it is opened anew before the next batch: what a crash
// leaves and what a failure leaves is the same, and only the opening knows how far the archive is.

import { type Anchor, Anchors } from '../../../src/archive/anchors/anchors.ts';
import type { Signer, Verifier } from '../../../src/archive/note.ts';
import type { SiblingPlace } from '../../../src/archive/siblings.ts';
import { type ArchiveWriter, openWriter } from '../../../src/archive/writer.ts';
import { asExportError, ExportError } from '../../../src/contracts/errors.ts';
import type { Json } from '../../../src/contracts/json.ts';
import { type PositionReach, reachOf } from '../../../src/contracts/numbering.ts';
import type { Batch, Delivery, Notice, Sink, SinkOpening } from '../../../src/contracts/sink.ts';
import type { ObjectStore } from '../../../src/objects/store.ts';
import { untilAborted } from '../../shared/until-aborted.ts';
import { CheckpointEvents } from './checkpoint-events.ts';

/** How the archive is written. */
export interface ArchiveSettings {
  readonly store: ObjectStore;
  /** The location as the config has it. */
  readonly configured: string;
  /** Asked at each opening, so that a key that was mended is taken. */
  readonly signer: () => Signer;
  /** Whose log it is of several that the key signs. */
  readonly shard: number | undefined;
  readonly checkpointEveryMs: number;
  /** How long bodies are kept, milliseconds; null: for ever. */
  readonly bodiesMs: number | null;
  /** Whether unsigned requests are carried out; absent: as the archive says. */
  readonly accept_requests: boolean | undefined;
  /** Keys that may sign requests beside the archive's own. */
  readonly operators: readonly Verifier[] | undefined;
  /** The logs of the other shards; absent: there is one shard. */
  readonly siblings: readonly SiblingPlace[] | undefined;
  /** Who is shown its checkpoints. */
  readonly anchors: readonly Anchor[];
}

/** Pages that the writer has; `added` resolves when a checkpoint covers them. */
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
  /** Opened last; null: none was. */
  #last: ArchiveWriter | null = null;
  /** Nothing more comes for now; it may be said before a writer is open. */
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

  /** Whatever waits for the checkpoint holds no batch, whose pages would stand in memory until then. */
  send(batch: Batch, signal: AbortSignal): Promise<Delivery> {
    const settled = this.#settled(this.#take(batch));
    return untilAborted(settled, signal, () => this.#settings.store.close());
  }

  async #take(batch: Batch): Promise<Taken | null> {
    this.#isHurried = false;
    if (((await this.#reach())?.position ?? 0) > batch.start) return null;
    const writer = await this.#writer();
    const added = writer.add(batch.pages);
    if (this.#isHurried) void writer.flush();
    return { added };
  }

  async #settled(taking: Promise<Taken | null>): Promise<Delivery> {
    try {
      const taken = await taking;
      if (taken === null) return stoodThere(this.#opening.name);
      await taken.added;
      return { outcome: 'delivered' };
    } catch (error) {
      return failureMeaning(asExportError(error, `archiving in ${this.#settings.store.place}`));
    }
  }

  async ready(signal: AbortSignal): Promise<void> {
    // Where it cannot be opened, sending says why.
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

  /** True for an archive of an older version whose config does not say whether requests have to be signed. */
  get #isOpenByDefault(): boolean {
    const { accept_requests } = this.#settings;
    return accept_requests === undefined && this.#last?.rules.acceptsUnsigned === true;
  }

  async committed(signal: AbortSignal): Promise<PositionReach | null> {
    return await untilAborted(this.#reach(), signal);
  }

  async close(): Promise<void> {
    // The engine closes a sink again that it has closed to have it settle.
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#isHurried = true;
    const { store } = this.#settings;
    try {
      await this.#last?.close();
      await Promise.all([this.#events.finish(), this.#anchors.finish()]);
    } catch (error) {
      const { code, message } = asExportError(error, `closing the archive ${store.place}`);
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
    const { config, numbering, tools, remember } = this.#opening;
    const { signer, anchors: _, ...settings } = this.#settings;
    return await openWriter({
      ...settings,
      signer: signer(),
      anchors: this.#anchors,
      clock: tools.clock,
      log: tools.log,
      numbering,
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

/** The archive was not asked before how far it is: the engine asks, and goes on from there. */
function stoodThere(name: string): Delivery {
  const message = `sending to ${name}: pages of the batch are in the archive`;
  const next = 'No action needed: the sink continues after them.';
  const cause = new ExportError('sink_unreachable', message, { next });
  return { outcome: 'retry', afterMs: 0, cause };
}

/** Pages are never refused one by one: what refuses one refuses the archive. */
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

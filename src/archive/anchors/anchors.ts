// Submits an archive's checkpoints to external parties, and stores their proofs beside the checkpoint: time stamps
// (stamper.ts) and cosignatures (witnesses.ts). A log entry names each proof with its hash, so that a missing one shows
// and a later stamp covers it. Invariants: no write waits for an external party; of several new checkpoints, the newest
// is submitted; an entry names only a proof that a configured party has seen the checkpoint, because others can write
// to the store too; a missing proof is reported, and requested again with the next checkpoint.

import { hash } from 'node:crypto';
import { type Clock, ExportError, errorText, type Log } from '../../contracts/index.ts';
import type { ObjectStore } from '../../objects/index.ts';
import { timeText } from '../../tools/index.ts';
import type { Entry } from '../entries.ts';
import {
  anchorPath,
  checkpointSizeOf,
  keptCheckpointPath,
  keptCheckpointsPrefix,
} from '../layout.ts';
import type { Published } from '../log.ts';
import { readSmall } from '../small-objects.ts';

/** An external party to which checkpoints are submitted. */
export interface Anchor {
  /** Suffix of the stored proof, beside `<size>.note`. */
  readonly kind: 'tsr' | 'cosig';
  /** Minimum time between requests, milliseconds; the last checkpoint is always submitted. */
  readonly everyMs: number;
  /** Rejects only when the signal aborts. */
  ask(checkpoint: Published, signal: AbortSignal): Promise<Anchored>;
  /** Throws a SyntaxError with the reason if these bytes do not prove that the party has seen the checkpoint. */
  check(proof: Uint8Array, checkpoint: Published): void;
}

/** The result of a request. */
export interface Anchored {
  /** The proof that the checkpoint was seen; null: there is none. */
  readonly proof: Uint8Array | null;
  /** Failures of the parties. */
  readonly failures: readonly ExportError[];
}

/** Dependencies of the anchors. */
export interface AnchorDeps {
  readonly store: ObjectStore;
  readonly clock: Clock;
  readonly log: Log;
}

type AnchorEntry = Extract<Entry, { readonly t: 'anchor' }>;

/** Time for outstanding requests at shutdown, milliseconds. */
const finishMsMax = 5_000;

/** The anchors of one archive. */
export class Anchors {
  readonly #deps: AnchorDeps;
  readonly #anchors: readonly Anchor[];
  readonly #shown: readonly Showing[];
  readonly #stop = new AbortController();
  /** By object: proofs that no entry names yet. */
  readonly #pending = new Map<string, AnchorEntry>();

  constructor(anchors: readonly Anchor[], deps: AnchorDeps) {
    this.#deps = deps;
    this.#anchors = anchors;
    const keep = (entry: AnchorEntry) => this.#pending.set(entry.object, entry);
    this.#shown = anchors.map((anchor) => new Showing(anchor, { ...deps, keep }));
  }

  /** Why some parties did not see the newest checkpoint. */
  get failures(): readonly ExportError[] {
    return this.#shown.flatMap(({ failures }) => failures);
  }

  /** Continues a log with this newest checkpoint: proofs stored beside it are to be entered. */
  async resume(checkpoint: Published): Promise<void> {
    const { size, at } = checkpoint;
    const { store, log } = this.#deps;
    const note = keptCheckpointPath(size, at);
    for await (const { name } of store.list(keptCheckpointsPrefix, note.replace(/note$/, ''))) {
      // If the clock was set back, the checkpoint may be stored under another day too.
      if (name.endsWith('.note') || checkpointSizeOf(name) !== size) continue;
      const found = await readSmall(store, name);
      if (found === null) continue;
      const flaw = flawOf(found.body, checkpoint, this.#anchorOf(name));
      if (flaw === null) this.#pending.set(name, entryOf(name, found.body, { size, at }));
      else {
        log.warn(
          'anchor_not_entered',
          'a time stamp or cosignature in the archive is not entered into its log',
          {
            ...{ object: name, error: flaw },
            next: 'Find the writer, unless tsa or witnesses of the sink were changed. The next checkpoint is submitted again.',
          },
        );
      }
    }
  }

  #anchorOf(name: string): Anchor | undefined {
    return this.#anchors.find(({ kind }) => name.endsWith(`.${kind}`));
  }

  /** Announces a signed checkpoint. */
  signed(checkpoint: Published): void {
    for (const showing of this.#shown) showing.signed(checkpoint, this.#stop.signal);
  }

  /** Entries for the proofs stored since the last call. */
  take(): readonly AnchorEntry[] {
    const entries = [...this.#pending.values()];
    this.#pending.clear();
    return entries;
  }

  /** Submits the newest checkpoint if it was not submitted yet, and gives up on slow parties. */
  async finish(): Promise<void> {
    const { clock } = this.#deps;
    const shown = Promise.all(this.#shown.map((showing) => showing.finish(this.#stop.signal)));
    const over = new AbortController();
    const late = clock.sleep(finishMsMax, over.signal).catch(() => undefined);
    await Promise.race([shown, late]);
    over.abort();
    this.#stop.abort(new Error('the archive is closed'));
    await shown;
  }
}

interface ShowingDeps extends AnchorDeps {
  readonly keep: (entry: AnchorEntry) => void;
}

/** Submits checkpoints to one party, one at a time. */
class Showing {
  readonly #anchor: Anchor;
  readonly #deps: ShowingDeps;
  /** Signed and not submitted yet. */
  #newest: Published | null = null;
  #underWay: Promise<void> | null = null;
  #dueAt = Number.NEGATIVE_INFINITY;
  failures: readonly ExportError[] = [];

  constructor(anchor: Anchor, deps: ShowingDeps) {
    this.#anchor = anchor;
    this.#deps = deps;
  }

  signed(checkpoint: Published, signal: AbortSignal): void {
    this.#newest = checkpoint;
    if (this.#deps.clock.monotonic() < this.#dueAt) return;
    this.#underWay ??= this.#show(signal).finally(() => {
      this.#underWay = null;
    });
  }

  async finish(signal: AbortSignal): Promise<void> {
    await this.#underWay;
    if (this.#newest !== null) await this.#show(signal);
  }

  async #show(signal: AbortSignal): Promise<void> {
    const checkpoint = this.#newest;
    if (checkpoint === null || signal.aborted) return;
    this.#newest = null;
    const { clock } = this.#deps;
    const { proof, failures } = await this.#asked(checkpoint, signal);
    if (proof !== null) this.#dueAt = clock.monotonic() + this.#anchor.everyMs;
    if (!signal.aborted) this.#report(failures);
  }

  async #asked(checkpoint: Published, signal: AbortSignal): Promise<Anchored> {
    const { kind } = this.#anchor;
    const { size, at } = checkpoint;
    const { store, keep } = this.#deps;
    try {
      const anchored = await this.#anchor.ask(checkpoint, signal);
      const { proof } = anchored;
      const name = anchorPath(size, at, kind);
      if (proof !== null && (await this.#settle(name, proof, checkpoint))) {
        keep(entryOf(name, proof, { size, at }));
      }
      return anchored;
    } catch (error) {
      return { proof: null, failures: [asFailure(error, store)] };
    }
  }

  /**
   * False if an equally good proof is stored already. Any other stored object is not from this party, and is replaced.
   */
  async #settle(name: string, proof: Uint8Array, checkpoint: Published): Promise<boolean> {
    const { store } = this.#deps;
    if ((await store.create(name, [proof])) === 'created') return true;
    const found = await readSmall(store, name);
    if (found !== null && flawOf(found.body, checkpoint, this.#anchor) === null) return false;
    if ((await store.replace(name, [proof], found?.tag ?? null)) !== null) return true;
    throw new SyntaxError(`${name} was changed at the same moment`);
  }

  #report(failures: readonly ExportError[]): void {
    const { log } = this.#deps;
    const before = this.failures.map(({ message }) => message);
    this.failures = failures;
    for (const { code, message, next } of failures) {
      if (before.includes(message)) continue;
      log.warn('anchor_failed', 'a checkpoint of the archive has no external signature', {
        code,
        error: message,
        next,
      });
    }
    if (failures.length === 0 && before.length > 0) {
      log.info('anchor_recovered', 'checkpoints of the archive are signed externally again', {
        kind: this.#anchor.kind,
      });
    }
  }
}

/** Why these bytes are no proof for a checkpoint; null: they are one. */
function flawOf(
  proof: Uint8Array,
  checkpoint: Published,
  anchor: Anchor | undefined,
): string | null {
  if (anchor === undefined) return 'the sink has no tsa or witnesses that it could be of';
  try {
    anchor.check(proof, checkpoint);
    return null;
  } catch (error) {
    return errorText(error);
  }
}

function entryOf(
  object: string,
  proof: Uint8Array,
  { size, at }: Pick<Published, 'size' | 'at'>,
): AnchorEntry {
  return { t: 'anchor', at: timeText(at), size, object, sha256: hash('sha256', proof, 'hex') };
}

function asFailure(error: unknown, { location }: ObjectStore): ExportError {
  if (error instanceof ExportError) return error;
  return new ExportError(
    'sink_unreachable',
    `storing the signatures of witnesses and authorities for ${location}: ${errorText(error)}`,
    {
      next: 'sluice requests it again with the next checkpoint. The archive continues.',
      cause: error,
    },
  );
}

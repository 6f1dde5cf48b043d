// Turns a configuration that upstream serves only as a whole into a stream of changes. A poll is one generation: one
// reading of everything, compared with the last reported state. Invariant: anything that a failed or short reading does
// not show is unknown, never gone.
//
// - created, updated: reported from entities really seen, also in an incomplete reading; an update only after a second,
//   later reading shows it too
// - deleted: reported only after complete readings agree for long enough, and a request by id confirms it
// - first reading: the baseline, as a summary or as each entity's state
// - company lost: reported once as a condition; nothing is deleted
//
// Invariant: a change, the entity's new reported state and the checkpoint are committed in one transaction; a
// generation is one transaction unless its text is too large for memory.

import { randomUUID } from 'node:crypto';
import {
  type CollectionStream,
  ExportError,
  type Failure,
  type FetchSpool,
  invariant,
  type PageContext,
  type PairAlone,
  type PairScan,
} from '../contracts/index.ts';
import { Identifier } from '../list/index.ts';
import {
  conditionRecord,
  type Finding,
  mismatch,
  type OnFinding,
  type PollResult,
  passingMs,
} from '../poll/index.ts';

import { Generation, type GenerationDeps } from './generation.ts';
import { KnownEntities } from './known.ts';
import { CollectionReader, type FullScan } from './reader.ts';
import { changeRecord, type FoundChange, hasRawBytes, recordPages } from './records.ts';
import {
  type CollectionCheckpoint,
  freshCollectionCheckpoint,
  readCollectionCheckpoint,
} from './state.ts';
import { Volatile } from './volatile.ts';

/** Dependencies of a collection's poller. */
export interface CollectionDeps extends GenerationDeps {
  readonly spool: FetchSpool;
  readonly found?: OnFinding | undefined;
  /** True once its successor delivers: a list that is gone is the end of the API. */
  readonly isMoved?: (() => boolean) | undefined;
  /**
   * For a successor: compares its first full scan with its predecessor's last reported state; null: there is nothing to
   * compare with.
   */
  readonly inherited?: (() => Promise<Inherited | null>) | undefined;
}

/** Compares a first full scan with the predecessor's state. */
export interface Inherited {
  /** The changes that are still to be reported, and the comparison's counts. */
  compare(changes: readonly FoundChange[]): Promise<{
    readonly changes: readonly FoundChange[];
    readonly scan: PairScan;
  }>;
  /** The predecessor's entities that a complete scan did not show; undefined: not comparable. */
  missing(has: (key: string) => boolean): Promise<PairAlone | undefined>;
}

/**
 * Incomplete readings in a row that are retried soon. After that the cause is lasting: the stream follows its schedule,
 * and a baseline is made from the readable part.
 */
const incompleteMax = 3;

/** Reads one collection, a generation at a time. */
export class CollectionPoller {
  readonly #deps: CollectionDeps;
  readonly #reader: CollectionReader;
  readonly #identifier: Identifier;
  /** The next reading is to confirm the previous one. */
  #isSecondLook = false;
  /** Since when the company cannot be read (monotonic); null: it can be, as far as known. */
  #lostAt: number | null = null;
  /** Null: to be loaded again. */
  #known: KnownEntities | null = null;

  /** The paths that a list element's digest omits; the reader uses this very array. */
  readonly #ignored: string[] = [];
  /** Null: to be read from the checkpoint. */
  #volatile: Volatile | null = null;
  /** Set while the first full scan is compared with the predecessor's state. */
  #inherited: Inherited | null = null;

  constructor(deps: CollectionDeps) {
    this.#deps = deps;
    const list = { ...deps.stream.list, ignore: this.#ignored };
    this.#reader = new CollectionReader({ ...deps, stream: { ...deps.stream, list } });
    const { source, company = '', name } = deps.stream;
    this.#identifier = new Identifier({ source, company, stream: name });
  }

  /** One generation. Upstream failures are results, never exceptions. */
  async poll(signal: AbortSignal): Promise<PollResult> {
    const { spool } = this.#deps;
    try {
      await spool.room(signal);
      const polled = await this.#poll(await this.#checkpoint(), signal);
      // A rejected configuration is temporary and no reason to halt.
      const isPassing = polled.outcome === 'refused' || polled.outcome === 'blocked';
      return isPassing ? { ...polled, outcome: 'retry' } : polled;
    } catch (error) {
      // State from an uncommitted reading is invalid.
      this.#known = null;
      this.#volatile = null;
      if (signal.aborted || !(error instanceof ExportError)) throw error;
      return error.code === 'checkpoint_mismatch'
        ? mismatch(error)
        : { outcome: 'retry', cause: error };
    }
  }

  /** The stored checkpoint; entities of an earlier beginning are unknown. */
  async #checkpoint(): Promise<CollectionCheckpoint> {
    const { stream, spool, reading } = this.#deps;
    const { checkpoint: held } = await spool.recall(stream.name);
    const before =
      held === null ? null : readCollectionCheckpoint(stream.name, held, stream.fingerprint);
    // Versions before 0.2 reported the states of a baseline only at its end.
    const isUnreported = before?.baseline === 'open' && before.statesTold !== true;
    const isRestarted = before === null || (isUnreported && reading.baseline === 'full');
    if (isRestarted || this.#known === null) {
      this.#known = await KnownEntities.load(spool, stream.name, isRestarted);
    }
    const checkpoint = before ?? freshCollectionCheckpoint(stream.fingerprint, randomUUID());
    return { ...checkpoint, ...(reading.baseline === 'full' ? { statesTold: true } : {}) };
  }

  async #poll(before: CollectionCheckpoint, signal: AbortSignal): Promise<PollResult> {
    const { clock, reading: rules } = this.#deps;
    invariant(this.#known !== null, 'stored entities were checked');
    const next = { ...before, generation: before.generation + 1 };
    const volatile = this.#volatileOf(before);
    const isFirst = before.baseline === 'open';
    this.#inherited = isFirst ? ((await this.#deps.inherited?.()) ?? null) : null;
    // Each entity is compared with the predecessor's.
    const full = { ...rules, baseline: 'full' as const };
    const deps = this.#inherited === null ? this.#deps : { ...this.#deps, reading: full };
    const generation: Generation = new Generation(deps, {
      known: this.#known,
      volatile,
      isFirst,
      wasSuspect: before.suspect,
      save: async () => {
        await this.#commit(generation, before, next.generation);
      },
    });
    const { size: known } = this.#known;
    const { rotation } = before;
    const isLasting = before.incomplete + 1 >= incompleteMax;
    const scanDeps = { now: clock.now(), sweepMs: rules.sweepMs, known, rotation, isLasting };
    const reading = await this.#reader.read(generation, scanDeps, signal);
    if (reading.outcome === 'ok')
      return await this.#look(generation, { before, next, reading }, signal);
    return isScopeLost(reading) ? await this.#loseScope(generation, before, reading) : reading;
  }

  /** The volatile paths; list digests omit them too. */
  #volatileOf(before: CollectionCheckpoint): Volatile {
    const { stream, reading } = this.#deps;
    this.#volatile ??= new Volatile(stream.name, reading, before.volatile ?? []);
    this.#volatile.begin();
    const { ignore } = this.#volatile.rulesOf(stream.entity.kind);
    const own = (stream.list.ignore ?? []).filter((path) => !ignore.includes(path));
    this.#ignored.splice(0, this.#ignored.length, ...own, ...ignore);
    return this.#volatile;
  }

  async #loseScope(
    generation: Generation,
    before: CollectionCheckpoint,
    failure: Failure,
  ): Promise<PollResult> {
    const { status, wait, cause } = failure;
    const { stream, clock } = this.#deps;
    const what = stream.company === undefined ? 'it' : 'the company';
    this.#lostAt ??= clock.monotonic();
    const isLasting = clock.monotonic() - this.#lostAt >= passingMs(failure);
    if (isLasting && !before.scopeLost && this.#deps.isMoved?.() !== true) {
      generation.findings.push({
        condition: 'source.scope_lost',
        message: `${stream.name} cannot be read any more: ${what} is denied or gone; nothing is reported as deleted`,
        details: { reason: cause.message },
      });
      await this.#commit(generation, { ...before, scopeLost: true });
    }
    return { outcome: 'denied', ...(status && { status }), ...(wait && { wait }), cause };
  }

  async #look(
    generation: Generation,
    {
      before,
      next,
      reading,
    }: Readonly<Record<'before' | 'next', CollectionCheckpoint>> & { readonly reading: FullScan },
    signal: AbortSignal,
  ): Promise<PollResult> {
    const { flaw, left, isEndless } = reading;
    this.#lostAt = null;
    const incomplete = flaw === null ? 0 : before.incomplete + 1;
    const isLasting = incomplete >= incompleteMax;
    const isFirst = before.baseline === 'open';
    const closes = (flaw === null || isLasting) && left === 0;
    if (isFirst) await generation.finishFirst(reading, closes);
    else {
      await generation.finish(reading, this.#isSecondLook, (key) =>
        this.#reader.stillThere(key, signal),
      );
    }
    if (isEndless && before.endless !== true) generation.findings.push(endless(this.#deps.stream));
    const fresh = await this.#commit(generation, {
      ...next,
      baseline: isFirst && !closes ? 'open' : 'told',
      incomplete,
      scopeLost: false,
      suspect: generation.suspect,
      // A failed share of the rotation is repeated.
      rotation: flaw === null || isLasting ? reading.rotation : before.rotation,
      endless: isEndless || (flaw !== null && before.endless === true) || undefined,
      ...this.#learnedFrom(generation, before),
    });
    if (flaw === null) return this.#done(fresh, generation.unsure, left);
    if (!isLasting) return { ...flaw, outcome: 'retry' };
    return { outcome: 'done', fresh, more: false, doubt: flaw.cause };
  }

  /** Facts for `status`: values that differ at each reading, and values that returned. */
  #learnedFrom(
    { known, unstable, flaps }: Generation,
    before: CollectionCheckpoint,
  ): Pick<CollectionCheckpoint, 'volatile' | 'unstable' | 'flaps'> {
    const learned = this.#volatile?.learned ?? [];
    const entities = known.unstable;
    const examples = unstable.length > 0 ? unstable : (before.unstable?.examples ?? []);
    return {
      volatile: learned.length === 0 ? undefined : [...learned],
      unstable: entities === 0 ? undefined : { entities, examples: [...examples] },
      flaps: (before.flaps ?? 0) + flaps || undefined,
    };
  }

  /**
   * A second look is done once: differences in it wait for the next reading. If entities are left to be requested by
   * id, the next reading is due at once.
   */
  #done(fresh: number, unsure: boolean, left: number): PollResult {
    const more = left > 0;
    this.#isSecondLook = unsure && !this.#isSecondLook && !more;
    const done = { outcome: 'done', fresh, more } as const;
    return this.#isSecondLook ? { ...done, againMs: this.#deps.reading.confirmAfterMs } : done;
  }

  /** Commits the results so far, in the name of a generation. */
  async #commit(
    made: Generation,
    checkpoint: CollectionCheckpoint,
    generation = checkpoint.generation,
  ): Promise<number> {
    const { stream, spool, clock, found, reading: rules } = this.#deps;
    const now = clock.now();
    const { epoch } = checkpoint;
    const stamp = { company: stream.company, epoch, generation, now };
    const compared = await this.#inherited?.compare(made.changes);
    const { changes } = compared ?? made;
    const isEnd = checkpoint.baseline === 'told';
    const missing = isEnd
      ? await this.#inherited?.missing((key) => made.known.has(key))
      : undefined;
    const records = changes.map((change) =>
      changeRecord(change, stamp, this.#volatile?.rulesOf(change.state.kind) ?? rules),
    );
    const uids = changes.map(({ change, key, state }) =>
      this.#identifier.ownUid([change, epoch, generation, key, state.version, state.hash]),
    );
    const conditions = made.findings.map((finding) => conditionRecord(stream, finding, now));
    const conditionUids = made.findings.map(({ condition }, at) =>
      this.#identifier.ownUid([condition, epoch, generation, now, ...(at > 0 ? [at] : [])]),
    );
    await spool.append({
      stream: stream.name,
      pages: [
        ...recordPages(this.#context('drift', now), records, uids, (at) => {
          const change = changes[at];
          return change !== undefined && hasRawBytes(change);
        }),
        ...recordPages(this.#context('condition', now), conditions, conditionUids),
      ],
      checkpoint,
      entities: made.known.change,
      ...(compared === undefined ? {} : { scan: { ...compared.scan, missing } }),
    });
    made.settle();
    for (const condition of conditions) found?.(condition);
    return made.committed;
  }

  #context(kind: PageContext['kind'], fetchedAt: number): PageContext {
    const { source, name, company } = this.#deps.stream;
    const whose = company === undefined ? {} : { company };
    return { source, stream: name, kind, fetchedAt, ...whose };
  }
}

/** The condition of a list without an end; reported once until the list has an end again. */
function endless({ name }: CollectionStream): Finding {
  return {
    condition: 'source.paging_suspected',
    message: `the list of ${name} has no end; nothing is reported as deleted until it has one`,
  };
}

/** The company itself, or the endpoint for it, is denied or gone: never a removal. */
function isScopeLost({ outcome, status }: Failure): boolean {
  return (outcome === 'denied' && status === 403) || (outcome === 'refused' && status === 404);
}

// How a configuration that is only ever served whole becomes a stream of changes. A poll is one
// generation: one reading of everything, compared with what was told last. What a failed or short
// reading does not show is unknown, never gone:
//
//   created, updated   told from what was really seen, also in an incomplete reading; an update only once a second reading
//                      some time later has shown it as well
//   deleted            only after complete readings have agreed on it for long enough, and upstream's by-id read says so too
//   the first reading  is a baseline: a summary, or each entity's state
//   the company lost   told once as a condition; nothing is deleted
//
// What must stay true: changes, entities as told, and checkpoint are committed in one transaction.

import { randomUUID } from 'node:crypto';
import type { Failure } from '../../contracts/answer.ts';
import { ExportError } from '../../contracts/errors.ts';
import type { PageContext } from '../../contracts/event.ts';
import type { Spool } from '../../contracts/spool.ts';
import { Identifier } from '../list/identity.ts';
import { mismatch, type PollResult, passingMsMax } from '../outcome.ts';
import { conditionRecord, type Found } from '../own-pages.ts';
import { Generation, type GenerationMeans } from './generation.ts';
import type { Known } from './judge.ts';
import { CollectionReader, type Reading } from './reader.ts';
import { changeRecord, recordPages } from './records.ts';
import {
  type CollectionCheckpoint,
  type EntityState,
  freshCollectionCheckpoint,
  readCollectionCheckpoint,
  readEntityState,
} from './state.ts';

/** What a collection is read with. */
export interface CollectionMeans extends GenerationMeans {
  readonly spool: Spool;
  readonly found?: Found | undefined;
}

/**
 * Incomplete readings in a row that are tried again soon. What is wrong after that does not mend by
 * asking, so the stream goes on by its schedule; a baseline is then made of what can be read.
 */
const incompleteMax = 3;

interface Held {
  readonly checkpoint: CollectionCheckpoint;
  readonly entities: Known;
  /** Entities of a state whose checkpoint is gone: they are told anew. */
  readonly orphans: readonly string[];
}

/** Reads one collection, a generation at a time. */
export class CollectionPoller {
  readonly #means: CollectionMeans;
  readonly #reader: CollectionReader;
  readonly #identifier: Identifier;
  /** The reading to come is to confirm what the one before has shown. */
  #isSecondLook = false;
  /**
   * Since when the company cannot be read, epoch milliseconds; null: it can, as far as is known.
   */
  #lostAt: number | null = null;

  constructor(means: CollectionMeans) {
    this.#means = means;
    this.#reader = new CollectionReader(means);
    const { source, company = '', name } = means.stream;
    this.#identifier = new Identifier({ source, company, stream: name });
  }

  /** One generation. Never throws for what upstream did. */
  async poll(signal: AbortSignal): Promise<PollResult> {
    const { spool } = this.#means;
    try {
      await spool.room(signal);
      const held = await this.#load();
      const reading = await this.#reader.read(signal);
      if (reading.outcome === 'ok') return await this.#look(held, reading, signal);
      if (isScopeLost(reading)) return await this.#loseScope(held, reading);
      // What refuses a configuration for now is no reason to halt.
      return reading.outcome === 'denied' ? reading : { ...reading, outcome: 'retry' };
    } catch (error) {
      if (signal.aborted || !(error instanceof ExportError)) throw error;
      return error.code === 'checkpoint_mismatch'
        ? mismatch(error)
        : { outcome: 'retry', cause: error };
    }
  }

  async #load(): Promise<Held> {
    const { stream, spool } = this.#means;
    const { checkpoint } = await spool.recall(stream.name);
    const bodies = await spool.entities(stream.name);
    if (checkpoint === null) {
      const fresh = freshCollectionCheckpoint(stream.fingerprint, randomUUID());
      return { checkpoint: fresh, entities: new Map(), orphans: [...bodies.keys()] };
    }
    const entities = new Map<string, EntityState>();
    for (const [key, body] of bodies) entities.set(key, readEntityState(stream.name, body));
    return {
      checkpoint: readCollectionCheckpoint(stream.name, checkpoint, stream.fingerprint),
      entities,
      orphans: [],
    };
  }

  async #loseScope(held: Held, { status, cause }: Failure): Promise<PollResult> {
    const { stream, clock } = this.#means;
    const what = stream.company === undefined ? 'it' : 'the company';
    this.#lostAt ??= clock.now();
    const isLasting = clock.now() - this.#lostAt >= passingMsMax;
    if (isLasting && !held.checkpoint.scopeLost) {
      const generation = new Generation(this.#means, held.entities);
      generation.findings.push({
        condition: 'source.scope_lost',
        message: `${stream.name} cannot be read any more: ${what} is denied or gone; nothing is told as deleted`,
        details: { reason: cause.message },
      });
      await this.#commit(held, generation, { ...held.checkpoint, scopeLost: true });
    }
    return { outcome: 'denied', ...(status === undefined ? {} : { status }), cause };
  }

  async #look(held: Held, reading: Reading, signal: AbortSignal): Promise<PollResult> {
    const { flaw } = reading;
    const before = held.checkpoint;
    this.#lostAt = null;
    const incomplete = flaw === null ? 0 : before.incomplete + 1;
    const generation = new Generation(this.#means, held.entities);
    const isFirst = before.baseline === 'open';
    const closes = flaw === null || incomplete >= incompleteMax;
    if (isFirst) generation.lookFirst(reading, closes);
    else {
      const how = { wasSuspect: before.suspect, isSecondLook: this.#isSecondLook };
      await generation.look(reading, how, (key) => this.#reader.stillThere(key, signal));
    }
    const fresh = await this.#commit(held, generation, {
      ...before,
      generation: before.generation + 1,
      baseline: isFirst && !closes ? 'open' : 'told',
      incomplete,
      scopeLost: false,
      suspect: generation.suspect,
    });
    if (flaw === null) return this.#done(fresh, generation.unsure);
    if (incomplete < incompleteMax) return { ...flaw, outcome: 'retry' };
    this.#means.log.warn('the configuration cannot be read whole, so no removal is told', {
      error: flaw.cause.message,
      readings: incomplete,
    });
    return { outcome: 'done', fresh, more: false };
  }

  /** A second look is taken once: what differs then is looked at again with the next reading. */
  #done(fresh: number, unsure: boolean): PollResult {
    this.#isSecondLook = unsure && !this.#isSecondLook;
    const done = { outcome: 'done', fresh, more: false } as const;
    return this.#isSecondLook ? { ...done, againMs: this.#means.reading.confirmAfterMs } : done;
  }

  async #commit(held: Held, made: Generation, checkpoint: CollectionCheckpoint): Promise<number> {
    const { stream, spool, clock, found, reading: rules } = this.#means;
    const now = clock.now();
    const { epoch, generation } = checkpoint;
    const stamp = { company: stream.company, epoch, generation, now };
    const records = made.changes.map((change) => changeRecord(change, stamp, rules));
    const uids = made.changes.map(({ change, key, state }) =>
      this.#identifier.ownUid([change, epoch, generation, key, state.version, state.hash]),
    );
    const conditions = made.findings.map((finding) => conditionRecord(stream, finding, now));
    const conditionUids = made.findings.map(({ condition }) =>
      this.#identifier.ownUid([condition, epoch, generation, now]),
    );
    await spool.append({
      stream: stream.name,
      pages: [
        ...recordPages(this.#context('drift', now), records, uids),
        ...recordPages(this.#context('condition', now), conditions, conditionUids),
      ],
      checkpoint,
      entities: {
        put: [...made.put].map(([key, state]) => [key, JSON.stringify(state)] as const),
        // An entity that is forgotten and put anew keeps what is put: dropping comes second.
        drop: [...held.orphans, ...made.drop].filter((key) => !made.put.has(key)),
      },
    });
    for (const condition of conditions) found?.(condition);
    return records.length + conditions.length;
  }

  #context(kind: PageContext['kind'], fetchedAt: number): PageContext {
    const { source, name, company } = this.#means.stream;
    const whose = company === undefined ? {} : { company };
    return { source, stream: name, kind, fetchedAt, ...whose };
  }
}

/** The company itself, or what stands for it, is denied or gone: never a removal. */
function isScopeLost({ outcome, status }: Failure): boolean {
  return (outcome === 'denied' && status === 403) || (outcome === 'refused' && status === 404);
}

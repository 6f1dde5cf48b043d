// Reads the lists or objects of many parents: new or changed parents first, the others in rotation, each with a share
// of the requests. A parent is in one of these states:
//
// - noticed: another source has shown the parent, for the first time or again
// - active: a new record arrived within a day; requested at each poll
// - resting: in rotation; the more parents, the less often, each once within `sweep`
// - lost: denied or gone, reported once; or an object that no longer changes; requested rarely or never
//
// The spool stores which parent is due next, so no poll scans all parents, and an interrupted poll resumes at its
// position. Invariants: the new records of a parent and its list position are committed in one transaction; a rejection
// counts as the parent's own only if another parent was answered since; a failing parent keeps no other waiting.

import { randomUUID } from 'node:crypto';
import type { ParentsReading } from '../contracts/config.ts';
import {
  ExportError,
  type Failure,
  type FetchSpool,
  type NewPage,
  type ParentChange,
  type ParentCounts,
  type ParentRow,
} from '../contracts/index.ts';
import { Identifier, isPartialPage } from '../list/index.ts';

import {
  conditionRecord,
  type Finding,
  mismatch,
  ownPage,
  type PollResult,
  pageContext,
} from '../poll/index.ts';

import { ListAsker, type ListAskerDeps } from './ask-list.ts';
import { askObject } from './ask-object.ts';
import {
  failedMs,
  fullFinding,
  isExpected,
  isUpstreams,
  type ParentRules,
  type PolledParent,
  turned,
} from './next-turn.ts';
import { failuresMax, settle } from './settle.ts';
import {
  freshParentsCheckpoint,
  type ParentsCheckpoint,
  type ParentsState,
  readParentState,
  readParentsCheckpoint,
} from './state.ts';

/** Dependencies of a parents stream. */
export interface ParentsDeps extends ListAskerDeps {
  readonly spool: Omit<FetchSpool, 'entities'>;
  readonly reading: ParentsReading;
  /** From 0 up to 1, so parents noticed together do not stay together. */
  readonly random: () => number;
  /** All parents known when the process begins, in batches. */
  readonly known: () => AsyncIterable<readonly string[]>;
}

/** Up to this number, parents are counted at each poll; above it once a minute. */
const countedAlways = 1_000;
const countEveryMs = 60_000;
/** Parents fetched from the spool at a time, and requested concurrently. */
const rowsMax = 32;
const askedAtOnce = 4;
/** Approximate duration of a poll while parents are due. */
const turnMs = 20_000;
/** If a full cycle takes long, parents noticed or active since are requested again after this time. */
const cycleMs = 5 * 60_000;
/** A starting process also requests parents due within the next minute, so that `--once` includes them. */
const aheadMs = 60_000;
/** Of this many last answered parents, one is requested if the due ones are not answered. */
const othersMax = 8;
/** A condition that every parent may show is reported for one parent within this time. */
const reportEveryMs = 24 * 3_600_000;

/** Reads one stream of parents. */
export class ParentsPoller {
  readonly #deps: ParentsDeps;
  readonly #lists: ListAsker;
  readonly #identifier: Identifier;
  #checkpoint: ParentsCheckpoint | null = null;
  #knowsAll = false;
  /** Parents due by then are requested; `isThrough`: all of them have been. */
  #until = Number.NEGATIVE_INFINITY;
  #isThrough = true;
  #isFirst = true;
  /** Offset among the due parents, because polls have failed. */
  #skipped = 0;
  /** When a parent was last answered. */
  #answeredAt = Number.NEGATIVE_INFINITY;
  /** How many others have been requested since then. */
  #othersAsked = 0;
  #counts: ParentCounts | null = null;
  #countedAt = 0;

  constructor(deps: ParentsDeps) {
    this.#deps = deps;
    this.#lists = new ListAsker(deps, (condition) => this.#isNews(condition));
    const { source, company = '', name } = deps.stream;
    this.#identifier = new Identifier({ source, company, stream: name });
  }

  /** For status; undefined before the first poll. */
  get parents(): ParentsState | undefined {
    if (this.#counts === null) return undefined;
    const { parents: known, active, lost, ended, due } = this.#counts;
    const rotation_ms = this.#checkpoint?.rotationMs ?? null;
    return { known, active, lost, ended, due, rotation_ms };
  }

  /** One poll: the due parents, as many as time allows. Upstream failures are results, never exceptions. */
  async poll(signal: AbortSignal): Promise<PollResult> {
    try {
      await this.#load();
      const result = await this.#read(signal);
      await this.#count();
      return result;
    } catch (error) {
      this.#checkpoint = null;
      if (signal.aborted || !(error instanceof ExportError)) throw error;
      return error.code === 'checkpoint_mismatch'
        ? mismatch(error)
        : { outcome: 'retry', cause: error };
    }
  }

  /** Counts all parents; done now and then if there are many. */
  async #count(): Promise<void> {
    const { spool, stream, clock } = this.#deps;
    const isMany = this.#counts !== null && this.#counts.parents > countedAlways;
    if (isMany && clock.now() - this.#countedAt < countEveryMs) return;
    this.#countedAt = clock.now();
    this.#counts = await spool.parents.counts(stream.name, clock.now());
  }

  get #held(): ParentsCheckpoint {
    if (this.#checkpoint === null) throw new TypeError('a checkpoint is loaded before it is used');
    return this.#checkpoint;
  }

  async #load(): Promise<void> {
    const { stream, spool, clock, known } = this.#deps;
    const { name, fingerprint } = stream;
    if (this.#checkpoint === null) {
      const { checkpoint } = await spool.recall(name);
      this.#checkpoint =
        checkpoint === null
          ? freshParentsCheckpoint(fingerprint, randomUUID(), clock.now())
          : readParentsCheckpoint(name, checkpoint, fingerprint);
    }
    if (this.#knowsAll) return;
    for await (const ids of known()) {
      await this.#commit(ids.map((id) => ({ stream: name, id, as: 'found' })));
    }
    this.#knowsAll = true;
    await this.#count();
  }

  async #read(signal: AbortSignal): Promise<PollResult> {
    const { stream, spool, clock, reading } = this.#deps;
    const now = clock.now();
    // By a clock that was ahead: with `start: now`, records up to then would be skipped.
    if (this.#held.begunAt > now) this.#checkpoint = { ...this.#held, begunAt: now };
    const restMs = 2 * Math.max(reading.sweepMs, failedMs.most);
    const endsAt = clock.monotonic() + turnMs;
    const ahead = this.#isFirst ? aheadMs : 0;
    this.#isFirst = false;
    if (this.#until - clock.now() > restMs) this.#until = clock.now();
    else if (this.#isThrough || clock.now() - this.#until > cycleMs) {
      this.#until = Math.max(clock.now() + ahead, this.#until + 1);
    }
    this.#isThrough = false;
    let fresh = 0;
    let doubt: ExportError | undefined;
    for (;;) {
      await spool.room(signal);
      const rows = await spool.parents.due(stream.name, this.#until, rowsMax, this.#until + restMs);
      if (rows.length === 0) break;
      const asked = await this.#askAll(turned(rows, this.#skipped), signal);
      for (const one of asked) {
        if (one.outcome !== 'done') {
          if (isPartialPage(one)) doubt ??= one.cause;
          continue;
        }
        fresh += one.fresh;
        doubt ??= one.doubt;
      }
      const failure = await this.#settle(asked, signal);
      this.#skipped = failure === null ? 0 : this.#skipped + failuresMax;
      if (failure !== null) return { ...failure, advanced: fresh > 0 };
      if (clock.monotonic() >= endsAt) {
        return { outcome: 'done', fresh, more: true, againMs: 0 };
      }
    }
    this.#isThrough = true;
    return { outcome: 'done', fresh, more: false, ...(doubt === undefined ? {} : { doubt }) };
  }

  /** Requests each parent, a few concurrently; a failure of upstream as a whole ends it. */
  async #askAll(rows: readonly ParentRow[], signal: AbortSignal): Promise<readonly PolledParent[]> {
    const asked: PolledParent[] = [];
    const left = rows.values();
    let failures = 0;
    const work = async () => {
      for (const row of left) {
        const one = await this.#ask(row, signal);
        asked.push(one);
        if (isExpected(one)) continue;
        failures = one.outcome === 'done' ? 0 : isUpstreams(one) ? failuresMax : failures + 1;
        if (failures >= failuresMax) break;
      }
    };
    const ended = await Promise.allSettled(Array.from({ length: askedAtOnce }, work));
    for (const one of ended) if (one.status === 'rejected') throw one.reason;
    return asked;
  }

  async #ask(row: ParentRow, signal: AbortSignal): Promise<PolledParent> {
    const { stream, clock, inFlight } = this.#deps;
    const known = readParentState(row.state, clock.now());
    const list = stream.listOf(row.id);
    if (list === null) return { row, known, outcome: 'done', fresh: 0, isFinal: true };
    const ask = async (): Promise<PolledParent> => {
      if (stream.object === undefined) {
        const asked = await this.#lists.ask(row.id, list, this.#held.begunAt, signal);
        return { row, known, ...asked };
      }
      const now = () => clock.now();
      const asked = await askObject(stream, { id: row.id, list, known, now }, signal);
      if (asked.outcome !== 'done') return { row, known, ...asked };
      return { row, known, ...asked, fresh: asked.page === null ? 0 : 1 };
    };
    return inFlight === undefined ? await ask() : await inFlight.during(ask);
  }

  /**
   * Commits the result for each parent. Returns a failure that belongs to upstream and to no parent; it changes
   * nothing.
   */
  async #settle(asked: readonly PolledParent[], signal: AbortSignal): Promise<Failure | null> {
    const { stream, random } = this.#deps;
    let rules = this.#rules(asked);
    let settled = settle(stream, asked, rules, random);
    const other = settled.failure && (await this.#askAnother(settled.failure, signal));
    if (other !== null) {
      rules = this.#rules([...asked, other]);
      settled = settle(stream, [...asked, other], rules, random);
    }
    this.#answeredAt = rules.answeredAt;
    const { changes, pages, failure, rotationMs } = settled;
    const findings = [...settled.findings];
    if (rotationMs !== null) this.#checkpoint = { ...this.#held, rotationMs };
    const isFull = this.#counts?.isFull === true && this.#isNews('source.parents_full');
    if (isFull) findings.push(fullFinding(stream));
    if (changes.length > 0 || findings.length > 0) await this.#commit(changes, pages, findings);
    return failure;
  }

  #rules(asked: readonly PolledParent[]): ParentRules {
    const now = this.#deps.clock.now();
    const answeredBefore = Math.min(this.#answeredAt, now);
    const isAnswered = asked.some(({ outcome }) => outcome === 'done');
    const answered = { answeredAt: isAnswered ? now : answeredBefore, answeredBefore };
    const { parents = 0, lost = 0 } = this.#counts ?? {};
    const isAlone = parents - lost === 1;
    const { sweepMs } = this.#deps.reading;
    return { now, until: this.#until, parents, sweepMs, ...answered, isAlone };
  }

  /**
   * Requests a parent that is not due, before upstream is blamed for a failure that may be the parent's own: all the
   * others may have ended or rest. Null if that one was not answered either, or if upstream itself has reported the
   * fault.
   */
  async #askAnother(
    failure: PolledParent & Failure,
    signal: AbortSignal,
  ): Promise<PolledParent | null> {
    const { stream, spool } = this.#deps;
    if (isUpstreams(failure) || failure.wait !== undefined) return null;
    const others = await spool.parents.answered(stream.name, this.#until, othersMax);
    const other = others[this.#othersAsked % others.length];
    if (other === undefined || stream.listOf(other.id) === null) return null;
    const one = await this.#ask(other, signal);
    this.#othersAsked = one.outcome === 'done' ? 0 : this.#othersAsked + 1;
    return one.outcome === 'done' ? one : null;
  }

  async #commit(
    parents: readonly ParentChange[],
    pages: readonly NewPage[] = [],
    findings: readonly Finding[] = [],
  ): Promise<void> {
    const { stream, spool, clock, found } = this.#deps;
    const now = clock.now();
    const records = findings.map((finding) => conditionRecord(stream, finding, now));
    const uids = findings.map(({ condition, message }) =>
      this.#identifier.ownUid([condition, this.#held.epoch, now, message]),
    );
    const context = pageContext(stream, 'condition', now);
    const own = records.length === 0 ? [] : [ownPage(context, records, uids)];
    const checkpoint = this.#held;
    await spool.append({ stream: stream.name, pages: [...pages, ...own], checkpoint, parents });
    for (const record of records) found?.(record);
  }

  /** Marks a condition as reported from now on; the checkpoint stores it with the next commit. */
  #isNews(condition: string): boolean {
    const now = this.#deps.clock.now();
    const { told: reported } = this.#held;
    if (now - (reported[condition] ?? Number.NEGATIVE_INFINITY) < reportEveryMs) return false;
    this.#checkpoint = { ...this.#held, told: { ...reported, [condition]: now } };
    return true;
  }
}

// One seed: parents that come, grow, are denied and go, and a poller that reads a small list or an
// object of each, with its state in the real database. Everything is drawn from the seed, so a seed
// does the same again.

import type { ListReading } from '../../../src/contracts/definition.ts';
import { ExportError } from '../../../src/contracts/errors.ts';
import type { ListStream, ParentsStream } from '../../../src/contracts/source.ts';
import type { Append } from '../../../src/contracts/spool.ts';
import { uidBytes } from '../../../src/contracts/spool.ts';
import type { Clock } from '../../../src/contracts/tools.ts';
import type { UpstreamRequest } from '../../../src/contracts/upstream.ts';
import type { PollResult } from '../../../src/fetch/outcome.ts';
import { ParentsPoller } from '../../../src/fetch/parents/poller.ts';
import { Random } from '../../../src/sandbox/random.ts';
import { cutRecords } from '../../../src/tools/record-list.ts';
import { madeUpList, pagination } from '../../support/made-up-list.ts';
import { silent } from '../../support/silent-log.ts';
import { type Life, newLife, passStep, unanswered } from '../life.ts';
import type { Tell, Verdict } from '../verdict.ts';
import { change, spoolOf } from './held.ts';
import { Oracle } from './oracle.ts';
import { ModelParents, type Parent } from './server.ts';
import { type Traits, traitsOf } from './traits.ts';

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
const begin = Date.UTC(2026, 0, 1);
/** So many in one poll are a hot loop: there are few parents, and little of each. */
const requestsMax = 1_000;
const list: ListReading = {
  ...{ order: 'auto', start: 'beginning', lookbackMs: 10 * minuteMs },
  ...{ rewindEveryMs: 15 * minuteMs, reconcileEveryMs: hourMs, onCursorInvalid: 'rewalk' },
};

/** Worlds so far: each has a stream of its own, also where a seed is run twice. */
let worlds = 0;

/** Runs one seed; `tell` is told each step. */
export async function runParents(seed: number, tell: Tell = () => undefined): Promise<Verdict> {
  const traits = traitsOf(new Random(seed, 21));
  const world = new World(seed, traits, tell);
  tell(JSON.stringify(traits));
  try {
    await world.trouble();
    await world.calm();
  } catch (error) {
    world.oracle.findings.push(`the poller threw: ${(error as Error).stack}`);
  }
  const { requests, crashes, records, oracle } = world;
  return { seed, traits, findings: oracle.findings, requests, records, crashes };
}

interface Process extends Life {
  readonly poller: ParentsPoller;
}

class World {
  readonly oracle: Oracle;
  requests = 0;
  crashes = 0;
  records = 0;
  readonly #name: string;
  readonly #traits: Traits;
  readonly #random: Random;
  readonly #upstream: ModelParents;
  readonly #tell: Tell;
  readonly #clock: Clock;
  readonly #uids = new Set<string>();
  #now = begin;
  /** What the clock shows beside the time that it is. */
  #skewMs = 0;
  #troubled = true;
  #requestsLeft = 0;
  #process: Process;

  constructor(seed: number, traits: Traits, tell: Tell) {
    worlds += 1;
    this.#name = `src${worlds}`;
    this.#traits = traits;
    this.#random = new Random(seed, 22);
    this.#tell = (line) => tell(`${new Date(this.#now).toISOString().slice(8, 23)} ${line}`);
    this.#upstream = new ModelParents(traits, new Random(seed, 23));
    this.#clock = {
      now: () => this.#now + this.#skewMs,
      monotonic: () => this.#now,
      sleep: () => unanswered(),
    };
    this.oracle = new Oracle(traits, this.#upstream.parents);
    for (let n = 0; n < traits.parents; n += 1) this.#add();
    this.#process = this.#start();
  }

  /** Polls with all that may go wrong. */
  async trouble(): Promise<void> {
    const { outage, refused, bent, failing, jumps } = this.#traits;
    const polls = 6 + this.#random.below(30);
    const at = { outage: this.#random.below(polls), refused: this.#random.below(polls) };
    const bentAt = this.#random.below(polls);
    const [unlucky] = this.#upstream.parents.values();
    if (failing && unlucky !== undefined && this.#traits.parents > 1) unlucky.status = 500;
    for (let n = 0; n < polls && this.oracle.findings.length === 0; n += 1) {
      if (outage !== null && n === at.outage) {
        this.#upstream.outageUntil = this.#now + this.#random.below(4 * hourMs);
        this.#tell(`upstream answers ${outage} for a while`);
      }
      if (refused !== null && n === at.refused) this.#refuse(refused);
      if (bent !== null && n === bentAt) this.#bend();
      const result = await this.#poll();
      this.#pass(this.#waitAfter(result));
      if (jumps && this.#random.chance(0.2)) this.#jump();
    }
  }

  /** Polls with nothing going wrong any more. */
  async calm(): Promise<void> {
    if (this.oracle.findings.length > 0) return;
    this.#tell('all is well from here on');
    this.#troubled = false;
    this.#upstream.troubled = false;
    this.#upstream.outageUntil = 0;
    this.#upstream.bent = null;
    for (const parent of this.#upstream.parents.values()) {
      const isBack = parent.status === 500 || this.#random.chance(0.5);
      if (parent.status === null || !isBack) continue;
      this.#tell(`${parent.id} is back`);
      parent.status = null;
    }
    for (const parent of this.#upstream.parents.values()) {
      // Of what was told as lost somebody has to say that it is there.
      if (!this.oracle.isLost(parent.id)) continue;
      parent.isNoticed = this.#traits.from === 'noticed';
      if (parent.isNoticed) this.#notice(parent);
    }
    let isWell = false;
    const { sweepMs, everyMs } = this.#traits;
    for (const until = this.#now + 2 * sweepMs + 3 * hourMs; this.#now < until; ) {
      const result = await this.#poll();
      if (this.oracle.findings.length > 0) return;
      isWell = result !== 'killed' && result.outcome === 'done';
      this.#now += isWell ? everyMs : 5_000;
    }
    const hasOther = [...this.#upstream.parents.values()].some(({ status }) => status === null);
    if (hasOther) this.oracle.lookForLost(this.#now);
    this.oracle.finish(isWell || !hasOther);
  }

  async #poll(): Promise<PollResult | 'killed'> {
    const process = this.#process;
    this.#requestsLeft = requestsMax;
    process.stop = new AbortController();
    const { signal } = process.stop;
    const polled = process.poller.poll(signal).catch((error: unknown) => {
      if (signal.aborted) return 'killed' as const;
      throw error;
    });
    const result = await Promise.race([polled, process.killed]);
    if (result === 'killed') {
      this.crashes += 1;
      process.alive = false;
      this.#process = this.#start();
    }
    this.#tell(`poll: ${said(result)}`);
    this.oracle.look();
    return result;
  }

  #waitAfter(result: PollResult | 'killed'): number {
    const { everyMs } = this.#traits;
    if (result === 'killed') return this.#random.pick([1_000, everyMs, 3 * hourMs]);
    if (result.outcome !== 'done') return this.#random.pick([1_000, 20_000, 15 * minuteMs]);
    return this.#random.pick([...Array<number>(8).fill(everyMs), 20 * minuteMs, 5 * hourMs]);
  }

  /** Time passes between two polls, and things happen meanwhile. */
  #pass(ms: number): void {
    const until = this.#now + ms;
    for (let n = this.#random.below(3); n > 0; n -= 1) {
      this.#now += this.#random.below((until - this.#now) / 2);
      this.#happen();
    }
    this.#now = until;
  }

  #happen(): void {
    const parents = [...this.#upstream.parents.values()];
    if (this.#traits.from === 'noticed' && parents.length < 20 && this.#random.chance(0.2)) {
      this.#add();
      return;
    }
    const parent = this.#random.pick(parents);
    this.#upstream.grow(parent, this.#now);
    this.#tell(`${parent.id} has ${parent.texts.length}`);
    if (this.#traits.from === 'noticed' && this.#random.chance(this.#traits.noticed)) {
      this.#notice(parent);
    }
  }

  #add(): void {
    const parent = this.#upstream.add(this.#now);
    this.#tell(`${parent.id} comes`);
    if (this.#traits.from === 'noticed') this.#notice(parent);
  }

  /** Another source has shown it. */
  #notice(parent: Parent): void {
    this.#tell(`${parent.id} is noticed`);
    parent.asksWhenDone = 0;
    const parents = [{ stream: this.#name, id: parent.id, as: 'noticed' as const }];
    change({ stream: 'other', pages: [], checkpoint: {}, parents }, this.#clock.now());
  }

  #refuse(status: 403 | 404): void {
    const parent = this.#random.pick([...this.#upstream.parents.values()]);
    this.#tell(`${parent.id} is refused with ${status}`);
    parent.status = status;
  }

  #bend(): void {
    const { id } = this.#random.pick([...this.#upstream.parents.values()]);
    this.#tell(`${id} is ${this.#traits.bent} for a while`);
    this.#upstream.bent = { id, until: this.#now + this.#random.below(5 * hourMs) };
  }

  #jump(): void {
    const by = this.#random.pick([
      -30 * 24 * hourMs,
      -hourMs,
      -10_000,
      10_000,
      hourMs,
      24 * hourMs,
    ]);
    this.#skewMs += by;
    this.#tell(`the clock is set by ${by / 1_000} s`);
  }

  #start(): Process {
    const process = newLife();
    const { of, from, parents: count, sweepMs, immutable, pageRows } = this.#traits;
    const ids = Array.from({ length: count }, (_, n) => `p${n}`);
    const step = (what: string) => this.#step(process, what);
    const get = async (request: UpstreamRequest, signal: AbortSignal) => {
      await step('asks');
      this.requests += 1;
      this.#requestsLeft -= 1;
      if (this.#requestsLeft < 0) throw new Error(`more than ${requestsMax} requests in one poll`);
      const answer = this.#upstream.answer(request, this.#now);
      const text =
        answer.outcome === 'ok' ? Buffer.from(answer.body).toString() : answer.cause.message;
      this.#tell(`${request.path} ${JSON.stringify(request.query)} -> ${text}`);
      await step('is answered');
      signal.throwIfAborted();
      return answer;
    };
    const listOf = (id: string): ListStream =>
      madeUpList(get, {
        ...{ name: `${this.#name}:${id}`, source: this.#name, records: 'log', immutable },
        request: { path: `/${id}`, template: '/{parent_id}', query: [] },
        pagination: { ...pagination, style: of === 'list' ? 'cursor' : 'none' },
        ...{ pageLimit: pageRows, fingerprint: `made up ${id}` },
      });
    const stream: ParentsStream = {
      ...{ kind: 'parents', name: this.#name, source: this.#name, records: 'log', paths: [] },
      ...{ fingerprint: 'made up', listOf },
      ...(of === 'object' && { object: { isFinal: ({ status }) => status === 'done' } }),
    };
    const spool = spoolOf((entry) => this.#take(entry), {
      now: this.#clock.now,
      step: async () => {
        await step('commits');
        if (this.#happens(this.#traits.trouble / 2)) {
          this.#tell('a commit fails');
          throw new ExportError('disk_full', 'simulating: no space', { next: 'nothing' });
        }
      },
    });
    const poller = new ParentsPoller({
      ...{ stream, spool, clock: this.#clock, log: silent, list },
      random: () => this.#random.next(),
      reading: { each: { ids }, sweepMs },
      known: async function* () {
        if (from === 'ids') yield ids;
      },
    });
    return Object.assign(process, { poller });
  }

  #take({ pages }: Append): void {
    for (const { body, items, kept, uids, context } of pages) {
      const { starts, ends } = cutRecords(body, items);
      const count = uids.length / uidBytes;
      for (let n = 0; n < count; n += 1) {
        const at = kept === null ? n : (kept[n] ?? 0);
        const text = Buffer.from(body.subarray(starts[at], ends[at])).toString();
        const uid = Buffer.from(uids.subarray(n * uidBytes, (n + 1) * uidBytes)).toString('hex');
        if (this.#uids.has(uid)) this.oracle.findings.push(`two events share a uid: ${text}`);
        this.#uids.add(uid);
        this.records += 1;
        this.#tell(`holds ${text}`);
        this.oracle.take(text, { kind: context.kind, parent: context.parent });
      }
    }
  }

  #step(process: Life, what: string): Promise<void> {
    return passStep(process, what, {
      random: this.#random,
      crash: this.#traits.crash,
      happens: (chance) => this.#happens(chance),
      pass: () => {
        this.#now += 5 + this.#random.below(50);
        if (this.#happens(0.03)) this.#happen();
      },
      tell: this.#tell,
    });
  }

  #happens(chance: number): boolean {
    return this.#troubled && this.#random.chance(chance);
  }
}

function said(result: PollResult | 'killed'): string {
  if (result === 'killed') return result;
  return result.outcome === 'done'
    ? `done, ${result.fresh} new`
    : `${result.outcome} ${result.cause.message}`;
}

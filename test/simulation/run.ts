// One seed: a server of some kind, a reader on it, and what happens to both, step by step. Between any two steps records may
// come and the process may be killed; a killed process gets no answer any more, and the next one has only the spool.
// Everything is drawn from the seed and time stands still between steps, so a seed does the same again.

import type { Answer } from '../../src/contracts/answer.ts';
import { ExportError } from '../../src/contracts/errors.ts';
import type { Clock } from '../../src/contracts/tools.ts';
import type { Body } from '../../src/contracts/upstream.ts';
import { ListPoller } from '../../src/fetch/list/poller.ts';
import { ListReader } from '../../src/fetch/list/reader.ts';
import type { PollResult } from '../../src/fetch/outcome.ts';
import { Random } from '../../src/sandbox/random.ts';
import { madeUpList } from '../support/made-up-list.ts';
import { silent } from '../support/silent-log.ts';
import { askedFor, type Dress, dressOf, isNumbered, pagingOf } from './dress.ts';
import { type Life, newLife, passStep, unanswered } from './life.ts';
import { ModelList } from './list.ts';
import { Oracle } from './oracle.ts';
import { ModelServer } from './server.ts';
import { ModelSpool } from './spool.ts';
import { type Traits, traitsOf } from './traits.ts';
import type { Tell, Verdict } from './verdict.ts';

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
const begin = Date.UTC(2026, 0, 1);

/** The times that the reader goes by, as the config has them by default. */
const reading = {
  lookbackMs: 10 * minuteMs,
  rewindEveryMs: 15 * minuteMs,
  reconcileEveryMs: hourMs,
  onCursorInvalid: 'rewalk',
} as const;

/** Runs one seed; `tell` is told each step. */
export async function runList(seed: number, tell: Tell = () => undefined): Promise<Verdict> {
  const traits = traitsOf(new Random(seed, 1));
  const dress = dressOf(traits, new Random(seed, 5));
  const world = new World(seed, traits, { dress, tell });
  tell(JSON.stringify({ ...traits, dress }));
  try {
    await world.trouble();
    await world.calm();
  } catch (error) {
    world.oracle.findings.push(`the poller threw: ${(error as Error).stack}`);
  }
  return {
    seed,
    traits: { ...traits, dress },
    findings: world.oracle.findings,
    requests: world.requests,
    records: world.list.records.length,
    crashes: world.crashes,
  };
}

interface Process extends Life {
  readonly poller: ListPoller;
}

/** So many in one poll are a hot loop: the lists are short. */
const requestsMax = 3_000;

class World {
  readonly list: ModelList;
  readonly oracle: Oracle;
  requests = 0;
  crashes = 0;
  readonly #traits: Traits;
  readonly #dress: Dress;
  readonly #random: Random;
  readonly #server: ModelServer;
  readonly #spool: ModelSpool;
  readonly #tell: (line: string) => void;
  readonly #clock: Clock;
  #now = begin;
  #troubled = true;
  #requestsLeft = 0;
  #process: Process;

  constructor(
    seed: number,
    traits: Traits,
    { dress, tell }: { readonly dress: Dress; readonly tell: (line: string) => void },
  ) {
    this.#traits = traits;
    this.#dress = dress;
    this.#random = new Random(seed, 2);
    this.#tell = (line) => tell(`${new Date(this.#now).toISOString().slice(8, 23)} ${line}`);
    this.#spool = new ModelSpool(this.#tell, seed % 4 === 0);
    this.list = new ModelList(traits, new Random(seed, 3), begin);
    this.#server = new ModelServer(traits, dress, this.list, new Random(seed, 4));
    if (traits.blocked) this.#server.blocked = this.list.records.at(this.#random.below(40)) ?? null;
    this.#clock = {
      now: () => this.#now,
      monotonic: () => this.#now,
      sleep: (ms, signal) => this.#sleep(ms, signal),
    };
    this.oracle = new Oracle(
      { ...traits, dress },
      { list: this.list, spool: this.#spool, reconcileMs: reading.reconcileEveryMs },
    );
    this.#process = this.#start();
  }

  /** Polls with all that may go wrong. */
  async trouble(): Promise<void> {
    const polls = 4 + this.#random.below(24);
    for (let n = 0; n < polls && this.oracle.findings.length === 0; n += 1) {
      const result = await this.#poll();
      this.#pass(this.#waitAfter(result));
    }
  }

  /** Polls with nothing going wrong any more: first as long as fresh records may take, then a day. */
  async calm(): Promise<void> {
    if (this.oracle.findings.length > 0) return;
    this.#tell('all is well from here on');
    this.#troubled = false;
    this.#server.troubled = false;
    const isWhole = this.#traits.paging === 'cursor' || isNumbered(this.#dress);
    if (isWhole) this.#server.blocked = null;
    this.list.grow(this.#now);
    const { everyMs } = this.#traits;
    const waits = Array<number>(Math.ceil((reading.reconcileEveryMs + 20 * minuteMs) / everyMs));
    waits.fill(everyMs);
    waits.push(...Array<number>(5).fill(5 * hourMs), ...Array<number>(6).fill(everyMs));
    for (const wait of waits) {
      const result = await this.#poll();
      if (this.oracle.findings.length > 0) return;
      this.#pass(result === 'killed' || result.outcome === 'done' ? wait : 5_000, false);
    }
    this.oracle.finish(this.#now, this.#server.blocked);
  }

  async #poll(): Promise<PollResult | 'killed'> {
    const begunAt = this.#now;
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
    this.#tell(`poll: ${result === 'killed' ? result : said(result)}; ${state(process.poller)}`);
    this.oracle.observe(result, begunAt, this.#now, this.#server.blocked);
    return result;
  }

  #waitAfter(result: PollResult | 'killed'): number {
    const { everyMs } = this.#traits;
    if (result === 'killed') return this.#random.pick([1_000, everyMs, 3 * hourMs]);
    switch (result.outcome) {
      case 'done':
        if (result.more) return 1_000;
        return this.#random.pick([
          ...Array<number>(8).fill(everyMs),
          20 * minuteMs,
          90 * minuteMs,
          5 * hourMs,
        ]);
      case 'retry':
        return 1_000 + this.#random.below(minuteMs);
      default:
        return this.#random.pick([1_000, minuteMs, hourMs]);
    }
  }

  /** Time passes between two polls, and records come meanwhile. */
  #pass(ms: number, growing = true): void {
    const until = this.#now + ms;
    if (growing) {
      for (let n = this.#random.below(3); n > 0; n -= 1) {
        this.#now += this.#random.below((until - this.#now) / 2);
        this.#grow();
      }
    }
    this.#now = until;
  }

  #grow(): void {
    const before = this.list.records.length;
    this.list.grow(this.#now);
    this.#tell(`${this.list.records.length - before} records come`);
  }

  #start(): Process {
    const process = newLife();
    const step = (what: string) => this.#step(process, what);
    const { order, pinned, limit } = this.#traits;
    const isTimed = this.#dress.style === 'window';
    const stream = madeUpList(
      async (request, signal) => {
        await step('asks');
        this.requests += 1;
        this.#requestsLeft -= 1;
        if (this.#requestsLeft < 0)
          throw new Error(`more than ${requestsMax} requests in one poll`);
        this.#now += this.#traits.answerMs;
        const query = askedFor(request, this.#dress);
        const answer = this.#server.answer(request, this.#now);
        this.#tell(`${JSON.stringify(query)} -> ${answered(answer)}`);
        await step('is answered');
        signal.throwIfAborted();
        return answer;
      },
      {
        immutable: true,
        pagination: pagingOf(this.#dress),
        time: ['time'],
        pageLimit: limit,
      },
    );
    const spool = this.#spool.face(async () => {
      await step('commits');
      if (this.#happens(this.#traits.trouble / 4)) {
        this.#tell('a commit fails');
        throw new ExportError('disk_full', 'simulating: no space', { next: 'nothing' });
      }
    });
    const reader = new ListReader({
      stream,
      spool,
      clock: this.#clock,
      log: silent,
      order: isTimed ? 'oldest_first' : pinned && order !== 'both_ends' ? order : 'auto',
      start: isTimed ? begin - 3 * hourMs : 'beginning',
      patienceMs: reading.rewindEveryMs,
    });
    return Object.assign(process, { poller: new ListPoller(reader, reading) });
  }

  #step(process: Life, what: string): Promise<void> {
    return passStep(process, what, {
      random: this.#random,
      crash: this.#traits.crash,
      happens: (chance) => this.#happens(chance),
      pass: () => {
        this.#now += 5 + this.#random.below(50);
        if (this.#happens(0.04)) this.#grow();
      },
      tell: this.#tell,
    });
  }

  /** A list's reader waits for nothing but pages, and its wait is over before one comes, or not. */
  async #sleep(ms: number, signal?: AbortSignal): Promise<void> {
    if (this.#random.chance(0.7)) await unanswered();
    for (let n = this.#random.below(12); n > 0; n -= 1) await Promise.resolve();
    signal?.throwIfAborted();
    this.#now += ms;
  }

  #happens(chance: number): boolean {
    return this.#troubled && this.#random.chance(chance);
  }
}

function said(result: PollResult): string {
  const cause = result.outcome === 'done' ? '' : ` ${result.cause.message}`;
  return `${result.outcome}${cause} ${result.outcome === 'done' ? `${result.fresh} new${result.more ? ', more' : ''}` : ''}`;
}

/** What the checkpoint says of what is known of the list. */
function state({ checkpoint }: ListPoller): string {
  if (checkpoint === null) return 'nothing is known';
  const { growth, whole, end, looked } = checkpoint;
  const { swept, round } = whole;
  const { countAnew, provenAt, blindAt } = end;
  const { sweptAt, rewoundAt } = looked;
  const times = Object.entries({ provenAt, blindAt, sweptAt, rewoundAt })
    .filter(([, at]) => at !== null && at > 0)
    .map(([name, at]) => `${name} ${new Date(at ?? 0).toISOString().slice(8, 19)}`);
  const marks = Object.entries({ swept, round: round !== null, countAnew })
    .filter(([, is]) => is)
    .map(([name]) => name);
  return [growth.order, ...marks, ...times].join(', ');
}

function answered(answer: Answer<Body>): string {
  if (answer.outcome !== 'ok') return answer.cause.message;
  const text = Buffer.from(answer.body).toString();
  const numbers = [...text.matchAll(/"n":(\d+)/g)].map(([, n]) => n);
  return `[${numbers.join(' ')}] ${JSON.parse(text).next_cursor}`;
}

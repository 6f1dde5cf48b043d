// One seed: a server of some kind, a reader on it, and a course for both, step by step. Between any two steps records
// may come and the process may be killed; a killed process gets no answer any more, and the next one has only the
// spool. Everything is drawn from the seed and time stands still between steps, so a seed does the same again.

import type { Answer } from '../../src/contracts/answer.ts';
import type { Body } from '../../src/contracts/upstream.ts';
import type { ListTimes } from '../../src/list/poll.ts';
import { ListPoller } from '../../src/list/poller.ts';
import { ListReader } from '../../src/list/reader.ts';
import type { PollResult } from '../../src/poll/outcome.ts';
import { Random } from '../../src/sandbox/random.ts';
import { madeUpList } from '../support/made-up-list.ts';
import { silent } from '../support/silent-log.ts';
import {
  begin,
  Course,
  type Ended,
  hourMs,
  minuteMs,
  type Steps,
  said,
  unanswered,
} from './course.ts';
import { askedFor, type Dress, dressOf, isNumbered, pagingOf, requestOf } from './dress.ts';
import { ModelList } from './list.ts';
import { Oracle } from './oracle.ts';
import { ModelServer } from './server.ts';
import { ModelSpool } from './spool.ts';
import { type Traits, traitsOf } from './traits.ts';
import { type Tell, type Verdict, verdictOf, type World } from './verdict.ts';

/** The times that the reader goes by, as the config has them by default. */
const reading = {
  lookbackMs: 10 * minuteMs,
  rewindEveryMs: 15 * minuteMs,
  reconcileEveryMs: hourMs,
} as const;

/** Runs one seed, and reports each step. */
export async function runList(seed: number, report: Tell = () => undefined): Promise<Verdict> {
  const drawn = traitsOf(new Random(seed, 1));
  const traits = { ...drawn, dress: dressOf(drawn, new Random(seed, 5)) };
  const world = new ListWorld(seed, traits, report);
  report(JSON.stringify(traits));
  return await verdictOf(seed, world);
}

class ListWorld implements World {
  readonly traits: Traits & { readonly dress: Dress };
  readonly course: Course<ListPoller>;
  readonly oracle: Oracle;
  readonly #random: Random;
  readonly #list: ModelList;
  readonly #server: ModelServer;
  readonly #spool: ModelSpool;
  readonly #onCursorInvalid: ListTimes['onCursorInvalid'];

  constructor(seed: number, traits: Traits & { readonly dress: Dress }, report: Tell) {
    this.traits = traits;
    this.#random = new Random(seed, 2);
    this.#onCursorInvalid = reactionOf(traits, new Random(seed, 6));
    this.course = new Course({
      ...{ random: this.#random, tell: report, crash: traits.crash },
      ...{ commitFails: traits.trouble / 4, happens: 0.04, requestsMax: 3_000 },
      happen: () => this.#grow(),
      sleep: (ms, signal) => this.#sleep(ms, signal),
      start: (steps) => this.#start(steps),
      look: (ended) => this.#look(ended),
    });
    this.#spool = new ModelSpool((line) => this.course.tell(line), seed % 4 === 0);
    this.#list = new ModelList(traits, new Random(seed, 3), begin);
    this.#server = new ModelServer(traits, this.#list, new Random(seed, 4));
    if (traits.blocked) {
      this.#server.blocked = this.#list.records.at(this.#random.below(40)) ?? null;
    }
    const reconcileMs = reading.reconcileEveryMs;
    this.oracle = new Oracle(traits, { list: this.#list, spool: this.#spool, reconcileMs });
  }

  get records(): number {
    return this.#list.records.length;
  }

  async trouble(): Promise<void> {
    const polls = 4 + this.#random.below(24);
    for (let n = 0; n < polls && this.oracle.findings.length === 0; n += 1) {
      const result = await this.course.poll();
      this.course.pass(this.#waitAfter(result));
    }
  }

  /** First as long as fresh records may take, then a day. */
  async calm(): Promise<void> {
    const { course } = this;
    course.tell('all is well from here on');
    course.isTroubled = false;
    this.#server.troubled = false;
    const isWhole = this.traits.paging === 'cursor' || isNumbered(this.traits.dress);
    if (isWhole) this.#server.blocked = null;
    this.#list.grow(course.now);
    const { everyMs } = this.traits;
    const waits = Array<number>(Math.ceil((reading.reconcileEveryMs + 20 * minuteMs) / everyMs));
    waits.fill(everyMs);
    waits.push(...Array<number>(5).fill(5 * hourMs), ...Array<number>(6).fill(everyMs));
    for (const wait of waits) {
      const result = await this.course.poll();
      if (this.oracle.findings.length > 0) return;
      course.now += result === 'killed' || result.outcome === 'done' ? wait : 5_000;
    }
    this.oracle.finish(course.now, this.#server.blocked);
  }

  #look({ result, begunAt, poller }: Ended<ListPoller>): void {
    const { course } = this;
    course.tell(`poll: ${said(result)}; ${state(poller)}`);
    this.oracle.observe(result, begunAt, course.now, this.#server.blocked);
  }

  #waitAfter(result: PollResult | 'killed'): number {
    const { everyMs } = this.traits;
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

  #grow(): void {
    const before = this.#list.records.length;
    this.#list.grow(this.course.now);
    this.course.tell(`${this.#list.records.length - before} records come`);
  }

  #start({ asking, commit }: Steps): ListPoller {
    const { order, pinned, limit, dress, answerMs } = this.traits;
    const isTimed = dress.style === 'window';
    const get = asking((request) => {
      this.course.now += answerMs;
      const answer = this.#server.answer(request, this.course.now);
      this.course.tell(`${JSON.stringify(askedFor(request, dress))} -> ${answered(answer)}`);
      return answer;
    });
    const stream = madeUpList(get, {
      ...{ immutable: true, pagination: pagingOf(dress), request: requestOf(dress) },
      ...{ time: ['time'], pageLimit: limit },
    });
    const reader = new ListReader({
      ...{ stream, spool: this.#spool.face(commit), clock: this.course.clock, log: silent },
      order: isTimed ? 'oldest_first' : pinned && order !== 'both_ends' ? order : 'auto',
      start: isTimed ? begin - 3 * hourMs : 'beginning',
      patienceMs: reading.rewindEveryMs,
      lookbackMs: reading.lookbackMs,
    });
    return new ListPoller(reader, { ...reading, onCursorInvalid: this.#onCursorInvalid });
  }

  /** A list's reader waits for nothing but pages, and its wait is over before one comes, or not. */
  async #sleep(ms: number, signal?: AbortSignal): Promise<void> {
    if (this.#random.chance(0.7)) await unanswered();
    for (let n = this.#random.below(12); n > 0; n -= 1) await Promise.resolve();
    signal?.throwIfAborted();
    this.course.now += ms;
  }
}

/** Only a rejection may skip records or halt, so where there is none, every reaction loses nothing. */
function reactionOf(
  { trouble, cursor, dress }: Traits & { readonly dress: Dress },
  random: Random,
): ListTimes['onCursorInvalid'] {
  const expires = cursor.lifetimeMs !== null && cursor.refusal !== 'ignored';
  const rejects = trouble > 0 || expires || (isNumbered(dress) && dress.beyond === 'refusal');
  return rejects ? 'rewalk' : random.pick(['rewalk', 'halt', 'from_now'] as const);
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
  const next = text.startsWith('{"data"') ? JSON.parse(text).next_cursor : undefined;
  return `[${numbers.join(' ')}] ${next}`;
}

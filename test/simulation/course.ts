// The course of a simulated process, step by step: a poll, and at any step time passes, upstream changes, or the
// process is killed or stopped. A killed process gets no answer any more, and the next one has only the spool.
// Everything is drawn from the world's numbers and time stands still between steps, so a seed does the same again.

import type { Answer } from '../../src/contracts/answer.ts';
import { ExportError } from '../../src/contracts/errors.ts';
import type { Clock } from '../../src/contracts/tools.ts';
import type { Body, Upstream, UpstreamRequest } from '../../src/contracts/upstream.ts';
import type { PollResult } from '../../src/poll/outcome.ts';
import type { Random } from '../../src/sandbox/random.ts';
import type { Tell } from './verdict.ts';

export const minuteMs = 60_000;
export const hourMs = 60 * minuteMs;
/** When each world begins. */
export const begin = Date.UTC(2026, 0, 1);

/** What the process polls with. */
interface Poller {
  poll(signal: AbortSignal): Promise<PollResult>;
}

/** The steps of one run of the process, any of which may be its last. */
export interface Steps {
  /** Requests, as they are answered. */
  asking(answer: (request: UpstreamRequest) => Answer<Body>): Upstream['get'];
  /** A commit, before it and after it. */
  commit(): Promise<void>;
}

/** What a course is made with. */
export interface CourseMeans<P extends Poller> {
  readonly random: Random;
  readonly tell: Tell;
  /** Chance at each step that the process is killed; a quarter of that, that it is stopped. */
  readonly crash: number;
  /** Chance at each step of a commit that it fails. */
  readonly commitFails: number;
  /** Chance at each step that something happens in the world, and what does. */
  readonly happens: number;
  happen(): void;
  /** So many requests in one poll are a hot loop. */
  readonly requestsMax: number;
  /** A wait of the poller's. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
  /** The process begins. */
  start(steps: Steps): P;
  /** A poll has ended. */
  look(ended: Ended<P>): void;
}

/** A poll that has ended. */
export interface Ended<P> {
  readonly result: PollResult | 'killed';
  readonly begunAt: number;
  /** Which has polled; where it was killed, the next one has begun. */
  readonly poller: P;
}

interface Life<P> {
  alive: boolean;
  readonly poller: P;
  /** Resolves when it is killed. */
  readonly killed: Promise<'killed'>;
  readonly kill: () => void;
  stop: AbortController;
}

/** The course of one world. */
export class Course<P extends Poller> {
  requests = 0;
  crashes = 0;
  /** The time that it is. */
  now = begin;
  /** While it is true, things go wrong. */
  isTroubled = true;
  readonly clock: Clock;
  readonly #deps: CourseMeans<P>;
  /** What the clock shows beside the time that it is. */
  #skewMs = 0;
  #requestsLeft = 0;
  #life: Life<P> | null = null;

  constructor(deps: CourseMeans<P>) {
    this.#deps = deps;
    this.clock = {
      now: () => this.now + this.#skewMs,
      monotonic: () => this.now,
      sleep: deps.sleep,
    };
  }

  /** Logs a step, with its time. */
  tell(line: string): void {
    this.#deps.tell(`${new Date(this.now).toISOString().slice(8, 23)} ${line}`);
  }

  /** The process is gone, and another one begins. */
  restart(): void {
    if (this.#life !== null) this.#life.alive = false;
    this.#life = this.#start();
  }

  /** One poll; where it is killed in it, the next process has begun. */
  async poll(): Promise<PollResult | 'killed'> {
    const begunAt = this.now;
    this.#life ??= this.#start();
    const life = this.#life;
    const { poller } = life;
    this.#requestsLeft = this.#deps.requestsMax;
    life.stop = new AbortController();
    const { signal } = life.stop;
    const polled = poller.poll(signal).catch((error: unknown) => {
      if (signal.aborted) return 'killed' as const;
      throw error;
    });
    const result = await Promise.race([polled, life.killed]);
    if (result === 'killed') {
      this.crashes += 1;
      this.restart();
    }
    this.#deps.look({ result, begunAt, poller });
    return result;
  }

  /** Time passes between two polls, and things happen meanwhile. */
  pass(ms: number): void {
    const { random, happen } = this.#deps;
    const until = this.now + ms;
    for (let n = random.below(3); n > 0; n -= 1) {
      this.now += random.below((until - this.now) / 2);
      happen();
    }
    this.now = until;
  }

  /** The clock is set. */
  jump(): void {
    const by = this.#deps.random.pick([
      -30 * 24 * hourMs,
      -hourMs,
      -10_000,
      10_000,
      hourMs,
      24 * hourMs,
    ]);
    this.#skewMs += by;
    this.tell(`the clock is set by ${by / 1_000} s`);
  }

  #start(): Life<P> {
    const { promise: killed, resolve } = Promise.withResolvers<'killed'>();
    const steps: Steps = {
      asking: (answer) => (request, signal) => this.#ask(life, { request, answer }, signal),
      commit: () => this.#commit(life),
    };
    const poller = this.#deps.start(steps);
    const kill = () => resolve('killed');
    const life: Life<P> = { alive: true, poller, killed, kill, stop: new AbortController() };
    return life;
  }

  async #ask(
    life: Life<P>,
    {
      request,
      answer,
    }: {
      readonly request: UpstreamRequest;
      readonly answer: (request: UpstreamRequest) => Answer<Body>;
    },
    signal: AbortSignal,
  ): Promise<Answer<Body>> {
    await this.#step(life, 'asks');
    this.requests += 1;
    this.#requestsLeft -= 1;
    if (this.#requestsLeft < 0)
      throw new Error(`more than ${this.#deps.requestsMax} requests in one poll`);
    const answered = answer(request);
    await this.#step(life, 'is answered');
    signal.throwIfAborted();
    return answered;
  }

  async #commit(life: Life<P>): Promise<void> {
    await this.#step(life, 'commits');
    if (!this.happens(this.#deps.commitFails)) return;
    this.tell('a commit fails');
    throw new ExportError('disk_full', 'simulating: no space', { next: 'nothing' });
  }

  /** One step: it never ends for a process that is dead, or dies there. */
  async #step(life: Life<P>, what: string): Promise<void> {
    const { random, crash, happens, happen } = this.#deps;
    for (let n = random.below(3); n > 0; n -= 1) await Promise.resolve();
    if (!life.alive) await unanswered();
    this.now += 5 + random.below(50);
    if (this.happens(happens)) happen();
    if (this.happens(crash)) {
      this.tell(`is killed as it ${what}`);
      life.alive = false;
      life.kill();
      await unanswered();
    }
    if (this.happens(crash / 4)) {
      this.tell(`is stopped as it ${what}`);
      life.stop.abort(new Error('stopped'));
    }
  }

  /** Draws a trouble; never where all is well. */
  happens(chance: number): boolean {
    return this.isTroubled && this.#deps.random.chance(chance);
  }
}

/**
 * The condition that a killed process waits for; created each time, since a shared one would keep every world that ever
 * waited.
 */
export function unanswered(): Promise<never> {
  return new Promise(() => undefined);
}

/** How a poll ended, in words. */
export function said(result: PollResult | 'killed'): string {
  if (result === 'killed') return result;
  if (result.outcome !== 'done') return `${result.outcome} ${result.cause.message}`;
  const more = result.more ? ', more' : '';
  return `done, ${result.fresh} new${more}${result.againMs === undefined ? '' : ', to be looked at again'}`;
}

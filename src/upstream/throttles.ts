// Every request to an upstream waits here for its turn. Upstreams limit "per token and per path"
// without saying whether a path is the template or the address it became, so a request passes three
// throttles: its concrete path, its template, its credential. A refusal parks only the concrete
// path; a second path refused within the same minute shows that the limit is wider, and the level
// above is slowed too. Who waits is served in turn (fair-queue.ts). Ceilings of the config hold over restarts and takeovers:
// what was sent is told (`used`), held with the state, and counts for whoever goes on from it.

import { createHash } from 'node:crypto';
import { z } from 'zod';
import type { Json } from '../contracts/json.ts';
import type { Clock } from '../contracts/tools.ts';
import { FairQueue, type Lane, type Turnstile } from './fair-queue.ts';
import type { RateSign } from './rate-sign.ts';
import { type Budget, type Ceiling, createThrottle, type Throttle } from './throttle.ts';

/** A ceiling from the config; without `path` it holds for the credential as a whole. */
export interface PathCeiling extends Ceiling {
  readonly path?: string | undefined;
}

/** What a gate is shared by, under whatever names that appears in the config. */
interface GateKey {
  /** Identifies the credential; a digest, never the secret. */
  readonly credential: string;
  readonly base: string;
}

/** Settings of a gate. `pauseMs` as in ThrottleOptions. */
interface GateOptions {
  readonly ceilings: readonly PathCeiling[];
  readonly pauseMs?: number | undefined;
}

/** One path's throttle as status shows it. */
export interface ThrottleState extends Budget {
  /** Path or template; `*` for the credential as a whole. */
  readonly path: string;
  /** Milliseconds until the next request may go. */
  readonly waitMs: number;
}

/** Whether anything may be asked for at all: false while another process may have begun to. */
export interface Permit {
  isGiven: () => boolean;
}

/** While there is no permit it is looked for so often. */
const permitEveryMs = 100;

/** All gates of the program. */
export interface Throttles {
  /** The gate of this key, always the same one, with the ceilings of all who asked for it. */
  gate(key: GateKey, options: GateOptions): Gate;
  /** The requests that still count for ceilings; null where there are none, or none is new since this was asked. */
  used(): Json | null;
  /** Counts what was held of a process before, from the moment on that gates are made; what cannot be read does not count. */
  resume(held: Json): void;
}

/** By gate and path, oldest first: how long before `at` (epoch ms) some requests went, and how many. */
const usedShape = z.object({
  at: z.number(),
  gates: z.record(z.string(), z.record(z.string(), z.array(z.tuple([z.number(), z.number()])))),
});
type Used = z.infer<typeof usedShape>;
/** Requests of one path are told apart in so many groups; a group counts from its newest. */
const groupsMax = 64;
/** As the config has it. */
const requestsMax = 100_000;

/** What gates work with. */
export interface ThrottleTools {
  readonly clock: Clock;
  /** From 0 up to 1, for jitter. */
  readonly random: () => number;
  /** Left out: it is given. */
  readonly permit?: Permit;
}

/** Opens the registry, one per program: blocks with one credential share its limits. */
export function openThrottles(tools: ThrottleTools): Throttles {
  const gates = new Map<string, Gate>();
  let before: Used | null = null;
  return {
    gate(key, options) {
      const name = nameOf(key);
      let gate = gates.get(name);
      if (gate === undefined) {
        gate = new Gate(tools, options.pauseMs);
        gates.set(name, gate);
      }
      gate.limit(options.ceilings);
      return gate;
    },
    used() {
      const isNew = [...gates.values()].filter((gate) => gate.hasNew()).length > 0;
      if (!isNew) return null;
      const used = Array.from(gates, ([name, gate]) => [name, gate.used()] as const);
      return { at: tools.clock.now(), gates: Object.fromEntries(used) } satisfies Used;
    },
    resume(held) {
      before = usedShape.safeParse(held).data ?? null;
      if (before === null) return;
      // Where the clock of the one before was ahead, its requests count as if they went now.
      const agoMs = Math.max(0, tools.clock.now() - before.at);
      for (const [name, gate] of gates) gate.resume(before.gates[name] ?? {}, agoMs);
    },
  };
}

/** As it is held: of what is a digest already no more than tells one from another. */
function nameOf({ credential, base }: GateKey): string {
  return createHash('sha256')
    .update(JSON.stringify([credential, base]))
    .digest('hex')
    .slice(0, 16);
}

/** Times in groups: how long ago the newest of each was, and how many there are. */
function grouped(sentMs: readonly number[], nowMs: number): [agoMs: number, count: number][] {
  const size = Math.ceil(sentMs.length / groupsMax);
  const groups: [number, number][] = [];
  for (let at = 0; at < sentMs.length; at += size) {
    const some = sentMs.slice(at, at + size);
    groups.push([Math.max(0, Math.floor(nowMs - (some.at(-1) ?? nowMs))), some.length]);
  }
  return groups;
}

interface Level {
  readonly throttle: Throttle;
  /** Who below was refused last, and when; two within `wideningMs` slow this level. */
  refusedPath: string;
  refusedAtMs: number;
}

const wideningMs = 60_000;
/** Policies and tickets each have a path; beyond this many, idle ones are forgotten. */
const levelsMax = 4_096;
const wholeCredential = '*';

/** The way to one upstream with one credential. */
class Gate implements Turnstile {
  readonly #clock: Clock;
  readonly #random: () => number;
  readonly #permit: Permit | undefined;
  readonly #pauseMs: number | undefined;
  readonly #ceilings: PathCeiling[] = [];
  readonly #levels = new Map<string, Level>();
  readonly #queue: FairQueue;
  /** By level, when requests of a process before went. */
  #sentBefore = new Map<string, readonly number[]>();
  #hasNew = false;

  constructor({ clock, random, permit }: ThrottleTools, pauseMs: number | undefined) {
    this.#clock = clock;
    this.#random = random;
    this.#permit = permit;
    this.#pauseMs = pauseMs;
    this.#queue = new FairQueue(clock, this);
  }

  /** Adds ceilings to those it has. */
  limit(ceilings: readonly PathCeiling[]): void {
    for (const ceiling of ceilings) {
      const known = this.#ceilings.some(
        (other) =>
          other.path === ceiling.path &&
          other.requests === ceiling.requests &&
          other.perMs === ceiling.perMs,
      );
      if (!known) this.#ceilings.push(ceiling);
    }
  }

  /** Resolves when the request may go, and counts it; rejects with the signal's reason. */
  async acquire(lane: Lane, signal: AbortSignal): Promise<void> {
    await this.#queue.turn(lane, signal);
  }

  /** Milliseconds that a request on this lane would wait now, others' turns left aside. */
  delay(lane: Lane): number {
    const nowMs = this.#clock.monotonic();
    let delayMs = this.#permit?.isGiven() === false ? permitEveryMs : 0;
    for (const name of levelsOf(lane)) {
      delayMs = Math.max(delayMs, this.#level(name).throttle.delayAt(nowMs));
    }
    return delayMs;
  }

  /** Learns from an answer on this lane; `request` tells one request on it from another. */
  observe(lane: Lane, sign: RateSign, request = ''): void {
    const nowMs = this.#clock.monotonic();
    const [own, ...above] = levelsOf(lane);
    const asked = `${own}${request}`;
    this.#level(own).throttle.observe(sign, nowMs, asked);
    let below = own;
    for (const name of above) {
      const level = this.#level(name);
      if (!sign.refused) {
        level.throttle.observe({ refused: false }, nowMs, asked);
      } else {
        const another = level.refusedPath !== below && level.refusedPath !== '';
        if (another && nowMs - level.refusedAtMs < wideningMs) {
          // Without Retry-After: a wait of days for one path must not become everybody's.
          level.throttle.observe({ refused: true }, nowMs, asked);
        }
        level.refusedPath = below;
        level.refusedAtMs = nowMs;
      }
      below = name;
    }
  }

  /** True where a request went that counts for a ceiling, since `used` was asked last. */
  hasNew(): boolean {
    return this.#hasNew;
  }

  /** As `usedShape` has it. */
  used(): Used['gates'][string] {
    this.#hasNew = false;
    const nowMs = this.#clock.monotonic();
    const levels = Array.from(
      this.#levels,
      ([name, { throttle }]) => [name, grouped(throttle.sentMs(nowMs), nowMs)] as const,
    );
    return Object.fromEntries(levels.filter(([, groups]) => groups.length > 0));
  }

  /** Counts requests of a process before, told so long ago. */
  resume(used: Used['gates'][string], agoMs: number): void {
    const nowMs = this.#clock.monotonic();
    for (const [name, groups] of Object.entries(used)) {
      const sentMs = groups.flatMap(([ago, count]) =>
        Array.from({ length: Math.min(count, requestsMax) }, () => nowMs - agoMs - ago),
      );
      this.#sentBefore.set(name, sentMs);
      // One that is at work keeps the waits that upstream has asked for; what both know of counts twice, for one span.
      const known = this.#levels.get(name);
      for (const at of sentMs) known?.throttle.take(at);
    }
  }

  /** Paths with a budget or a wait. */
  state(): readonly ThrottleState[] {
    const nowMs = this.#clock.monotonic();
    const states: ThrottleState[] = [];
    for (const [path, { throttle }] of this.#levels) {
      const waitMs = throttle.delayAt(nowMs);
      const budget = throttle.budget();
      if (waitMs > 0 || Object.keys(budget).length > 0) states.push({ path, waitMs, ...budget });
    }
    return states;
  }

  #level(name: string): Level {
    const known = this.#levels.get(name);
    if (known) return known;
    if (this.#levels.size >= levelsMax) this.#forgetIdle();
    const path = name === wholeCredential ? undefined : name;
    const level: Level = {
      throttle: createThrottle({
        ceilings: this.#ceilings.filter((ceiling) => ceiling.path === path),
        random: this.#random,
        sentMs: this.#sentBefore.get(name) ?? [],
        ...(this.#pauseMs === undefined ? {} : { pauseMs: this.#pauseMs }),
      }),
      refusedPath: '',
      refusedAtMs: Number.NEGATIVE_INFINITY,
    };
    this.#levels.set(name, level);
    return level;
  }

  #forgetIdle(): void {
    const nowMs = this.#clock.monotonic();
    const limited = new Set(this.#ceilings.map((ceiling) => ceiling.path ?? wholeCredential));
    for (const [name, level] of this.#levels) {
      const fresh = nowMs - level.refusedAtMs < wideningMs;
      if (!limited.has(name) && !fresh && level.throttle.delayAt(nowMs) === 0) {
        this.#levels.delete(name);
      }
    }
  }

  take(lane: Lane): void {
    const nowMs = this.#clock.monotonic();
    for (const name of levelsOf(lane)) this.#level(name).throttle.take(nowMs);
    this.#hasNew ||= this.#ceilings.length > 0;
  }
}

/** Narrowest first. A path without placeholders is its own template and counts once. */
function levelsOf(lane: Lane): readonly [string, ...string[]] {
  return lane.path === lane.template
    ? [lane.template, wholeCredential]
    : [lane.path, lane.template, wholeCredential];
}

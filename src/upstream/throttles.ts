// Every request to an upstream waits here for its turn. Upstreams limit "per token and per path"
// without defining whether a path is the template or the resulting address, so a request passes
// four throttles: its concrete path, its company, its template, its credential. A rejection blocks
// only the concrete path; a second path rejected within the same minute shows that the limit is
// wider, and the level above is slowed too: the company by two of its paths, template and credential
// only by paths of two companies, so that one company that is rejected slows no other. Waiting requests are served in turn (fair-queue.ts). Invariant:
// ceilings of the config hold across restarts and takeovers: usage (`used`) is persisted with the
// state and carried over.

import { createHash } from 'node:crypto';
import { z } from 'zod';
import type { Clock, Json } from '../contracts/index.ts';
import { FairQueue, type Lane, type Turnstile } from './fair-queue.ts';
import type { RateSign } from './rate-sign.ts';
import { type Budget, type Ceiling, createThrottle, type Throttle } from './throttle.ts';

/** A ceiling from the config; without `path` it applies to the credential as a whole. */
export interface PathCeiling extends Ceiling {
  readonly path?: string | undefined;
}

/** The key by which a gate is shared, whatever its names in the config. */
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

/** The state of one path's throttle for status. */
export interface ThrottleState extends Budget {
  /** Path or template; `*` for the credential as a whole. */
  readonly path: string;
  /** Milliseconds until the next request may go. */
  readonly waitMs: number;
}

/** Whether any request may be sent: false while another process may own the state. */
export interface Permit {
  isGiven: () => boolean;
}

/** Poll interval while there is no permit. */
const permitEveryMs = 100;

/** All gates of the program. */
export interface Throttles {
  /** The gate of this key, always the same one, with the ceilings of all its users. */
  gate(key: GateKey, options: GateOptions): Gate;
  /**
   * The requests that still count for ceilings; null if there are none, or none since the last
   * call.
   */
  used(): Json | null;
  /**
   * Counts the stored requests of a previous process, also in gates made later; unreadable ones do
   * not count.
   */
  resume(held: Json): void;
}

/**
 * By gate and path, oldest first: how long before `at` (epoch ms) a group of requests went, and
 * their number.
 */
const usedShape = z.object({
  at: z.number(),
  gates: z.record(z.string(), z.record(z.string(), z.array(z.tuple([z.number(), z.number()])))),
});
type Used = z.infer<typeof usedShape>;
/** Requests of one path are stored in at most this many groups; a group counts from its newest. */
const groupsMax = 64;
/** The maximum in the config. */
const requestsMax = 100_000;

/** Dependencies of gates. */
export interface ThrottleTools {
  readonly clock: Clock;
  /** From 0 up to 1, for jitter. */
  readonly random: () => number;
  /** Default: permitted. */
  readonly permit?: Permit;
}

/** Opens the registry, one per program: upstream blocks with one credential share its limits. */
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
      // If the previous process's clock was ahead, its requests count as sent now.
      const agoMs = Math.max(0, tools.clock.now() - before.at);
      for (const [name, gate] of gates) gate.resume(before.gates[name] ?? {}, agoMs);
    },
  };
}

/** The name in the state: a digest of a digest, only to distinguish gates. */
function nameOf({ credential, base }: GateKey): string {
  return createHash('sha256')
    .update(JSON.stringify([credential, base]))
    .digest('hex')
    .slice(0, 16);
}

/** Times in groups: how long ago the newest of each was, and the number of requests. */
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
  /** The level below that was rejected last, and when; two within `wideningMs` slow this level. */
  refusedPath: string;
  /** The company of that path; empty: none. */
  refusedTenant: string;
  refusedAtMs: number;
}

const wideningMs = 60_000;
/** Policies and tickets each have a path; beyond this number, idle ones are dropped. */
const levelsMax = 4_096;
const wholeCredential = '*';

/** The throttles of one upstream with one credential. */
class Gate implements Turnstile {
  readonly #clock: Clock;
  readonly #random: () => number;
  readonly #permit: Permit | undefined;
  readonly #pauseMs: number | undefined;
  readonly #ceilings: PathCeiling[] = [];
  readonly #levels = new Map<string, Level>();
  readonly #queue: FairQueue;
  /** By level, times of a previous process's requests. */
  #sentBefore = new Map<string, readonly number[]>();
  #hasNew = false;

  constructor({ clock, random, permit }: ThrottleTools, pauseMs: number | undefined) {
    this.#clock = clock;
    this.#random = random;
    this.#permit = permit;
    this.#pauseMs = pauseMs;
    this.#queue = new FairQueue(clock, this);
  }

  /** Adds ceilings to the existing ones. */
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

  /** Milliseconds that a request on this lane would wait now, without the queue. */
  delay(lane: Lane): number {
    const nowMs = this.#clock.monotonic();
    let delayMs = this.#permit?.isGiven() === false ? permitEveryMs : 0;
    for (const name of levelsOf(lane)) {
      delayMs = Math.max(delayMs, this.#level(name).throttle.delayAt(nowMs));
    }
    return delayMs;
  }

  /** Updates the throttles from a response on this lane; `request` distinguishes requests on it. */
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
        const isOfTenant = name === tenantLevel(lane.tenant);
        const another =
          level.refusedPath !== '' &&
          level.refusedPath !== below &&
          (isOfTenant || lane.tenant === '' || level.refusedTenant !== lane.tenant);
        if (another && nowMs - level.refusedAtMs < wideningMs) {
          // Without Retry-After: a wait of days for one path must not apply to all paths.
          level.throttle.observe({ refused: true }, nowMs, asked);
        }
        level.refusedPath = below;
        level.refusedTenant = lane.tenant;
        level.refusedAtMs = nowMs;
      }
      // A template has the paths of many companies: below it each path is one.
      if (name !== tenantLevel(lane.tenant)) below = name;
    }
  }

  /** True if a request that counts for a ceiling went since the last call of `used`. */
  hasNew(): boolean {
    return this.#hasNew;
  }

  /** In the shape of `usedShape`. */
  used(): Used['gates'][string] {
    this.#hasNew = false;
    const nowMs = this.#clock.monotonic();
    const levels = Array.from(
      this.#levels,
      ([name, { throttle }]) => [name, grouped(throttle.sentMs(nowMs), nowMs)] as const,
    );
    return Object.fromEntries(levels.filter(([, groups]) => groups.length > 0));
  }

  /** Counts requests of a previous process, reported `agoMs` ago. */
  resume(used: Used['gates'][string], agoMs: number): void {
    const nowMs = this.#clock.monotonic();
    for (const [name, groups] of Object.entries(used)) {
      const sentMs = groups.flatMap(([ago, count]) =>
        Array.from({ length: Math.min(count, requestsMax) }, () => nowMs - agoMs - ago),
      );
      this.#sentBefore.set(name, sentMs);
      // A gate in use keeps the waits that upstream requested; requests known to both count twice,
      // for one window.
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
      refusedTenant: '',
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
function levelsOf({ path, template, tenant }: Lane): readonly [string, ...string[]] {
  if (path === template) return [template, wholeCredential];
  if (tenant === '') return [path, template, wholeCredential];
  return [path, tenantLevel(tenant), template, wholeCredential];
}

/** The name of a company's level. No path is equal to it: paths start with a slash. */
function tenantLevel(tenant: string): string {
  return `company ${tenant}`;
}

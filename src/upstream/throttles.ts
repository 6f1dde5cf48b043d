// Every request to an upstream waits here for its turn. Upstreams limit "per token and per path"
// without defining whether a path is the template or the resulting address, so a request passes
// four throttles: its concrete path, its company, its template, its credential. A rejection blocks
// only the concrete path; a second path rejected within the same minute shows that the limit is
// wider, and the level above is slowed too: the company by two of its paths, template and credential
// only by paths of two companies, so that one company that is rejected slows no other. Waiting requests are served in turn (fair-queue.ts). Invariant:
// ceilings of the config and waits that upstream requests hold across restarts, takeovers and reloads: both (`used`) are
// persisted with the state and carried over, and a gate with changed settings counts the requests of the gate before and keeps its waits.

import { createHash } from 'node:crypto';
import { z } from 'zod';
import type { Clock, Json } from '../contracts/index.ts';
import { FairQueue, type Lane, type Turnstile } from './fair-queue.ts';
import type { RateSign } from './rate-sign.ts';
import { type Budget, type Ceiling, Throttle } from './throttle.ts';

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
   * The requests that still count for ceilings, and the waits; null if there are none, or none since the last
   * call. `unnotedShare`: the next process may not know so many more, as a share of each ceiling
   * (0 to 1), and leaves them free. `noted` in it changes when the next process must know it.
   */
  used(unnotedShare?: number): Json | null;
  /**
   * Counts the stored requests of a previous process, and keeps its waits, also in gates made later;
   * unreadable ones do not count.
   */
  resume(held: Json): void;
  /**
   * Gates for changed settings. They start without the old ceilings. From its first request, each
   * one replaces the gate of its key, counts the requests of that gate, and keeps its waits.
   */
  renewed(): Pick<Throttles, 'gate'>;
}

/**
 * By gate and path, oldest first: how long before `at` (epoch ms) a group of requests went, and
 * their number.
 */
const usedShape = z.object({
  at: z.number(),
  /** The number of notes that the next process must know. */
  noted: z.number().default(0),
  /** Share of each ceiling that may have been used without a note. */
  unnoted: z.number().min(0).max(1).default(0),
  gates: z.record(z.string(), z.record(z.string(), z.array(z.tuple([z.number(), z.number()])))),
  /** By gate and path, milliseconds after `at` without a request. */
  waits: z.record(z.string(), z.record(z.string(), z.number())).default({}),
});
type Used = z.output<typeof usedShape>;
/** Stored usage of a ceiling without a request since the start is kept for at least this time. */
const unusedMs = 86_400_000;
/** Requests of one path are stored in at most this many groups; a group counts from its newest. */
const groupsMax = 64;
/** A shorter wait causes no note: a restart takes as long. */
const waitStoredMs = 2_000;
/** A restart ends a longer wait, which may be a mistake of upstream. A wait of a day has some jitter. */
const waitResumedMsMax = 90_000_000;
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

/** When a previous process noted its requests; monotonic milliseconds. */
interface Past {
  readonly atMs: number;
  /** When this process has read the note. */
  readonly resumedMs: number;
}

/** Opens the registry, one per program: upstream blocks with one credential share its limits. */
export function openThrottles(tools: ThrottleTools): Throttles {
  /** By name, the gate whose requests go and count. */
  const inUse = new Map<string, Gate>();
  let before: (Past & { readonly used: Used }) | null = null;
  let noted = 0;
  let unnoted = 0;
  let isFirst = true;
  const resume = (name: string, gate: Gate) => {
    if (before === null) return;
    const { gates, waits, unnoted } = before.used;
    gate.resume(gates[name] ?? {}, { ...before, unnoted, waits: waits[name] ?? {} });
  };
  const use = (name: string, gate: Gate) => {
    const last = inUse.get(name);
    inUse.set(name, gate);
    if (last === undefined) resume(name, gate);
    else if (last !== gate) gate.replace(last);
  };
  const gatesThat = (start: 'at once' | 'with a request'): Throttles['gate'] => {
    const gates = new Map<string, Gate>();
    return (key, { ceilings, pauseMs }) => {
      const name = nameOf(key);
      let gate = gates.get(name);
      if (gate === undefined) {
        gate = new Gate(tools, pauseMs, (made) => use(name, made));
        gates.set(name, gate);
        gate.limit(ceilings);
        if (start === 'at once') use(name, gate);
      }
      gate.limit(ceilings);
      return gate;
    };
  };
  return {
    gate: gatesThat('at once'),
    renewed: () => ({ gate: gatesThat('with a request') }),
    used(share = 0) {
      const all = [...inUse.values()];
      if (!all.some((gate) => gate.hasNew()) && share >= unnoted) return null;
      // The first one has what this process leaves free for requests that it does not know.
      const isDue = isFirst || share < unnoted || all.some((gate) => gate.isNoteDue(share));
      if (isDue) {
        noted += 1;
        isFirst = false;
        for (const gate of all) gate.noted();
      }
      unnoted = share;
      const used = Array.from(inUse, ([name, gate]) => [name, gate.used()] as const);
      const waits = Object.fromEntries(Array.from(inUse, ([name, gate]) => [name, gate.waits()]));
      const at = tools.clock.now();
      return { at, noted, unnoted, gates: Object.fromEntries(used), waits } satisfies Used;
    },
    resume(held) {
      const { data: used } = usedShape.safeParse(held);
      if (used === undefined) return;
      // If the previous process's clock was ahead, its requests count as sent now.
      const agoMs = Math.max(0, tools.clock.now() - used.at);
      const nowMs = tools.clock.monotonic();
      before = { used, atMs: nowMs - agoMs, resumedMs: nowMs };
      noted = used.noted;
      // An upstream that the config lacks now may return.
      for (const name of Object.keys(used.gates)) {
        if (!inUse.has(name)) inUse.set(name, new Gate(tools, undefined));
      }
      for (const [name, gate] of inUse) resume(name, gate);
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
  /** Called before the first request. */
  #start: ((gate: Gate) => void) | null;
  /** The gate that replaced this one, and gives the turns to requests that still come here. */
  #next: Gate | null = null;
  readonly #ceilings: PathCeiling[] = [];
  readonly #levels = new Map<string, Level>();
  readonly #queue: FairQueue;
  /** By level, times of a previous process's requests. */
  #sentBefore: Map<string, readonly number[]> = new Map();
  /** Requests of a previous process that it may have sent without a note: a share of each ceiling, until this time. */
  #unnoted = { share: 0, atMs: 0 };
  /** Until when a previous process had to wait, by levels without a request since then. */
  #waitsBefore = new Map<string, number>();
  #hasNew = false;
  #hasNewWait = false;
  #notedMs = Number.NEGATIVE_INFINITY;

  constructor(
    { clock, random, permit }: ThrottleTools,
    pauseMs: number | undefined,
    start: ((gate: Gate) => void) | null = null,
  ) {
    this.#start = start;
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
    const start = this.#start;
    this.#start = null;
    start?.(this);
    await this.#queue.turn(lane, signal);
  }

  /** Milliseconds that a request on this lane would wait now, without the queue. */
  delay(lane: Lane): number {
    if (this.#next !== null) return this.#next.delay(lane);
    const nowMs = this.#clock.monotonic();
    let delayMs = this.#permit?.isGiven() === false ? permitEveryMs : 0;
    for (const name of levelsOf(lane)) {
      delayMs = Math.max(delayMs, this.#limited(name)?.throttle.delayAt(nowMs) ?? 0);
    }
    return delayMs;
  }

  /** Updates the throttles from a response on this lane; `request` distinguishes requests on it. */
  observe(lane: Lane, sign: RateSign, request = ''): void {
    if (this.#next !== null) {
      this.#next.observe(lane, sign, request);
      return;
    }
    const nowMs = this.#clock.monotonic();
    const [own, ...above] = levelsOf(lane);
    const asked = `${own}${request}`;
    const level = saysSomething(sign) ? this.#level(own) : this.#limited(own);
    if (level !== undefined) this.#observe(level, sign, nowMs, asked);
    let below = own;
    for (const name of above) {
      if (!sign.refused) {
        this.#limited(name)?.throttle.observe({ refused: false }, nowMs, asked);
      } else {
        const level = this.#level(name);
        const isOfTenant = name === tenantLevel(lane.tenant);
        const another =
          level.refusedPath !== '' &&
          level.refusedPath !== below &&
          (isOfTenant || lane.tenant === '' || level.refusedTenant !== lane.tenant);
        if (another && nowMs - level.refusedAtMs < wideningMs) {
          // Without Retry-After: a wait of days for one path must not apply to all paths.
          this.#observe(level, { refused: true }, nowMs, asked);
        }
        level.refusedPath = below;
        level.refusedTenant = lane.tenant;
        level.refusedAtMs = nowMs;
      }
      // A template has the paths of many companies: below it each path is one.
      if (name !== tenantLevel(lane.tenant)) below = name;
    }
  }

  #observe({ throttle }: Level, sign: RateSign, nowMs: number, asked: string): void {
    const before = throttle.waitMs(nowMs);
    throttle.observe(sign, nowMs, asked);
    const after = throttle.waitMs(nowMs);
    if (after > before && after >= waitStoredMs) {
      this.#hasNew = true;
      this.#hasNewWait = true;
    }
  }

  /** True if a request that counts for a ceiling went, or a wait began, since the last call of `used`. */
  hasNew(): boolean {
    return this.#hasNew;
  }

  /** In the shape of `usedShape`. */
  used(): Used['gates'][string] {
    this.#hasNew = false;
    const nowMs = this.#clock.monotonic();
    const levels = Array.from(
      this.#sent(nowMs),
      ([name, sentMs]) => [name, grouped(sentMs, nowMs)] as const,
    );
    return Object.fromEntries(levels.filter(([, groups]) => groups.length > 0));
  }

  /** Milliseconds without a request, by level. */
  waits(): Record<string, number> {
    const nowMs = this.#clock.monotonic();
    const waits = new Map(Array.from(this.#waitsBefore, ([name, until]) => [name, until - nowMs]));
    for (const [name, { throttle }] of this.#levels) waits.set(name, throttle.waitMs(nowMs));
    return Object.fromEntries(
      [...waits].flatMap(([name, ms]) => (ms > 0 ? [[name, Math.ceil(ms)]] : [])),
    );
  }

  /** Replaces a gate with other settings: its requests count here, and its waits last. */
  replace(last: Gate): void {
    const nowMs = this.#clock.monotonic();
    last.#next = this;
    this.#sentBefore = last.#sent(nowMs);
    this.#unnoted = last.#unnoted;
    for (const [name, ms] of Object.entries(last.waits())) this.#wait(name, nowMs + ms);
  }

  #wait(name: string, until: number): void {
    this.#waitsBefore.set(name, until);
    const known = this.#levels.get(name);
    if (known !== undefined) this.#keepWait(name, known.throttle);
  }

  /** A new level keeps the wait of a previous process. */
  #keepWait(name: string, throttle: Throttle): void {
    const nowMs = this.#clock.monotonic();
    const retryAfterMs = (this.#waitsBefore.get(name) ?? nowMs) - nowMs;
    this.#waitsBefore.delete(name);
    if (retryAfterMs > 0) throttle.observe({ refused: false, retryAfterMs }, nowMs);
  }

  /** True if a wait began since the last note, or more requests went than this share of a ceiling. */
  isNoteDue(share: number): boolean {
    if (this.#hasNewWait) return true;
    const nowMs = this.#clock.monotonic();
    return [...this.#levels].some(([name, { throttle }]) => {
      const free = this.#shareAt(name, share);
      return throttle.sentMs(nowMs).filter((at) => at >= this.#notedMs).length > free;
    });
  }

  /** The next process knows the requests until now. */
  noted(): void {
    this.#notedMs = this.#clock.monotonic();
    this.#hasNewWait = false;
  }

  /** Counts requests of a previous process, and those that it may have sent since its note; keeps its waits. */
  resume(
    used: Used['gates'][string],
    {
      atMs,
      resumedMs,
      unnoted,
      waits,
    }: Past & { readonly unnoted: number; readonly waits: Used['waits'][string] },
  ): void {
    this.#unnoted = { share: unnoted, atMs: resumedMs };
    for (const [name, groups] of Object.entries(used)) {
      const sentMs = groups.flatMap(([ago, count]) =>
        Array.from({ length: Math.min(count, requestsMax) }, () => atMs - ago),
      );
      this.#sentBefore.set(name, sentMs);
    }
    // A gate in use keeps the waits that upstream requested; requests known to both count twice,
    // for one window.
    for (const [name, { throttle }] of this.#levels) {
      for (const at of this.#sentUntilNow(name)) throttle.take(at);
    }
    for (const [name, ms] of Object.entries(waits)) {
      if (ms <= waitResumedMsMax) this.#wait(name, atMs + ms);
    }
  }

  /** Times of a previous process's requests, oldest first. */
  #sentUntilNow(name: string): readonly number[] {
    const { share, atMs } = this.#unnoted;
    const unnoted = Array.from({ length: this.#shareAt(name, share) }, () => atMs);
    return [...(this.#sentBefore.get(name) ?? []), ...unnoted];
  }

  /** By level, times of all requests that still count. */
  #sent(nowMs: number): Map<string, readonly number[]> {
    const names = new Set([...this.#sentBefore.keys(), ...this.#levels.keys()]);
    const sentOf = (name: string) => {
      const level = this.#levels.get(name);
      if (level !== undefined) return level.throttle.sentMs(nowMs);
      const longestMs = Math.max(unusedMs, ...this.#ceilingsOf(name).map(({ perMs }) => perMs));
      return (this.#sentBefore.get(name) ?? []).filter((at) => at > nowMs - longestMs);
    };
    return new Map(Array.from(names, (name) => [name, sentOf(name)]));
  }

  /** This share of the lowest ceiling of a level, in whole requests; 0: it has none. */
  #shareAt(name: string, share: number): number {
    const ceilings = this.#ceilingsOf(name).map(({ requests }) => requests);
    return ceilings.length === 0 ? 0 : Math.floor(Math.min(...ceilings) * share);
  }

  #ceilingsOf(name: string): readonly PathCeiling[] {
    const path = name === wholeCredential ? undefined : name;
    return this.#ceilings.filter((ceiling) => ceiling.path === path);
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

  /** The level if it may limit requests; most of many paths never do, and have none. */
  #limited(name: string): Level | undefined {
    const known = this.#levels.get(name);
    const isLimited = this.#ceilingsOf(name).length > 0 || this.#waitsBefore.has(name);
    return known ?? (isLimited ? this.#level(name) : undefined);
  }

  #level(name: string): Level {
    const known = this.#levels.get(name);
    if (known) return known;
    if (this.#levels.size >= levelsMax) this.#forgetIdle();
    const level: Level = {
      throttle: new Throttle({
        ceilings: this.#ceilingsOf(name),
        random: this.#random,
        sentMs: this.#sentUntilNow(name),
        ...(this.#pauseMs === undefined ? {} : { pauseMs: this.#pauseMs }),
      }),
      refusedPath: '',
      refusedTenant: '',
      refusedAtMs: Number.NEGATIVE_INFINITY,
    };
    this.#levels.set(name, level);
    this.#keepWait(name, level.throttle);
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
    if (this.#next !== null) {
      this.#next.take(lane);
      return;
    }
    const nowMs = this.#clock.monotonic();
    for (const name of levelsOf(lane)) this.#limited(name)?.throttle.take(nowMs);
    this.#hasNew ||= this.#ceilings.length > 0;
  }
}

/** False if a response has no effect on a throttle that has seen no other. */
function saysSomething({ refused, limit, remaining, retryAfterMs }: RateSign): boolean {
  return refused || limit !== undefined || remaining !== undefined || retryAfterMs !== undefined;
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

// Matches changes with audit events: a change needs an audit event of its entity or parent from the
// time in which it can have happened, and an audit event of a change needs a scan that shows the
// change. Pure: input is the open items and how far everything was read, output the findings.
// Invariants: nothing is reported while a side lags, fails, or may still deliver late; nothing
// unknowable is reported.

import { lastBefore, patience, type WatchedStream } from './readings.ts';
import type { DriftCheckpoint, OpenChange, OpenEvent, OpenItem } from './state.ts';

/** How far everything was read. */
export interface Extent {
  readonly watched: readonly WatchedStream[];
  /** Streams that cannot be read now, or may be read in part. */
  readonly failing: ReadonlySet<string>;
  /** All available audit events from before this time were read; null: unknown. */
  readonly trailReadTo: number | null;
  readonly withinMs: number;
}

/** A finding. */
export type DriftFinding =
  | { readonly is: 'unexplained'; readonly change: OpenChange }
  | { readonly is: 'unmatchable'; readonly change: OpenChange }
  | {
      readonly is: 'unseen';
      readonly event: OpenEvent;
      readonly stream: WatchedStream;
      /** Another event may have undone it between two scans. */
      readonly mayCancel: boolean;
    };

/** The result. */
export interface DriftVerdicts {
  readonly findings: readonly DriftFinding[];
  /** Items that differ from before. */
  readonly kept: readonly OpenItem[];
  readonly dropped: readonly OpenItem[];
  readonly checkpoint: DriftCheckpoint;
}

/** This many changes without a partner, and none with one: the ids of the two APIs do not match. */
const aloneMax = 20;
/** An event this many times `within` later than a change is not waited for. */
const lateShare = 2;
const typesMax = 100;
/** Creation does not explain a removal; all other operations may be different words for one. */
const opposites = { created: 'deleted', deleted: 'created', updated: undefined } as const;

/** Judges the open items. */
export function judgeOpen(
  open: readonly OpenItem[],
  before: DriftCheckpoint,
  extent: Extent,
): DriftVerdicts {
  return new Judgement(open, before, extent).verdicts();
}

class Judgement {
  readonly #before: DriftCheckpoint;
  readonly #extent: Extent;
  readonly #changes: readonly OpenChange[];
  readonly #events: readonly OpenEvent[];
  readonly #byKey: ReadonlyMap<string, readonly OpenEvent[]>;
  /** Changes by the parents of their entities. */
  readonly #parts: ReadonlyMap<string, readonly OpenChange[]>;
  readonly #differing = new Map<string, OpenItem>();
  readonly #findings: DriftFinding[] = [];
  readonly #sources: DriftCheckpoint['sources'];

  constructor(open: readonly OpenItem[], before: DriftCheckpoint, extent: Extent) {
    this.#before = before;
    this.#extent = extent;
    this.#changes = open.filter((item) => item.is === 'change');
    this.#events = open.filter((item) => item.is === 'event');
    this.#byKey = indexed(this.#events, ({ keys }) => keys);
    this.#parts = indexed(this.#changes, ({ keys }) => keys.slice(1));
    this.#sources = { ...before.sources };
  }

  verdicts(): DriftVerdicts {
    for (const change of this.#changes) this.#match(change);
    for (const change of this.#changes) this.#judgeChange(this.#now(change));
    for (const event of this.#events) this.#judgeEvent(this.#now(event));
    const items = [...this.#changes, ...this.#events].map((item) => this.#now(item));
    const dropped = items.filter((item) => this.#isPast(item));
    for (const { uid } of dropped) this.#differing.delete(uid);
    return {
      findings: this.#findings,
      kept: [...this.#differing.values()],
      dropped,
      checkpoint: { ...this.#before, sources: this.#sources },
    };
  }

  #now<I extends OpenItem>(item: I): I {
    return (this.#differing.get(item.uid) as I | undefined) ?? item; // By its own uid.
  }

  #source(name: string): DriftCheckpoint['sources'][string] {
    return this.#sources[name] ?? { matched: false, alone: 0, types: [] };
  }

  /** Finds a change's events, which the change confirms, whether or not it needed them. */
  #match(change: OpenChange): void {
    const { keys, company, from, to, source, state, operation } = change;
    const { withinMs } = this.#extent;
    const partners = keys
      .flatMap((key) => this.#byKey.get(key) ?? [])
      .filter(
        (event) =>
          event.operation !== opposites[operation] &&
          (event.company === null || company === null || event.company === company) &&
          event.at >= (from ?? this.#before.since) - withinMs &&
          event.at <= to + withinMs,
      );
    if (partners.length === 0) return;
    const known = this.#source(source);
    const types = new Set([...known.types, ...partners.map(({ type }) => type)]);
    this.#sources[source] = { ...known, matched: true, types: [...types].slice(0, typesMax) };
    if (state !== 'done') this.#differing.set(change.uid, { ...change, state: 'done' });
    for (const event of partners) {
      if (event.state === 'open') this.#differing.set(event.uid, { ...event, state: 'shown' });
    }
  }

  #judgeChange(change: OpenChange): void {
    const { source, from, to, state } = change;
    const known = this.#source(source);
    if (state === 'withheld' && known.matched) this.#report(change);
    if (state !== 'open' || !this.#isAwaited(change.stream, to)) return;
    const { since } = this.#before;
    if (from === null || from - this.#extent.withinMs < since) {
      this.#differing.set(change.uid, { ...change, state: 'done' });
    } else if (this.#followsFromPart(change)) {
      this.#differing.set(change.uid, { ...change, state: 'done' });
    } else if (known.matched) this.#report(change);
    else this.#withhold(change);
  }

  /**
   * A policy differs if one of its rules does, and the rule is reported, or explained, by itself.
   */
  #followsFromPart({ keys: [id = ''], operation, stream, to }: OpenChange): boolean {
    if (operation !== 'updated') return false;
    const { watched, withinMs } = this.#extent;
    const settleMs = watched.find(({ name }) => name === stream)?.reading.settleMs ?? 0;
    const nearMs = withinMs + settleMs;
    const parts = this.#parts.get(id) ?? [];
    return parts.some((part) => part.stream === stream && Math.abs(part.to - to) <= nearMs);
  }

  #report(change: OpenChange): void {
    this.#findings.push({ is: 'unexplained', change });
    this.#differing.set(change.uid, { ...change, state: 'done' });
  }

  /** Until one change has found its event, it is unknown whether any can. */
  #withhold(change: OpenChange): void {
    const known = this.#source(change.source);
    const alone = known.alone + 1;
    this.#sources[change.source] = { ...known, alone };
    const state = alone < aloneMax ? 'withheld' : 'done';
    this.#differing.set(change.uid, { ...change, state });
    if (alone < aloneMax) return;
    for (const other of this.#changes) {
      const { uid, source, state } = this.#now(other);
      if (source !== change.source || state !== 'withheld') continue;
      this.#differing.set(uid, { ...other, state: 'done' });
    }
    if (alone === aloneMax) this.#findings.push({ is: 'unmatchable', change });
  }

  /** Both sides are healthy, and events are read up to the latest possible delay. */
  #isAwaited(stream: string, to: number): boolean {
    const { failing, trailReadTo, withinMs } = this.#extent;
    if (trailReadTo === null || failing.has(stream)) return false;
    return trailReadTo >= to + lateShare * withinMs;
  }

  #judgeEvent(event: OpenEvent): void {
    if (event.state !== 'open' || event.operation === null) return;
    const streams = this.#streamsOf(event);
    const [stream] = streams;
    if (stream === undefined || !streams.every((one) => this.#hasLookedPast(event, one))) return;
    this.#differing.set(event.uid, { ...event, state: 'told' });
    const { withinMs } = this.#extent;
    const wasReadBefore = streams.every(
      ({ name }) => (this.#before.readings[name]?.[0] ?? event.at) < event.at - withinMs,
    );
    if (!wasReadBefore) return;
    const mayCancel = this.#mayCancel(event, stream);
    this.#findings.push({ is: 'unseen', event, stream, mayCancel });
  }

  /** The configurations that can contain the entity, as far as earlier changes show. */
  #streamsOf({ type, company, operation }: OpenEvent): readonly WatchedStream[] {
    return this.#extent.watched.filter(
      (one) =>
        this.#source(one.source).types.includes(type) &&
        (operation !== 'deleted' || one.reading.removals) &&
        (one.company === null || company === null || one.company === company),
    );
  }

  /** Enough and late enough scans that they would have shown the change. */
  #hasLookedPast({ at, operation }: OpenEvent, stream: WatchedStream): boolean {
    const { failing, withinMs } = this.#extent;
    if (failing.has(stream.name)) return false;
    const { readings, ms } = patience(operation, stream);
    const since = (this.#before.readings[stream.name] ?? []).filter((one) => one > at + withinMs);
    // One more, because a scan may have begun before.
    const [first = 0] = since;
    return since.length > readings && (since.at(-1) ?? 0) > first + ms;
  }

  /** Another event of the same entity is between the same scans: one may have undone the other. */
  #mayCancel({ uid, keys, at }: OpenEvent, { name }: WatchedStream): boolean {
    const readings = this.#before.readings[name] ?? [];
    const { withinMs } = this.#extent;
    const from = (readings.findLast((one) => one < at) ?? at) - withinMs;
    const to = (readings.find((one) => one > at) ?? at) + withinMs;
    const others = keys.flatMap((key) => this.#byKey.get(key) ?? []);
    return others.some((one) => one.uid !== uid && one.at >= from && one.at <= to);
  }

  /** Nothing later can match it. */
  #isPast(item: OpenItem): boolean {
    const { withinMs, watched, trailReadTo } = this.#extent;
    if (item.is === 'change') {
      if (!watched.some(({ name }) => name === item.stream)) return true;
      if (item.state !== 'done') return false;
      return trailReadTo !== null && trailReadTo > item.to + 2 * lateShare * withinMs;
    }
    return watched.every((stream) => {
      const readings = this.#before.readings[stream.name] ?? [];
      const last = readings.at(-1);
      if (last === undefined) return false;
      const reach = lastBefore(readings, { operation: 'deleted', to: last }, stream);
      return reach !== null && item.at < reach - withinMs;
    });
  }
}

function indexed<I>(
  items: readonly I[],
  keysOf: (item: I) => readonly string[],
): ReadonlyMap<string, readonly I[]> {
  const index = new Map<string, I[]>();
  for (const item of items) {
    for (const key of keysOf(item)) index.getOrInsert(key, []).push(item);
  }
  return index;
}

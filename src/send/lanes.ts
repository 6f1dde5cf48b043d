// Destinations of a sink that reject all of their events while others accept theirs. The events of
// that destination are set aside durably, in order, and later ones follow them, so that they do
// not block other destinations. A probe sends the first one again with growing waits; once it is
// accepted, all follow in order. Invariants: while events of a destination are set aside, no later
// event for it is sent before them; an event is blamed only by the rule of trial.ts, among the
// set-aside events.

import type {
  Aside,
  Batch,
  Clock,
  Delivery,
  Event,
  HeldAside,
  HeldPage,
  Log,
  Sink,
  Verdict,
} from '../contracts/index.ts';
import type { Outlet } from './outlet.ts';
import type { SinkHealth, StopSignals } from './sink-health.ts';

/** Dependencies of the lanes. */
export interface LanesDeps {
  readonly name: string;
  readonly sink: Sink;
  readonly aside: Aside;
  readonly outlet: Pick<Outlet, 'ofHeld'>;
  readonly health: SinkHealth;
  readonly clock: Clock;
  readonly log: Log;
  readonly retryMinMs: number;
  readonly refusedWaitMs: number;
  readonly send: (batch: Batch, signals: StopSignals) => Promise<Delivery>;
}

/** A destination with waiting events. */
export interface AsideFacts {
  readonly destination: string;
  readonly events: number;
  /** The receiver's last response. */
  readonly reason: string;
  /** Epoch milliseconds. */
  readonly since: number;
}

interface Lane {
  readonly destination: string;
  readonly since: number;
  events: number;
  reason: string;
  /** On the monotonic clock. */
  dueAt: number;
  waitMs: number;
  /** Events sent together: one while probing, more with each acceptance. */
  size: number;
  /** Id after which the next event of the suspect's own stream is searched. */
  cursor: number;
}

/** The results for sent events. */
interface Fates {
  readonly accepted: ReadonlySet<string>;
  readonly refused: ReadonlyMap<string, { readonly reason: string; readonly by: Verdict }>;
}

const othersMax = 8;
const sizeMax = 500;
const readMost = 200;

/** The destinations at fault of one sink. */
export class Lanes {
  readonly #deps: LanesDeps;
  readonly #lanes = new Map<string, Lane>();

  constructor(deps: LanesDeps) {
    this.#deps = deps;
  }

  /**
   * True if events can be set aside. Not for a sink that commits one position with its events: a
   * set-aside event is before that position when it is sent.
   */
  get canSetAside(): boolean {
    const { committed, destinationOf, hasPositions = false } = this.#deps.sink;
    return destinationOf !== undefined && (committed === undefined || hasPositions);
  }

  get facts(): readonly AsideFacts[] {
    return Array.from(this.#lanes.values(), ({ destination, events, reason, since }) => ({
      ...{ destination, events, reason, since },
    }));
  }

  /** The last response of a destination at fault. */
  reasonOf(destination: string): string {
    return this.#lanes.get(destination)?.reason ?? '';
  }

  /** True if events of this destination are set aside. */
  has(destination: string): boolean {
    return this.#lanes.has(destination);
  }

  get isEmpty(): boolean {
    return this.#lanes.size === 0;
  }

  /** Every wait has grown and nothing was accepted: a run that ends by itself waits no longer. */
  get isStuck(): boolean {
    return [...this.#lanes.values()].every(({ waitMs }) => waitMs >= 4 * this.#deps.retryMinMs);
  }

  /** Loads the events that were set aside before this process started; they are probed at once. */
  async load(): Promise<void> {
    const { aside, name, sink } = this.#deps;
    if (sink.destinationOf === undefined) return;
    for (const { destination, events, reason, since } of await aside.destinations(name)) {
      this.#add({ destination, events, reason, since }, 0);
    }
  }

  /** Events were set aside for a destination, with the receiver's response. */
  setAside(destination: string, events: number, reason: string): void {
    const lane = this.#lanes.get(destination);
    if (lane !== undefined) {
      lane.events += events;
      return;
    }
    const { clock, log, retryMinMs } = this.#deps;
    this.#add({ destination, events, reason, since: clock.now() }, retryMinMs);
    const next =
      'Repair the destination that the reason names; its events are sent automatically, in order. Events of other destinations are not delayed.';
    log.error('destination_refused', 'a destination refuses its events; they are set aside', {
      ...{ destination, reason, next },
    });
  }

  #add(facts: AsideFacts, waitMs: number): void {
    const dueAt = this.#deps.clock.monotonic() + waitMs;
    this.#lanes.set(facts.destination, { ...facts, dueAt, waitMs, size: 1, cursor: 0 });
  }

  /** Makes dead letters of set-aside events, all or those with these uids; returns their number. */
  async giveUp(uids: readonly string[] | null): Promise<number> {
    const { aside, name } = this.#deps;
    let count = 0;
    for (const lane of this.#lanes.values()) {
      for (let after = 0; ; ) {
        const rows = await aside.read(name, lane.destination, { after, most: readMost });
        const last = rows.at(-1);
        if (last === undefined) break;
        after = last.id;
        const guilty = rows.filter(({ uid }) => uids === null || uids.includes(uid));
        await this.#settle(lane, { accepted: [], guilty });
        count += guilty.length;
      }
    }
    this.retryNow();
    return count;
  }

  /** Milliseconds until a destination is probed; null: none. */
  get dueInMs(): number | null {
    const due = Array.from(this.#lanes.values(), ({ dueAt }) => dueAt);
    if (due.length === 0) return null;
    return Math.max(0, Math.min(...due) - this.#deps.clock.monotonic());
  }

  /** Probes all destinations now. */
  retryNow(): void {
    for (const lane of this.#lanes.values()) lane.dueAt = this.#deps.clock.monotonic();
  }

  /** One step for each due destination. */
  async work(signals: StopSignals): Promise<void> {
    const now = this.#deps.clock.monotonic();
    for (const lane of [...this.#lanes.values()]) {
      if (lane.dueAt > now || signals.stop.aborted) continue;
      if (await this.#step(lane, signals)) {
        lane.waitMs = this.#deps.retryMinMs;
        lane.dueAt = this.#deps.clock.monotonic();
      } else {
        const { retryMinMs, refusedWaitMs } = this.#deps;
        lane.waitMs = Math.min(refusedWaitMs, Math.max(retryMinMs, lane.waitMs * 2));
        lane.dueAt = this.#deps.clock.monotonic() + lane.waitMs;
      }
    }
  }

  /** True: the destination has accepted events, or an event was found to be to blame. */
  async #step(lane: Lane, signals: StopSignals): Promise<boolean> {
    const { aside, name, log } = this.#deps;
    const which = { after: 0, most: lane.size };
    const rows = await aside.read(name, lane.destination, which);
    const [first] = rows;
    if (first === undefined) {
      this.#lanes.delete(lane.destination);
      log.info(
        'destination_recovered',
        'all events that were set aside for the destination are delivered',
        {
          destination: lane.destination,
        },
      );
      return true;
    }
    const fates = await this.#send(rows, signals);
    const isOne = rows.length === 1;
    const guilty = rows.flatMap(({ id, uid }) => {
      const refused = fates.refused.get(uid);
      const isSure =
        refused?.by === 'sink' || (refused?.by === 'receiver' && fates.accepted.size > 0);
      return refused !== undefined && isSure ? [{ id, reason: refused.reason }] : [];
    });
    await this.#settle(lane, { accepted: accepted(rows, fates), guilty });
    for (const { reason } of fates.refused.values()) lane.reason = reason;
    if (fates.accepted.size > 0) {
      lane.size = Math.min(sizeMax, lane.size * 4);
      return true;
    }
    if (guilty.length > 0) return true;
    lane.size = Math.max(1, lane.size >> 2);
    const refusal = isOne ? fates.refused.get(first.uid) : undefined;
    // A fault of the destination blames no event: another event sent now could only overtake this
    // one.
    if (refusal?.by !== 'receiver') return false;
    return await this.#probeOthers(lane, first, signals);
  }

  /** Sends other events of the destination; if one is accepted, the suspect once more. */
  async #probeOthers(lane: Lane, suspect: HeldAside, signals: StopSignals): Promise<boolean> {
    for (const other of await this.#others(lane, suspect)) {
      const fates = await this.#send([other], signals);
      if (!fates.accepted.has(other.uid)) continue;
      await this.#settle(lane, { accepted: [other.id], guilty: [] });
      const again = await this.#send([suspect], signals);
      const refused = again.refused.get(suspect.uid);
      await this.#settle(lane, {
        accepted: accepted([suspect], again),
        guilty: refused === undefined ? [] : [{ id: suspect.id, reason: refused.reason }],
      });
      return true;
    }
    return false;
  }

  /** The first event of each other stream; if there is none, the next one of the same stream. */
  async #others(lane: Lane, suspect: HeldAside): Promise<readonly HeldAside[]> {
    const { aside, name } = this.#deps;
    const after = Math.max(lane.cursor, suspect.id);
    const rows = await aside.read(name, lane.destination, { after, most: readMost });
    lane.cursor = rows.length < readMost ? 0 : (rows.at(-1)?.id ?? 0);
    const { stream } = suspect.context;
    const streams = Map.groupBy(rows, ({ context }) => context.stream);
    streams.delete(stream);
    const others = [...streams.values()].flatMap(([first]) => first ?? []);
    if (others.length > 0) return others.slice(0, othersMax);
    const [own] = rows;
    if (own !== undefined) lane.cursor = own.id;
    return own === undefined ? [] : [own];
  }

  /** Sends rows; one that is no longer for this sink counts as accepted. */
  async #send(rows: readonly HeldAside[], signals: StopSignals): Promise<Fates> {
    const { outlet, name } = this.#deps;
    const batch = await outlet.ofHeld(rows.map((row) => pageOf(row, name)));
    const sent = new Set(batch.events.map(({ uid }) => uid));
    const unrequested = rows.flatMap(({ uid }) => (sent.has(uid) ? [] : [uid]));
    if (batch.events.length === 0) return { accepted: new Set(unrequested), refused: new Map() };
    const fates = fatesOf(await this.#deps.send(batch, signals), batch.events);
    return { ...fates, accepted: new Set([...unrequested, ...fates.accepted]) };
  }

  async #settle(
    lane: Lane,
    {
      accepted,
      guilty,
    }: {
      readonly accepted: readonly number[];
      readonly guilty: readonly { readonly id: number; readonly reason: string }[];
    },
  ): Promise<void> {
    const { aside, name, health, log } = this.#deps;
    if (accepted.length + guilty.length === 0) return;
    await aside.settle(name, { delivered: accepted, guilty });
    lane.events -= accepted.length + guilty.length;
    if (accepted.length > 0) health.succeeded(accepted.length);
    health.buried(guilty.length);
    for (const { reason } of guilty) {
      log.warn(
        'set_aside_event_refused',
        'an event that was set aside is refused while others are accepted; it is a dead letter',
        {
          ...{ destination: lane.destination, reason },
        },
      );
    }
  }
}

function accepted(rows: readonly HeldAside[], fates: Fates): readonly number[] {
  return rows.flatMap(({ id, uid }) => (fates.accepted.has(uid) ? [id] : []));
}

function pageOf({ offset, uid, context, record }: HeldAside, sink: string): HeldPage {
  return {
    ...{ context, items: '', kept: null, onlySink: sink, first: offset, count: 1 },
    body: Buffer.concat([Buffer.from('['), record, Buffer.from(']')]),
    uids: Buffer.from(uid, 'hex'),
  };
}

function fatesOf(answer: Delivery, events: readonly Event[]): Fates {
  const uids = events.map(({ uid }) => uid);
  const none = { accepted: new Set<string>(), refused: new Map() };
  switch (answer.outcome) {
    case 'delivered':
      return { ...none, accepted: new Set(uids) };
    case 'retry':
      return none;
    case 'refused': {
      const { by = 'receiver', cause } = answer;
      if (answer.scope === 'sink') return none;
      return { ...none, refused: new Map(uids.map((uid) => [uid, { reason: cause.message, by }])) };
    }
    case 'partly': {
      const refused = new Map(
        answer.refused.map(({ uid, reason, by = 'receiver' }) => [uid, { reason, by }] as const),
      );
      const again = new Set(answer.again);
      const taken = uids.filter((uid) => !refused.has(uid) && !again.has(uid));
      return { accepted: new Set(taken), refused };
    }
  }
}

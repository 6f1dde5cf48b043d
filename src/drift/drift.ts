// Compares configuration changes with the audit trail: reads stored pages like a sink, at its own
// position before which no page is deleted, and stores its findings as events of the changed
// source. Invariants: findings, remembered items and position become durable in one transaction, so
// that each finding is reported once, also across a crash; the memory is bounded; a period that is
// known only in part gives no finding.

import type { DriftSettings, HeldPage, NewPage, Tools } from '../contracts/index.ts';
import type { PlannedSource, PollingDeps, RunnerState } from '../fetch/engine.ts';
import { DecodedPage, normalisersOf } from '../send/index.ts';
import { driftChange, eventIn } from './facts.ts';
import { findingsPages } from './findings.ts';
import { type Extent, judgeOpen } from './judge.ts';
import { lastBefore, type WatchedStream } from './readings.ts';
import {
  type DriftCheckpoint,
  driftKey,
  type OpenEvent,
  type OpenItem,
  parseDrift,
  parseOpenItem,
} from './state.ts';

/** Dependencies. */
export interface DriftDeps extends Pick<PollingDeps, 'spool' | 'found'> {
  readonly tools: Pick<Tools, 'clock' | 'log'>;
  /** The current sources, and the status of their streams. */
  sources(): readonly PlannedSource[];
  streams(): readonly RunnerState[];
}

const lookEveryMs = 1_000;
const readBytes = 1024 * 1024;
/** Maximum remembered items per kind; beyond it the oldest are dropped unjudged. */
const itemsMax = 10_000;
/** Maximum remembered scans of a stream. */
const readingsMax = 256;
/** Remembered scans are at least this share of the window apart. */
const apartShare = 0.25;

interface Memory {
  checkpoint: DriftCheckpoint;
  readonly items: Map<string, OpenItem>;
  /** Rows that differ from the stored ones. */
  readonly unsaved: Set<string>;
  /** The checkpoint differs from the stored one in more than its position. */
  isChanged: boolean;
}

/** Compares the trail of one config. */
export class Drift {
  readonly #settings: DriftSettings;
  readonly #deps: DriftDeps;
  #memory: Memory | null = null;
  /** Of the current sources. */
  #known: {
    readonly sources: readonly PlannedSource[];
    readonly watched: ReadonlyMap<string, WatchedStream>;
    readonly normaliserFor: ReturnType<typeof normalisersOf>;
  } | null = null;
  #isFullReported = false;
  /** The last failure. */
  #failure = '';

  constructor(settings: DriftSettings, deps: DriftDeps) {
    this.#settings = settings;
    this.#deps = deps;
  }

  get #now() {
    const sources = this.#deps.sources();
    if (this.#known?.sources !== sources) {
      const watched = watchedIn(sources, this.#settings.changes);
      this.#known = { sources, watched, normaliserFor: normalisersOf(sources) };
    }
    return this.#known;
  }

  /** Runs until aborted. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock } = this.#deps.tools;
    while (!signal.aborted) {
      await this.look();
      await clock.sleep(lookEveryMs, signal).catch(() => undefined);
    }
  }

  /** Reads up to the spool's end and judges. After a failure it resumes from the durable state. */
  async look(): Promise<void> {
    try {
      await this.#look();
    } catch (error) {
      this.#memory = null;
      const text = String(error);
      if (text !== this.#failure) {
        this.#deps.tools.log.warn(
          'trail_failed',
          'comparison with the trail failed; retrying later',
          {
            error: text,
          },
        );
      }
      this.#failure = text;
    }
  }

  async #look(): Promise<void> {
    const { spool } = this.#deps;
    this.#memory ??= await this.#load();
    const memory = this.#memory;
    // The scanned-to times count only together with the pages stored by then.
    const runners = this.#deps.streams();
    const { end } = spool.gauge;
    while (memory.checkpoint.next < end) {
      const pages = await spool.read(memory.checkpoint.next, readBytes, driftKey);
      for (const page of pages) this.#take(memory, page);
      if (pages.length === 0) memory.checkpoint = { ...memory.checkpoint, next: end };
      this.#bound(memory);
      await this.#save(memory, []);
    }
    this.#noteReadings(memory, runners);
    const open = [...memory.items.values()];
    const verdicts = judgeOpen(open, memory.checkpoint, this.#extent(runners));
    for (const item of verdicts.kept) {
      memory.items.set(item.uid, item);
      memory.unsaved.add(item.uid);
    }
    for (const { uid } of verdicts.dropped) {
      memory.items.delete(uid);
      memory.unsaved.add(uid);
    }
    memory.isChanged ||=
      JSON.stringify(verdicts.checkpoint.sources) !== JSON.stringify(memory.checkpoint.sources);
    memory.checkpoint = verdicts.checkpoint;
    const { tools, found } = this.#deps;
    const reported = findingsPages(verdicts.findings, this.#settings, tools.clock.now());
    await this.#save(memory, reported.pages);
    for (const record of reported.records) found?.(record);
  }

  async #load(): Promise<Memory> {
    const { spool, tools } = this.#deps;
    const { checkpoint: held } = await spool.recall(driftKey);
    const checkpoint = parseDrift(held);
    const { position } = await spool.progress(driftKey);
    const items = new Map<string, OpenItem>();
    const unsaved = new Set<string>();
    const all = { after: '', max: 2 * itemsMax };
    const { end } = spool.gauge;
    for (const [uid, body] of await spool.entities(driftKey, all)) {
      const item = checkpoint === null ? null : parseOpenItem(body);
      if (item === null) unsaved.add(uid);
      else items.set(uid, item);
    }
    if (checkpoint !== null && unsaved.size === 0) {
      const next = Math.min(end, Math.max(checkpoint.next, position));
      return { checkpoint: { ...checkpoint, next }, items, unsaved, isChanged: false };
    }
    if (held !== null) {
      tools.log.warn(
        'drift_memory_lost',
        'stored drift state unreadable; starting with an empty one',
      );
    }
    const fresh = { version: 1, kind: 'drift', readings: {}, sources: {} } as const;
    const since = tools.clock.now();
    return { checkpoint: { ...fresh, next: end, since }, items, unsaved, isChanged: true };
  }

  #take(memory: Memory, page: HeldPage): void {
    const settings = this.#settings;
    const { source, kind } = page.context;
    memory.checkpoint = { ...memory.checkpoint, next: page.first + page.count };
    const isChange = kind === 'drift' && settings.changes.includes(source);
    const isTrail = kind !== 'drift' && kind !== 'condition' && settings.trail.includes(source);
    // A repeated dead letter was read when it first arrived.
    if ((!isChange && !isTrail) || page.onlySink !== undefined) return;
    const decoded = new DecodedPage(page, this.#now.normaliserFor(page.context));
    for (let at = 0; at < page.count; at += 1) {
      const ocsf = decoded.ocsf(at);
      const item = isChange
        ? this.#windowed(memory, driftChange(ocsf, page.context, settings.match))
        : this.#recent(memory, eventIn(ocsf, page.context, settings.match));
      if (item === null || memory.items.has(item.uid)) continue;
      memory.items.set(item.uid, item);
      memory.unsaved.add(item.uid);
    }
  }

  #windowed({ checkpoint }: Memory, change: ReturnType<typeof driftChange>): OpenItem | null {
    const stream = change === null ? undefined : this.#now.watched.get(change.stream);
    if (change === null || stream === undefined) return null;
    const from = lastBefore(checkpoint.readings[stream.name] ?? [], change, stream);
    return { ...change, from };
  }

  /** An audit event from before the judged period explains nothing. */
  #recent({ checkpoint }: Memory, event: OpenEvent | null): OpenItem | null {
    const isOld = event !== null && event.at < checkpoint.since - this.#settings.withinMs;
    return isOld ? null : event;
  }

  /** Beyond the bound the oldest items are dropped, and their possible partners are not judged. */
  #bound(memory: Memory): void {
    for (const is of ['change', 'event'] as const) {
      const items = [...memory.items.values()].filter((item) => item.is === is);
      if (items.length <= itemsMax) continue;
      const timeOf = (item: OpenItem) => (item.is === 'change' ? item.to : item.at);
      const oldest = items.toSorted((a, b) => timeOf(a) - timeOf(b));
      const gone = oldest.slice(0, items.length - itemsMax);
      for (const { uid } of gone) {
        memory.items.delete(uid);
        memory.unsaved.add(uid);
      }
      const last = gone.at(-1);
      if (last?.is === 'event') {
        const since = Math.max(memory.checkpoint.since, last.at + this.#settings.withinMs);
        memory.checkpoint = { ...memory.checkpoint, since };
        memory.isChanged = true;
      }
      if (!this.#isFullReported) {
        const text = 'too many open changes or trail events; the oldest are not judged';
        this.#deps.tools.log.warn('drift_memory_full', text, { kind: is, remembered: itemsMax });
      }
      this.#isFullReported = true;
    }
  }

  #noteReadings(memory: Memory, runners: readonly RunnerState[]): void {
    const settings = this.#settings;
    const caughtUp = new Map(runners.map(({ name, caughtUpAt }) => [name, caughtUpAt]));
    const readings = { ...memory.checkpoint.readings };
    for (const { name, reading } of this.#now.watched.values()) {
      const at = caughtUp.get(name) ?? null;
      const known = readings[name] ?? [];
      const reachMs = reading.settleMs + reading.sweepMs;
      const apartMs = Math.max(settings.withinMs * apartShare, (2 * reachMs) / readingsMax);
      if (at === null || at < (known.at(-1) ?? 0) + apartMs) continue;
      readings[name] = [...known, at].slice(-readingsMax);
      memory.isChanged = true;
    }
    memory.checkpoint = { ...memory.checkpoint, readings };
  }

  #extent(runners: readonly RunnerState[]): Extent {
    const settings = this.#settings;
    const failing = runners.filter(
      ({ error, caughtUpAt, isEnded }) => error !== null || caughtUpAt === null || isEnded === true,
    );
    const trail = runners.filter(({ source }) => settings.trail.includes(source));
    const isWell = trail.length > 0 && trail.every((one) => !failing.includes(one));
    return {
      watched: [...this.#now.watched.values()],
      failing: new Set(failing.map(({ name }) => name)),
      trailReadTo: isWell ? Math.min(...trail.map(({ caughtUpAt }) => caughtUpAt ?? 0)) : null,
      withinMs: settings.withinMs,
    };
  }

  /** If only the position has changed, storing it suffices. */
  async #save(memory: Memory, pages: readonly NewPage[]): Promise<void> {
    const { spool } = this.#deps;
    const { checkpoint, unsaved, items } = memory;
    if (pages.length > 0 || unsaved.size > 0 || memory.isChanged) {
      const keys = [...unsaved];
      const put = keys.flatMap((uid): [string, string][] => {
        const item = items.get(uid);
        return item === undefined ? [] : [[uid, JSON.stringify(item)]];
      });
      const drop = keys.filter((uid) => !items.has(uid));
      await spool.append({ stream: driftKey, pages, checkpoint, entities: { put, drop } });
      unsaved.clear();
      memory.isChanged = false;
    }
    await spool.acknowledge(driftKey, { position: checkpoint.next });
  }
}

/** The compared configurations, by stream. */
function watchedIn(
  sources: readonly PlannedSource[],
  changes: readonly string[],
): ReadonlyMap<string, WatchedStream> {
  const watched = sources.filter(({ name }) => changes.includes(name));
  return new Map(
    watched.flatMap(({ streams, collection }) =>
      streams.flatMap((stream) => {
        if (collection === null || stream.kind !== 'collection') return [];
        const { name, source, company = null, detail } = stream;
        const sweepMs = detail === undefined ? 0 : collection.sweepMs;
        return [[name, { name, source, company, reading: { ...collection, sweepMs } }] as const];
      }),
    ),
  );
}

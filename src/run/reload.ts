// Replaces a running config: reads and checks the new one as `check` does, compares it with the running one part by
// part, and restarts only the parts that differ. Invariants: if the new config has a fault, the old one stays in use
// and the log has the reason; no record that was read is lost; and removing a part from a running config needs an
// explicit permission at the start, so that no mistake in a file drops data.

import type { Config } from '../config/index.ts';
import { ExportError } from '../contracts/index.ts';
import { openTokens } from '../upstream/index.ts';
import { companyRemovals, refuseManyRemoved, streamsOfRemoved } from './companies.ts';
import { type Journey, readersOf } from './journey.ts';
import { planFrom, type Shared, type WholePlan } from './plan.ts';
import { RefusedReload } from './refused-reload.ts';
import {
  type Changes,
  changesBetween,
  type Made,
  type PartChanges,
  upstreamDigests,
} from './reload-changes.ts';
import type { ReloadReason, ReloadRequests } from './reload-requests.ts';
import type { ReloadRefusal } from './running-config.ts';
import { receivedError, type SentError } from './shard-messages.ts';
import type { BootTools } from './tools.ts';

/** The dependencies of a reload. */
export interface ReloadDeps {
  readonly config: Config;
  readonly plan: WholePlan;
  readonly journey: Journey;
  readonly tools: BootTools;
  /** The config in its file at that time; of a shard, the one that was accepted last. Throws a ConfigError. */
  readonly read: () => Promise<Config>;
  /** Of a shard: why the config in the file was not accepted; null: it was. */
  readonly hosted?: { readonly refused: SentError | null } | null;
  readonly requests: ReloadRequests;
  /** Streams and sinks may leave. */
  readonly removalAllowed: boolean;
  /** Called with the running config after each change. */
  readonly changed: (made: Made) => void;
  /** Called with the reason if the config in the file does not run; null: it runs. */
  readonly refused: (refusal: ReloadRefusal | null) => void;
}

/** More names than these a line are counted. */
const namesShownMax = 20;

/** Serves reloads until stopped. Never rejects. */
export async function serveReloads(deps: ReloadDeps, stop: AbortSignal): Promise<void> {
  const reloader = new Reloader(deps);
  for (;;) {
    const { requests, tools } = deps;
    const reason = await reloader.refused.next(requests, tools.clock, stop).catch(() => null);
    if (reason === null || stop.aborted) return;
    await reloader.reload(reason, stop);
  }
}

interface Current extends Made {
  /** The parts that each upstream shares with others, by its name. */
  readonly shared: ReadonlyMap<string, Shared>;
}

class Reloader {
  readonly #deps: ReloadDeps;
  readonly refused = new RefusedReload();
  #current: Current;

  constructor(deps: ReloadDeps) {
    const { config, plan, tools } = deps;
    this.#deps = deps;
    const shared = new Map(Object.keys(config.upstreams).map((name) => [name, tools]));
    this.#current = { config, plan, shared };
  }

  async reload(reason: ReloadReason, stop: AbortSignal): Promise<void> {
    const { log, clock } = this.#deps.tools;
    try {
      const next = await this.#read();
      const changes = acceptedChanges(this.#current, next, this.#deps);
      await this.#change(next, changes);
      this.#current = next;
      this.#deps.requests.follow(next.config);
      this.#deps.changed(next);
      const fields = { reason, ...reported(changes) };
      if (!isNone(changes)) log.info('config_reloaded', 'config reloaded', fields);
      const { refused = null } = this.#deps.hosted ?? {};
      if (refused !== null) throw receivedError(refused);
      if (isNone(changes)) log.info('config_unchanged', 'config read again: no change', fields);
      this.refused.accept();
      this.#deps.refused(null);
    } catch (error) {
      // If the run ends meanwhile, no running config is left to report on.
      if (stop.aborted) return;
      const isNew = this.refused.refuse(error, reason, { log, file: this.#current.config.file });
      const { error: why } = this.refused;
      if (isNew && why !== null) this.#deps.refused({ at: clock.now(), ...why });
    }
  }

  async #read(): Promise<Current> {
    const { tools, read } = this.#deps;
    const config = await read();
    const shared = sharedAfter(config, this.#current, tools);
    return { config, plan: planFrom(config, tools, shared), shared };
  }

  /** Pages are kept for the sinks of both until it is clear which of the two runs. */
  async #change({ config, plan }: Made, { streams, sinks }: Changes): Promise<void> {
    const { journey } = this.#deps;
    const before = readersOf(this.#current.plan);
    const after = readersOf(plan);
    const gaps = await journey.removedSinks.gaps(plan);
    await journey.spool.retainFor([...new Set([...before, ...after])]);
    const kept = { streams: new Set(streams.unchanged), sinks: new Set(sinks.unchanged) };
    try {
      await journey.pipeline.change(plan, kept, config.shutdown.timeoutMs / 2);
    } catch (error) {
      await journey.spool.retainFor(before);
      throw error;
    }
    await journey.removedSinks.runs(plan, gaps);
    await journey.ends.runs(plan);
    journey.configRuns(config);
    await journey.spool.retainFor(after);
  }
}

/**
 * Unchanged upstreams keep their token and limits. For a changed one both are new: limits that were learned with the old
 * credential must not apply to the new one. With the same credential, requests already sent count for the ceilings of
 * the config, and waits that upstream requested last.
 */
function sharedAfter(config: Config, before: Current, tools: BootTools): Current['shared'] {
  const known = new Map<string, Shared>();
  for (const [name, digest] of upstreamDigests(before.config)) {
    const shared = before.shared.get(name);
    if (shared !== undefined) known.set(digest, shared);
  }
  return new Map(
    Array.from(upstreamDigests(config), ([name, digest]) => {
      const shared = known.getOrInsertComputed(digest, () => ({
        tokens: openTokens(tools),
        throttles: tools.throttles.renewed(),
      }));
      return [name, shared];
    }),
  );
}

/** The changes from a running config to the next. Throws an ExportError if they need a restart, or a permission. */
export function acceptedChanges(
  before: Made,
  next: Made,
  { removalAllowed }: Pick<ReloadDeps, 'removalAllowed'>,
): Changes {
  const changes = changesBetween(before, next);
  refuseFixed(changes);
  if (!removalAllowed) refuseRemovals(before, next, changes);
  return changes;
}

/** Companies may leave through their file, up to a limit; other streams and sinks may not. */
function refuseRemovals({ config, plan }: Made, next: Made, changes: Changes): void {
  const companiesOf = (upstream: string) => config.upstreams[upstream]?.companies ?? [];
  const removals = companyRemovals(companiesOf, next.config);
  refuseManyRemoved(removals);
  const may = streamsOfRemoved(removals, plan, next.plan);
  const removed = changes.streams.removed.filter((stream) => !may.has(stream));
  refuseRemoval({ ...changes, streams: { ...changes.streams, removed } });
}

function refuseFixed({ fixed }: Changes): void {
  if (fixed.length === 0) return;
  throw new ExportError('config_invalid', `reloading the config: ${fixed.join(', ')} differs`, {
    next: 'Restart to apply: this cannot change while sluice runs. Or put it back, and the rest is applied.',
  });
}

function refuseRemoval({ streams, sinks }: Changes): void {
  const dropped = [...named('stream', streams.removed), ...named('sink', sinks.removed)];
  if (dropped.length === 0) return;
  throw new ExportError('config_invalid', `reloading the config: it drops ${list(dropped)}`, {
    next: 'Put them back; or, if they are to go, restart to apply. With --allow-removal, a reload may drop them.',
  });
}

function isNone({ streams, sinks }: Changes): boolean {
  return [streams, sinks].every(
    ({ added, changed, removed }) => added.length + changed.length + removed.length === 0,
  );
}

/** Counts, and names where there are any. */
function reported({ streams, sinks }: Changes): Record<string, string | number> {
  const kinds = ['added', 'changed', 'removed', 'unchanged'] as const;
  const facts: Record<string, string | number> = {};
  for (const kind of kinds) {
    facts[`streams_${kind}`] = streams[kind].length;
    facts[`sinks_${kind}`] = sinks[kind].length;
    const names = [...named('stream', streams[kind]), ...named('sink', sinks[kind])];
    if (names.length > 0) facts[kind] = list(names);
  }
  return facts;
}

function named(what: 'stream' | 'sink', names: PartChanges['added']): readonly string[] {
  return names.map((name) => `${what} ${name}`);
}

function list(names: readonly string[]): string {
  const rest = names.length - namesShownMax;
  const shown = names.slice(0, namesShownMax).join(', ');
  return rest > 0 ? `${shown} and ${rest} more` : shown;
}

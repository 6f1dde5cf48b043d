// The differences between two configs, part by part: a stream with its upstream, source and schedule; a sink with its
// block and all that leads to it, routes and mappings. Invariants: parts are compared by their settings, with
// references resolved now on both sides. So a rotated secret restarts nothing: it is read at each use. No value leaves
// this file except as a digest.

import type { Config } from '../config/index.ts';
import type { Plan } from '../pipeline.ts';
import { selectionFor } from '../send/index.ts';
import { fingerprintOf } from '../tools/index.ts';
import { tokenUrl, type UpstreamSettings } from '../upstream/index.ts';
import type { WholePlan } from './plan.ts';

/** A config and its plan. */
export interface Made {
  readonly config: Config;
  readonly plan: WholePlan;
}

/** The changes of streams or sinks, by name. */
export interface PartChanges {
  readonly added: readonly string[];
  readonly changed: readonly string[];
  readonly removed: readonly string[];
  readonly unchanged: readonly string[];
}

/** The differences between two configs. */
export interface Changes {
  readonly streams: PartChanges;
  readonly sinks: PartChanges;
  /** Top-level keys whose changes need a restart. */
  readonly fixed: readonly string[];
}

const fixedKeys = ['state', 'watch', 'status', 'shutdown', 'log'] as const;

/** Compares a config with the one that runs. */
export function changesBetween(before: Made, after: Made): Changes {
  const fixed = fixedKeys.filter(
    (key) => fingerprintOf(fixedPart(before, key)) !== fingerprintOf(fixedPart(after, key)),
  );
  return {
    streams: partChanges(streamDigests(before), streamDigests(after), (a, b) => a === b),
    sinks: partChanges(sinkDigests(before), sinkDigests(after), isSameSink),
    fixed,
  };
}

/** How the state directory is written makes no difference, as long as it is the same one. */
function fixedPart({ config }: Made, key: (typeof fixedKeys)[number]) {
  return key === 'state' ? { ...config.state, places: null, warning: null } : config[key];
}

/**
 * Digests by upstream. Upstreams with one credential share its token and its limits, so they have one digest: a change
 * of one changes all. Not included are companies, each of which has its own streams, and `ends`, which is only
 * reported.
 */
export function upstreamDigests({ upstreams }: Config): ReadonlyMap<string, string> {
  const byCredential = Map.groupBy(Object.entries(upstreams), ([, { auth, ...settings }]) =>
    fingerprintOf(
      auth.api_key ?? [tokenUrl({ ...settings, auth } as UpstreamSettings), auth.client_id],
    ),
  );
  return new Map(
    [...byCredential.values()].flatMap((sharing) => {
      const settings = sharing.map(
        ([name, { companies: _, companiesFile: _f, ends: _e, ...rest }]) => [name, rest],
      );
      const whole = fingerprintOf(
        settings.toSorted(([a], [b]) => (String(a) < String(b) ? -1 : 1)),
      );
      return sharing.map(([name]) => [name, whole] as const);
    }),
  );
}

function streamDigests({ config, plan }: Made): ReadonlyMap<string, string> {
  const upstreams = upstreamDigests(config);
  return new Map(
    plan.sources.flatMap(({ name, streams, schedule }) => {
      // The settings for reading records concern the sinks that get them. The schedule is compared by its times,
      // however it is written.
      const own = { ...config.sources[name]?.settings };
      const {
        mapping: _,
        every: _e,
        schedule: _s,
        timezone: _t,
        upstream: from,
        ...settings
      } = own;
      const upstream = upstreams.get(String(from));
      const whole = fingerprintOf([settings, schedule, upstream]);
      return streams.map(
        (stream) => [stream.name, fingerprintOf([whole, stream.fingerprint])] as const,
      );
    }),
  );
}

interface SinkDigests {
  readonly own: string;
  /** The routes and mappings that lead to it, by source. */
  readonly ways: ReadonlyMap<string, string>;
}

function sinkDigests({ config, plan }: Made): ReadonlyMap<string, SinkDigests> {
  return new Map(
    Object.entries(config.sinks).map(([name, { definition: _, ...sink }]) => [
      name,
      { own: fingerprintOf(sink), ways: waysTo(name, plan) },
    ]),
  );
}

function waysTo(sink: string, { sources, routes }: Plan): ReadonlyMap<string, string> {
  return new Map(
    sources.map(({ name, reading }) => {
      const selection = selectionFor(routes, { source: name, sink }, () => undefined);
      return [name, fingerprintOf(selection === null ? null : [selection.key, reading])];
    }),
  );
}

/** A source added or removed changes no sink: kept sinks follow the new plan's routes. */
function isSameSink(before: SinkDigests, after: SinkDigests): boolean {
  if (before.own !== after.own) return false;
  return [...before.ways].every(([source, way]) => (after.ways.get(source) ?? way) === way);
}

function partChanges<T>(
  before: ReadonlyMap<string, T>,
  after: ReadonlyMap<string, T>,
  isSame: (before: T, after: T) => boolean,
): PartChanges {
  const added: string[] = [];
  const changed: string[] = [];
  const unchanged: string[] = [];
  for (const [name, now] of after) {
    const then = before.get(name);
    if (then === undefined) added.push(name);
    else if (isSame(then, now)) unchanged.push(name);
    else changed.push(name);
  }
  const removed = [...before.keys()].filter((name) => !after.has(name));
  return { added, changed, removed, unchanged };
}

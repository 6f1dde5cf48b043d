// The summary of a config that a process shows to the other processes of a state in Kafka: the names of its sinks and
// sources, each with a digest of its settings without secrets. So each process knows the sinks that another one has,
// and attention and `sluice cluster` name the differences. Invariant: no setting can be read from it, and
// what another process says is text of any kind.

import { isObject, type Json } from '../contracts/index.ts';

/** Digests by name. */
export interface ConfigPrint {
  readonly sinks: Readonly<Record<string, string>>;
  readonly sources: Readonly<Record<string, string>>;
}

const kinds = ['sinks', 'sources'] as const;
const titles = { sinks: 'sink', sources: 'source' } as const;
const namesMax = 10_000;
const nameLengthMax = 80;

/** What another process has said; null: it is of a version that says nothing of its config. */
export function parsedPrint(said: unknown): ConfigPrint | null {
  if (!isObject(said as Json)) return null;
  const { sinks, sources } = said as Record<string, unknown>;
  const [ofSinks, ofSources] = [digestsIn(sinks), digestsIn(sources)];
  return ofSinks === null || ofSources === null ? null : { sinks: ofSinks, sources: ofSources };
}

function digestsIn(said: unknown): Readonly<Record<string, string>> | null {
  if (!isObject(said as Json)) return null;
  const entries = Object.entries(said as Record<string, unknown>).slice(0, namesMax);
  return Object.fromEntries(entries.map(([name, digest]) => [name, String(digest)]));
}

/** How another config differs from one: `lacks sink es`, `has other settings for source audit`. */
export function differencesIn(other: ConfigPrint, from: ConfigPrint): readonly string[] {
  return kinds.flatMap((kind) => {
    const [theirs, ours] = [other[kind], from[kind]];
    const named = (what: string, name: string) =>
      `${what} ${titles[kind]} ${name.slice(0, nameLengthMax)}`;
    return [
      ...Object.keys(ours).flatMap((name) => {
        if (!Object.hasOwn(theirs, name)) return [named('lacks', name)];
        return theirs[name] === ours[name] ? [] : [named('has other settings for', name)];
      }),
      ...Object.keys(theirs).flatMap((name) =>
        Object.hasOwn(ours, name) ? [] : [named('also has', name)],
      ),
    ];
  });
}

/**
 * The print of a process after it has read another config. Where a reload may drop nothing, it refuses that config in each
 * shard that it works on, and still has the sinks of the one before.
 */
export function printAfter(
  before: ConfigPrint | null,
  next: ConfigPrint | null,
  mayDrop: boolean,
): ConfigPrint | null {
  if (before === null || next === null || mayDrop) return next;
  return { ...next, sinks: { ...before.sinks, ...next.sinks } };
}

// Sinks outside the config when a state database is built from others. Invariant: pages that one of
// the others retains for that sink are retained in the new one, for as long as before; pages of a
// database that retains none for it do not wait for it.

import type { Offset } from '../contracts/index.ts';
import type { KnownSink, KnownSinks } from './known-sinks.ts';
import type { PagesOf, Renumbered } from './regroup-pages.ts';

/** A database with its register of sinks. */
interface Registered extends Pick<PagesOf, 'positions'> {
  readonly known: ReadonlyMap<string, KnownSink>;
}

/** Sinks outside the config whose pages are retained. */
export function keptSinks(
  origins: readonly Registered[],
  sinks: ReadonlyMap<string, unknown>,
): ReadonlySet<string> {
  const known = origins.flatMap((one) => [...one.known.values()]);
  return new Set(known.flatMap(({ name, keeps }) => (keeps && !sinks.has(name) ? name : [])));
}

/** The positions of a database; a sink whose pages it does not retain has nothing to receive. */
export function positionsOfKept(
  { positions, known }: Registered,
  kept: ReadonlySet<string>,
): ReadonlyMap<string, Offset> {
  const moved = new Map(positions);
  for (const name of kept) {
    const one = known.get(name);
    const from = one?.keeps ? Math.max(one.begun, one.releasedTo) : Number.POSITIVE_INFINITY;
    moved.set(name, Math.max(from, positions.get(name) ?? 0));
  }
  return moved;
}

/** The joined registers, with new offsets: a sink is missing since the latest of their times. */
export function joinKnown(
  origins: readonly Registered[],
  register: KnownSinks,
  { numbers, counts }: { readonly numbers: Renumbered; readonly counts: boolean },
): void {
  const all = origins.flatMap(({ known }) => [...known.values()]);
  for (const [name, of] of Map.groupBy(all, (one) => one.name)) {
    const sum = (count: (one: KnownSink) => number) =>
      counts ? of.reduce((total, one) => total + count(one), 0) : 0;
    const since = of.flatMap(({ missingSince }) => missingSince ?? []);
    const missingSince = since.length < of.length ? null : Math.max(...since);
    const joined: KnownSink = {
      ...{ name, missingSince, keeps: of.some(({ keeps }) => keeps) },
      begun: numbers.positions.get(name) ?? numbers.end,
      ...{ releasedTo: 0, released: sum(({ released }) => released) },
      unreported: {
        full: sum(({ unreported }) => unreported.full),
        expired: sum(({ unreported }) => unreported.expired),
      },
    };
    register.put(joined, missingSince ?? 0);
  }
}

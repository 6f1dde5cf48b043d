// Sinks that are not in the config when a state database is made of others. What must stay true:
// the pages that one of the others keeps for such a sink are kept in the new one, for as long as
// before; where another one keeps none for it, nothing of that one waits for it.

import type { Offset } from '../contracts/event.ts';
import type { KnownSink, KnownSinks } from './known-sinks.ts';
import type { PagesOf, Renumbered } from './regroup-pages.ts';

/** A database with its register of sinks. */
interface Registered extends Pick<PagesOf, 'positions'> {
  readonly known: ReadonlyMap<string, KnownSink>;
}

/** Sinks that are not in the config and that pages are kept for. */
export function keptSinks(
  origins: readonly Registered[],
  sinks: ReadonlyMap<string, unknown>,
): ReadonlySet<string> {
  const known = origins.flatMap((one) => [...one.known.values()]);
  return new Set(known.flatMap(({ name, keeps }) => (keeps && !sinks.has(name) ? name : [])));
}

/** The positions of a database, which owes nothing to a sink that it keeps no pages for. */
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

/** The registers of all, by the new numbers: a sink is missing since the last of them has missed it. */
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

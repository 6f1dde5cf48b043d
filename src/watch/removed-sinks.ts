// Sinks that the state knows and the config lacks: the events kept for each, and until when.

import { backlog, type Offset } from '../contracts/index.ts';
import { cleanText, timeText } from '../tools/index.ts';
import type { State } from './state.ts';
import type { Matter, RemovedSink } from './status-facts.ts';

/** The removed sinks, from a state and the names of the sinks in a config. */
export function removedSinksOf(
  { sinks, knownSinks, spool }: Pick<State, 'sinks' | 'knownSinks' | 'spool'>,
  {
    present,
    removedSinksMs,
  }: { readonly present: Iterable<string>; readonly removedSinksMs: number },
): readonly RemovedSink[] {
  const isPresent = new Set(present);
  const names = new Set([...sinks.keys(), ...knownSinks.keys()]);
  return [...names].flatMap((name): RemovedSink[] => {
    if (isPresent.has(name)) return [];
    const known = knownSinks.get(name);
    const { position = 0, deadLetters = 0, aside = [] } = sinks.get(name) ?? {};
    const setAside = aside.reduce((sum, { events }) => sum + events, 0);
    const from: Offset = Math.max(position ?? 0, known?.begun ?? 0, known?.releasedTo ?? 0);
    const since = known?.missingSince ?? null;
    const kept = known?.keeps === true;
    return [
      {
        name,
        kept,
        missing_since: timeText(since),
        kept_until: kept && since !== null ? timeText(since + removedSinksMs) : null,
        pending: (kept ? backlog(spool, from) : 0) + setAside,
        released: known?.released ?? 0,
        dead_letters: deadLetters,
      },
    ];
  });
}

/** The matters for removed sinks with kept events. */
export function removedMatters(
  removed: readonly RemovedSink[],
  command: (command: string, ...words: readonly string[]) => string,
): readonly Matter[] {
  return removed.flatMap(({ name, kept_until: until, pending, released }): readonly Matter[] => {
    if (until === null) return [];
    const what = `is not in the config: ${counted(pending)} kept for it until ${until}`;
    const message =
      released === 0
        ? null
        : `${released.toLocaleString('en')} older ones were released, since the spool or its disk was full`;
    const next = `Put it back into the config, or give its events up: ${command('sinks remove', name)}`;
    return [{ mood: 'warn', who: `Sink ${cleanText(name, 80)}`, what, message, next }];
  });
}

/** The removed sink that occupies most of the spool, unless a configured sink occupies as much. */
export function removedInTheWay(
  removed: readonly RemovedSink[],
  backlogMax: number,
): RemovedSink | null {
  const [first] = removed
    .filter(({ kept_until: until }) => until !== null)
    .toSorted((a, b) => b.pending - a.pending);
  return first !== undefined && first.pending > backlogMax ? first : null;
}

/** The removed sinks of several shards, each as one. */
export function joinedRemoved(parts: readonly (readonly RemovedSink[])[]): readonly RemovedSink[] {
  return [...Map.groupBy(parts.flat(), ({ name }) => name).values()].map((of) => {
    const [first] = of as [RemovedSink];
    const sum = (count: (one: RemovedSink) => number) =>
      of.reduce((all, one) => all + count(one), 0);
    const earliest = (time: (one: RemovedSink) => string | null) =>
      of.flatMap((one) => time(one) ?? []).toSorted()[0] ?? null;
    return {
      name: first.name,
      kept: of.some(({ kept }) => kept),
      missing_since: earliest((one) => one.missing_since),
      kept_until: earliest((one) => one.kept_until),
      pending: sum((one) => one.pending),
      released: sum((one) => one.released),
      dead_letters: sum((one) => one.dead_letters),
    };
  });
}

function counted(events: number): string {
  return events === 1 ? '1 event is' : `${events.toLocaleString('en')} events are`;
}

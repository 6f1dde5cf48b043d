// What an operator should look at, gravest first, each with what to do about it: what keeps the journey from going on
// (`bad`), and what goes on without harm until someone has looked (`warn`): dead letters, gaps that were found, endpoints
// that go away. What must stay true: a thousand streams that fail for one reason are one matter, not a thousand; and where
// nothing waits for a person there is nothing here.

import type { Ailment } from './health.ts';
import type { Watched, WatchedCondition } from './watched.ts';

/** One thing to look at. Whatever text it holds may come from elsewhere. */
export interface Matter {
  readonly mood: 'bad' | 'warn';
  /** `Sink siem`, `3 streams`. */
  readonly who: string;
  /** What is wrong, to be said after that. */
  readonly what: string;
  /** What was told last, of one of them. */
  readonly message: string | null;
  /** What to do. */
  readonly next: string | null;
}

/** Everything to look at; `now` is in epoch milliseconds, `fullInMs` is when the spool is full at its pace. */
export function mattersOf(
  watched: Watched,
  ailments: readonly Ailment[],
  { now, fullInMs }: { readonly now: number; readonly fullInMs: number | null },
): readonly Matter[] {
  return [
    ...ailingMatters(ailments),
    ...reloadMatters(watched),
    ...spoolMatters(watched, ailments, fullInMs),
    ...letterMatters(watched),
    ...noticeMatters(watched),
    ...conditionMatters(watched, now),
    ...filterMatters(watched),
    ...endOfLifeMatters(watched, now),
  ];
}

function reloadMatters({ reloadRefused: refused }: Watched): readonly Matter[] {
  if (refused === null) return [];
  const at = new Date(refused.at).toISOString();
  const what = `as it now stands was not taken at ${at}: what runs is the one before`;
  return [{ mood: 'bad', who: 'The config', what, message: refused.message, next: refused.next }];
}

const namesMax = 5;

function ailingMatters(ailments: readonly Ailment[]): readonly Matter[] {
  const alike = Map.groupBy(ailments, ({ part, reason, error }) =>
    JSON.stringify([part, reason, error?.code, error?.next]),
  );
  return Array.from(alike.values(), (group): Matter => {
    const [{ part, name, reason, what, error }] = group as [Ailment];
    const told = { message: error?.message ?? null, next: error?.next ?? null };
    if (part === 'spool') return { mood: 'bad', who: titles.spool, what, ...told };
    if (group.length === 1) return { mood: 'bad', who: `${titles[part]} ${name}`, what, ...told };
    const who = `${counted(group.length)} ${part}s`;
    const names = listed(group.map((one) => one.name));
    return { mood: 'bad', who, what: `${together[reason]}: ${names}`, ...told };
  });
}

const titles = { stream: 'Stream', sink: 'Sink', spool: 'The spool' } as const;

/** What is said of several. */
const together: Readonly<Record<Ailment['reason'], string>> = {
  halted: 'are halted',
  not_advancing: 'have not come further for long',
  refused: 'refuse everything; their events stay held',
  stopped: 'take no more events',
  not_delivering: 'have taken nothing for long',
  full: 'are full',
};

/** From this share on a spool is worth a look: what fills it has stood still for long. */
const fullShare = 0.8;

/** Sooner than this nobody comes to look by chance. */
export const fullSoonMs = 30 * 60_000;

function spoolMatters(
  { spool, sinks }: Watched,
  ailments: readonly Ailment[],
  fullInMs: number | null,
): readonly Matter[] {
  const isFull = ailments.some(({ reason }) => reason === 'full');
  const isSoon = fullInMs !== null && fullInMs < fullSoonMs;
  if (isFull || (!isSoon && spool.bytes < spool.bytesMax * fullShare)) return [];
  const [slowest] = sinks.toSorted((a, b) => b.backlog - a.backlog);
  const minutes = Math.ceil((fullInMs ?? 0) / 60_000);
  const soon = isSoon ? `, and all of it within ${minutes} min at this pace` : '';
  const what = `is ${Math.floor((spool.bytes / spool.bytesMax) * 100)} % full${soon}`;
  const next = `Look why ${slowest?.name ?? 'no sink'} does not take its events, or raise state.max_bytes. Once it is full, polling waits.`;
  return [{ mood: 'warn', who: titles.spool, what, message: null, next }];
}

function letterMatters({ sinks }: Watched): readonly Matter[] {
  return sinks.flatMap(({ name, lettersHeld, letterReasons }): readonly Matter[] => {
    if (lettersHeld === 0) return [];
    const events = lettersHeld === 1 ? '1 event' : `${counted(lettersHeld)} events`;
    const what = `has refused ${events} for good`;
    const next = `Look why, then send them again or drop them: sluice dead-letters list --sink ${name}`;
    const message = letterReasons[0]?.reason ?? null;
    return [{ mood: 'warn', who: `Sink ${name}`, what, message, next }];
  });
}

function noticeMatters({ sinks }: Watched): readonly Matter[] {
  return sinks.flatMap(({ name, notice }): readonly Matter[] =>
    notice === null ? [] : [{ mood: 'warn', who: `Sink ${name}`, message: null, ...notice }],
  );
}

/** Conditions cannot be acknowledged; after this they are history. */
const recentMs = 24 * 3_600_000;

function conditionMatters({ conditions }: Watched, now: number): readonly Matter[] {
  const recent = conditions.filter(({ observedAt }) => now - Date.parse(observedAt) < recentMs);
  const alike = Map.groupBy(recent, ({ condition }) => condition);
  return Array.from(alike, ([condition, group]): Matter => {
    const [{ message }] = group as [WatchedCondition];
    const streams = [...new Set(group.map(({ stream }) => stream))];
    const where =
      streams.length === 1
        ? `stream ${streams[0]}`
        : `${counted(streams.length)} streams: ${listed(streams)}`;
    const what = `was found in the last day in ${where}`;
    return { mood: 'warn', who: condition, what, message, next: null };
  });
}

function filterMatters({ filterFailures }: Watched): readonly Matter[] {
  return filterFailures.flatMap(({ route, source, failures, why }): readonly Matter[] => {
    if (failures === 0) return [];
    const events = failures === 1 ? '1 event' : `${counted(failures)} events`;
    const what = `could not judge ${events} of ${source} since the start, and let them pass`;
    const next =
      'Look for attributes in its where that not every event has: has(event.x) asks for one.';
    return [{ mood: 'warn', who: `The filter of ${route}`, what, message: why, next }];
  });
}

/** As long before an endpoint goes as a change takes to be planned. */
const sunsetNoticeMs = 90 * 86_400_000;

function endOfLifeMatters({ upstreams }: Watched, now: number): readonly Matter[] {
  return upstreams.flatMap(({ name, endOfLife }) =>
    endOfLife.flatMap(({ endpoint, sunsetMs }): readonly Matter[] => {
      if (sunsetMs === null || sunsetMs - now > sunsetNoticeMs) return [];
      const what = `serves ${endpoint} until ${new Date(sunsetMs).toISOString().slice(0, 10)}`;
      const next = 'Ask its vendor what takes its place.';
      return [{ mood: 'warn', who: `Upstream ${name}`, what, message: null, next }];
    }),
  );
}

function listed(names: readonly string[]): string {
  const more = names.length - namesMax;
  const shown = names.slice(0, namesMax).join(', ');
  return more > 0 ? `${shown} and ${counted(more)} more` : shown;
}

function counted(count: number): string {
  return count.toLocaleString('en');
}

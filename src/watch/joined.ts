// The status of a process with several shards of a state in Kafka, from the statuses of its workers. Streams and
// upstreams are listed side by side, because each belongs to one shard. A sink is shown once, with the worst state of
// its parts.

import { idleMoment, type StatusMoment } from './live.ts';
import { joinedRemoved } from './removed-sinks.ts';
import { elsewhere, type LiveSink, type StoredStatus } from './status-facts.ts';

/** From best to worst. */
const states = ['new', 'idle', 'sending', 'retrying', 'stopped', 'refused'];
const reasonsMax = 10;

/** One status from several; if there is none, the status of a starting or standby process. */
export function joinedMoment(
  moments: readonly StatusMoment[],
  maxBytes: number,
  waits: string | null,
): StatusMoment {
  const [first] = moments;
  if (first === undefined) return idleMoment(maxBytes, waits);
  const all = <Key extends keyof StatusMoment>(key: Key) => moments.map((moment) => moment[key]);
  const sum = (counts: readonly (number | null)[]) =>
    counts.reduce<number>((total, count) => total + (count ?? 0), 0);
  const sinks = Map.groupBy(all('sinks').flat(), ({ name }) => name);
  const lost = all('logLinesLost');
  return {
    upstreams: all('upstreams').flat(),
    streams: all('streams').flat(),
    spool: {
      well: moments.every(({ spool }) => spool.well),
      bytes: sum(all('spool').map(({ bytes }) => bytes)),
      max_bytes: sum(all('spool').map((spool) => spool.max_bytes)),
      events: sum(all('spool').map(({ events }) => events)),
      end: sum(all('spool').map(({ end }) => end)),
      oldest_at: earliest(all('spool').flatMap((spool) => spool.oldest_at ?? [])),
      full_in_ms: null,
    },
    sinks: [...sinks.values()].map(joinedSink),
    conditions: all('conditions')
      .flat()
      .toSorted((a, b) => b.observed_at.localeCompare(a.observed_at)),
    filters: [
      ...Map.groupBy(all('filters').flat(), (one) => `${one.route} ${one.source}`).values(),
    ].map((of) => ({
      ...(of[0] as (typeof of)[number]),
      failures: sum(of.map((one) => one.failures)),
      why: of.find((one) => one.why !== null)?.why ?? null,
    })),
    transcoded: all('transcoded').flat(),
    lookups: all('lookups').flat(),
    removed_sinks: joinedRemoved(all('removed_sinks')),
    successions: all('successions').flat(),
    unread_times: all('unread_times').flat(),
    config_differences: [...new Set(all('config_differences').flat())],
    reload_refused: moments.find((one) => one.reload_refused !== null)?.reload_refused ?? null,
    standing_by: null,
    intervals: new Map(all('intervals').flatMap((one) => [...one])),
    refused: new Map(
      [...sinks.keys()].map((name) => [name, sum(all('refused').map((one) => one.get(name) ?? 0))]),
    ),
    found: all('found').flat(),
    logLinesLost: lost.every((one) => one === null) ? null : sum(lost),
  };
}

function joinedSink(parts: readonly LiveSink[]): LiveSink {
  const due = parts.flatMap((part) => part.due_in_ms ?? []);
  return {
    ...joinedParts(parts),
    delivered: parts.reduce((total, { delivered }) => total + delivered, 0),
    retries: parts.reduce((total, { retries }) => total + retries, 0),
    due_in_ms: due.length === 0 ? null : Math.max(...due),
    dead_letter_reasons: parts.flatMap((part) => part.dead_letter_reasons).slice(0, reasonsMax),
  };
}

/** The joint facts of a sink from all parts that have it here; if none has it, only its name. */
function joinedParts<T extends StoredStatus['sinks'][number]>(all: readonly T[]): T {
  const here = all.filter(({ state }) => state !== elsewhere);
  const parts = here.length === 0 ? all : here;
  const sum = (count: (part: T) => number) => parts.reduce((total, part) => total + count(part), 0);
  const [worst] = parts.toSorted((a, b) => states.indexOf(b.state) - states.indexOf(a.state));
  const upTo = parts.flatMap((part) => part.up_to ?? []);
  return {
    ...(worst as T),
    position: sum(({ position }) => position),
    backlog: sum(({ backlog }) => backlog),
    up_to: upTo.length < parts.length ? null : earliest(upTo),
    dead_letters: sum((part) => part.dead_letters),
    error: parts.find(({ error }) => error !== null)?.error ?? null,
    notice: parts.find(({ notice }) => notice !== null)?.notice ?? null,
    set_aside: parts.flatMap(({ set_aside }) => set_aside),
    suspects: joinedSuspects(parts.flatMap(({ suspects }) => suspects ?? [])),
  };
}

function joinedSuspects(
  all: readonly NonNullable<StoredStatus['sinks'][number]['suspects']>[],
): StoredStatus['sinks'][number]['suspects'] {
  if (all.length === 0) return null;
  return {
    events: all.reduce((sum, { events }) => sum + events, 0),
    refused: all.reduce((sum, { refused }) => sum + refused, 0),
    stuck: all.some(({ stuck }) => stuck),
    first: all.flatMap(({ first }) => first).slice(0, reasonsMax),
  };
}

/** The same for stored statuses of the shards. */
export function joinedStatus(parts: readonly StoredStatus[]): StoredStatus {
  const [first] = parts as readonly [StoredStatus];
  if (parts.length === 1) return first;
  const sum = (count: (part: StoredStatus) => number) =>
    parts.reduce((total, part) => total + count(part), 0);
  const [streams, orphans] = [new Set<string>(), new Set<string>()];
  for (const { orphans: of } of parts) {
    for (const name of of.streams) streams.add(name);
    for (const name of of.sinks) orphans.add(name);
  }
  const bytes = parts.map(({ spool }) => spool.bytes);
  return {
    ...first,
    running: parts.find(({ running }) => running !== null)?.running ?? null,
    reload_refused: parts.find((part) => part.reload_refused !== null)?.reload_refused ?? null,
    streams: parts.flatMap((part) => part.streams),
    spool: {
      bytes: bytes.includes(null) ? null : sum(({ spool }) => spool.bytes ?? 0),
      max_bytes: sum(({ spool }) => spool.max_bytes),
      events: sum(({ spool }) => spool.events),
      oldest_at: earliest(parts.flatMap(({ spool }) => spool.oldest_at ?? [])),
    },
    sinks: joinedSinks(parts),
    orphans: { streams: [...streams], sinks: [...orphans] },
    lookups: parts.flatMap(({ lookups }) => lookups),
    upstreams: parts.flatMap(({ upstreams }) => upstreams),
    removed_sinks: joinedRemoved(parts.map((part) => part.removed_sinks)),
    successions: parts.flatMap(({ successions }) => successions),
  };
}

/** The sinks of several shards, each as one. */
export function joinedSinks(parts: readonly Pick<StoredStatus, 'sinks'>[]): StoredStatus['sinks'] {
  const all = parts.flatMap(({ sinks }) => sinks);
  return [...Map.groupBy(all, ({ name }) => name).values()].map(joinedParts);
}

/** The earliest of RFC 3339 times in UTC. */
function earliest(times: readonly string[]): string | null {
  return times.toSorted()[0] ?? null;
}

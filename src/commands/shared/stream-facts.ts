// The lines of `sluice explain` about a stream: its next poll, its checkpoint of a list or a collection, and the limits
// that slow it down. Nothing is requested here.

import type { Config } from '../../config/index.ts';
import { isObject, type Json, type PushStream, type Stream } from '../../contracts/index.ts';
import { type PlannedSource, timetable } from '../../fetch/engine.ts';
import { type ListCheckpoint, parseListCheckpoint } from '../../fetch/index.ts';
import { counted } from '../../terminal/index.ts';
import {
  agoText,
  epochOf,
  spanText,
  startText,
  systemClock,
  untilText,
} from '../../tools/index.ts';
import {
  type CheckpointFacts,
  type LiveStatus,
  type LiveStream,
  roomInSpool,
  type StoredStream,
} from '../../watch/index.ts';

/** All known facts about a stream, from the database and the running process. */
export interface KnownStream {
  readonly source: PlannedSource;
  readonly stream: Stream;
  readonly config: Config;
  /** The running process; null: none. */
  readonly running: string | null;
  /** If no state was found: a clause with the searched locations; else empty. */
  readonly missing: string;
  /** From the running process, else from the database. */
  readonly stands: StoredStream;
  /** From the running process; null: none that answers. */
  readonly live: LiveStream | null;
  readonly reported: LiveStatus | null;
  /** Why the process did not answer; empty: it did, or nothing runs. */
  readonly silence: string;
  readonly held: CheckpointFacts | null;
  /** The stored checkpoint. */
  readonly checkpoint: Json | null;
  readonly now: number;
}

/** The parents of a stream, as status shows them. */
export function parentsText({ known, active, lost, ended, due }: Parents): string {
  const some = { active, lost, ended, due };
  const parts = Object.entries(some).flatMap(([what, n]) => (n === 0 ? [] : [`${n} ${what}`]));
  return [counted(known, 'parent'), ...parts].join(', ');
}

/** How long the parents of a stream wait for their turns. */
export function rotationText({ rotation_ms: ms }: Parents): string {
  return ms === null ? 'not finished yet' : spanText(ms);
}

type Parents = NonNullable<StoredStream['parents']>;

type Fact = readonly [name: string, value: string];

/** The facts of a stream, in the order in which they are shown. */
export function streamFacts(known: KnownStream): readonly Fact[] {
  const { config, source, stream, running, missing, stands, live, now } = known;
  const type = config.sources[source.name]?.settings.type;
  return [
    ['read from', `${type} of upstream ${source.upstream}, ${scheduleText(known)}`],
    ['running', running ?? `no${missing}`],
    ...readFacts(known),
    ...transcodedFacts(known),
    ['next poll', nextPollText(known)],
    ['caught up', agoText(epochOf(stands.caught_up_at), now)],
    ['checkpoint', checkpointText(known)],
    ...(stream.kind === 'list' ? orderFacts(known) : []),
    ...(stream.kind === 'collection' ? collectionFacts(known) : []),
    ...(stream.kind === 'push' ? pushFacts(known, stream) : []),
    ...(stream.kind === 'parents' ? parentsFacts(known) : []),
    ...budgetFacts(live),
    ...errorFacts(live ?? stands),
  ];
}

function readFacts({ live, reported }: KnownStream): readonly Fact[] {
  if (live === null || reported === null) return [];
  const read = `${counted(live.records, 'record')} in ${counted(live.polls, 'poll')}`;
  return [['read', `${read} since ${reported.started_at}; ${live.records_per_s} a second now`]];
}

/** Of the source, since all its streams have records of the same kind. */
function transcodedFacts({ source, reported }: KnownStream): readonly Fact[] {
  const counts = reported?.transcoded.find((one) => one.source === source.name);
  if (counts === undefined) return [];
  const { written, unknown, refused } = counts;
  const all = written + unknown + refused;
  const share = all === 0 ? 0 : Math.floor((written / all) * 1_000) / 10;
  const others = `${unknown} of a shape not learned yet, ${refused} with an unusual value`;
  return [['copied', `${share} % of ${counted(all, 'line')} of ${source.name}; ${others}`]];
}

function scheduleText({ source: { schedule }, stands }: KnownStream): string {
  if ('everyMs' in schedule) {
    const { everyMs, minMs } = schedule;
    if (minMs === undefined) return `every ${shortText(everyMs)}`;
    const now = stands.interval_ms ?? null;
    const present = now === null ? '' : `, now ${shortText(now)}`;
    return `every ${shortText(minMs)} to ${shortText(everyMs)}${present}`;
  }
  const zone = schedule.timezone === undefined ? '' : ` in ${schedule.timezone}`;
  return `at ${schedule.cron}${zone}`;
}

function shortText(ms: number): string {
  return ms < 1_000 ? `${Math.round(ms)}ms` : spanText(ms);
}

function nextPollText(known: KnownStream): string {
  const { source, running, stands, live, now } = known;
  const { state } = stands;
  if (running === null) return 'none: nothing runs';
  if (state === 'polling') return 'under way';
  if (stands.waits_for === roomInSpool) return 'once there is room in the spool';
  const at = epochOf(stands.next_poll_at);
  const repaired = 'in case it was repaired meanwhile; at once when its config changes';
  if (at !== null) {
    const when = untilText(at, now, 'as soon as it is its turn');
    return state === 'halted' ? `${when}, ${repaired}` : when;
  }
  if (state === 'retrying') return 'after a wait that grows from failure to failure';
  if (state === 'halted') return `by itself, ${repaired}`;
  const { schedule } = source;
  if (!('everyMs' in schedule)) {
    return `in about ${spanText(timetable(schedule, systemClock()).untilNext(0))}`;
  }
  const polledAt = epochOf(live?.polled_at ?? null);
  if (polledAt === null) return `every ${spanText(schedule.everyMs)}`;
  return `in about ${spanText(polledAt + schedule.everyMs - now)}`;
}

function checkpointText({ source, held, now }: KnownStream): string {
  if (held === null) return `none: it starts ${startText(source.list?.start)}`;
  const resume = held.resume === null ? '' : `; resumes at ${held.resume}`;
  return `saved ${agoText(held.savedAt, now)}${resume}`;
}

function orderFacts({ source, held, checkpoint, now }: KnownStream): readonly Fact[] {
  const list = parseListCheckpoint(checkpoint);
  const order = list?.growth.order ?? 'unknown';
  const learned = learnedText(order, list?.growth.learnedAt ?? null, now);
  return [
    ['order', source.list?.order === 'auto' ? learned : pinnedText(order)],
    // New records of a list that grows at its start never come in behind the checkpoint.
    ...(order === 'newest_first'
      ? []
      : [['tail', tailText(list?.end.provenAt ?? null, now)] as const]),
    ['latest record', agoText(held?.watermark, now)],
    ['read whole', wholeText(list, now)],
  ];
}

const pinnedText = (order: string) => `${order}, as the config says`;

/** Checkpoints of older versions do not have the time. */
function learnedText(order: string, learnedAt: number | null, now: number): string {
  const when = learnedAt === null ? '' : ` ${agoText(learnedAt, now)}`;
  if (order !== 'unknown') return `${order}, learned${when} from where new records came in`;
  return 'not known yet: sluice requests both ends of the list until new records show the order';
}

function tailText(provenAt: number | null, now: number): string {
  return provenAt !== null
    ? `proven: new records came in behind the checkpoint ${agoText(provenAt, now)}`
    : 'not proven: none came in behind the checkpoint yet, so the whole list is read again now and then';
}

function wholeText(list: ListCheckpoint | null, now: number): string {
  const last = list?.whole.swept === true ? agoText(list.looked.sweptAt, now) : 'not yet';
  const scan = list?.whole.round ?? null;
  return scan === null ? last : `${last}; again since ${agoText(scan.begunAt, now)}`;
}

/** Paths that are named one by one. */
const pathsShownMax = 20;

function comparedFacts({ stands }: KnownStream): readonly Fact[] {
  const { volatile = [], unstable, flaps = 0 } = stands.compared ?? {};
  const paths = volatile.slice(0, pathsShownMax).map(({ kind, path }) => `${path} of ${kind}`);
  const more = volatile.length - paths.length;
  const [first] = unstable?.examples ?? [];
  const example = first === undefined ? '' : `, such as ${first.path} of ${first.kind} ${first.id}`;
  return [
    ...(paths.length === 0
      ? []
      : [
          [
            'volatile',
            `${paths.join(', ')}${more > 0 ? ` and ${more} more` : ''}; not compared`,
          ] as const,
        ]),
    ...(unstable === undefined || unstable.entities === 0
      ? []
      : [['unstable', `${unstable.entities} differ at each reading${example}`] as const]),
    ...(flaps === 0
      ? []
      : [['flaps', `${flaps} values went back to the reported one within settle`] as const]),
  ];
}

function collectionFacts(known: KnownStream): readonly Fact[] {
  const { checkpoint } = known;
  const facts = isObject(checkpoint) ? checkpoint : {};
  return [
    ...comparedFacts(known),
    ['readings', String(facts.generation ?? 0)],
    ['incomplete', `${facts.incomplete ?? 0} in a row`],
    ...(facts.suspect === true
      ? [['removals', 'held: more is missing at once than the brake allows'] as const]
      : []),
  ];
}

function parentsFacts({ stands, source }: KnownStream): readonly Fact[] {
  const { parents } = stands;
  if (parents === undefined) return [];
  const sweep = `; at most ${spanText(source.parents?.sweepMs ?? 0)} is the target`;
  return [
    ['parents', parentsText(parents)],
    ['rotation', `${rotationText(parents)}${sweep}`],
  ];
}

function pushFacts({ live }: KnownStream, { listen, rules }: PushStream): readonly Fact[] {
  const { host, port, path, tls } = listen;
  const counts = Object.entries(live?.deliveries ?? {});
  return [
    ['listens on', `${host}:${port}${path}${tls === undefined ? '' : ', with TLS'}`],
    ['signature', `${rules.signatureHeader}, by any of ${counted(rules.secrets.length, 'secret')}`],
    ['deliveries', counts.map(([what, n]) => `${n} ${what}`).join(', ') || 'none yet'],
  ];
}

function budgetFacts(live: LiveStream | null): readonly Fact[] {
  const budget = live?.budget ?? null;
  if (budget === null) return [];
  const { path, limit, remaining, wait_ms: waitMs } = budget;
  const left =
    remaining === null ? [] : [`${remaining}${limit === null ? '' : ` of ${limit}`} requests left`];
  const wait = waitMs > 0 ? `next request in ${spanText(waitMs)}` : 'no wait';
  return [['limit', `${path}: ${[...left, wait].join(', ')}`]];
}

function errorFacts({ error }: StoredStream | LiveStream): readonly Fact[] {
  if (error === null) return [['last error', 'none']];
  const { code, message, next: _, ...ids } = error;
  return [
    ['last error', `${code}: ${message}`],
    ...Object.entries(ids).filter((id): id is [string, string] => typeof id[1] === 'string'),
  ];
}

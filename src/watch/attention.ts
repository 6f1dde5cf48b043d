// The matters that need an operator, most severe first, each with its next step: causes that stop the export (`bad`),
// and harmless ones that wait for a decision (`warn`), such as dead letters, gaps and ending upstreams. The rules are
// the same for a running process and for a stored state; only a history allows waiting for a failure to pass.
// Invariants: a thousand streams that fail for one reason are one matter; if nothing needs a person, the list is empty.

import { painted } from '../terminal/index.ts';
import { cleanText } from '../tools/index.ts';
import { ailmentGroups } from './by-company.ts';
import { type Ailment, ailmentsAtOnce, doubts } from './health.ts';
import { removedInTheWay, removedMatters } from './removed-sinks.ts';
import type {
  LiveStatus,
  Matter,
  StatusFacts,
  StoredStatus,
  StoredUpstream,
} from './status-facts.ts';
import { successionMatters } from './successions.ts';
import { endMatters } from './upstream-ends.ts';

/** The parts of a status that attention uses; an absent part is unknown. */
export interface AttentionFacts
  extends Partial<
    Pick<
      LiveStatus,
      | 'reload_refused'
      | 'conditions'
      | 'filters'
      | 'lookups'
      | 'removed_sinks'
      | 'successions'
      | 'config_differences'
      | 'standing_by'
      | 'unread_times'
      | 'deployment_changed'
      | 'shards'
    >
  > {
  readonly streams: readonly (Pick<StatusFacts['streams'][number], 'name' | 'state' | 'error'> &
    Partial<Pick<StatusFacts['streams'][number], 'silent_since' | 'compared'>>)[];
  readonly spool: Pick<StoredStatus['spool'], 'bytes' | 'max_bytes'> &
    Partial<Pick<LiveStatus['spool'], 'full_in_ms'>>;
  readonly sinks: readonly (Omit<
    StatusFacts['sinks'][number],
    'type' | 'position' | 'up_to' | 'suspects' | 'set_aside'
  > &
    Partial<Pick<LiveStatus['sinks'][number], 'dead_letter_reasons' | 'suspects' | 'set_aside'>>)[];
  readonly upstreams?: readonly StoredUpstream[];
}

/** The context of the judgement. */
interface Judging {
  /** The ailments by history; undefined: every failure is reported. */
  readonly ailments?: readonly Ailment[];
  /** Epoch milliseconds. */
  readonly now?: number;
  /** A command line in the form that its reader can run. */
  readonly command?: (command: string, ...words: readonly string[]) => string;
}

/** All matters. */
export function attentionOf(
  statusView: AttentionFacts,
  {
    ailments = ailmentsAtOnce(statusView),
    now = Date.now(),
    command = (...words) => ['sluice', ...words].join(' '),
  }: Judging = {},
): readonly Matter[] {
  return [
    ...ailingMatters(ailments, statusView),
    ...partMatters(statusView, ailments),
    ...silenceMatters(statusView),
    ...unstableMatters(statusView),
    ...reloadMatters(statusView),
    ...standByMatters(statusView),
    ...deploymentMatters(statusView),
    ...spoolMatters(statusView, ailments),
    ...suspectMatters(statusView, ailments),
    ...asideMatters(statusView),
    ...deadLetterMatters(statusView, command),
    ...removedMatters(statusView.removed_sinks ?? [], command),
    ...successionMatters(statusView.successions ?? [], command),
    ...differenceMatters(statusView),
    ...noticeMatters(statusView),
    ...conditionMatters(statusView, ailments, now),
    ...filterMatters(statusView),
    ...lookupMatters(statusView),
    ...timeMatters(statusView),
    ...endMatters(statusView.upstreams ?? [], command),
  ].toSorted((a, b) => Number(a.mood === 'warn') - Number(b.mood === 'warn'));
}

/** How many matters are shown, and for which terminal. */
interface Telling {
  readonly most?: number;
  readonly stream?: NodeJS.WriteStream;
}

/** Lines for a person, two for each of `most` matters; one line if there are none. */
export function attentionLines(
  matters: readonly Matter[],
  { most = mattersShownMax, stream = process.stdout }: Telling = {},
): readonly string[] {
  if (matters.length === 0) return [painted('nothing needs attention', 'good', stream)];
  const lines = matters.slice(0, most).flatMap(({ mood, who, what, message, next }) => {
    const mark = painted(mood === 'bad' ? '!!' : ' !', mood, stream);
    const text = `${who} ${what}${message === null ? '' : `: ${message}`}`;
    return [
      `${mark} ${painted(cleanText(text, lengthMax), mood, stream)}`,
      ...(next === null ? [] : [`   ${cleanText(next, lengthMax)}`]),
    ];
  });
  const more = matters.length - most;
  return more > 0 ? [...lines, `   and ${more} more, below`] : lines;
}

const mattersShownMax = 12;
const lengthMax = 500;

function reloadMatters({ reload_refused: refused }: AttentionFacts): readonly Matter[] {
  if (!refused) return [];
  const what = `was not loaded at ${refused.at}: the previous config runs`;
  return [{ mood: 'bad', who: 'The config', what, message: refused.message, next: refused.next }];
}

function standByMatters({ standing_by: message }: AttentionFacts): readonly Matter[] {
  if (!message) return [];
  const next = 'It takes over when that process ends; sluice cluster shows every process.';
  return [{ mood: 'warn', who: 'This process', what: 'stands by', message, next }];
}

function deploymentMatters({ deployment_changed: message }: AttentionFacts): readonly Matter[] {
  if (!message) return [];
  const next =
    'Check that the state in Kafka belongs to this deployment. If so, do nothing: the change is stored.';
  const what = 'has other upstreams than the state in Kafka had at the start';
  return [{ mood: 'warn', who: 'The config', what, message, next }];
}

const namesMax = 5;

function ailingMatters(
  ailments: readonly Ailment[],
  statusView: AttentionFacts,
): readonly Matter[] {
  return ailmentGroups(ailments).map(({ ailments: group, company }): Matter => {
    const [{ part, name, reason, what, error }] = group;
    const mood = reason === 'not_read' || reason === 'not_taking' ? 'warn' : 'bad';
    const reported: Pick<Matter, 'message' | 'next'> = {
      message: error?.message ?? null,
      next: error?.next ?? null,
    };
    if (part === 'spool') {
      return { mood, who: 'The spool', what, message: null, next: makeRoom(statusView) };
    }
    if (part === 'shard' && error === null) {
      reported.next = 'The log of this process says why; the worker is started again by itself.';
    }
    if (group.length === 1) return { mood, who: `${titles[part]} ${name}`, what, ...reported };
    const count = `${group.length.toLocaleString('en')} ${part}s`;
    const who = company === null ? count : `${count} of company ${company}`;
    const names = listed(group.map((one) => one.name));
    if (company !== null) return { mood: 'bad', who, what: `are not read: ${names}`, ...reported };
    return { mood, who, what: `${together[reason]}: ${names}`, ...reported };
  });
}

const titles = { shard: 'Shard', stream: 'Stream', sink: 'Sink' } as const;

/** The clause for several parts at once. */
const together: Readonly<Record<Ailment['reason'], string>> = {
  not_running: 'do not run: their processes start, or end by themselves',
  halted: 'are halted',
  not_advancing: 'have not advanced for long',
  refused: 'refuse everything; their events stay in the spool',
  stopped: 'accept no more events',
  not_delivering: 'have accepted nothing for long',
  full: 'are full',
  not_read: 'are not read',
  not_taking: 'accept nothing; their events stay in the spool',
};

/** Streams that continue with a doubt, which does not resolve itself. */
function partMatters({ streams }: AttentionFacts, ailments: readonly Ailment[]): readonly Matter[] {
  const reported = new Set(ailments.map(({ part, name }) => part === 'stream' && name));
  const doubted = streams.flatMap(({ name, error }) => {
    const what = doubts.get(error?.code ?? '');
    return error === null || what === undefined || reported.has(name)
      ? []
      : [{ name, error, what }];
  });
  const alike = Map.groupBy(doubted, ({ error: { code, next } }) => JSON.stringify([code, next]));
  return Array.from(alike.values(), (group): Matter => {
    const [{ name, error, what }] = group as [(typeof doubted)[number]];
    const { message, next } = error;
    if (group.length === 1) return { mood: 'bad', who: `Stream ${name}`, what, message, next };
    const who = `${group.length.toLocaleString('en')} streams`;
    const names = listed(group.map((one) => one.name));
    return {
      mood: 'bad',
      who,
      what: `${what.replace(/^refuses/, 'refuse')}: ${names}`,
      message,
      next,
    };
  });
}

/** One matter for all: a stopped audit trail, or a day without activity. */
function silenceMatters({ streams }: AttentionFacts): readonly Matter[] {
  const silent = streams.filter(({ silent_since: since }) => since);
  const [first] = silent.toSorted((a, b) =>
    String(a.silent_since).localeCompare(String(b.silent_since)),
  );
  if (first === undefined) return [];
  const isOne = silent.length === 1;
  const who = isOne ? `Stream ${first.name}` : `${silent.length.toLocaleString('en')} streams`;
  const what = isOne ? 'is silent' : `are silent: ${listed(silent.map(({ name }) => name))}`;
  const message = `no new record since ${first.silent_since}`;
  const next = 'Check whether upstream still writes these records, or raise expect_every.';
  return [{ mood: 'warn', who, what, message, next }];
}

/** Entities with a value that differs at each reading, each reported again and again. */
function unstableMatters({ streams }: AttentionFacts): readonly Matter[] {
  const unstable = streams.flatMap(({ name, compared }) => {
    const { entities = 0, examples = [] } = compared?.unstable ?? {};
    return entities === 0 ? [] : [{ name, entities, first: examples[0] }];
  });
  // The lists of many companies have the same fields.
  const alike = Map.groupBy(unstable, ({ name, first }) =>
    first === undefined ? name : JSON.stringify([/^[^/]*/.exec(name)?.[0], first.kind, first.path]),
  );
  return Array.from(alike.values(), (group): Matter => {
    const [{ name, first }] = group as [(typeof unstable)[number]];
    const entities = group.reduce((sum, one) => sum + one.entities, 0);
    const who =
      group.length === 1 ? `Stream ${name}` : `${group.length.toLocaleString('en')} streams`;
    const has = group.length === 1 ? 'has' : 'have';
    const names = group.length === 1 ? '' : `: ${listed(group.map((one) => one.name))}`;
    const what = `${has} ${entities.toLocaleString('en')} ${entities === 1 ? 'entity' : 'entities'} with a value that differs at each reading${names}`;
    const message = first === undefined ? null : `${first.path} of ${first.kind} ${first.id}`;
    const next =
      'Each third reading reports it as an update. If it is no change, name its path in ignore of the source.';
    return { mood: 'warn', who, what, message, next };
  });
}

/** From this share on, a spool needs attention. */
const fullShare = 0.8;
/** A spool that will be full sooner than this needs attention. */
const fullSoonMs = 30 * 60_000;

function spoolMatters(statusView: AttentionFacts, ailments: readonly Ailment[]): readonly Matter[] {
  const { bytes: known, max_bytes: bytesMax, full_in_ms: fullInMs = null } = statusView.spool;
  const bytes = known ?? 0;
  const isFull = ailments.some(({ reason }) => reason === 'full');
  const isSoon = fullInMs !== null && fullInMs < fullSoonMs;
  if (isFull || (!isSoon && bytes < bytesMax * fullShare)) return [];
  const minutes = Math.ceil((fullInMs ?? 0) / 60_000);
  const soon = isSoon ? `, and full within ${minutes} min at this pace` : '';
  const what = `is ${Math.floor((bytes / bytesMax) * 100)} % full${soon}`;
  const removed = removedInTheWay(
    statusView.removed_sinks ?? [],
    Math.max(0, ...statusView.sinks.map((sink) => sink.backlog)),
  );
  const next =
    removed === null
      ? `${makeRoom(statusView)} Once it is full, polling waits.`
      : `The removed sink ${removed.name} needs most of its space. If the spool is full, its oldest events are released: add the sink to the config again, or raise state.max_bytes.`;
  return [{ mood: 'warn', who: 'The spool', what, message: null, next }];
}

function makeRoom({ sinks }: AttentionFacts): string {
  const [slowest] = sinks.toSorted((a, b) => b.backlog - a.backlog);
  return `Look why ${slowest?.name ?? 'no sink'} does not accept its events, or raise state.max_bytes.`;
}

function deadLetterMatters(
  { sinks }: AttentionFacts,
  command: NonNullable<Judging['command']>,
): readonly Matter[] {
  return sinks.flatMap(
    ({ name, dead_letters: deadLetters, dead_letter_reasons: reasons }): Matter[] => {
      if (deadLetters === 0) return [];
      const what = `has refused ${eventsText(deadLetters)} for good`;
      const look = command('dead-letters list', '--sink', name);
      const next = `Look why, then send them again or drop them: ${look}`;
      const message = reasons?.[0]?.reason ?? null;
      return [{ mood: 'warn', who: `Sink ${name}`, what, message, next }];
    },
  );
}

/** Events that are rejected while the sink accepts none. */
function suspectMatters(
  { sinks, spool }: AttentionFacts,
  ailments: readonly Ailment[],
): readonly Matter[] {
  const reported = new Set(ailments.flatMap(({ part, name }) => (part === 'sink' ? [name] : [])));
  return sinks.flatMap(({ name, suspects, error }): readonly Matter[] => {
    if (!suspects || (reported.has(name) && !spool.full_in_ms)) return [];
    const minutes = Math.ceil((spool.full_in_ms ?? 0) / 60_000);
    const full = minutes > 0 ? `; the spool is full in ${minutes} min at this rate` : '';
    const what = `keeps ${eventsText(suspects.events)} that its receiver refuses while it accepts no other${full}`;
    const [message, next] = reported.has(name) ? [null, null] : [error?.message, error?.next];
    return [
      { mood: 'warn', who: `Sink ${name}`, what, message: message ?? null, next: next ?? null },
    ];
  });
}

function differenceMatters({ config_differences: all = [] }: AttentionFacts): readonly Matter[] {
  if (all.length === 0) return [];
  const who = `The config of ${all.length === 1 ? 'another process' : `${all.length} other processes`}`;
  const message = all.slice(0, namesMax).join('; ');
  const next =
    'Give every process with this state the same config. Events for a sink that one of them lacks are kept for it.';
  return [{ mood: 'warn', who, what: 'differs from the config here', message, next }];
}

/** Destinations at fault, for which events wait while others are delivered. */
function asideMatters({ sinks }: AttentionFacts): readonly Matter[] {
  return sinks.flatMap(({ name, set_aside = [] }) =>
    set_aside.map(({ destination, events, reason, since }): Matter => {
      const what = `has set ${eventsText(events)} aside since ${since} for ${destination}, which accepts none of its events`;
      const next =
        'Repair the destination that the reason names: the events are sent automatically, in order. Events of other destinations are not delayed.';
      return { mood: 'warn', who: `Sink ${name}`, what, message: reason, next };
    }),
  );
}

function noticeMatters({ sinks }: AttentionFacts): readonly Matter[] {
  return sinks.flatMap(({ name, notice }): readonly Matter[] =>
    notice === null ? [] : [{ mood: 'warn', who: `Sink ${name}`, message: null, ...notice }],
  );
}

/** Conditions cannot be acknowledged; older ones are history. */
const recentMs = 24 * 3_600_000;
/** These have their own matters: a silence while it lasts, the end of an upstream by its date. */
const reportedOtherwise: ReadonlySet<string> = new Set([
  'source.silent',
  'source.heard',
  'source.volume_back',
  'upstream.ends',
]);

/** True for a low volume that is back. */
function isOver(
  { condition, stream, observed_at: at }: NonNullable<AttentionFacts['conditions']>[number],
  all: NonNullable<AttentionFacts['conditions']>,
): boolean {
  if (condition !== 'source.volume_low') return false;
  return all.some(
    (one) =>
      one.condition === 'source.volume_back' && one.stream === stream && one.observed_at >= at,
  );
}

function conditionMatters(
  { conditions = [] }: AttentionFacts,
  ailments: readonly Ailment[],
  now: number,
): readonly Matter[] {
  const ailing = new Set(ailments.flatMap(({ part, name }) => (part === 'stream' ? [name] : [])));
  const recent = conditions
    .filter(
      ({ condition, stream, observed_at: at }) =>
        now - Date.parse(at) < recentMs &&
        !reportedOtherwise.has(condition) &&
        // The line about the stream reports the denial.
        !(condition === 'source.scope_lost' && ailing.has(stream)),
    )
    .filter((one) => !isOver(one, conditions));
  const alike = Map.groupBy(recent, ({ condition }) => condition);
  return Array.from(alike, ([condition, group]): Matter => {
    const streams = [...new Set(group.map(({ stream }) => stream))];
    const where =
      streams.length === 1
        ? `stream ${streams[0]}`
        : `${streams.length.toLocaleString('en')} streams: ${listed(streams)}`;
    const what = `was found in the last day in ${where}`;
    return { mood: 'warn', who: condition, what, message: group[0]?.message ?? null, next: null };
  });
}

/** Look-ups that failed; the stored content stays in use. */
function lookupMatters({ lookups = [] }: AttentionFacts): readonly Matter[] {
  return lookups.flatMap(({ upstream, name, read_at: at, error }): readonly Matter[] => {
    if (error === null) return [];
    const without = at === null ? 'numbers go out without names' : `names are those of ${at}`;
    const who = `Look-up ${name} of ${upstream}`;
    const next = 'It is read again by itself; leave it out of enrich if upstream does not have it.';
    return [{ mood: 'warn', who, what: `cannot be read: ${without}`, message: error, next }];
  });
}

function filterMatters({ filters = [] }: AttentionFacts): readonly Matter[] {
  return filters.flatMap(({ route, source, failures, why }): readonly Matter[] => {
    if (failures === 0) return [];
    const what = `could not judge ${eventsText(failures)} of ${source} since the start, and let them pass`;
    const next =
      'Check its where for attributes that not every event has: has(event.x) tests for one.';
    return [{ mood: 'warn', who: `The filter of ${route}`, what, message: why, next }];
  });
}

/** Streams whose events have the time of their reading, which nothing else shows. */
function timeMatters({ unread_times: unread = [] }: AttentionFacts): readonly Matter[] {
  const bySource = Map.groupBy(unread, ({ source }) => source);
  return Array.from(bySource, ([source, [first, ...others]]): Matter => {
    const { stream = source, path = '', example = '' } = first ?? {};
    const more = others.length === 0 ? '' : ` and ${others.length} more of its streams`;
    return {
      mood: 'warn',
      who: `Stream ${stream}${more}`,
      what: 'has times that cannot be read: its events have the time of their reading',
      message: `${path} is ${JSON.stringify(example)}`,
      next: `Set time of ${source} to the path of the record's time, or time_formats to its form, such as "%d/%m/%Y %H:%M:%S".`,
    };
  });
}

function listed(names: readonly string[]): string {
  const more = names.length - namesMax;
  const shown = names.slice(0, namesMax).join(', ');
  return more > 0 ? `${shown} and ${more.toLocaleString('en')} more` : shown;
}

function eventsText(count: number): string {
  return count === 1 ? '1 event' : `${count.toLocaleString('en')} events`;
}

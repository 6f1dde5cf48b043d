// `sluice explain STREAM`: what one stream is doing, why it waits, and what its operator can do, put together from the state
// directory and, where it can be asked, from the process that runs. What only a running process knows (waits, rates, the
// request's ids) is left out while none answers, and it is said why.

import type { Config } from '../config/config.ts';
import { hint } from '../config/nearest.ts';
import { UsageError } from '../contracts/errors.ts';
import { isObject, type Json } from '../contracts/json.ts';
import type { Stream } from '../contracts/source.ts';
import { type ListCheckpoint, parseCheckpoint } from '../fetch/list/checkpoint.ts';
import { timetable } from '../fetch/schedule.ts';
import { lookInto } from '../hold/store.ts';
import type { PlannedSource } from '../pipeline.ts';
import { commandText } from '../terminal/command-text.ts';
import { counted, factLines, painted, spanText } from '../terminal/table.ts';
import { cleanText } from '../tools/clean-text.ts';
import { systemClock } from '../tools/clock.ts';
import { type Asked, askRunning, type RunningReport } from '../watch/running.ts';
import { notHere, readState, type State, type StreamState, waitsForRoom } from '../watch/state.ts';
import { readConfigAtWork } from './shared/at-work.ts';
import { configOption, defineCommand } from './shared/command.ts';
import { planToLook } from './shared/looking.ts';

/** Explains a stream. */
export const explain = defineCommand({
  name: 'explain',
  about: 'say what a stream is doing, why it waits, and what to do',
  arguments: { stream: { about: 'the stream, as status names it' } },
  options: { config: configOption },
  async run({ stream: name, config: file }, means) {
    const { config } = readConfigAtWork(file, means);
    const { out } = means;
    const { sources } = await planToLook(config);
    const found = find(name, sources);
    const state = readState(config.state.dir);
    const asked = state.holder === null ? null : await askRunning(config);
    const known: Known = {
      ...found,
      config,
      state,
      held: state.streams.get(name) ?? null,
      checkpoint: checkpointOf(config, name),
      asked,
      told: asked?.outcome === 'report' ? asked.report : null,
      now: Date.now(),
    };
    const { doing, next, urgent } = verdictOf(known);
    out(painted(`${name}: ${doing}`, urgent ? 'bad' : 'good'));
    out('');
    for (const line of factLines([...factsOf(known), ['what to do', next]])) out(line);
    for (const line of conditionLines(known)) out(line);
    return 0;
  },
});

interface Known {
  readonly source: PlannedSource;
  readonly stream: Stream;
  readonly config: Config;
  readonly state: State;
  readonly held: StreamState | null;
  /** The checkpoint as it is held. */
  readonly checkpoint: Json | null;
  /** Null: nothing runs. */
  readonly asked: Asked | null;
  readonly told: RunningReport | null;
  readonly now: number;
}

function find(name: string, sources: readonly PlannedSource[]) {
  for (const source of sources) {
    const stream = source.streams.find((one) => one.name === name);
    if (stream !== undefined) return { source, stream };
  }
  const names = sources.flatMap(({ streams }) => streams.map((stream) => stream.name));
  throw new UsageError(`there is no stream ${cleanText(name, 80)}${hint(name, names)}`);
}

function checkpointOf({ state }: Config, stream: string): Json | null {
  return lookInto(state.dir, null, ({ streams }) => streams.recall(stream).checkpoint);
}

type ToldStream = RunningReport['streams'][number];

function toldStream({ told, stream }: Known): ToldStream | undefined {
  return told?.streams.find(({ name }) => name === stream.name);
}

interface Verdict {
  readonly doing: string;
  readonly next: string;
  readonly urgent: boolean;
}

/** The one sentence, and the other one. */
function verdictOf(known: Known): Verdict {
  const { config, state, held, asked } = known;
  const told = toldStream(known);
  const error = told === undefined ? (held?.error ?? null) : told.error;
  if (state.holder === null) {
    const resumes = held?.checkpoint ? 'it goes on from its checkpoint' : 'it has read nothing yet';
    return {
      doing: `is not read, since nothing runs with this config; ${resumes}`,
      next: `${commandText('run', config.file)}${error === null ? '' : `; and for its last error: ${error.next}`}`,
      urgent: error !== null,
    };
  }
  if ((told?.state ?? held?.state) === 'halted') {
    return {
      doing: 'is halted, and waits for an operator; the other streams go on',
      next: error?.next ?? 'Look into the log for why it was halted.',
      urgent: true,
    };
  }
  if (error !== null) {
    return { doing: `fails and is tried again: ${error.message}`, next: error.next, urgent: true };
  }
  if (waitsForRoom(held ?? undefined, state, config)) {
    return {
      doing: 'waits for room in the spool, which is full; nothing is lost',
      next: `Look which sink does not take its events: ${commandText('status', config.file)}; or raise state.max_bytes.`,
      urgent: true,
    };
  }
  if (told === undefined) {
    const why = asked === null || asked.outcome === 'report' ? '' : asked.why;
    return {
      doing: `was ${held?.state ?? 'not read yet'} when it was last noted`,
      next: why === '' ? 'nothing' : `nothing; to see more: ${why}`,
      urgent: false,
    };
  }
  if (told.state === 'polling') {
    const waits = told.waits_for === null ? '' : `, waiting for ${told.waits_for}`;
    return { doing: `is being read${waits}`, next: 'nothing', urgent: false };
  }
  return { doing: `waits for ${told.waits_for ?? 'its turn'}`, next: 'nothing', urgent: false };
}

type Fact = readonly [name: string, value: string];

function factsOf(known: Known): readonly Fact[] {
  const { config, source, stream, state, held, told, now } = known;
  const settings = config.sources[source.name]?.settings;
  const running = toldStream(known);
  const caughtUpAt = running === undefined ? held?.caughtUpAt : epoch(running.caught_up_at);
  return [
    ['read from', `${settings?.type} of upstream ${settings?.upstream}, ${scheduleText(source)}`],
    ['running', state.holder ?? `no${notHere(config)}`],
    ...runningFacts(running, told),
    ['next poll', nextPollText(known)],
    ['caught up', agoText(caughtUpAt, now)],
    ['checkpoint', checkpointText(held, now)],
    ...(stream.kind === 'list' ? orderFacts(known) : snapshotFacts(known)),
    ...budgetFacts(running),
    ...errorFacts(running, held),
  ];
}

function runningFacts(
  running: ToldStream | undefined,
  told: RunningReport | null,
): readonly Fact[] {
  if (running === undefined || told === null) return [];
  const { records, polls, records_per_s: rate } = running;
  return [
    [
      'read',
      `${counted(records, 'record')} in ${counted(polls, 'poll')} since ${told.started_at}; ${rate} a second now`,
    ],
  ];
}

function scheduleText({ schedule }: PlannedSource): string {
  if ('everyMs' in schedule) {
    const { everyMs } = schedule;
    return `every ${everyMs < 1_000 ? `${everyMs}ms` : spanText(everyMs)}`;
  }
  const zone = schedule.timezone === undefined ? '' : ` in ${schedule.timezone}`;
  return `at ${schedule.cron}${zone}`;
}

function nextPollText(known: Known): string {
  const { config, source, state, held, now } = known;
  const running = toldStream(known);
  if (state.holder === null) return 'none: nothing runs';
  const noted = running?.state ?? held?.state;
  if (noted === 'polling') return 'under way';
  if (waitsForRoom(held ?? undefined, state, config)) return 'once there is room in the spool';
  const at = running === undefined ? held?.nextPollAt : epoch(running.next_poll_at ?? null);
  if (at !== null && at !== undefined) {
    const mended =
      noted === 'halted'
        ? ', in case it was mended meanwhile; at once when its config changes'
        : '';
    return `${at <= now ? 'as soon as it is its turn' : `in ${spanText(at - now)}`}${mended}`;
  }
  if (noted === 'retrying') return 'after a wait that grows from failure to failure';
  if (noted === 'halted') {
    return 'by itself, in case it was mended meanwhile; at once when its config changes';
  }
  const { schedule } = source;
  if (!('everyMs' in schedule)) {
    return `in about ${spanText(timetable(schedule, systemClock()).untilNext(0))}`;
  }
  const polledAt = epoch(running?.polled_at ?? null);
  if (polledAt === null) return `every ${spanText(schedule.everyMs)}`;
  return `in about ${spanText(polledAt + schedule.everyMs - now)}`;
}

function checkpointText(held: StreamState | null, now: number): string {
  const checkpoint = held?.checkpoint ?? null;
  if (checkpoint === null) return 'none: it starts from the beginning';
  const resume = checkpoint.resume === null ? '' : `; resumes at ${checkpoint.resume}`;
  return `saved ${agoText(checkpoint.savedAt, now)}${resume}`;
}

function orderFacts({ source, held, checkpoint, now }: Known): readonly Fact[] {
  const list = parseCheckpoint(checkpoint);
  const order = list?.growth.order ?? 'unknown';
  const learned = learnedText(order, list?.growth.learnedAt ?? null, now);
  return [
    ['order', source.list?.order === 'auto' ? learned : pinnedText(order)],
    // New records of a list that grows at its start never come in behind the checkpoint.
    ...(order === 'newest_first'
      ? []
      : [['tail', tailText(list?.end.provenAt ?? null, now)] as const]),
    ['latest record', agoText(held?.checkpoint?.watermark, now)],
    ['read whole', wholeText(list, now)],
  ];
}

const pinnedText = (order: string) => `${order}, as the config says`;

/** Checkpoints of older versions do not say when it was learned. */
function learnedText(order: string, learnedAt: number | null, now: number): string {
  const when = learnedAt === null ? '' : ` ${agoText(learnedAt, now)}`;
  if (order !== 'unknown') return `${order}, learned${when} from where new records came in`;
  return 'not known yet: both ends of the list are asked until new records have shown it';
}

function tailText(provenAt: number | null, now: number): string {
  return provenAt !== null
    ? `proven: new records came in behind the checkpoint ${agoText(provenAt, now)}`
    : 'not proven: none came in behind the checkpoint yet, so the whole list is read again now and then';
}

function wholeText(list: ListCheckpoint | null, now: number): string {
  const last = list?.whole.swept === true ? agoText(list.looked.sweptAt, now) : 'not yet';
  const round = list?.whole.round ?? null;
  return round === null ? last : `${last}; again since ${agoText(round.begunAt, now)}`;
}

function snapshotFacts({ checkpoint }: Known): readonly Fact[] {
  const facts = isObject(checkpoint) ? checkpoint : {};
  return [
    ['readings', String(numberOf(facts.generation) ?? 0)],
    ['incomplete', `${numberOf(facts.incomplete) ?? 0} in a row`],
    ...(facts.suspect === true
      ? [['removals', 'held: more is missing at once than the brake allows'] as const]
      : []),
  ];
}

function budgetFacts(running: ToldStream | undefined): readonly Fact[] {
  const budget = running?.budget;
  if (budget === undefined || budget === null) return [];
  const { path, limit, remaining, wait_ms: waitMs } = budget;
  const left =
    remaining === null ? [] : [`${remaining}${limit === null ? '' : ` of ${limit}`} requests left`];
  const wait = waitMs > 0 ? `next request in ${spanText(waitMs)}` : 'no wait';
  return [['limit', `${path}: ${[...left, wait].join(', ')}`]];
}

function errorFacts(running: ToldStream | undefined, held: StreamState | null): readonly Fact[] {
  if (running === undefined) {
    const error = held?.error ?? null;
    return [['last error', error === null ? 'none' : `${error.code}: ${error.message}`]];
  }
  if (running.error === null) return [['last error', 'none']];
  const { code, message, upstream_code, request_id, trace_id } = running.error;
  return [
    ['last error', `${code}: ${message}`],
    ...Object.entries({ upstream_code, request_id, trace_id }).flatMap(([name, value]) =>
      typeof value === 'string' ? [[name, value] as const] : [],
    ),
  ];
}

const conditionsMax = 5;

/** What was found about the source lately, which its sinks were told as well. */
function conditionLines({ told, stream }: Known): readonly string[] {
  const found = told?.conditions.filter((one) => one.stream === stream.name) ?? [];
  return found
    .slice(0, conditionsMax)
    .map(({ observed_at: at, condition, message }) =>
      painted(cleanText(`${at}  ${condition}: ${message}`, 500), 'warn'),
    );
}

function numberOf(value: Json | undefined): number | null {
  return typeof value === 'number' ? value : null;
}

function epoch(text: string | null): number | null {
  return text === null ? null : Date.parse(text);
}

function agoText(at: number | null | undefined, now: number): string {
  return at === null || at === undefined || at === 0 ? 'never' : `${spanText(now - at)} ago`;
}

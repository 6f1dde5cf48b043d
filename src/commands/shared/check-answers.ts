// The connections of `check --connect`, one after the other: this machine, Kafka if the state is there, upstreams, each
// stream of each source once, and sinks. Invariants: nothing is stored, and advice fits a check, which does not retry
// by itself.

import type { Config } from '../../config/index.ts';
import type { HostPort, Inspection } from '../../contracts/config.ts';
import {
  asExportError,
  ExportError,
  type Json,
  type ParsedRecord,
  type Tools,
} from '../../contracts/index.ts';
import type { PlannedSource } from '../../fetch/engine.ts';
import { holderOf } from '../../hold/index.ts';
import type { BootTools, UpstreamClient, WholePlan } from '../../run/index.ts';
import type { PlannedSink } from '../../send/delivery.ts';
import { leadsTo } from '../../send/index.ts';
import { painted } from '../../terminal/index.ts';
import { askParents, askStream } from './ask-upstream.ts';
import type { MovesKnown } from './check-moves.ts';
import { routeText } from './check-route.ts';
import { failureText } from './command.ts';

/** Long enough for a slow proxy, short enough to wait for. */
const answerWithinMs = 30_000;
const noAnswer = `no answer within ${answerWithinMs / 1_000} s`;

/** A question to a receiver, why its answer is a fault, and whether no answer was possible. */
export type ProbeCheck = readonly [what: string, cause: ExportError | null, isUnseen?: boolean];

export function answerText([what, cause, isUnseen = false]: ProbeCheck): string {
  if (isUnseen) return `${painted('note', 'warn')}  ${what}`;
  if (cause === null) return `${painted('ok', 'good')}    ${what}`;
  return `${painted('FAIL', 'bad')}  ${what}: ${failureText(afterCheck(cause))}`;
}

/** Retries that a running process would make; a check that has ended makes none. */
const retries =
  /again by (itself|themselves)|reading resumes|nothing (is|was) (to be done|lost)|(is|are) sent again|stay held/i;

/** The same failure with the advice that holds after a command that does not retry. */
export function afterCheck(cause: ExportError): ExportError {
  const clauses = cause.next.split(/(?<=[.;])\s+|, and (?=nothing)/);
  const kept = clauses.filter((clause) => !retries.test(clause));
  const advice = kept
    .join(' ')
    .replace(/ if it lasts\b/, '')
    .replace(/[;,]?$/, '')
    .replace(/(?<![.])$/, '.')
    .replace(/^./, (first) => first.toUpperCase());
  const next =
    kept.length === 0
      ? 'Check address, network and TLS settings, then run the check again.'
      : advice;
  return new ExportError(cause.code, cause.message, { next, details: cause.details, cause });
}

/** The scope of a check beside the config. */
export interface Wishes {
  readonly tools: BootTools;
  readonly setup?: boolean | undefined;
  readonly sendTest?: boolean | undefined;
  readonly sink?: string | undefined;
  /** Undefined: no source has moved. */
  readonly moves?: Pick<MovesKnown, 'moved' | 'hasMoved' | 'deadStarts'>;
}

/** One after the other, as they answer: this machine, then upstreams, sources and sinks. */
export async function* answersOf(
  config: Config,
  plan: WholePlan,
  wishes: Wishes,
): AsyncGenerator<ProbeCheck> {
  if (wishes.sink === undefined) yield* otherAnswers(config, plan, wishes.moves);
  for (const planned of plan.sinks) {
    if (wishes.sink !== undefined && wishes.sink !== planned.name) continue;
    yield* sinkAnswers(planned, plan, { ...wishes, mark: markOf(config, planned) });
  }
}

/** This machine, upstreams and sources. */
async function* otherAnswers(
  config: Config,
  plan: WholePlan,
  moves: Wishes['moves'],
): AsyncGenerator<ProbeCheck> {
  const { checkStateDir, checkListen } = await import('./check-here.ts');
  const { whereItRuns } = await import('./at-work.ts');
  const { config: there, running } = whereItRuns(config);
  yield ['state.dir', checkStateDir(there.state.dir)];
  if (config.state.kafka !== null) yield* clusterAnswers(config);
  // A process that runs with this config has the address already.
  const listen = running === null ? config.status : null;
  if (listen !== null) yield ['status.listen', await checkListen(listen)];
  for (const [name, upstream] of plan.upstreams) {
    yield* routeAnswers(name, upstream);
    const asked = within(async (signal) => {
      const cause = await upstream.authorise(signal);
      if (cause !== null) throw cause;
    });
    const refused = await asked;
    const isMoved = moves?.hasMoved(name) === true;
    yield excused([`upstream ${name}: token`, refused], isMoved);
    const fault = refused === null ? scopeFault(name, upstream) : null;
    if (fault !== null) yield excused([`upstream ${name}: scope`, fault], isMoved);
  }
  const failures = new Map<string, string>();
  for (const source of plan.sources) {
    const isMoved = moves?.moved.has(source.name) === true;
    for await (const answer of sourceAnswers(source, plan, running !== null)) {
      const [what, cause] = answer;
      const stream = source.streams.find(({ name }) => what === `source ${source.name}: ${name}`);
      if (stream !== undefined && cause !== null) failures.set(stream.name, cause.message);
      yield excused(answer, isMoved);
    }
  }
  yield* moves?.deadStarts(failures) ?? [];
}

function* routeAnswers(name: string, upstream: UpstreamClient): Generator<ProbeCheck> {
  try {
    const route = routeText(upstream, process.env);
    if (route !== null) yield [`upstream ${name}: route: ${route}`, null];
  } catch (error) {
    yield [`upstream ${name}: route`, asExportError(error, 'reading the proxy')];
  }
}

/** The end of an API whose successor delivers is no fault. */
function excused(answer: ProbeCheck, isMoved: boolean): ProbeCheck {
  const [what, cause] = answer;
  if (cause === null || !isMoved) return answer;
  return [`${what}: no fault, since the successor delivers: ${cause.message}`, null, true];
}

/** Each stream of a source is polled once, within its throttle. */
async function* sourceAnswers(
  { name, upstream, streams, parents, reading }: PlannedSource,
  plan: WholePlan,
  isRunning: boolean,
): AsyncGenerator<ProbeCheck> {
  // Records of a source are alike: one is enough to find a fault in its settings.
  let isCompared = false;
  for (const stream of streams) {
    if (stream.kind === 'push') {
      if (!isRunning) yield [`source ${name}: listen`, await checkListenOf(stream.listen, name)];
      continue;
    }
    // If the config does not list parents, they are known only after reading.
    const ids = parents !== undefined && 'ids' in parents.each ? parents.each.ids : [];
    if (stream.kind === 'parents' && ids.length === 0) continue;
    const records: ParsedRecord[] = [];
    const cause = await within(async (signal) => {
      const record =
        stream.kind === 'parents'
          ? await askParents(stream, ids, signal)
          : await askStream(stream, signal);
      if (record !== null) records.push(record);
    });
    const waitMs = cause?.message === noAnswer ? longestWait(plan.upstreams.get(upstream)) : 0;
    if (waitMs > 0) {
      const wait = Math.ceil(waitMs / 1_000);
      const what = `source ${name}: ${stream.name}: not polled, its throttle requires a wait of ${wait} s`;
      yield [what, null, true];
      continue;
    }
    yield [`source ${name}: ${stream.name}`, cause];
    const [record] = records;
    if (record === undefined || isCompared) continue;
    isCompared = true;
    const { factsOfRecord } = await import('./record-facts.ts');
    const { faults, notes } = factsOfRecord(name, reading, record);
    for (const fault of faults) yield [`source ${name}: record`, fault];
    for (const note of notes) yield [note, null, true];
  }
}

async function checkListenOf(at: HostPort, source: string): Promise<ExportError | null> {
  const { checkListen } = await import('./check-here.ts');
  return await checkListen(at, `sources.${source}.listen`);
}

function longestWait(upstream: UpstreamClient | undefined): number {
  return Math.max(0, ...(upstream?.state().throttles ?? []).map(({ waitMs }) => waitMs));
}

/** Requested scopes that the token does not have; null: none, or unknown. */
function scopeFault(name: string, upstream: UpstreamClient): ExportError | null {
  const { grantedScope } = upstream.state();
  const granted = new Set(grantedScope?.split(/\s+/));
  const requested = upstream.requestedScope?.split(/\s+/).filter((scope) => scope !== '') ?? [];
  const missing = grantedScope === null ? [] : requested.filter((scope) => !granted.has(scope));
  if (missing.length === 0) return null;
  const what = `upstreams.${name}.auth.scope: upstream did not grant ${missing.join(', ')}`;
  return new ExportError('upstream_refused', what, {
    next: 'Grant the API client these scopes upstream, or remove them from auth.scope.',
  });
}

async function* clusterAnswers(config: Config): AsyncGenerator<ProbeCheck> {
  // Its client takes long to load.
  const { clusterFindings } = await import('../../run/process.ts');
  try {
    for await (const { subject, cause, isNote } of clusterFindings(config, answerWithinMs)) {
      yield [`state.kafka: ${subject}`, cause, isNote === true];
    }
  } catch (error) {
    yield ['state.kafka', asExportError(error, 'reading Kafka')];
  }
}

/** Locks of output files, but for those that a running process of this config has. */
export async function locksBeside(
  config: Config,
  { lockFile }: Pick<Tools, 'lockFile'>,
): Promise<Tools['lockFile']> {
  const { whereItRuns } = await import('./at-work.ts');
  const own = holderOf(whereItRuns(config).config.state.dir);
  // With a state in Kafka each partition has a file of its own, and its process a lock.
  if (lockFile === undefined || config.state.kafka !== null) return undefined;
  return (path, writer) => {
    try {
      return lockFile(path, writer);
    } catch (error) {
      const isOwn = error instanceof ExportError && own !== null && error.details.owner === own;
      if (isOwn) return { release: () => undefined };
      throw error;
    }
  };
}

/**
 * The output files of sinks that another process writes to. The process that runs with the config may write to them;
 * with a state in Kafka each partition has a file of its own.
 */
export async function filesInUse(
  config: Config,
  { sinks }: Pick<WholePlan, 'sinks'>,
): Promise<readonly ProbeCheck[]> {
  if (config.state.kafka !== null) return [];
  const { whereItRuns } = await import('./at-work.ts');
  const { fileInUse } = await import('../../hold/index.ts');
  const own = holderOf(whereItRuns(config).config.state.dir);
  return sinks.flatMap(({ name, definition, settings }): ProbeCheck[] => {
    const path = definition.writes?.(settings);
    const cause = path === undefined ? null : fileInUse(path);
    const isOwn = own !== null && cause?.details.owner === own;
    return cause === null || isOwn ? [] : [[`sink ${name}: file`, cause]];
  });
}

/** The mark that an archive has stored; null: nothing is known. */
async function markOf(config: Config, { name, definition }: PlannedSink): Promise<Json | null> {
  if (definition.takes !== 'pages') return null;
  const { lookInto } = await import('../../hold/index.ts');
  const markIn = (dir: string) => lookInto(dir, null, (store) => store.progress(name).mark);
  const { kafka } = config.state;
  if (kafka === null) {
    const { whereItRuns } = await import('./at-work.ts');
    return markIn(whereItRuns(config).config.state.dir);
  }
  // Another machine may have written the archive since the state was here.
  const { withCopy } = await import('../../operator/index.ts');
  const copied = withCopy(config, { kafka, holder: null }, ({ config: { state } }) =>
    markIn(state.dir),
  );
  // That Kafka cannot be read is reported by itself.
  return await copied.catch(() => null);
}

async function* sinkAnswers(
  planned: PlannedSink,
  plan: WholePlan,
  {
    tools,
    setup = false,
    sendTest = false,
    mark,
  }: Wishes & { readonly mark: Promise<Json | null> },
): AsyncGenerator<ProbeCheck> {
  const { name, definition, settings, format } = planned;
  const asked = within(async (signal) => definition.probe(settings, tools, signal, await mark));
  const refusal = await asked;
  yield [`sink ${name}: connection`, refusal];
  if (refusal === null && definition.inspect !== undefined) {
    let seen: Inspection = { summary: 'its stored data', isSeen: true };
    const lost = await within(async (signal) => {
      seen = (await definition.inspect?.(settings, tools, signal)) ?? seen;
    });
    yield [`sink ${name}: ${seen.summary}`, lost, !seen.isSeen];
  }
  if (setup && definition.setup !== undefined) {
    let made = 'setup';
    const cause = await within(async (signal) => {
      const streams = streamsTo(name, plan);
      made = (await definition.setup?.(settings, format, { tools, signal, streams })) ?? made;
    });
    yield [`sink ${name}: ${made}`, cause];
  }
  if (!sendTest) return;
  const { sendTestEvent } = await import('./send-test.ts');
  const { subject, cause } = await sendTestEvent(planned, plan, tools);
  yield [`sink ${name}: ${subject}`, cause];
}

/** The streams whose events a sink receives. */
function streamsTo(sink: string, { sources, routes }: WholePlan) {
  return sources
    .filter(({ name: source }) => leadsTo(routes, { source, sink }))
    .flatMap(({ streams }) => streams)
    .map(({ source, company }) => ({ source, ...(company !== undefined && { company }) }));
}

/** Notes from each upstream's own description of its API. A check never fails because of them. */
export async function* descriptionNotes({ upstreams, sources }: WholePlan): AsyncGenerator<string> {
  const { openApiNotes } = await import('./openapi.ts');
  for (const [name, upstream] of upstreams) {
    const own = sources.filter((one) => one.upstream === name);
    const streams = own.flatMap((one) => one.streams);
    const lookups = own.flatMap((one) => one.lookups?.paths ?? []);
    const signal = AbortSignal.timeout(answerWithinMs);
    for (const note of await openApiNotes(upstream, streams, signal, lookups)) {
      yield `upstream ${name}: ${note}`;
    }
  }
}

async function within(ask: (signal: AbortSignal) => Promise<void>): Promise<ExportError | null> {
  const signal = AbortSignal.timeout(answerWithinMs);
  try {
    await ask(signal);
    return null;
  } catch (error) {
    if (!signal.aborted || error instanceof ExportError) return asExportError(error, 'requesting');
    return new ExportError('upstream_unreachable', noAnswer, {
      next: 'Check the address, and that no firewall blocks it.',
    });
  }
}

// `sluice check`: whether a config is right, what it makes, and what its author should know about
// it. With --connect also whether the world answers: each upstream is asked for a token, each
// source for one record of its first stream, each sink for a connection. Nothing is read into the
// spool, and no event is sent but the one that --send-test asks for.

import { type Config, flawText, readConfig } from '../config/config.ts';
import { placeholderWord } from '../config/placeholders.ts';
import { planFrom, type WholePlan } from '../config/plan.ts';
import { inShards } from '../config/shards.ts';
import type { FormatChoice, Inspection, SinkDefinition } from '../contracts/definition.ts';
import { asExportError, ExportError, UsageError } from '../contracts/errors.ts';
import type { Json } from '../contracts/json.ts';
import { hostPortText } from '../contracts/settings.ts';
import type { Tools } from '../contracts/tools.ts';
import type { PlannedSource } from '../fetch/polling.ts';
import { holderOf } from '../hold/lock.ts';
import { planToLook } from '../run/plan-to-look.ts';
import { type BootTools, openTools } from '../run/tools.ts';
import type { PlannedSink } from '../send/sending.ts';
import { counted, painted } from '../terminal/table.ts';
import { systemClock } from '../tools/clock.ts';
import { logForm, openLog } from '../watch/log.ts';
import { askParents, askStream } from './shared/ask-upstream.ts';
import { promiseOf } from './shared/assurance.ts';
import { ClockCheck } from './shared/clock-check.ts';
import {
  configOption,
  defineCommand,
  failureText,
  logLevelOption,
  type Means,
} from './shared/command.ts';
import { deliveryExample } from './shared/delivery-example.ts';
import { refuseUnknown } from './shared/typed.ts';

/** Long enough for a slow proxy, short enough to wait for. */
const answerWithinMs = 30_000;

/** 0: all is well; 3: something is unreachable or refuses. A wrong config is thrown. */
export const check = defineCommand({
  name: 'check',
  about: 'say whether the config is right, and what to know about it',
  options: {
    config: configOption,
    why: { about: 'also run the newest held events through every filter and redaction' },
    setup: { about: 'as --connect, and makes what sinks need there, such as index templates' },
    withoutSecrets: {
      about: 'resolve no ${env:…} or ${file:…} and count each value as right; a default is used',
    },
    connect: { about: 'also ask each upstream for one record and each sink for a connection' },
    sendTest: {
      about: 'as --connect, and sends each sink one marked event and waits for its word',
    },
    sink: { value: 'name', about: 'of all that is asked or sent, only what concerns this sink' },
    logLevel: logLevelOption,
  },
  async run(given, means) {
    const { config: file, why, connect, setup, sendTest, sink, logLevel = 'error' } = given;
    refuseWithoutSecrets(given);
    const placeholders = given.withoutSecrets ? { placeholders: 'all' as const } : {};
    const config = ofFirstShard(readConfig(file, { env: means.env, ...placeholders }));
    refuseUnknown('sink', sink, Object.keys(config.sinks));
    if (!connect && !setup && !sendTest) {
      const plan = await planToLook(config);
      await tellConfig(config, plan, means);
      if (why) await tellWhy(config, plan, means);
      return 0;
    }
    const opened = openTools(await openLog({ level: logLevel, form: logForm(process.stderr) }));
    const clock = new ClockCheck(opened.clock);
    const tools = {
      ...opened,
      http: clock.listening(opened.http),
      lockFile: await locksBeside(config, opened),
    };
    try {
      const plan = planFrom(config, tools);
      await tellConfig(config, plan, means);
      if (why) await tellWhy(config, plan, means);
      let isWell = true;
      for await (const answer of answersOf(config, plan, { tools, setup, sendTest, sink })) {
        isWell &&= answer[1] === null;
        means.out(answerText(answer));
      }
      const wrong = clock.verdict();
      // Elsewhere records bring their own times; an archive proves when it had them.
      const isProof = plan.sinks.some(({ definition }) => definition.takes === 'pages');
      if (wrong !== null) {
        isWell &&= !isProof;
        means.out(answerText(isProof ? ['clock', wrong] : [wrong.message, null, true]));
      }
      if (sink === undefined) {
        for await (const note of descriptionNotes(plan)) {
          means.out(`${painted('note', 'warn')}  ${note}`);
        }
      }
      return isWell ? 0 : 3;
    } finally {
      await tools.http.close();
    }
  },
});

/** Without secrets no upstream and no sink can be asked. */
function refuseWithoutSecrets(given: Readonly<Record<string, unknown>>): void {
  const asks = { connect: '--connect', setup: '--setup', sendTest: '--send-test' };
  const other = Object.entries(asks).find(([key]) => given[key] === true);
  if (given.withoutSecrets !== true || other === undefined) return;
  throw new UsageError(
    `--without-secrets and ${other[1]} do not go together: ${other[1]} needs the secrets; leave one out`,
  );
}

/** Where there are several shards: with the sinks and the state that one of them has. */
function ofFirstShard(config: Config): Config {
  const [first = config] = inShards(config);
  const { sinks, state } = first;
  return { ...config, sinks, state: { ...config.state, kafka: state.kafka } };
}

/** Sets a sink's far side up, sends it a test event, and says how that went; true: well. */
export async function askSink(config: Config, name: string, means: Means): Promise<boolean> {
  const tools = openTools(await openLog({ level: 'error', form: logForm(process.stderr) }));
  try {
    const plan = planFrom(config, tools);
    const wishes = { tools, setup: true, sendTest: true, sink: name };
    for await (const answer of answersOf(config, plan, wishes)) {
      means.out(answerText(answer));
      if (answer[1] !== null) return false;
    }
    return true;
  } finally {
    await tools.http.close();
  }
}

/** What was asked, why it is not well, and whether nobody could know. */
type Answer = readonly [what: string, cause: ExportError | null, isUnseen?: boolean];

function answerText([what, cause, isUnseen = false]: Answer): string {
  if (isUnseen) return `${painted('note', 'warn')}  ${what}`;
  if (cause === null) return `${painted('ok', 'good')}    ${what}`;
  return `${painted('FAIL', 'bad')}  ${what}: ${failureText(afterCheck(cause))}`;
}

/** What a running process would do next by itself; a check that has ended does nothing more. */
const retries =
  /again by (itself|themselves)|reading resumes|nothing (is|was) (to be done|lost)|(is|are) sent again|stay held/i;

/** The same failure with the advice that holds after a check. */
function afterCheck(cause: ExportError): ExportError {
  const clauses = cause.next.split(/(?<=[.;])\s+|, and (?=nothing)/);
  const kept = clauses.filter((clause) => !retries.test(clause));
  const advice = kept
    .join(' ')
    .replace(/[;,]?$/, '')
    .replace(/(?<![.])$/, '.');
  const next =
    kept.length === 0
      ? 'Check address, network and TLS settings, then run the check again.'
      : advice;
  return new ExportError(cause.code, cause.message, { next, details: cause.details, cause });
}

async function tellWhy(config: Config, plan: WholePlan, { out }: Means): Promise<void> {
  const { whyLines } = await import('./shared/why.ts');
  const { whereItRuns } = await import('./shared/at-work.ts');
  for (const line of whyLines(whereItRuns(config).config, plan)) out(`why   ${line}`);
}

async function tellConfig(config: Config, plan: WholePlan, { out }: Means): Promise<void> {
  for (const line of summaryLines(config, plan)) out(line);
  const all = [...adviceLines(config, plan), ...(await parentsLines(config, plan))];
  const notes = all.filter((note) => !note.includes(placeholderWord));
  for (const line of notes) out(`${painted('note', 'warn')}  ${line}`);
  for (const stream of plan.sources.flatMap(({ streams }) => streams)) {
    if (stream.kind !== 'push') continue;
    const note = `${painted('note', 'warn')}  sources.${stream.source}:`;
    if (stream.rules.timestampHeader === null) {
      out(`${note} without timestamp_header no age is judged, whatever max_age says`);
    }
    out(`${note} this sends it a signed event:`);
    for (const line of deliveryExample(stream)) out(`      ${line}`);
  }
}

/** Reads the state, which is opened only for sources that need it. */
async function parentsLines({ state }: Config, { sources }: WholePlan): Promise<string[]> {
  if (sources.every(({ parents }) => parents === undefined)) return [];
  const { parentsNotes } = await import('./shared/parents-estimate.ts');
  return [...parentsNotes(sources, state.dir)];
}

function summaryLines(config: Config, plan: WholePlan): readonly string[] {
  const streams = plan.sources.reduce((sum, source) => sum + source.streams.length, 0);
  return [
    `${painted('ok', 'good')}    ${config.file}: ${counted(plan.sources.length, 'source')} with ${counted(streams, 'stream')}, ${counted(plan.sinks.length, 'sink')}`,
    `      state in ${config.state.dir}`,
    ...(plan.sinks.some(({ definition }) => definition.takes === 'pages')
      ? [`      config SHA-256 ${plan.config}, as the archive enters it`]
      : []),
    ...plan.sources.map(
      (source) =>
        `      source ${source.name}: ${counted(source.streams.length, 'stream')}, ${scheduleText(source)}${shardText(config, source.name)}`,
    ),
    ...plan.sinks.map(
      ({ name, definition, settings }) =>
        `      sink ${name}: ${definition.type}, ${formatText(config.sinks[name]?.format)}, ${assuranceTexts[promiseOf(config, definition, settings).assurance]}`,
    ),
  ];
}

/** In which shard a source is, where there are several. */
function shardText(config: Config, source: string): string {
  if ((config.state.kafka?.shards ?? 1) === 1) return '';
  const part = inShards(config).find(({ sources }) => Object.hasOwn(sources, source));
  return `, in shard ${part?.state.kafka?.shard}`;
}

/** `cef in syslog` where one format carries another. */
function formatText(format: FormatChoice | undefined): string {
  if (format === undefined) return 'no format';
  const { type, message } = format;
  const inner = typeof message === 'object' && message !== null ? Object(message).type : message;
  return typeof inner === 'string' ? `${inner} in ${type}` : type;
}

function scheduleText({ schedule, streams: [first] }: PlannedSource): string {
  if (first?.kind === 'push') {
    return `listens at ${hostPortText(first.listen)}${first.listen.path}`;
  }
  if ('everyMs' in schedule) return `every ${schedule.everyMs / 1_000} s`;
  const zone = schedule.timezone === undefined ? '' : ` in ${schedule.timezone}`;
  return `at ${schedule.cron}${zone}`;
}

const assuranceTexts = {
  once: 'each event once',
  answered: 'at least once, as the far side answers',
  settled: 'at least once, as far as a connection shows what was read',
  none: 'best effort',
} as const satisfies Record<ReturnType<SinkDefinition['assurance']>, string>;

/** What is allowed and yet worth knowing. */
function* adviceLines(config: Config, plan: WholePlan): Generator<string> {
  const { upstreams, sinks, notices, state } = config;
  if (state.warning !== null) yield state.warning;
  if (config.unset.length > 0) {
    yield `not resolved (--without-secrets): ${config.unset.join(', ')}; their values count as right`;
  }
  for (const notice of notices) yield flawText(config.file, notice);
  for (const [name, { base_url: url }] of Object.entries(upstreams)) {
    if (!url.startsWith('http:')) continue;
    yield `upstreams.${name}: plain http, as allow_http permits for loopback: for trying out only`;
  }
  for (const [name, { api, base_url: url }] of Object.entries(upstreams)) {
    if (api !== 'unified' || /\/v\d+$/.test(url)) continue;
    yield `upstreams.${name}: base_url ${url} does not end in /v1, as that of the unified API does`;
  }
  for (const [name, { throttle }] of Object.entries(upstreams)) {
    const own = plan.sources.filter(({ upstream }) => upstream === name);
    const asked = own.flatMap(({ streams }) => streams.flatMap(({ paths }) => paths));
    for (const { path } of throttle) {
      if (path === undefined || asked.some((one) => one === path || path.startsWith(`${one}/`)))
        continue;
      yield `upstreams.${name}: no source asks ${path}, which its throttle is for; paths there are without that of base_url`;
    }
  }
  for (const { name, list, streams } of plan.sources) {
    const isObject = streams.some((one) => one.kind === 'parents' && one.object !== undefined);
    if (list?.order !== 'auto' || isObject) continue;
    yield `sources.${name}: order is auto, so both ends of the list are asked until new records have shown it`;
  }
  for (const [name, { definition, settings }] of Object.entries(sinks)) {
    if (definition.assurance(settings) !== 'none') continue;
    yield `sinks.${name}: best effort: nobody can know whether a datagram arrived; use tcp:// or tls:// where events matter`;
  }
  for (const [name, { definition, settings }] of Object.entries(sinks)) {
    for (const line of promiseOf(config, definition, settings).advice)
      yield `sinks.${name}: ${line}`;
    for (const line of definition.advice?.(settings) ?? []) yield `sinks.${name}: ${line}`;
  }
}

/** What is asked beside the config, and of whom. */
interface Wishes {
  readonly tools: BootTools;
  readonly setup?: boolean | undefined;
  readonly sendTest?: boolean | undefined;
  readonly sink?: string | undefined;
}

/** One after the other, as they answer: this machine, then upstreams, sources and sinks. */
async function* answersOf(config: Config, plan: WholePlan, wishes: Wishes): AsyncGenerator<Answer> {
  if (wishes.sink === undefined) yield* otherAnswers(config, plan);
  for (const planned of plan.sinks) {
    if (wishes.sink !== undefined && wishes.sink !== planned.name) continue;
    yield* sinkAnswers(planned, plan, { ...wishes, mark: markOf(config, planned.name) });
  }
}

/** This machine, upstreams and sources. */
async function* otherAnswers(config: Config, plan: WholePlan): AsyncGenerator<Answer> {
  const { checkStateDir, checkListen } = await import('./shared/check-here.ts');
  const { whereItRuns } = await import('./shared/at-work.ts');
  const { config: there, running } = whereItRuns(config);
  yield ['state.dir', checkStateDir(there.state.dir)];
  if (config.state.kafka !== null) yield* clusterAnswers(config, config.state.kafka);
  // A process that runs with this config has the address already.
  const listen = running === null ? config.status : null;
  if (listen !== null) yield ['status.listen', await checkListen(listen)];
  for (const [name, upstream] of plan.upstreams) {
    const asked = within(async (signal) => {
      const cause = await upstream.authorise(signal);
      if (cause !== null) throw cause;
    });
    yield [`upstream ${name}: token`, await asked];
  }
  for (const { name, streams, parents } of plan.sources) {
    const [first] = streams;
    if (first === undefined) continue;
    if (first.kind === 'push') {
      if (running !== null) continue;
      yield [`source ${name}: listen`, await checkListen(first.listen, `sources.${name}.listen`)];
      continue;
    }
    // Whose lists there are shows only in what is read, where the config does not say.
    const ids = parents !== undefined && 'ids' in parents.each ? parents.each.ids : [];
    if (first.kind === 'parents' && ids.length === 0) continue;
    const asked = within((signal) =>
      first.kind === 'parents' ? askParents(first, ids, signal) : askStream(first, signal),
    );
    yield [`source ${name}: ${first.name}`, await asked];
  }
}

async function* clusterAnswers(
  config: Config,
  kafka: NonNullable<Config['state']['kafka']>,
): AsyncGenerator<Answer> {
  const { inspectCluster } = await import('../cluster/inspect.ts');
  const { refuseBeside } = await import('../run/cluster.ts');
  const signal = AbortSignal.timeout(answerWithinMs);
  try {
    for await (const { told, cause, isNote } of inspectCluster(kafka, systemClock(), signal)) {
      yield [`state.kafka: ${told}`, cause, isNote === true];
    }
    const { deploymentFinding } = await import('../run/deployment.ts');
    const found = await deploymentFinding(kafka, systemClock());
    if (found !== null) yield [`state.kafka: ${found.told}`, found.cause, found.isNote];
    for (const { state } of inShards(config)) {
      if (state.kafka) await refuseBeside(state.kafka, systemClock(), { waits: true });
    }
  } catch (error) {
    yield ['state.kafka', asExportError(error, 'asking Kafka')];
  }
}

/** Locks of output files, but for those that a running process of this config has. */
async function locksBeside(
  config: Config,
  { lockFile }: Pick<Tools, 'lockFile'>,
): Promise<Tools['lockFile']> {
  const { whereItRuns } = await import('./shared/at-work.ts');
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

/** What the sink has had remembered. */
async function markOf(config: Config, sink: string): Promise<Json | null> {
  const { whereItRuns } = await import('./shared/at-work.ts');
  const { lookInto } = await import('../hold/store.ts');
  const { dir } = whereItRuns(config).config.state;
  return lookInto(dir, null, (store) => store.progress(sink).mark);
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
): AsyncGenerator<Answer> {
  const { name, definition, settings, format } = planned;
  const asked = within(async (signal) => definition.probe(settings, tools, signal, await mark));
  const refusal = await asked;
  yield [`sink ${name}: connection`, refusal];
  if (refusal === null && definition.inspect !== undefined) {
    let seen: Inspection = { told: 'what it keeps', isSeen: true };
    const lost = await within(async (signal) => {
      seen = (await definition.inspect?.(settings, tools, signal)) ?? seen;
    });
    yield [`sink ${name}: ${seen.told}`, lost, !seen.isSeen];
  }
  if (setup && definition.setup !== undefined) {
    let made = 'setup';
    const cause = await within(async (signal) => {
      made = (await definition.setup?.(settings, format, { tools, signal })) ?? made;
    });
    yield [`sink ${name}: ${made}`, cause];
  }
  if (!sendTest) return;
  const { sendTestEvent } = await import('./shared/send-test.ts');
  const { told, cause } = await sendTestEvent(planned, plan, tools);
  yield [`sink ${name}: ${told}`, cause];
}

/** What each upstream's own description says of what is asked there; nothing hangs on it. */
async function* descriptionNotes({ upstreams, sources }: WholePlan): AsyncGenerator<string> {
  const { openApiNotes } = await import('./shared/openapi.ts');
  for (const [name, upstream] of upstreams) {
    const streams = sources.flatMap((one) => (one.upstream === name ? one.streams : []));
    const signal = AbortSignal.timeout(answerWithinMs);
    for (const note of await openApiNotes(upstream, streams, signal)) {
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
    if (!signal.aborted || error instanceof ExportError) return asExportError(error, 'asking');
    return new ExportError('upstream_unreachable', `no answer within ${answerWithinMs / 1_000} s`, {
      next: 'Look whether the address is right and a firewall lets it through.',
    });
  }
}

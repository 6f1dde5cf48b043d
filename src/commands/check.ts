// `sluice check`: checks a config, shows its streams and sinks, and gives advice. With --connect it also connects: it
// requests a token from each upstream and one record for each stream, and connects to each sink. In either case it
// reports output files that another process writes to. It stores nothing in the spool, and sends no event but the one
// of --send-test.

import {
  type Config,
  classChange,
  classChangeText,
  flawText,
  inShards,
  loadConfig,
  placeholderWord,
  readConfig,
} from '../config/index.ts';
import { type FormatChoice, hostPortText, type SinkDefinition } from '../contracts/config.ts';
import { UsageError } from '../contracts/index.ts';
import type { PlannedSource } from '../fetch/engine.ts';
import { openTools, planFrom, planToLook, type WholePlan } from '../run/index.ts';
import { counted, painted } from '../terminal/index.ts';
import { timeText } from '../tools/index.ts';
import { logForm, openLog } from '../watch/log.ts';
import { promiseOf } from './shared/assurance.ts';
import {
  answersOf,
  answerText,
  descriptionNotes,
  filesInUse,
  locksBeside,
} from './shared/check-answers.ts';
import { MovesKnown } from './shared/check-moves.ts';
import { ClockCheck } from './shared/clock-check.ts';
import { type CommandDeps, configOption, defineCommand, logLevelOption } from './shared/command.ts';
import { deliveryExample } from './shared/delivery-example.ts';
import { refuseUnknown } from './shared/typed.ts';

/** 0: all is well; 3: something is unreachable or refuses. A wrong config is thrown. */
export const check = defineCommand({
  name: 'check',
  about: 'validate the config, and print notes about it',
  options: {
    config: configOption,
    why: { about: 'also run the newest stored events through every filter and redaction' },
    setup: {
      about:
        'as --connect; also create objects that sinks need at the receiver, such as index templates',
    },
    withoutSecrets: {
      about: 'resolve no ${env:…}, ${file:…} or ${exec:…}: use its default, or accept any value',
    },
    connect: {
      about: 'also request one record from each upstream and open a connection to each sink',
    },
    sendTest: {
      about: 'as --connect, and send one marked event to each sink and wait for its response',
    },
    sink: { value: 'name', about: 'limit the checks to this sink' },
    logLevel: logLevelOption,
  },
  async run(given, deps) {
    const { config: file, why, connect, setup, sendTest, sink, logLevel = 'error' } = given;
    refuseWithoutSecrets(given);
    const placeholders = given.withoutSecrets ? { placeholders: 'all' as const } : {};
    const configEnv = { env: deps.env, ...placeholders };
    const read = given.withoutSecrets ? readConfig : loadConfig;
    const config = ofFirstShard(await read(file, configEnv));
    refuseUnknown('sink', sink, Object.keys(config.sinks));
    if (!connect && !setup && !sendTest) {
      const plan = await planToLook(config);
      const moves = new MovesKnown(config, plan);
      await reportConfig(config, plan, deps, moves, moves.endLines());
      if (why) await reportWhy(config, plan, deps);
      // Another machine may have the files.
      const inUse = given.withoutSecrets ? [] : await filesInUse(config, plan);
      for (const answer of inUse) deps.out(answerText(answer));
      return inUse.length === 0 ? 0 : 3;
    }
    const opened = openTools(await openLog({ level: logLevel, form: logForm(process.stderr) }));
    const clock = new ClockCheck(opened.clock);
    await using tools = {
      ...opened,
      http: clock.listening(opened.http),
      lockFile: await locksBeside(config, opened),
    };
    const plan = planFrom(config, tools);
    const moves = new MovesKnown(config, plan);
    await reportConfig(config, plan, deps, moves, []);
    if (why) await reportWhy(config, plan, deps);
    let isWell = true;
    for await (const answer of answersOf(config, plan, { tools, setup, sendTest, sink, moves })) {
      isWell &&= answer[1] === null;
      deps.out(answerText(answer));
    }
    const wrong = clock.verdict();
    // Elsewhere records bring their own times; an archive proves when it had them.
    const isProof = plan.sinks.some(({ definition }) => definition.takes === 'pages');
    if (wrong !== null) {
      isWell &&= !isProof;
      deps.out(answerText(isProof ? ['clock', wrong] : [wrong.message, null, true]));
    }
    if (sink === undefined) {
      // By now responses may have named dates.
      for (const line of moves.endLines()) deps.out(line);
      for await (const note of descriptionNotes(plan)) {
        deps.out(`${painted('note', 'warn')}  ${note}`);
      }
    }
    return isWell ? 0 : 3;
  },
});

/** Without secrets no request to an upstream or a sink is possible. */
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

/** Prepares a sink's destination, sends a test event, and reports the result; true: accepted. */
export async function askSink(config: Config, name: string, deps: CommandDeps): Promise<boolean> {
  await using tools = openTools(await openLog({ level: 'error', form: logForm(process.stderr) }));
  const plan = planFrom(config, tools);
  const wishes = { tools, setup: true, sendTest: true, sink: name };
  for await (const answer of answersOf(config, plan, wishes)) {
    deps.out(answerText(answer));
    if (answer[1] !== null) return false;
  }
  return true;
}

async function reportWhy(config: Config, plan: WholePlan, { out }: CommandDeps): Promise<void> {
  const { whyLines } = await import('./shared/why.ts');
  const { whereItRuns } = await import('./shared/at-work.ts');
  for (const line of whyLines(whereItRuns(config).config, plan)) out(`why   ${line}`);
}

/** `ends`: the lines about the ends of upstreams, where no response can name a date. */
async function reportConfig(
  config: Config,
  plan: WholePlan,
  { out }: CommandDeps,
  moves: MovesKnown,
  ends: readonly string[],
): Promise<void> {
  for (const line of [...summaryLines(config, plan), ...ends]) out(line);
  const all = [
    ...moves.givenUp(),
    ...moves.namedOld(),
    ...adviceLines(config, plan),
    ...(await parentsLines(config, plan)),
  ];
  const notes = all.filter((note) => !note.includes(placeholderWord));
  for (const line of notes) out(`${painted('note', 'warn')}  ${line}`);
  for (const stream of plan.sources.flatMap(({ streams }) => streams)) {
    if (stream.kind !== 'push') continue;
    const note = `${painted('note', 'warn')}  sources.${stream.source}:`;
    if (stream.rules.timestampHeader === null) {
      out(`${note} without timestamp_header no age is judged, whatever max_age says`);
    }
    out(`${note} with one of its secrets in $SECRET, this sends it a signed event:`);
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
    ...Object.entries(config.upstreams).flatMap(([name, { companies, companiesFile: file }]) =>
      file === undefined ? [] : `      upstream ${name}: ${companiesText(companies, file.path)}`,
    ),
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

function companiesText({ length }: readonly string[], file: string): string {
  return `${length} ${length === 1 ? 'company' : 'companies'} from ${file}`;
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
  if ('everyMs' in schedule) {
    const { everyMs, minMs } = schedule;
    const from = minMs === undefined ? '' : `${minMs / 1_000} s to `;
    return `every ${from}${everyMs / 1_000} s`;
  }
  const zone = schedule.timezone === undefined ? '' : ` in ${schedule.timezone}`;
  return `at ${schedule.cron}${zone}`;
}

const assuranceTexts = {
  once: 'each event once',
  answered: 'at least once, confirmed by the response of the receiver',
  settled: 'at least once, as far as a connection confirms what was read',
  none: 'best effort',
} as const satisfies Record<ReturnType<SinkDefinition['assurance']>, string>;

/** Advice about settings that are allowed but unusual. */
function* adviceLines(config: Config, plan: WholePlan): Generator<string> {
  const { upstreams, sinks, notices, ignored, state } = config;
  if (state.warning !== null) yield state.warning;
  if (config.unset.length > 0) {
    yield `not resolved (--without-secrets): ${config.unset.join(', ')}; their values count as right`;
  }
  for (const notice of [...ignored, ...notices]) yield flawText(config.file, notice);
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
      yield `upstreams.${name}: no source reads ${path}, which its throttle is for; paths there are without that of base_url`;
    }
  }
  for (const [name, { settings, definition }] of Object.entries(config.sources)) {
    yield* pathAdvice(config, name);
    for (const line of definition.advice?.(settings) ?? []) yield `sources.${name}: ${line}`;
    const isMapped = settings.mapping !== undefined || settings.records === 'audit';
    if (definition.type !== 'logs' || isMapped) continue;
    yield `sources.${name}: without a mapping its records are Base Events, and every field is in unmapped; set mapping`;
  }
  for (const [name, { succeeds, inheritsRecords }] of Object.entries(config.sources)) {
    const change = classChange(config.sources, name);
    if (change !== null) yield `sources.${name}: ${classChangeText(change)}`;
    if (succeeds === undefined || inheritsRecords !== true) continue;
    yield `sources.${name}: its records are read as audit records, because it succeeds ${succeeds.source}; set records: audit before you remove succeeds, so that they keep their OCSF classes`;
  }
  for (const { name, list, streams } of plan.sources) {
    if (typeof list?.start === 'number' && list.start > Date.now()) {
      yield `sources.${name}: start ${timeText(list.start)} is in the future, and older records are skipped`;
    }
    const isObject = streams.some((one) => one.kind === 'parents' && one.object !== undefined);
    if (list?.order !== 'auto' || isObject) continue;
    yield `sources.${name}: order is auto, so sluice requests both ends of the list until new records show the order`;
  }
  for (const [name, { definition, settings }] of Object.entries(sinks)) {
    if (definition.assurance(settings) !== 'none') continue;
    yield `sinks.${name}: best effort: no sender can know whether a datagram arrived. Use tcp:// or tls:// for events that must not be lost`;
  }
  for (const [name, { definition, settings }] of Object.entries(sinks)) {
    for (const line of promiseOf(config, definition, settings).advice)
      yield `sinks.${name}: ${line}`;
    for (const line of definition.advice?.(settings) ?? []) yield `sinks.${name}: ${line}`;
  }
}

/** A segment of a path that a URL resolves, also in its encoded form. */
const dotSegment = /\/(?:\.|%2e){1,2}(?:\/|$)/i;

/** Names the paths of a source that lead to another address than they seem to. */
function* pathAdvice({ sources, upstreams }: Config, name: string): Generator<string> {
  const { settings, definition } = sources[name] ?? {};
  const base = upstreams[settings?.upstream ?? '']?.base_url;
  const isRequested = (definition?.list ?? definition?.collection) !== undefined;
  // The path of a listener is no address at upstream.
  if (base === undefined || !isRequested) return;
  for (const key of ['path', 'detail']) {
    const path = settings?.[key];
    if (typeof path !== 'string' || !dotSegment.test(path)) continue;
    const target = new URL(`${base}${path}`).href.replaceAll('%7B', '{').replaceAll('%7D', '}');
    yield `sources.${name}.${key}: ${path} leads to ${target}; write base_url and ${key} without the segments . and ..`;
  }
}

// `sluice check`: whether a config is right, what it makes, and what its author should know about it. With --connect
// also whether the world answers: each upstream is asked for a token, each source for one record of its first stream,
// each sink for a connection. Nothing is read into the spool and no event is sent.

import { type Config, flawText, readConfig } from '../config/config.ts';
import { planFrom, type WholePlan } from '../config/plan.ts';
import type { FormatChoice, SinkDefinition } from '../contracts/definition.ts';
import { asExportError, ExportError } from '../contracts/errors.ts';
import type { ListStream, SnapshotStream, Stream } from '../contracts/source.ts';
import type { HttpClient } from '../contracts/tools.ts';
import { fetchPage } from '../fetch/list/fetch-page.ts';
import { firstPlace, type Page } from '../fetch/list/page.ts';
import { doubtError, doubtOfFirst, doubtOfPlace } from '../fetch/list/paging-doubt.ts';
import type { PlannedSource } from '../pipeline.ts';
import { type BootTools, openTools } from '../run/tools.ts';
import { painted } from '../terminal/table.ts';
import { logForm, openLog } from '../watch/log.ts';
import {
  configOption,
  defineCommand,
  failureText,
  logLevelOption,
  type Means,
} from './shared/command.ts';
import { planToLook } from './shared/looking.ts';

/** Long enough for a slow proxy, short enough to wait for. */
const answerWithinMs = 30_000;

/** 0: all is well; 3: something is unreachable or refuses. A wrong config is thrown. */
export const check = defineCommand({
  name: 'check',
  about: 'say whether the config is right, and what to know about it',
  options: {
    config: configOption,
    why: { about: 'also run the newest held events through every filter and redaction' },
    connect: { about: 'also ask each upstream for one record and each sink for a connection' },
    logLevel: logLevelOption,
  },
  async run({ config: file, why, connect, logLevel = 'error' }, means) {
    const config = readConfig(file, { env: means.env });
    if (!connect) {
      const plan = await planToLook(config);
      tellConfig(config, plan, means);
      if (why) await tellWhy(config, plan, means);
      return 0;
    }
    const tools = openTools(await openLog({ level: logLevel, form: logForm(process.stderr) }));
    const witness = witnessed(tools.http);
    try {
      const plan = planFrom(config, { ...tools, http: witness.http });
      tellConfig(config, plan, means);
      if (why) await tellWhy(config, plan, means);
      const here = await tellHere(config, means);
      return (await connects(plan, tools, witness, means)) && here ? 0 : 3;
    } finally {
      await tools.http.close();
    }
  },
});

async function tellWhy(config: Config, plan: WholePlan, { out }: Means): Promise<void> {
  const { whyLines } = await import('./shared/why.ts');
  const { whereItRuns } = await import('./shared/at-work.ts');
  for (const line of whyLines(whereItRuns(config).config, plan)) out(`why   ${line}`);
}

function tellConfig(config: Config, plan: WholePlan, { out }: Means): void {
  for (const line of summaryLines(config, plan)) out(line);
  for (const line of adviceLines(config)) out(`${painted('note', 'warn')}  ${line}`);
}

function summaryLines(config: Config, plan: WholePlan): readonly string[] {
  const streams = plan.sources.reduce((sum, source) => sum + source.streams.length, 0);
  return [
    `${painted('ok', 'good')}    ${config.file}: ${count(plan.sources.length, 'source')} with ${count(streams, 'stream')}, ${count(plan.sinks.length, 'sink')}`,
    `      state in ${config.state.dir}`,
    ...plan.sources.map(
      (source) =>
        `      source ${source.name}: ${count(source.streams.length, 'stream')}, ${scheduleText(source)}`,
    ),
    ...plan.sinks.map(
      ({ name, definition, settings }) =>
        `      sink ${name}: ${definition.type}, ${formatText(config.sinks[name]?.format)}, ${assuranceTexts[definition.assurance(settings)]}`,
    ),
  ];
}

/** `cef in syslog` where one format carries another. */
function formatText(format: FormatChoice | undefined): string {
  if (format === undefined) return 'no format';
  const { type, message } = format;
  const inner = typeof message === 'object' && message !== null ? Object(message).type : message;
  return typeof inner === 'string' ? `${inner} in ${type}` : type;
}

function count(n: number, what: string): string {
  return `${n} ${what}${n === 1 ? '' : 's'}`;
}

function scheduleText({ schedule }: PlannedSource): string {
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
function adviceLines(config: Config): readonly string[] {
  const plain = Object.entries(config.upstreams).flatMap(([name, { base_url: url }]) =>
    url.startsWith('http:')
      ? [`upstreams.${name}: plain http, as allow_http permits for loopback: for trying out only`]
      : [],
  );
  const unversioned = Object.entries(config.upstreams).flatMap(([name, { api, base_url: url }]) =>
    api === 'unified' && !/\/v\d+$/.test(url)
      ? [`upstreams.${name}: base_url ${url} does not end in /v1, as that of the unified API does`]
      : [],
  );
  const learned = Object.entries(config.sources).flatMap(([name, { definition, settings }]) =>
    definition.list?.(settings).order === 'auto'
      ? [
          `sources.${name}: order is auto, so both ends of the list are asked until new records have shown it`,
        ]
      : [],
  );
  const lossy = Object.entries(config.sinks).flatMap(([name, { definition, settings }]) =>
    definition.assurance(settings) === 'none'
      ? [
          `sinks.${name}: best effort: nobody can know whether a datagram arrived; use tcp:// or tls:// where events matter`,
        ]
      : [],
  );
  const advice = Object.entries(config.sinks).flatMap(([name, { definition, settings }]) =>
    (definition.advice?.(settings) ?? []).map((line) => `sinks.${name}: ${line}`),
  );
  const notices = config.notices.map((notice) => flawText(config.file, notice));
  const { warning } = config.state;
  return [
    ...(warning === null ? [] : [warning]),
    ...notices,
    ...plain,
    ...unversioned,
    ...learned,
    ...lossy,
    ...advice,
  ];
}

/** What this machine has to give, unless a process has it already that runs with this config. */
async function tellHere(given: Config, { out }: Means): Promise<boolean> {
  const { checkStateDir, checkListen } = await import('./shared/check-here.ts');
  const { whereItRuns } = await import('./shared/at-work.ts');
  const { config, running } = whereItRuns(given);
  const { status } = config;
  const wrong = [
    { what: 'state.dir', cause: checkStateDir(config.state.dir) },
    ...(status === null || running !== null
      ? []
      : [{ what: 'status.listen', cause: await checkListen(status) }]),
  ];
  for (const { what, cause } of wrong) {
    if (cause === null) out(`${painted('ok', 'good')}    ${what}`);
    else out(`${painted('FAIL', 'bad')}  ${what}: ${failureText(cause)}`);
  }
  return wrong.every(({ cause }) => cause === null);
}

/** Asks one after the other, telling each answer as it comes; true when all answered as they should. */
async function connects(
  plan: WholePlan,
  tools: BootTools,
  witness: Witness,
  { out }: Means,
): Promise<boolean> {
  let well = true;
  const tell = (what: string, cause: ExportError | null) => {
    well &&= cause === null;
    if (cause === null) out(`${painted('ok', 'good')}    ${what}`);
    else out(`${painted('FAIL', 'bad')}  ${what}: ${failureText(cause)}`);
  };
  for (const [name, upstream] of plan.upstreams) {
    const asked = within(async (signal) => {
      const cause = await upstream.authorise(signal);
      if (cause !== null) throw cause;
    });
    tell(`upstream ${name}: token`, await asked);
  }
  for (const { name, streams } of plan.sources) {
    const [first] = streams;
    if (first !== undefined) tell(`source ${name}: ${first.name}`, await askStream(first, witness));
  }
  for (const { name, definition, settings } of plan.sinks) {
    const asked = within((signal) => definition.probe(settings, tools, signal));
    tell(`sink ${name}: connection`, await asked);
  }
  return well;
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

function askStream(stream: Stream, witness: Witness): Promise<ExportError | null> {
  return within((signal) =>
    stream.kind === 'list' ? askList(stream, signal) : askSnapshot(stream, { signal, witness }),
  );
}

async function askList(stream: ListStream, signal: AbortSignal): Promise<void> {
  const place = firstPlace(stream.pagination);
  const limit = stream.pageLimit === null ? null : 1;
  let fetched = await fetchPage(stream, { place, limit }, signal);
  if (fetched.outcome === 'refused' && fetched.about === 'limit') {
    fetched = await fetchPage(stream, { place, limit: null }, signal);
  }
  if (fetched.outcome === 'refused' && stream.sorting.length > 0) {
    fetched = await fetchPage(stream, { place, limit: null, unsorted: true }, signal);
  }
  if (fetched.outcome !== 'ok') throw fetched.cause;
  const { page } = fetched;
  const doubt = doubtOfFirst(stream, page);
  if (doubt !== null) throw doubtError(stream, doubt);
  if (stream.pagination.style === 'offset') await askFurther(stream, { page, limit }, signal);
}

/** Whether an offset leads to other records. */
async function askFurther(
  stream: ListStream,
  { page, limit }: { readonly page: Page; readonly limit: number | null },
  signal: AbortSignal,
): Promise<void> {
  const ask = async (offset: number) => {
    const fetched = await fetchPage(stream, { place: { by: 'offset', offset }, limit }, signal);
    if (fetched.outcome !== 'ok') throw fetched.cause;
    return recordsText(fetched.page);
  };
  const before = recordsText(page);
  const { length } = page.records;
  // Rows may move by one between two answers, and records without ids may be alike.
  const isSame = length > 0 && before === (await ask(length)) && before === (await ask(0));
  const { more } = page;
  if (!isSame || (stream.id === null && more === null)) return;
  throw doubtError(stream, doubtOfPlace(stream, more?.likely ?? null));
}

function recordsText({ records }: Page): string {
  return JSON.stringify(Array.from({ length: records.length }, (_, at) => records.at(at)));
}

/** A snapshot is only ever read whole; its first answer is enough, and ends the reading. */
async function askSnapshot(
  stream: SnapshotStream,
  { signal, witness }: { signal: AbortSignal; witness: Witness },
): Promise<void> {
  const enough = new AbortController();
  witness.onAnswer = () => enough.abort(new Error('answered'));
  try {
    const reading = await stream.readEverything(AbortSignal.any([signal, enough.signal]));
    const failed = reading.outcome !== 'ok' || !reading.complete;
    if (failed && reading.cause !== undefined) throw reading.cause;
  } catch (error) {
    if (!enough.signal.aborted) throw error;
  } finally {
    witness.onAnswer = null;
  }
}

/** The HTTP client, telling of each good answer to a GET: tokens are asked for with POST. */
interface Witness {
  readonly http: HttpClient;
  onAnswer: (() => void) | null;
}

function witnessed(http: HttpClient): Witness {
  const witness: Witness = {
    onAnswer: null,
    http: {
      async request(request, signal) {
        const response = await http.request(request, signal);
        if (request.method === 'GET' && response.status === 200) witness.onAnswer?.();
        return response;
      },
      close: () => http.close(),
    },
  };
  return witness;
}

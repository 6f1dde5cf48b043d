// `sluice run`: the journey until it is told to stop, or with `--once` until everything there is
// has been read and delivered. It ends in order: polling stops, what is held goes out to the sinks
// that take it, the rest stays held and is named. A second signal ends at once, which loses nothing
// either. SIGHUP, or another content of its file, has the config read again (reload.ts).

import type { Control } from '../cluster/control.ts';
import { type Config, flawText, readConfig } from '../config/config.ts';
import { planFrom, type WholePlan } from '../config/plan.ts';
import { asExportError, ExportError, UsageError } from '../contracts/errors.ts';
import { backlog } from '../contracts/spool.ts';
import type { Log } from '../contracts/tools.ts';
import type { Summary } from '../pipeline.ts';
import { agreeOnShards, refuseHalf } from '../run/cluster.ts';
import { serveCommandsFromAfar } from '../run/commands-from-afar.ts';
import { compareDue, serveComparisons } from '../run/comparisons.ts';
import { agreeOnDeployment, storeDeployment } from '../run/deployment.ts';
import { type Drains, openDrains } from '../run/drains.ts';
import { eventTap } from '../run/event-tap.ts';
import { timeToGiveUp } from '../run/give-up.ts';
import { type Journey, openJourney } from '../run/journey.ts';
import { Member } from '../run/member-note.ts';
import { type OwnLog, openOwnLog } from '../run/own-log.ts';
import { openPage } from '../run/own-page.ts';
import { type ReloadMeans, serveReloads } from '../run/reload.ts';
import type { Made } from '../run/reload-changes.ts';
import { listenForReloads, type ReloadRequests } from '../run/reload-requests.ts';
import { serveRequests } from '../run/requests.ts';
import { resumeLines } from '../run/resume-lines.ts';
import { noteRunning, type ReloadRefusal } from '../run/running-config.ts';
import { type ShardSeat, takeSeat } from '../run/shard-seat.ts';
import { listenForShutdown, type Shutdown } from '../run/shutdown.ts';
import { sparePage, standByText } from '../run/spare-page.ts';
import { isWhole, summaryLines } from '../run/summary.ts';
import { type BootTools, openTools } from '../run/tools.ts';
import { systemClock } from '../tools/clock.ts';
import { timeText } from '../tools/time-text.ts';
import { type Moment, watching } from '../watch/live.ts';
import type { EventTap } from '../watch/tail.ts';
import {
  configOption,
  defineCommand,
  type ExitCode,
  type Given,
  logLevelOption,
  type Means,
} from './shared/command.ts';
import { durationTyped } from './shared/typed.ts';

const options = {
  config: configOption,
  once: { about: 'read every source up to its tail once, deliver everything, then end' },
  timeout: { value: 'duration', about: 'with --once: how long that may take, such as 60s' },
  allowRemoval: { about: 'let a changed config drop streams and sinks while this runs' },
  logLevel: logLevelOption,
} as const;
type Options = Given<typeof options>;

/** 0: drained, or with `once` all delivered; 1: failed, or with `once` something was not. */
export const run = defineCommand({
  name: 'run',
  about: 'fetch, hold and send until SIGTERM or SIGINT, then drain',
  options,
  async run(given, means) {
    const limitMs = limitOf(given);
    if (given.once) {
      return await runJourney(given, { means }, (running) => runOnce(running, limitMs));
    }
    const requests = await listenForReloads(given.config, systemClock());
    const removalAllowed = given.allowRemoval === true;
    try {
      return await runJourney(given, { means, requests }, (running) =>
        runOn(running, { requests, removalAllowed }),
      );
    } finally {
      requests.release();
    }
  },
});

async function runJourney(
  given: Options,
  { means, requests }: { readonly means: Means; readonly requests?: ReloadRequests },
  go: (running: Running) => Promise<ExitCode>,
): Promise<ExitCode> {
  const { config: file, logLevel, once = false } = given;
  const seat = takeSeat(means.env);
  const read = () => {
    const whole = readConfig(file, { env: means.env });
    return seat === null ? whole : seat.part(whole);
  };
  const config = readFor(seat, read);
  const opened = await openOwnLog(config, logLevel);
  const log = seat === null ? opened.log : opened.log.with(seat.fields);
  const own = { ...opened, log };
  warnThroughLog(log);
  if (config.state.warning !== null) log.warn(config.state.warning);
  if (seat === null) {
    for (const key of config.ignored) log.warn(flawText(config.file, key));
  }
  const shutdown = listenForShutdown(() => {
    log.warn('a second signal: ending at once; nothing is lost');
    means.exit(1);
  });
  let stopMs: number | null = null;
  shutdown.stop.addEventListener('abort', () => {
    stopMs = performance.now();
  });
  const drains = await openDrains(config.state, log);
  let deploymentChanged: string | null = null;
  try {
    await drains?.known(shutdown.stop);
    const { kafka } = config.state;
    if (drains !== null && kafka !== null && seat === null) {
      await agreeOnShards(kafka, drains.control, systemClock());
      refuseHalf(drains.control.isImporting);
      const deps = { control: drains.control, clock: systemClock(), log };
      deploymentChanged = await agreeOnDeployment(kafka, deps);
    }
    if (drains !== null && seat === null && (kafka?.shards ?? 1) > 1) {
      const { keepShards } = await import('../run/keep-shards.ts');
      const args = commandLine(given);
      const { env } = means;
      const removalAllowed = given.allowRemoval === true;
      const keeping = { config, args, env, once, drains, requests, removalAllowed };
      const { stop } = shutdown;
      const ended = await keepShards(keeping, own, { stop, deploymentChanged });
      logStopped(log, shutdown, ended);
      return ended === 0 ? 0 : 1;
    }
    for (let last = config; ; ) {
      const of = { own, shutdown, drains, means, seat, read, deploymentChanged };
      const ended = await oneJourney(last, of, go);
      if (once || shutdown.stop.aborted || drains?.isDrained() !== true) return ended.code;
      last = ended.config;
    }
  } catch (error) {
    if (shutdown.stop.aborted && error === shutdown.stop.reason) {
      log.info('stopped', { why: String(error) });
      return 0;
    }
    tellEnd(log, asExportError(error, 'running'), seat);
    return 1;
  } finally {
    await drains?.close();
    await own.close(stopMs);
    shutdown.release();
    seat?.leave();
  }
}

/** Reads the config; the process that has started this one for a shard hears why it cannot. */
function readFor(seat: ShardSeat | null, read: () => Config): Config {
  try {
    return read();
  } catch (error) {
    seat?.ends(error);
    throw error;
  }
}

/** From standing by, where the state is in Kafka, to its end: that of the process, or of its turn. */
async function oneJourney(
  config: Config,
  {
    own,
    drains,
    means,
    seat,
    read,
    deploymentChanged,
    shutdown: ending,
  }: Pick<Running, 'own' | 'shutdown' | 'means' | 'seat' | 'read' | 'deploymentChanged'> & {
    drains: Drains | null;
  },
  go: (running: Running) => Promise<ExitCode>,
): Promise<{ readonly code: ExitCode; readonly config: Config }> {
  const { log } = own;
  const tools = openTools(log);
  const plan = planFrom(config, tools);
  const lost = (why: ExportError) => {
    tellEnd(log, why, seat);
    means.exit(1);
  };
  const isDrained = () => drains?.isDrained() === true;
  const spare = sparePage(config, tools, isDrained);
  const member = seat === null && drains !== null ? new Member(config.state.dir, log) : null;
  const waits = () => {
    member?.note({ standing_by: standByText(config, isDrained()) });
    spare.waits();
  };
  const { sessionMs = 0 } = config.state.kafka ?? {};
  const membership = seat?.membership(sessionMs, tools, lost);
  const { heard } = spare;
  const standBy = { stop: ending.stop, lost, waits, heard, isDrained, membership };
  let journey: Journey;
  try {
    journey = await openJourney(plan, config.state, tools, { standBy });
  } finally {
    member?.close();
    await spare.close();
  }
  try {
    for (const { text, fields } of resumeLines(plan, journey.before)) log.info(text, fields);
    const sight = sightOf({ config, plan }, { journey, tools, seat });
    const shutdown = {
      ...ending,
      stop: drains?.orDrained(ending.stop) ?? ending.stop,
    };
    const control = drains?.control ?? null;
    const of = { config, plan, journey, tools, shutdown, means, own, sight, control, seat, read };
    const running: Running = { ...of, deploymentChanged, refused: null };
    noteRunning(config, tools.clock.now(), null, log);
    const status = await openStatus(running);
    try {
      return { code: await go(running), config: running.config };
    } finally {
      await status?.close();
    }
  } finally {
    await journey.close();
  }
}

/** The last line of a process that has no journey of its own. */
function logStopped(log: Log, { stop }: Pick<Shutdown, 'stop'>, code = 0): void {
  const why = stop.aborted ? String(stop.reason?.message) : 'all of its work is done';
  log.info('stopped', { why, exit_code: code });
}

function tellEnd(log: Log, why: ExportError, seat: ShardSeat | null): void {
  const { code, message, next } = why;
  seat?.ends(why);
  log.error('sluice ends', { code, error: message, next });
}

interface Running {
  /** What runs: another one once that was reloaded. */
  config: Config;
  readonly plan: WholePlan;
  readonly journey: Journey;
  readonly tools: BootTools;
  readonly shutdown: Shutdown;
  readonly means: Means;
  /** Where another process has started this one for a shard. */
  readonly seat: ShardSeat | null;
  /** How the upstreams differ from those that the state in Kafka had at the start; null: they do not. */
  readonly deploymentChanged: string | null;
  /** Reads the config as it stands in its file now, or what this process has of it. */
  readonly read: () => Config;
  readonly own: OwnLog;
  /** What operators ask for on other machines; null: the state is not in Kafka. */
  readonly control: Control | null;
  /** What the status shows: of another config once that runs. */
  sight: Sight;
  /** Why the config in its file does not run; null: it does. */
  refused: ReloadRefusal | null;
}

interface Sight {
  readonly look: () => Moment;
  readonly tap: EventTap | null;
}

function sightOf(
  made: Made,
  { journey, tools: { clock, log }, seat }: Pick<Running, 'journey' | 'tools' | 'seat'>,
): Sight {
  const isTailed = seat?.isTailed ?? made.config.status?.tail === true;
  return {
    look: watching({ ...journey, plan: made.plan, state: made.config.state, clock, log }),
    tap: isTailed ? eventTap({ ...made, spool: journey.spool, clock }) : null,
  };
}

/** The status page; in a process that another one has started for a shard, that one has it. */
async function openStatus(running: Running): Promise<{ close(): unknown } | null> {
  const { seat, own, tools } = running;
  const look = (): Moment => ({
    ...running.sight.look(),
    reload_refused: running.refused && { ...running.refused, at: timeText(running.refused.at) },
    deployment_changed: running.deploymentChanged,
  });
  const retry = (name: string) => running.journey.pipeline.askNow(name);
  const shown = { look, tap: () => running.sight.tap, retry };
  if (seat !== null) return seat.show(shown);
  return await openPage({ ...shown, config: () => running.config }, tools, own);
}

/** The words by which a process for a shard is started as this one was. */
function commandLine({
  config,
  once,
  timeout,
  allowRemoval,
  logLevel,
}: Options): readonly string[] {
  return [
    ...['run', '--config', config],
    ...(once ? ['--once'] : []),
    ...(timeout === undefined ? [] : ['--timeout', timeout]),
    ...(allowRemoval ? ['--allow-removal'] : []),
    ...(logLevel === undefined ? [] : ['--log-level', logLevel]),
  ];
}

function limitOf({ once, timeout }: Options): number | null {
  if (timeout === undefined) return null;
  if (!once) throw new UsageError('--timeout bounds --once, and has no meaning without it');
  return durationTyped('timeout', timeout);
}

/** Warnings of the runtime and libraries, which would else be plain text among the lines. */
function warnThroughLog(log: Log): void {
  process.removeAllListeners('warning');
  process.on('warning', ({ name, message }) => {
    log.debug('a warning of the runtime', { warning: name, message });
  });
}

async function runOn(
  running: Running,
  reloads: Pick<ReloadMeans, 'requests' | 'removalAllowed'>,
): Promise<ExitCode> {
  const { config, plan, journey, tools, shutdown } = running;
  const { pipeline } = journey;
  const { log } = tools;
  const { timeoutMs } = config.shutdown;
  log.info('running');
  const stopping = () => {
    const why = String(shutdown.stop.reason?.message);
    log.info('stopping: what is held goes out first', { why, within_ms: timeoutMs });
    journey.hurry();
  };
  shutdown.stop.addEventListener('abort', stopping);
  // A signal may have arrived while the state was opened: the log has its reason all the same.
  if (shutdown.stop.aborted) stopping();
  let current: Made = { config, plan };
  let since = tools.clock.now();
  const changed = (made: Made) => {
    current = made;
    running.config = made.config;
    since = tools.clock.now();
    running.sight = sightOf(made, running);
    if (running.control === null || running.seat !== null) return;
    storeDeployment(made.config.state.kafka, { ...tools, control: running.control });
  };
  const refused = (refusal: ReloadRefusal | null) => {
    running.refused = refusal;
    noteRunning(current.config, since, refusal, log);
  };
  const over = new AbortController();
  const ending = AbortSignal.any([shutdown.stop, over.signal]);
  const serving = Promise.all([
    serveReloads({ ...running, ...reloads, changed, refused }, ending),
    serveRequests({ ...journey, tools, made: () => current, reads: () => true }, ending),
    serveComparisons({ ...journey, tools, made: () => current }, ending),
    serveAfar(running, ending),
  ]);
  try {
    await pipeline.run(shutdown.stop, timeoutMs);
  } finally {
    over.abort(new Error('the journey is over'));
    await serving;
  }
  for (const { name, position, error } of journey.pipeline.state.sinks) {
    const held = backlog(journey.spool.gauge, position);
    if (held === 0) log.info('the sink has everything', { sink: name, position });
    else {
      const why = error === null ? {} : { error: error.message };
      log.warn('events stay held for the sink', { sink: name, position, held, ...why });
    }
  }
  log.info('stopped');
  return 0;
}

async function runOnce(running: Running, limitMs: number | null): Promise<ExitCode> {
  const { journey, tools, shutdown, config } = running;
  const limit = new AbortController();
  limit.signal.addEventListener('abort', () => journey.hurry());
  const over = new AbortController();
  const watched = {
    clock: tools.clock,
    state: () => journey.pipeline.state,
    end: () => journey.spool.gauge.end,
  };
  // Only one of these comes first; the other ends with the run.
  if (limitMs === null) {
    timeToGiveUp(watched, over.signal).then(
      () => limit.abort(notInTime('nothing has moved for a minute')),
      () => undefined,
    );
  } else {
    tools.clock.sleep(limitMs, over.signal).then(
      () => limit.abort(notInTime(`the time that --timeout gives is over (${limitMs} ms)`)),
      () => undefined,
    );
  }
  const stop = () => limit.abort(notInTime('a signal asked to stop'));
  shutdown.stop.addEventListener('abort', stop);
  if (shutdown.stop.aborted) stop();
  const asked = { ...journey, tools, made: () => running, reads: () => false };
  const serving = Promise.all([serveRequests(asked, over.signal), serveAfar(running, over.signal)]);
  try {
    // Of what was read, once all of it is where it belongs.
    const compared = (signal: AbortSignal) =>
      compareDue({ ...journey, tools, made: () => running }, signal);
    const { timeoutMs } = config.shutdown;
    const summary = await journey.pipeline.once(limit.signal, timeoutMs, compared);
    tellSummary(running, summary);
    return isWhole(summary, journey.pipeline.state) ? 0 : 1;
  } finally {
    over.abort(new Error('ended'));
    await serving;
  }
}

async function serveAfar(
  { config, control, journey: { spool }, tools }: Running,
  stop: AbortSignal,
): Promise<void> {
  const { shard = 0 } = config.state.kafka ?? {};
  if (control !== null) await serveCommandsFromAfar({ shard, control, spool, tools }, stop);
}

function notInTime(why: string): ExportError {
  return new ExportError('upstream_unreachable', `not read to its tail: ${why}`, {
    next: 'Run again: it goes on from its checkpoint. Nothing is lost.',
  });
}

/** Where a sink of this run writes events to stdout, the summary is not to stand among them. */
function tellSummary({ config, plan, journey, means }: Running, summary: Summary): void {
  const onStdout = plan.sinks.some(({ settings }) => settings.type === 'stdout');
  const tell = onStdout ? means.err : means.out;
  const stream = onStdout ? process.stderr : process.stdout;
  const { pipeline, spool } = journey;
  const after = { state: pipeline.state, bytes: spool.gauge.bytes };
  for (const line of summaryLines(summary, after, { config, stream })) tell(line);
}

// `sluice run`: the journey until it is told to stop, or with `--once` until everything there is
// has been read and delivered. It ends in order: polling stops, what is held goes out to the sinks
// that take it, the rest stays held and is named. A second signal ends at once, which loses nothing
// either. SIGHUP, or another content of its file, has the config read again (reload.ts).

import type { Control } from '../cluster/control.ts';
import { type Config, flawText, readConfig } from '../config/config.ts';
import { planFrom } from '../config/plan.ts';
import { asExportError, type ExportError, UsageError } from '../contracts/errors.ts';
import type { Log } from '../contracts/tools.ts';
import { agreeOnShards, refuseHalf } from '../run/cluster.ts';
import { agreeOnDeployment } from '../run/deployment.ts';
import { type Drains, openDrains } from '../run/drains.ts';
import { agreeOnHomes, refuseMoved } from '../run/homes.ts';
import { type Journey, openJourney } from '../run/journey.ts';
import { MemberFile } from '../run/member-note.ts';
import { openOwnLog } from '../run/own-log.ts';
import { listenForReloads, type ReloadRequests } from '../run/reload-requests.ts';
import { resumeLines } from '../run/resume-lines.ts';
import { runOn, runOnce } from '../run/run-loops.ts';
import { openStatus, type Running, sightOf } from '../run/running.ts';
import { noteRunning } from '../run/running-config.ts';
import { type ShardSeat, takeSeat } from '../run/shard-worker.ts';
import { listenForShutdown, type Shutdown } from '../run/shutdown.ts';
import { sparePage, standByText } from '../run/spare-page.ts';
import { openTools } from '../run/tools.ts';
import { systemClock } from '../tools/clock.ts';
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
  timeout: { value: 'duration', about: 'with --once: time limit, such as 60s' },
  allowRemoval: { about: 'let a changed config drop streams and sinks while this runs' },
  logLevel: logLevelOption,
} as const;
type Options = Given<typeof options>;

/** 0: drained, or with `once` all delivered; 1: failed, or with `once` something was not. */
export const run = defineCommand({
  name: 'run',
  about: 'read, store and send until SIGTERM or SIGINT, then drain',
  options,
  async run(given, deps) {
    const limitMs = limitOf(given);
    if (given.once) {
      return await runJourney(given, { deps }, (running) => runOnce(running, limitMs));
    }
    const requests = await listenForReloads(given.config, systemClock());
    const removalAllowed = given.allowRemoval === true;
    try {
      return await runJourney(given, { deps, requests }, (running) =>
        runOn(running, { requests, removalAllowed }),
      );
    } finally {
      requests.release();
    }
  },
});

async function runJourney(
  given: Options,
  { deps, requests }: { readonly deps: Means; readonly requests?: ReloadRequests },
  go: (running: Running) => Promise<ExitCode>,
): Promise<ExitCode> {
  const { config: file, logLevel, once = false } = given;
  const seat = takeSeat(deps.env);
  let control: Control | null = null;
  const read = () => {
    const whole = readConfig(file, { env: deps.env });
    if (seat === null) return whole;
    const part = seat.part(whole);
    if (control !== null) refuseMoved(part, control);
    return part;
  };
  const config = readFor(seat, read);
  const opened = await openOwnLog(config, logLevel);
  const log = seat === null ? opened.log : opened.log.with(seat.fields);
  const own = { ...opened, log };
  warnThroughLog(log);
  if (config.state.warning !== null)
    log.warn('state_dir_of_working_directory', config.state.warning);
  if (seat === null) {
    for (const key of config.ignored) log.warn('config_key_ignored', flawText(config.file, key));
  }
  const shutdown = listenForShutdown(() => {
    log.warn('stopped_at_once', 'second signal: ending at once; nothing is lost');
    deps.exit(1);
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
      await agreeOnHomes(config, deps);
    }
    if (drains !== null && seat !== null) {
      refuseMoved(config, drains.control);
      control = drains.control;
    }
    if (drains !== null && seat === null && (kafka?.shards ?? 1) > 1) {
      const { keepShards } = await import('../run/keep-shards.ts');
      const args = commandLine(given);
      const { env } = deps;
      const removalAllowed = given.allowRemoval === true;
      const keeping = { config, args, env, once, drains, requests, removalAllowed };
      const { stop } = shutdown;
      const ended = await keepShards(keeping, own, { stop, deploymentChanged });
      logStopped(log, shutdown, ended);
      return ended === 0 ? 0 : 1;
    }
    for (let last = config; ; ) {
      const of = { own, shutdown, drains, deps, seat, read, deploymentChanged };
      const ended = await oneJourney(last, of, go);
      if (once || shutdown.stop.aborted || drains?.isDrained() !== true) return ended.code;
      last = ended.config;
    }
  } catch (error) {
    if (shutdown.stop.aborted && error === shutdown.stop.reason) {
      log.info('stopped', 'stopped', { why: String(error) });
      return 0;
    }
    reportEnd(log, asExportError(error, 'running'), seat);
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
    deps,
    seat,
    read,
    deploymentChanged,
    shutdown: ending,
  }: Pick<Running, 'own' | 'shutdown' | 'seat' | 'read' | 'deploymentChanged'> & {
    readonly deps: Means;
    readonly drains: Drains | null;
  },
  go: (running: Running) => Promise<ExitCode>,
): Promise<{ readonly code: ExitCode; readonly config: Config }> {
  const { log } = own;
  const tools = openTools(log);
  const plan = planFrom(config, tools);
  const lost = (why: ExportError) => {
    reportEnd(log, why, seat);
    deps.exit(1);
  };
  const isDrained = () => drains?.isDrained() === true;
  const spare = sparePage(config, tools, isDrained);
  const member = seat === null && drains !== null ? new MemberFile(config.state.dir, log) : null;
  const waits = () => {
    member?.note({ standing_by: standByText(config, isDrained()) });
    spare.waits();
  };
  const { sessionMs = 0 } = config.state.kafka ?? {};
  const membership = seat?.membership(sessionMs, tools, lost);
  const { heard: received } = spare;
  const standBy = { stop: ending.stop, lost, waits, heard: received, isDrained, membership };
  let journey: Journey;
  try {
    journey = await openJourney(plan, config.state, tools, { standBy });
  } finally {
    member?.close();
    await spare.close();
  }
  try {
    for (const { event, text, fields } of resumeLines(plan, journey.before)) {
      log.info(event, text, fields);
    }
    const sight = sightOf({ config, plan }, { journey, tools, seat });
    const shutdown = {
      ...ending,
      stop: drains?.orDrained(ending.stop) ?? ending.stop,
    };
    const control = drains?.control ?? null;
    const of = { config, plan, journey, tools, shutdown, deps, own, sight, control, seat, read };
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
  log.info('stopped', 'stopped', { why, exit_code: code });
}

function reportEnd(log: Log, why: ExportError, seat: ShardSeat | null): void {
  const { code, message, next } = why;
  seat?.ends(why);
  log.error('sluice_failed', 'sluice ends with an error', { code, error: message, next });
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
    log.debug('runtime_warning', 'runtime warning', { warning: name, message });
  });
}

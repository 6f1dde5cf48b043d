// `sluice run`: runs until a signal or, with `--once`, until all records have been read and delivered. Shutdown is in
// order: polling stops, stored events are sent to the sinks that accept them, and the rest stays in the spool and is
// reported. A second signal ends the process at once and loses nothing either. SIGHUP, or a change of the file or of
// a companies file, reloads the config (reload.ts).

import { flawText, loadConfig, reloadConfig } from '../config/index.ts';
import { asExportError, type Log, UsageError } from '../contracts/index.ts';
import { agreeOnDeployment, agreeOnHomes, listenForShutdown, type Shutdown } from '../run/index.ts';
import {
  agreeOnShards,
  closeToOldVersions,
  isImportLeft,
  listenForReloads,
  logFailedCommands,
  oneJourney,
  openDrains,
  openOwnLog,
  type ReloadRequests,
  type Running,
  refuseHalf,
  reportEnd,
  runOn,
  runOnce,
  workerVariable,
} from '../run/process.ts';
import { systemClock } from '../tools/index.ts';
import {
  type CommandDeps,
  configOption,
  defineCommand,
  type ExitCode,
  type Given,
  logLevelOption,
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
    if (deps.env[workerVariable] !== undefined) return await host(given, limitMs, deps);
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
  { deps, requests }: { readonly deps: CommandDeps; readonly requests?: ReloadRequests },
  go: (running: Running) => Promise<0 | 1>,
): Promise<ExitCode> {
  const { config: file, logLevel, once = false } = given;
  const config = await loadConfig(file, { env: deps.env });
  const read = () => reloadConfig(file, { env: deps.env });
  requests?.follow(config);
  const own = await openOwnLog(config, logLevel);
  const { log } = own;
  warnThroughLog(log);
  logFailedCommands(log);
  if (config.state.warning !== null)
    log.warn('state_dir_of_working_directory', config.state.warning);
  for (const key of config.ignored) log.warn('config_key_ignored', flawText(config.file, key));
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
    if (drains !== null && kafka !== null) {
      await agreeOnShards(kafka, drains.control, systemClock());
      refuseHalf(drains.control.isImporting || isImportLeft(config.state.dir));
      const deps = { control: drains.control, clock: systemClock(), log };
      deploymentChanged = await agreeOnDeployment(kafka, deps);
      await agreeOnHomes(config, deps);
      const { stop } = shutdown;
      await closeToOldVersions(kafka, drains.control, { clock: systemClock(), stop });
    }
    if (drains !== null && (kafka?.shards ?? 1) > 1) {
      const { keepShards } = await import('../run/shards.ts');
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
      const control = drains?.control ?? null;
      const of = { own, shutdown, drains, control, deps, hosted: null, read, deploymentChanged };
      const ended = await oneJourney(last, of, go);
      if (once || shutdown.stop.aborted || drains?.isDrained() !== true) return ended.code;
      last = ended.config;
    }
  } catch (error) {
    if (shutdown.stop.aborted && error === shutdown.stop.reason) {
      log.info('stopped', 'stopped', { why: String(error) });
      return 0;
    }
    reportEnd(log, asExportError(error, 'running'), null);
    return 1;
  } finally {
    await drains?.close();
    await own.close(stopMs);
    shutdown.release();
  }
}

/** In a worker process. */
async function host(given: Options, limitMs: number | null, deps: CommandDeps): Promise<never> {
  const { hostShards } = await import('../run/shards.ts');
  const { config: file, logLevel, allowRemoval: removalAllowed = false } = given;
  const { env } = deps;
  return await hostShards({
    ...{ file, env, logLevel, deps },
    go: (running, { once, requests }) =>
      once ? runOnce(running, limitMs) : runOn(running, { requests, removalAllowed }),
  });
}

/** The last log line of a process that runs no pipeline of its own. */
function logStopped(log: Log, { stop }: Pick<Shutdown, 'stop'>, code = 0): void {
  const why = stop.aborted ? String(stop.reason?.message) : 'all of its work is done';
  log.info('stopped', 'stopped', { why, exit_code: code });
}

/** The words by which a worker process is started as this one was. */
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

// The two ways in which a journey runs: until it is stopped, or once to the tail of every source. Both serve the
// requests of operators beside the pipeline. Invariant: requests are served until the pipeline has settled, and not
// after.

import { backlog, ExportError } from '../contracts/index.ts';
import type { Summary } from '../pipeline.ts';
import { compareDue, serveComparisons } from './comparisons.ts';
import { storeDeployment } from './deployment.ts';
import { timeToGiveUp } from './give-up.ts';
import { type ReloadDeps, serveReloads } from './reload.ts';
import type { Made } from './reload-changes.ts';
import { serveRemoteCommands } from './remote-commands.ts';
import { serveRequests } from './requests.ts';
import { type Running, sightOf } from './running.ts';
import { noteRunning, type ReloadRefusal } from './running-config.ts';
import { isWhole, summaryLines } from './summary.ts';

/** Runs until it is stopped, and drains; resolves with the exit code. */
export async function runOn(
  running: Running,
  reloads: Pick<ReloadDeps, 'requests' | 'removalAllowed'>,
): Promise<0 | 1> {
  const { config, plan, journey, tools, shutdown } = running;
  const { pipeline } = journey;
  const { log } = tools;
  const { timeoutMs } = config.shutdown;
  log.info('running', 'running');
  const stopping = () => {
    const why = String(shutdown.stop.reason?.message);
    log.info('stopping', 'stopping; delivering stored events first', { why, within_ms: timeoutMs });
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
    if (running.control === null || running.hosted !== null) return;
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
    serveRemote(running, ending),
  ]);
  try {
    await pipeline.run(shutdown.stop, timeoutMs);
  } finally {
    over.abort(new Error('the journey is over'));
    await serving;
  }
  for (const { name, position, error } of journey.pipeline.state.sinks) {
    const held = backlog(journey.spool.gauge, position);
    if (held === 0) log.info('sink_caught_up', 'sink is caught up', { sink: name, position });
    else {
      const why = error === null ? {} : { error: error.message };
      log.warn('sink_not_caught_up', 'events remain in the spool for the sink', {
        sink: name,
        position,
        held,
        ...why,
      });
    }
  }
  log.info('stopped', 'stopped');
  return 0;
}

/** Reads to the tails and delivers all, within a limit; resolves with the exit code: 1 if something is left. */
export async function runOnce(running: Running, limitMs: number | null): Promise<0 | 1> {
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
  const stop = () => limit.abort(notInTime('stop signal'));
  shutdown.stop.addEventListener('abort', stop);
  if (shutdown.stop.aborted) stop();
  const asked = { ...journey, tools, made: () => running, reads: () => false };
  const serving = Promise.all([
    serveRequests(asked, over.signal),
    serveRemote(running, over.signal),
  ]);
  try {
    // Compares the read records after all of them are delivered.
    const compared = (signal: AbortSignal) =>
      compareDue({ ...journey, tools, made: () => running }, signal);
    const { timeoutMs } = config.shutdown;
    const summary = await journey.pipeline.once(limit.signal, timeoutMs, compared);
    reportSummary(running, summary);
    return isWhole(summary, journey.pipeline.state) ? 0 : 1;
  } finally {
    over.abort(new Error('ended'));
    await serving;
  }
}

async function serveRemote(
  { config, control, journey: { spool }, tools }: Running,
  stop: AbortSignal,
): Promise<void> {
  const { shard = 0 } = config.state.kafka ?? {};
  if (control !== null) await serveRemoteCommands({ shard, control, spool, tools }, stop);
}

function notInTime(why: string): ExportError {
  return new ExportError('upstream_unreachable', `not read to its tail: ${why}`, {
    next: 'Run again: it resumes at its checkpoint. Nothing is lost.',
  });
}

/** If a sink of this run writes events to stdout, the summary must not mix with them. */
function reportSummary({ config, plan, journey, deps }: Running, summary: Summary): void {
  const onStdout = plan.sinks.some(({ settings }) => settings.type === 'stdout');
  const report = onStdout ? deps.err : deps.out;
  const stream = onStdout ? process.stderr : process.stdout;
  const { pipeline, spool } = journey;
  const after = { state: pipeline.state, bytes: spool.gauge.bytes };
  for (const line of summaryLines(summary, after, { config, stream })) report(line);
}

// `sluice backfill`: delivers the events of a past time to every sink. If a process runs with the config, it receives
// the request and reads beside its live streams, and this command follows it; else the command reads. The same command
// line resumes an unfinished backfill. Invariant: an event has the uid that the live stream gives it, so that a
// receiver recognises repeats, and the command warns that it repeats events.

import { type Config, loadConfig } from '../config/index.ts';
import { ExportError, UsageError } from '../contracts/index.ts';
import { holderOf } from '../hold/index.ts';
import type { BackfillProgress, BackfillRequest, Past } from '../hold/open.ts';
import { type Operator, operatorOf, ownOperator } from '../operator/index.ts';
import {
  type BootTools,
  listenForShutdown,
  openTools,
  planFrom,
  type Summary,
  type WholePlan,
} from '../run/index.ts';
import { type Journey, listsOf, openJourney, runAlone } from '../run/process.ts';
import { counted } from '../terminal/index.ts';
import { cleanText } from '../tools/index.ts';
import { logForm, openLog } from '../watch/log.ts';
import { backfillList, cancel } from './backfill-list.ts';
import { whereItRuns } from './shared/at-work.ts';
import { besideMeter, type Meter, meterFor } from './shared/backfill-meter.ts';
import {
  type CommandDeps,
  type CommandGroup,
  configOption,
  defineCommand,
  type ExitCode,
  type Given,
  logLevelOption,
} from './shared/command.ts';
import { partWithSource } from './shared/parts.ts';
import { refuseUnknown, timeTyped } from './shared/typed.ts';

const options = {
  config: configOption,
  source: { value: 'name', about: 'source of the events', needed: true },
  from: { value: 'time', about: 'start of the span, RFC 3339', needed: true },
  to: { value: 'time', about: 'end of the span, RFC 3339; default: now' },
  restart: { about: 'restart, even if the same backfill is unfinished' },
  logLevel: logLevelOption,
} as const;
type Options = Given<typeof options>;

/** How long a process that is restarted may be away. */
const awayMsMax = 60_000;
/** How often the request is read, and by when its process accepts it, or never does. */
const paceHere = { lookEveryMs: 250, acceptedWithinMs: 15_000 };
const paceRemote = { lookEveryMs: 1_000, acceptedWithinMs: 60_000 };
const stoppedWithinMs = 10_000;

/** 0: read and delivered; 1: not, or in part, with the reason. */
const start = defineCommand({ name: 'start', about: '', options, run: backfilled });

/** Starts a backfill. `sluice backfill` without a subcommand does the same: older versions had no subcommand. */
export const backfill: CommandGroup = {
  name: 'backfill',
  about: 'deliver the events of a past time, beside the running process or alone',
  commands: [backfillList, cancel],
  alone: start,
  more: `If a process runs with this config, that process reads the backfill beside its live streams, and the command
shows its progress. Otherwise the command reads it and locks the state directory meanwhile. Ctrl-C stops the
backfill; the same command line resumes it, also after a crash.
Upstream documents no time filter: sluice reads the whole list and skips other times. Every sink gets the
events again, with the same uid. Sinks that write each event once (file, Kafka with exactly_once) write these
once more. Records without a readable time are delivered.`,
};

async function backfilled(options: Options, deps: CommandDeps): Promise<ExitCode> {
  const whole = await loadConfig(options.config, { env: deps.env });
  const { config } = whereItRuns(partWithSource(whole, options.source));
  const past = pastOf(options, config, Date.now());
  const form = logForm(process.stderr);
  const level = options.logLevel ?? (form === 'text' ? 'warn' : config.log.level);
  const plainLog = await openLog({ level, form });
  const meter = meterFor(process.stderr, { log: plainLog, name: past.source, now: Date.now });
  const tools = openTools(besideMeter(plainLog, meter.clear));
  const shutdown = listenForShutdown(() => deps.exit(1));
  try {
    const plan = planFrom(config, tools);
    refuseWithoutList(past, plan);
    const isAnew = options.restart === true;
    const operator = operatorOf(config, whole);
    const doing = { past, isAnew, config, operator, plan, tools, meter, deps };
    return await carryOut({ ...doing, stop: shutdown.stop });
  } finally {
    meter.clear();
    await tools.http.close();
    shutdown.release();
  }
}

interface Backfilling {
  readonly past: Past;
  /** Forget an earlier backfill of the same span. */
  readonly isAnew: boolean;
  readonly config: Config;
  readonly operator: Operator;
  readonly plan: WholePlan;
  readonly tools: BootTools;
  readonly stop: AbortSignal;
  readonly meter: Meter;
  readonly deps: CommandDeps;
}

interface Doing extends Backfilling {
  readonly pace: typeof paceHere;
}

function pastOf(options: Options, { sources }: Config, now: number): Past {
  const { source } = options;
  refuseUnknown('source', source, Object.keys(sources));
  const from = timeTyped('from', options.from);
  const to = options.to === undefined ? null : timeTyped('to', options.to);
  if (from >= now) throw new UsageError('--from: expected a time in the past');
  if (to !== null && to <= from) throw new UsageError('--to: expected a time after --from');
  if (to !== null && to > now) {
    throw new UsageError('--to: expected a time in the past; leave it out for up to now');
  }
  return { source, from, to };
}

function refuseWithoutList({ source }: Past, { sources }: WholePlan): void {
  if (listsOf(sources.find(({ name }) => name === source)) !== null) return;
  throw new UsageError(`--source: ${source} is not read as one list, so it cannot be backfilled`);
}

function introduction({ source, from, to }: BackfillRequest): readonly string[] {
  const time = (at: number) => new Date(at).toISOString();
  return [
    `${source}: events from ${time(from)} up to ${time(to)}. Upstream documents no time filter: sluice reads the whole list and skips other times.`,
    'Every sink gets them again, with the same uid. Sinks that write each event once write these once more.',
  ];
}

async function carryOut(given: Backfilling): Promise<ExitCode> {
  const { past, isAnew, config, stop, deps } = given;
  const journey = await openHere(given);
  const operator = journey === null ? given.operator : ownOperator(config);
  const isHere = holderOf(config.state.dir) !== null;
  const doing: Doing = { ...given, operator, pace: isHere ? paceHere : paceRemote };
  try {
    const asked = await operator.backfill.begin(past, isAnew);
    for (const line of introduction(asked)) deps.err(line);
    const holder = (await operator.holder()) ?? 'another process';
    if (journey === null) deps.err(`${holder} runs with this config and gets the request`);
    const alone = journey && runAlone(asked, journey, doing);
    const until = alone === null ? stop : AbortSignal.any([stop, alone.stuck]);
    const last = await follow(doing, asked, { until, isAlone: alone !== null }).catch(
      async (error) => {
        await alone?.end({ delivers: false });
        throw error;
      },
    );
    const progress = stop.aborted ? await stopThere(doing, asked, last) : last;
    if (alone === null) return await reportEnd(doing, asked, progress);
    const { read, behind } = await alone.end({ delivers: progress?.state === 'failed' });
    const held = Math.max(0, ...behind.map((sink) => sink.held));
    // A cancelled backfill no longer has its progress stored.
    const come = (await operator.backfill.now(asked)) === undefined ? read : progress;
    const code = await reportEnd(doing, asked, come && { ...come, behind: held });
    for (const line of behindLines(behind)) deps.err(line);
    return code;
  } finally {
    await journey?.close();
  }
}

/** The journey, where no process runs it; null: one does, which gets the request. */
async function openHere({ config, operator, plan, tools }: Backfilling): Promise<Journey | null> {
  if ((await operator.holder()) !== null) return null;
  try {
    return await openJourney(plan, config.state, tools, { polls: false });
  } catch (error) {
    const isLocked = error instanceof ExportError && error.code === 'state_locked';
    if (isLocked && (await operator.holder()) !== null) return null;
    throw error;
  }
}

/** Shows the progress until the backfill has ended or the wait is aborted. */
async function follow(
  doing: Doing,
  asked: BackfillRequest,
  { until, isAlone }: { readonly until: AbortSignal; readonly isAlone: boolean },
): Promise<BackfillProgress | null> {
  const { operator, pace, tools, meter } = doing;
  const { clock } = tools;
  const askedAt = clock.monotonic();
  let seenAt = askedAt;
  let last: BackfillProgress | null = null;
  while (!until.aborted) {
    const request = await operator.backfill.now(asked);
    if (!request?.isRequested) return request?.progress ?? last;
    const { progress } = request;
    if (progress !== null && progress.at >= asked.askedAt) {
      last = progress;
      meter.show(progress);
    }
    if (isAlone || (await operator.holder()) !== null) seenAt = clock.monotonic();
    if (clock.monotonic() - seenAt > awayMsMax) throw left(doing);
    const isLate = last === null && !isAlone;
    if (isLate && clock.monotonic() - askedAt > pace.acceptedWithinMs) {
      await operator.backfill.stop(asked);
      throw notAccepted(doing, await operator.holder());
    }
    await clock.sleep(pace.lookEveryMs, until).catch(() => undefined);
  }
  return last;
}

/** Waits until its reader has stored the progress. */
async function stopThere(
  { operator, pace, tools: { clock } }: Doing,
  request: BackfillRequest,
  last: BackfillProgress | null,
): Promise<BackfillProgress | null> {
  const at = (await operator.backfill.stop(request))?.progress?.at;
  const deadline = clock.monotonic() + stoppedWithinMs;
  const now = async () => (await operator.backfill.now(request))?.progress ?? null;
  while (last !== null && (await now())?.at === at && clock.monotonic() < deadline) {
    await clock.sleep(pace.lookEveryMs);
  }
  return (await now()) ?? last;
}

function left({ past, config }: Doing): ExportError {
  return new ExportError(
    'state_locked',
    `backfilling ${past.source}: the process that ran with ${config.file} has ended`,
    {
      next: 'Start the process again, which resumes the backfill, or run the same command line again.',
    },
  );
}

function notAccepted({ past }: Doing, running: string | null): ExportError {
  const holder = running ?? 'the process that had the state';
  return new ExportError(
    'state_locked',
    `backfilling ${past.source}: ${holder} does not accept the request`,
    {
      next: 'It may be a `run --once`, another backfill or an older version: wait for its end, then run the same command line again.',
    },
  );
}

async function reportEnd(
  doing: Doing,
  request: BackfillRequest,
  progress: BackfillProgress | null,
): Promise<ExitCode> {
  const { meter, deps } = doing;
  const { source } = request;
  meter.clear();
  const { read = 0, held = 0, untimed = 0, behind = 0, reachedAt = null } = progress ?? {};
  const odd = untimed === 0 ? '' : `, ${untimed} of them without a readable time`;
  const counts = `${counted(read, 'record')} read, ${counted(held, 'event')} held for the sinks${odd}`;
  if (progress?.state === 'done') {
    deps.out(`${source}: ${counts}; every sink has them`);
    return 0;
  }
  if ((await doing.operator.backfill.now(request)) === undefined) {
    deps.err(`${source}: cancelled: ${counts}; stored events are still delivered`);
    return 1;
  }
  const reached = reachedAt === null ? '' : ` at ${new Date(reachedAt).toISOString()}`;
  deps.err(`${source}: incomplete: ${counts}; ${counted(behind, 'event')} still to deliver`);
  if (progress?.error) {
    const { message, next } = progress.error;
    for (const line of [message, `  ${next}`]) deps.err(line);
  } else if (progress === null || progress.state === 'stopped')
    deps.err(`stopped${reached}; nothing is lost`);
  deps.err('the same command line resumes from there');
  return 1;
}

function behindLines(behind: Summary['behind']): readonly string[] {
  return behind.map(({ sink, held, cause }) => {
    const why = cause === null ? 'there was no time left' : cause.message;
    return cleanText(`${sink}: ${counted(held, 'event')} still held: ${why}`, 500);
  });
}

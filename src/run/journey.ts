// Opens and closes the whole journey, for every command that runs it: checks the state directory and repairs damage,
// takes the lock, opens the spool, creates the pipeline. Invariants: the state is inspected before anything is opened,
// so that a run can report where it resumes; closing settles the spool before it releases the lock.

import { sendTurnOf } from '../cluster/index.ts';
import type { Membership, ShardLog } from '../cluster/kafka.ts';
import type { Config } from '../config/index.ts';
import { type Clock, ExportError, type Tools } from '../contracts/index.ts';
import { forgetLeft } from '../fetch/engine.ts';
import { settlePairs } from '../fetch/index.ts';
import { importBackfillFiles, type OwnSpool, openSpool, type SpoolSettings } from '../hold/open.ts';
import { driftKey, Pipeline, type Plan } from '../pipeline.ts';
import { boundHeapGrowth } from '../tools/index.ts';
import { readState, type State } from '../watch/index.ts';
import { type ClusterFacts, Findings } from '../watch/running-status.ts';
import { noteEnd, noteOwner, refuseBeside } from './cluster.ts';
import { cutLogPages } from './cut-log.ts';
import { EndEvents, type EndsPlan } from './end-events.ts';
import { keepCeilings, resumeCeilings } from './keep-ceilings.ts';
import { RemovedSinks } from './removed-sinks.ts';
import { repairState } from './repair-state.ts';
import type { BootTools } from './tools.ts';
import { ConfigWatch, type Processes } from './watch-configs.ts';
import { whenFree } from './when-free.ts';

/** A pipeline on its spool. */
export interface Journey {
  readonly pipeline: Pipeline;
  readonly spool: OwnSpool;
  /** The content of the state directory before the start. */
  readonly before: State;
  /** Conditions of sources found since the start, for the status. */
  readonly findings: Findings;
  readonly removedSinks: RemovedSinks;
  readonly ends: EndEvents;
  /** Publishes the print of the config that runs after a reload to the other processes of the state. */
  configRuns(config: Pick<Config, 'state'>): void;
  /** The facts about a state in Kafka; undefined: the state is in SQLite. */
  readonly cluster?: (() => ClusterFacts) | undefined;
  /** Shutting down: bound the wait for Kafka commits. */
  hurry(): void;
  /** Closes spool and connections. */
  close(): Promise<void>;
}

/** How a journey is opened. */
interface Opening {
  /** Default: true. */
  readonly polls?: boolean;
  /** A command opens it for one change, so that processes that start meanwhile wait; default: false. */
  readonly isBrief?: boolean;
  /** Undefined: a state in Kafka that another process has is refused, instead of waited for. */
  readonly standBy?: {
    /** Ends the wait; opening then rejects with its reason. */
    readonly stop: AbortSignal;
    /** Called when another process has the state, and this one waits. */
    readonly waits?: () => void;
    /** Called with the time of each request that the group has answered; epoch milliseconds. */
    readonly answered?: (at: number) => void;
    /** Whether an operator wants this process to have no state, and another one instead. */
    readonly isDrained?: () => boolean;
    /** The membership from the process that started this one; undefined: this process joins by itself. */
    readonly membership?: Membership | undefined;
    /** Reads the processes of the state, for all shards of this process; default: each shard reads them. */
    readonly processes?: Processes | undefined;
    /** Called when another process has taken over the state. */
    readonly lost: (why: ExportError) => void;
  };
}

/** Readers whose positions retain pages. */
export function readersOf({ sinks, drift }: Plan): readonly string[] {
  return [...sinks.map(({ name }) => name), ...(drift ? [driftKey] : [])];
}

/**
 * Opens spool and pipeline; with `polls: false` no stream of the plan is polled. Throws `state_locked`, `state_damaged`
 * or `disk_full`; then nothing is left open.
 */
export async function openJourney(
  plan: Plan & EndsPlan,
  opened: Config['state'],
  tools: BootTools,
  { polls = true, isBrief = false, standBy }: Opening = {},
): Promise<Journey> {
  const { state, configRuns } = withRunningConfig(opened);
  let shard: ShardLog | null = null;
  let held: OwnSpool | null = null;
  let ownership: Membership | null = null;
  const over = new AbortController();
  try {
    const findings = new Findings();
    const { log, clock } = tools;
    ownership = await owned(state, tools, standBy);
    if (ownership !== null) tools.permit.isGiven = ownership.hasContact;
    const taken = await takeShard(state, tools, ownership);
    shard = taken?.shard ?? null;
    const free = { clock, log, stop: standBy?.stop };
    const repairing = { log, now: clock.now(), found: findings.add };
    await whenFree(state.dir, free, () => repairState(plan, state, repairing));
    importBackfillFiles(state);
    const before = readState(state.dir);
    resumeCeilings(state.dir, tools.throttles);
    const settings: SpoolSettings = {
      isBrief,
      dir: state.dir,
      sync: shard === null ? state.sync : 'none',
      ...(shard === null ? {} : { log: shard }),
      sharesThread: standBy?.membership !== undefined,
      keepMs: state.keepMs,
      removedSinksMs: state.removedSinksMs,
      bytesMax: state.maxBytes,
      sinks: readersOf(plan),
    };
    const opening = whenFree(state.dir, free, () => openSpool(settings));
    // Concurrent with the spool's thread. If this fails, the first request reports the error.
    tools.http.ready().catch(() => undefined);
    const spool = await opening;
    held = spool;
    boundHeapGrowth();
    if (polls) await forgetLeft(spool, plan.sources);
    if (polls) await settlePairs(spool, plan.sources, log);
    const reported = { now: clock.now(), found: findings.add };
    const { kafka } = state;
    const isShared = kafka !== null;
    const removedSinks = new RemovedSinks(plan, {
      spool,
      clock,
      log,
      found: findings.add,
      isShared,
    });
    const gaps = await removedSinks.gaps(plan);
    const { processes } = standBy ?? {};
    const configs = kafka && configWatch(kafka, { removedSinks, findings, processes, clock, log });
    // Before a page can be deleted that a sink of another process needs.
    await configs?.look();
    await removedSinks.runs(plan, gaps);
    void configs?.follow(over.signal);
    const cut = taken?.missing ? cutLogPages(plan, taken.missing, reported) : [];
    await Promise.all(cut.map((page) => spool.append(page)));
    const hasMoved = (source: string) => pipeline.hasMoved(source);
    const ends = new EndEvents({ spool, clock, log, found: findings.add, hasMoved });
    await ends.runs(plan);
    const ceilings = keepCeilings(spool, tools.throttles, { isInKafka: shard !== null });
    const silent = plan.sources.map((source) => ({ ...source, streams: [] }));
    const pipeline = new Pipeline(polls ? plan : { ...plan, sources: silent }, {
      ...{
        spool,
        tools: { ...tools, ...turnsOf(shard, ownership, { standBy, clock }) },
      },
      random: tools.random,
      ...(polls && { ends }),
      found: findings.add,
    });
    return {
      pipeline,
      spool,
      before,
      findings,
      removedSinks,
      ends,
      configRuns,
      cluster: clusterFacts(state, taken, ownership),
      hurry: () => shard?.hurry(),
      close: async () => {
        shard?.hurry();
        ceilings.close();
        over.abort(new Error('the journey is closed'));
        removedSinks.close();
        if (taken !== null) noteEnd(spool, taken.note);
        await spool.close();
        await shard?.close();
        await ownership?.close();
        await tools.http.close();
      },
    };
  } catch (error) {
    over.abort(error);
    shard?.cut();
    // Its lock would keep this process from opening the state again.
    await held?.close().catch(() => undefined);
    await ownership?.close();
    await tools.http.close();
    throw error;
  }
}

/** The state, with the digest of the running config, which a reload changes. */
function withRunningConfig(state: Config['state']): Pick<Journey, 'configRuns'> & {
  readonly state: Config['state'];
} {
  const { kafka } = state;
  if (kafka?.config === undefined) return { state, configRuns: () => undefined };
  let print = kafka.config;
  return {
    state: { ...state, kafka: { ...kafka, config: () => print() } },
    configRuns: (config) => {
      print = config.state.kafka?.config ?? print;
    },
  };
}

/** Tracks the sinks of other processes, and the differences between their configs. */
function configWatch(
  kafka: NonNullable<Config['state']['kafka']>,
  {
    removedSinks,
    findings,
    ...tools
  }: Pick<Journey, 'removedSinks' | 'findings'> &
    Pick<BootTools, 'clock' | 'log'> & { readonly processes: Processes | undefined },
): ConfigWatch {
  return new ConfigWatch({
    ...{ kafka, ...tools },
    sinks: (names, isAll) => removedSinks.others(names, isAll),
    differences: (differences) => {
      findings.configDifferences = differences;
    },
  });
}

/** Of a journey on one shard: it is open, so the shard runs. */
function clusterFacts(
  { kafka }: Config['state'],
  taken: Awaited<ReturnType<typeof takeShard>>,
  ownership: Membership | null,
): (() => ClusterFacts) | undefined {
  if (kafka === null || taken === null) return undefined;
  const { shard, isTakeover } = taken;
  const own = [kafka.shard ?? 0];
  return () => ({
    share: { owned: own, running: own, failing: [] },
    takeovers: Number(isTakeover),
    answeredAt: ownership?.answeredAt ?? null,
    commitMs: shard.commitMs,
  });
}

/** The facts that sinks need about other processes; none if there can be no other process. */
function turnsOf(
  shard: ShardLog | null,
  ownership: Membership | null,
  { standBy, clock }: { readonly standBy: Opening['standBy']; readonly clock: Clock },
): Pick<Tools, 'confirm' | 'sendTurn'> {
  if (shard === null || ownership === null) return {};
  const confirm = confirmOf(shard, standBy);
  return { confirm, sendTurn: sendTurnOf(ownership, confirm, clock) };
}

/** Confirms for sinks that this process still owns the state; if it does not, the run ends. */
function confirmOf(
  shard: ShardLog,
  standBy: Opening['standBy'],
): (signal?: AbortSignal) => Promise<void> {
  return async (signal) => {
    try {
      await shard.confirm(signal);
    } catch (error) {
      if (error instanceof ExportError && error.code === 'state_locked') standBy?.lost(error);
      throw error;
    }
  };
}

/** Where the state is in Kafka: waits until this process is the one that is to work. */
async function owned(
  { kafka }: Config['state'],
  { log, clock }: BootTools,
  standBy: Opening['standBy'],
): Promise<Membership | null> {
  if (kafka === null) return null;
  if (standBy?.membership) return standBy.membership;
  const { gainOnly } = await import('../cluster/kafka.ts');
  await refuseBeside(kafka, clock, { waits: standBy !== undefined });
  // A process that does not wait is fenced when it loses the state, and ends by that.
  const alone = { lost: () => undefined, stop: AbortSignal.timeout(aloneMsMax) };
  const { stop, ...reported } = standBy ?? alone;
  return await gainOnly(kafka, { log, clock, ...reported }, stop);
}

/** How long a process without standby waits for a group without members. */
const aloneMsMax = 60_000;

/** With a state in Kafka: takes ownership, and rebuilds the database from Kafka. */
async function takeShard(
  { kafka, dir }: Config['state'],
  tools: BootTools,
  ownership: Membership | null,
) {
  if (kafka === null) return null;
  // The Kafka client is slow to load.
  const [{ ShardLog }, { sentTopic, takeOverSent }] = await Promise.all([
    import('../cluster/kafka.ts'),
    import('./own-process-upgrade.ts'),
  ]);
  const shard = await ShardLog.take(kafka, { ...tools, confirm: ownership?.confirm });
  try {
    const { missing, ...rebuilt } = await shard.rebuild(dir);
    tools.log.info('state_rebuilt', 'state rebuilt from Kafka', rebuilt);
    const { note, isTakeover } = noteOwner(dir, kafka, tools.clock.now());
    if (await shard.has(sentTopic(kafka))) await takeOverSent(kafka, { ...tools, dir });
    if (missing !== null) {
      tools.log.error('kafka_pages_lost', 'Kafka deleted pages that a sink has not delivered', {
        ...missing,
        next: 'Set retention.ms=-1 and retention.bytes=-1 for the topic of the pages. Each stream reports the gap to its sinks. Read the missing time from upstream again if upstream still has it.',
      });
    }
    return { shard, missing, note, isTakeover };
  } catch (error) {
    shard.cut();
    throw error;
  }
}

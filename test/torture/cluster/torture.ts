// The torture of processes that share their state in Kafka: everything that can break breaks, drawn from a seed; then
// all is repaired, and the sink's topic and the archive are compared with upstream's ledger. Every record must be in
// each of them once, the archive must verify, and upstream may have rejected one request a takeover at most.

import { readdirSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { aSigner, readArchive } from '../../archive/a-writer.ts';
import { consumeAll } from '../../support/kafka.ts';
import { actsOf } from '../plan.ts';
import { listsOf } from '../upstream-acts.ts';
import { clusterLanes } from './acts.ts';
import { audit, type ClusterStage, openClusterStage, topic } from './stage.ts';

/** What to run. */
export interface ClusterTortureOptions {
  /** The same seed breaks the same things in the same order. */
  readonly seed: number;
  /** How long things break, in milliseconds; repair and counting are extra. */
  readonly forMs: number;
  /** Events a second. Default 20. */
  readonly rate?: number;
  /** Default 3. */
  readonly processes?: number;
  /** Default 1. */
  readonly shards?: number;
  /** Called with each step, a line each. */
  readonly tell: (line: string) => void;
}

/** How it ended. */
export interface ClusterTortureResult {
  /** What is wrong; empty when the processes kept the promises. */
  readonly findings: readonly string[];
  readonly records: number;
  readonly takeovers: number;
  /** Requests that upstream has refused as too many, by its own ceiling. */
  readonly overLimit: number;
  /** Acts survived, by lane and name. */
  readonly survived: ReadonlyMap<string, number>;
  /** State, archive and logs; kept where there are findings. */
  readonly dir: string;
}

const healWithinMs = 180_000;
const lookEveryMs = 2_000;
const examplesMax = 8;

/** Runs it to its end. Rejects only when the stage itself fails. */
export async function runClusterTorture({
  seed,
  forMs,
  rate = 20,
  processes = 3,
  shards = 1,
  tell: report,
}: ClusterTortureOptions): Promise<ClusterTortureResult> {
  const lists = listsOf(seed).filter(({ path }) => path === audit);
  const stage = await openClusterStage({ seed, lists, rate, processes, shards });
  let isWhole = false;
  try {
    const survived = await breakThings(stage, { seed, forMs, processes, tell: report });
    report('everything is mended; waiting for the processes to catch up');
    const findings = [...(await heal(stage, report)), ...stage.defects];
    const { takeovers } = stage;
    const { statuses = {} } = stage.sandbox.control.requests()[audit] ?? {};
    const overLimit = statuses['429'] ?? 0;
    if (overLimit > takeovers) {
      findings.push(`upstream refused ${overLimit} requests as too many in ${takeovers} takeovers`);
    }
    isWhole = findings.length === 0;
    const records = stage.sandbox.ledger().list(audit).size;
    return { findings, records, takeovers, overLimit, survived, dir: stage.dir };
  } finally {
    await stage.close(!isWhole);
  }
}

async function breakThings(
  stage: ClusterStage,
  {
    seed,
    forMs,
    processes,
    tell: report,
  }: Required<Omit<ClusterTortureOptions, 'rate' | 'shards'>>,
): Promise<ReadonlyMap<string, number>> {
  const survived = new Map<string, number>();
  const end = performance.now() + forMs;
  const lanes = Object.entries(clusterLanes(processes));
  for (let index = 0; index < processes; index += 1) stage.start(index);
  await Promise.all(
    lanes.map(async ([lane, { acts, pace }]) => {
      for (const act of actsOf(seed, lane, Object.keys(acts), pace)) {
        if (performance.now() + act.afterMs >= end) return;
        await delay(act.afterMs);
        report(`${lane}: ${act.name}`);
        await acts[act.name]?.(stage, act);
        const key = `${lane.replace(/-\d+$/, '')}: ${act.name}`;
        survived.set(key, (survived.get(key) ?? 0) + 1);
      }
    }),
  );
  return survived;
}

/** Lets the processes catch up, ends them in order, and counts. */
async function heal(
  stage: ClusterStage,
  report: ClusterTortureOptions['tell'],
): Promise<readonly string[]> {
  stage.sandbox.control.setRate(0);
  const end = performance.now() + healWithinMs;
  let findings = await topicFindings(stage);
  while (findings.length > 0 && performance.now() < end) {
    report(`not yet: ${findings[0]}`);
    await delay(lookEveryMs);
    findings = await topicFindings(stage);
  }
  await stage.endAll('SIGTERM');
  return [...(await topicFindings(stage)), ...(await archiveFindings(stage))];
}

/** What the sink's topic has, against the ledger: each record once, and no event twice. */
async function topicFindings(stage: ClusterStage): Promise<string[]> {
  const events = (await eventsInTopic(stage)).filter(({ raw }) => raw !== null);
  const left = new Map<string, number>();
  for (const { text } of stage.sandbox.ledger().list(audit).records()) {
    left.set(text, (left.get(text) ?? 0) + 1);
  }
  const invented: string[] = [];
  for (const { uid, raw } of events) {
    const count = left.get(raw ?? '') ?? 0;
    if (count === 0) invented.push(`${uid} ${raw?.slice(0, 100)}`);
    else left.set(raw ?? '', count - 1);
  }
  const lost = [...left].filter(([, count]) => count > 0).map(([text]) => text.slice(0, 100));
  const open = lost.length === 0 ? [] : await unfinishedIn(stage);
  return [
    ...reported('the topic lacks', lost),
    ...reported('the topic has, and shows to no reader of committed records', open),
    ...reported('the topic repeats, or has what upstream never had', invented),
  ];
}

/** The archive has the events of upstream's records that the topic has, each once, and is whole. */
async function archiveFindings(stage: ClusterStage): Promise<readonly string[]> {
  const events = await eventsInTopic(stage);
  const inTopic = events.map(({ uid }) => uid);
  // sluice's reports about its archive go to every sink but that.
  const ofUpstream = events.filter(({ raw }) => raw !== null).map(({ uid }) => uid);
  try {
    const { uids } = await readArchive(stage.archive, aSigner('torture'));
    const archived = new Map<string, number>();
    for (const uid of uids) archived.set(uid, (archived.get(uid) ?? 0) + 1);
    const twiceInTopic = repeated(inTopic);
    const twice = [...archived].filter(([, times]) => times > 1).map(([uid]) => uid);
    return [
      ...reported(
        'the topic has twice',
        events
          .filter(({ uid }) => twiceInTopic.has(uid))
          .map(({ uid, where }) => `${uid} ${where}`),
      ),
      ...reported('the archive has twice', twice),
      ...reported(
        'the archive lacks',
        ofUpstream.filter((uid) => !archived.has(uid)),
      ),
    ];
  } catch (error) {
    return [`the archive is not whole: ${String(error)} (${readdirSync(stage.dir).join(', ')})`];
  }
}

function repeated(all: readonly string[]): ReadonlySet<string> {
  const seen = new Set<string>();
  return new Set(all.filter((one) => seen.size === seen.add(one).size));
}

/** `raw` is null for sluice's own events. */
async function eventsInTopic({ kafka }: ClusterStage) {
  const brokers = [kafka.addresses.plain];
  const records = await consumeAll(topic, { brokers, timeoutMs: 60_000 });
  return records.map(({ value, offset, timestampMs }) => {
    const { metadata, raw_data: raw = '' } = JSON.parse(value) as {
      readonly metadata: { readonly uid: string; readonly log_name?: string };
      readonly raw_data?: string;
    };
    const where = `at ${offset}, ${new Date(timestampMs).toISOString()}`;
    return { uid: metadata.uid, raw: metadata.log_name === 'sluice' ? null : raw, where };
  });
}

/** Records after an unfinished transaction: a reader of committed records never gets there. */
async function unfinishedIn({ kafka }: ClusterStage): Promise<readonly string[]> {
  const asked = { brokers: [kafka.addresses.plain], timeoutMs: 60_000 };
  const all = await consumeAll(topic, { ...asked, isolation: 'read_uncommitted' });
  const shown = new Set((await consumeAll(topic, asked)).map(({ offset }) => offset));
  const last = [...shown].at(-1) ?? -1n;
  return all
    .filter(({ offset }) => offset > last)
    .map(({ offset, timestampMs }) => `${offset}, ${new Date(timestampMs).toISOString()}`);
}

function reported(what: string, all: readonly string[]): readonly string[] {
  if (all.length === 0) return [];
  return [`${what}: ${all.length}`, ...all.slice(0, examplesMax).map((one) => `  ${one}`)];
}

/** The acts and the results, as lines of text. */
export function clusterReportOf(result: ClusterTortureResult): readonly string[] {
  const { survived, records, takeovers, overLimit } = result;
  const rows = [...survived].sort(([a], [b]) => a.localeCompare(b));
  return [
    `${rows.reduce((sum, [, times]) => sum + times, 0)} faults survived, of ${rows.length} kinds:`,
    ...rows.map(([name, times]) => `${String(times).padStart(5)}  ${name}`),
    `${records} records, ${takeovers} takeovers, ${overLimit} requests over upstream's ceiling`,
  ];
}

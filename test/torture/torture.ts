// The torture run: the real program, all sinks on real receivers, upstream data that grows, and for the requested time
// everything that can break breaks, drawn from a seed. Then all is repaired, the program gets its time, and the results
// are compared. The test in the suite (test/journeys/torture.test.ts) and `npm run torture` both run this.

import { setTimeout as delay } from 'node:timers/promises';
import { runSluice } from '../support/cli.ts';
import { type Accounts, repeatable, takeAccounts } from './accounts.ts';
import { type Lane, lanes } from './acts.ts';
import { actsOf } from './plan.ts';
import { type Doing, withoutCause } from './repeats.ts';
import { openStage, type Stage } from './stage.ts';
import { listsOf } from './upstream-acts.ts';

/** What to run. */
export interface TortureOptions {
  /** The same seed breaks the same things in the same order. */
  readonly seed: number;
  /** How long things break, in milliseconds; repair and counting are extra. */
  readonly forMs: number;
  /** Audit events a second; logs come three times as fast. Default 8. */
  readonly rate?: number;
  /** Called with each step, a line each. */
  readonly tell: (line: string) => void;
}

/** How it ended. */
export interface TortureResult {
  /** What is wrong; empty when the program kept its promises. */
  readonly findings: readonly string[];
  readonly accounts: Accounts;
  /** Acts survived, by lane and name. */
  readonly survived: ReadonlyMap<string, number>;
  /** State, outputs and logs; kept where there are findings. */
  readonly dir: string;
}

/** Runs up to this long are as dense as the paces say; longer ones are stretched, up to so many times. */
const briskMs = 120_000;
const calmMax = 5;
const healWithinMs = 120_000;
const lookEveryMs = 3_000;
const readEveryMs = 1_000;
/** The result of an act whose moment did not come: a kill at another moment, an impostor without a connection. */
const missedName = 'an act whose moment did not come';

/** By sink: whose acts can make it repeat, and how long an event is under way there at most, waits of ours included. */
const flights: Readonly<
  Record<
    string,
    { readonly lanes: readonly string[]; readonly ms: number; readonly inRequests?: boolean }
  >
> = {
  otel: { lanes: ['process', 'otlp'], ms: 3_000, inRequests: true },
  post: { lanes: ['process', 'http'], ms: 3_000, inRequests: true },
  siem: { lanes: ['process', 'rsyslog', 'syslog over TLS'], ms: 5_000 },
  archive: { lanes: ['process', 'rsyslog', 'syslog over TCP'], ms: 5_000 },
};

/** Runs a torture to its end. Rejects only when the stage itself fails. */
export async function runTorture(options: TortureOptions): Promise<TortureResult> {
  const { seed, forMs, tell: report, rate = 8 } = options;
  const stage = await openStage({ seed, lists: listsOf(seed), rate });
  report(`seed ${seed}: ${JSON.stringify(stage.options.lists)}`);
  let whole = false;
  try {
    const doings = await breakThings(stage, options);
    report('everything is repaired; waiting for the program to catch up');
    const accounts = await heal(stage, doings, report);
    const findings = [...stage.defects, ...accounts.findings];
    whole = findings.length === 0;
    return { findings, accounts, survived: counted(doings), dir: stage.dir };
  } finally {
    await stage.close(!whole);
    if (!whole)
      report(`state, outputs and logs are kept in ${stage.dir} (after ${forMs} ms, seed ${seed})`);
  }
}

async function breakThings(
  stage: Stage,
  { seed, forMs, tell: report }: TortureOptions,
): Promise<readonly Doing[]> {
  const doings: Doing[] = [];
  const end = performance.now() + forMs;
  const calm = Math.max(1, Math.min(calmMax, forMs / briskMs));
  const run = async (lane: string, { acts, pace }: Lane) => {
    for (const act of actsOf(seed, lane, Object.keys(acts), pace)) {
      const afterMs = act.afterMs * calm;
      if (performance.now() + afterMs >= end) return;
      await delay(afterMs);
      report(`${lane}: ${act.name}`);
      const fromMs = performance.now();
      await acts[act.name]?.(stage, act);
      const name = stage.missed.has(act) ? missedName : act.name;
      doings.push({ lane, name, fromMs, toMs: performance.now() });
    }
  };
  stage.start();
  const broken = Promise.all(Object.entries(lanes).map(([name, lane]) => run(name, lane)));
  const over = new AbortController();
  const reading = readOn(stage, over.signal);
  await broken.finally(() => over.abort());
  await reading;
  return doings;
}

/** Syslog's arrivals are known only once they are read. */
async function readOn(stage: Stage, over: AbortSignal): Promise<void> {
  while (!over.aborted) {
    stage.receivers.syslog.read();
    await delay(readEveryMs, undefined, { signal: over }).catch(() => undefined);
  }
}

/** Lets the program catch up, ends it in order, and counts; dead letters go out again before the last count. */
async function heal(
  stage: Stage,
  doings: readonly Doing[],
  report: TortureOptions['tell'],
): Promise<Accounts> {
  stage.sandbox.control.setRate(0);
  const begunMs = performance.now();
  // Waits that grew while things were broken are over with a new process.
  await stage.stop();
  stage.start();
  const end = performance.now() + healWithinMs;
  let accounts = await takeAccounts(stage);
  while (accounts.findings.length > 0 && performance.now() < end) {
    report(`not yet: ${accounts.findings[0]}`);
    await delay(lookEveryMs);
    accounts = await takeAccounts(stage);
  }
  await stage.stop();
  // A source's condition is emitted from time to time for ever, and was on its way at each look.
  if (accounts.findings.length > 0) accounts = await takeAccounts(stage);
  if (accounts.findings.length > 0) return accounts;
  // Only now: a dead letter that goes out again may have arrived before.
  const healing = { lane: 'process', name: 'healing', fromMs: begunMs, toMs: begunMs };
  const repeated = repeatFindings(stage, [...doings, healing]);
  const letters = Object.values(accounts.sinks).reduce((sum, sink) => sum + sink.letters, 0);
  report(`${accounts.events} events accounted for; ${letters} dead letters go out again`);
  await command(stage, ['dead-letters', 'retry', '-c', stage.config]);
  await command(stage, ['run', '-c', stage.config, '--once', '--timeout', '60s']);
  const last = await takeAccounts(stage);
  const left = Object.entries(last.sinks).filter(([, sink]) => sink.letters > 0);
  const stuck = left.map(([sink]) => `${sink} has dead letters after all was mended`);
  const { sinks } = accounts;
  return { ...last, sinks, findings: [...last.findings, ...stuck, ...repeated] };
}

function repeatFindings(stage: Stage, doings: readonly Doing[]): readonly string[] {
  return Object.entries(repeatable(stage)).flatMap(([sink, { repeats, timesMs }]) => {
    const flight = flights[sink];
    if (flight === undefined) return [];
    const acts = doings.filter(({ lane }) => flight.lanes.includes(lane));
    const odd = withoutCause(repeats, acts, flight.ms, flight.inRequests ? timesMs : []);
    const [first] = odd;
    if (first === undefined) return [];
    return [`${sink} repeats ${odd.length} events that were settled, the first ${first.uid}`];
  });
}

async function command(stage: Stage, args: readonly string[]): Promise<void> {
  const said = await runSluice(args, { ...stage.surroundings, timeoutMs: 120_000 }).then(
    ({ exitCode, stderr }) => (exitCode === 0 ? null : `ended with ${exitCode}: ${stderr}`),
    (error: unknown) => String(error),
  );
  if (said !== null) stage.defects.push(`${args.join(' ')}: ${said}`);
}

function counted(doings: readonly Doing[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const { lane, name } of doings) {
    const key = `${lane}: ${name}`;
    counts.set(key, (counts.get(key) ?? 0) + 1);
  }
  return counts;
}

/** The acts and the results, as lines of text. */
export function reportOf({ survived, accounts }: TortureResult): readonly string[] {
  const rows = [...survived].sort(([a], [b]) => a.localeCompare(b));
  const faults = rows.reduce((sum, [, times]) => sum + times, 0);
  const all = Object.entries(lanes).flatMap(([lane, { acts }]) =>
    Object.keys(acts).map((name) => `${lane}: ${name}`),
  );
  const unmet = all.filter((name) => !survived.has(name));
  return [
    `${faults} faults survived, of ${rows.length} kinds:`,
    ...rows.map(([name, times]) => `${String(times).padStart(5)}  ${name}`),
    ...(unmet.length === 0 ? [] : [`not met in this run: ${unmet.join('; ')}`]),
    `${accounts.events} events in every sink, ${accounts.conditions} of them about the sources`,
    ...Object.entries(accounts.sinks).map(
      ([sink, { repeats, letters }]) =>
        `${sink.padEnd(8)} ${String(repeats).padStart(6)} repeats ${String(letters).padStart(6)} dead letters sent again`,
    ),
  ];
}

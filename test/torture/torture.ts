// The torture run: the real program, all sinks on real receivers, upstream data that grows, and for as long as asked
// everything that can break breaks, drawn from a seed. Then all is mended, the program gets its time, and the accounts are
// taken. The test in the suite (test/journeys/torture.test.ts) and `npm run torture` both run this.

import { setTimeout as delay } from 'node:timers/promises';
import { runSluice } from '../support/cli.ts';
import { type Accounts, takeAccounts } from './accounts.ts';
import { type Lane, lanes } from './acts.ts';
import { actsOf } from './plan.ts';
import { openStage, type Stage } from './stage.ts';
import { listsOf } from './upstream-acts.ts';

/** What to run. */
export interface TortureOptions {
  /** The same seed breaks the same things in the same order. */
  readonly seed: number;
  /** How long things break, in milliseconds; mending and counting come on top. */
  readonly forMs: number;
  /** Audit events a second; logs come three times as fast. Default 8. */
  readonly rate?: number;
  /** Told what happens, a line each. */
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
const calmMax = 8;
const healWithinMs = 120_000;
const lookEveryMs = 3_000;

/** Runs a torture to its end. Rejects only when the stage itself fails. */
export async function runTorture(options: TortureOptions): Promise<TortureResult> {
  const { seed, forMs, tell, rate = 8 } = options;
  const stage = await openStage({ seed, lists: listsOf(seed), rate });
  tell(`seed ${seed}: ${JSON.stringify(stage.options.lists)}`);
  let whole = false;
  try {
    const survived = await breakThings(stage, options);
    tell('everything is mended; waiting for the program to catch up');
    const accounts = await heal(stage, tell);
    const findings = [...stage.defects, ...accounts.findings];
    whole = findings.length === 0;
    return { findings, accounts, survived, dir: stage.dir };
  } finally {
    await stage.close(!whole);
    if (!whole)
      tell(`state, outputs and logs are kept in ${stage.dir} (after ${forMs} ms, seed ${seed})`);
  }
}

async function breakThings(
  stage: Stage,
  { seed, forMs, tell }: TortureOptions,
): Promise<ReadonlyMap<string, number>> {
  const survived = new Map<string, number>();
  const end = performance.now() + forMs;
  // Each kill makes syslog send its last seconds again, and rsyslog's file in the tests ends at half a gibibyte.
  const calm = Math.max(1, Math.min(calmMax, forMs / briskMs));
  const run = async (name: string, { acts, pace }: Lane) => {
    for (const act of actsOf(seed, name, Object.keys(acts), pace)) {
      const afterMs = act.afterMs * calm;
      if (performance.now() + afterMs >= end) return;
      await delay(afterMs);
      tell(`${name}: ${act.name}`);
      await acts[act.name]?.(stage, act);
      const key = `${name}: ${act.name}`;
      survived.set(key, (survived.get(key) ?? 0) + 1);
    }
  };
  stage.start();
  await Promise.all(Object.entries(lanes).map(([name, lane]) => run(name, lane)));
  return survived;
}

/** Lets the program catch up, ends it in order, and counts; dead letters go out again before the last count. */
async function heal(stage: Stage, tell: TortureOptions['tell']): Promise<Accounts> {
  stage.sandbox.control.setRate(0);
  // Waits that grew while things were broken are over with a new process.
  await stage.stop();
  stage.start();
  const end = performance.now() + healWithinMs;
  let accounts = await takeAccounts(stage);
  while (accounts.findings.length > 0 && performance.now() < end) {
    tell(`not yet: ${accounts.findings[0]}`);
    await delay(lookEveryMs);
    accounts = await takeAccounts(stage);
  }
  await stage.stop();
  if (accounts.findings.length > 0) return accounts;
  const letters = Object.values(accounts.sinks).reduce((sum, sink) => sum + sink.letters, 0);
  tell(`${accounts.events} events accounted for; ${letters} dead letters go out again`);
  await command(stage, ['dead-letters', 'retry', '-c', stage.config]);
  await command(stage, ['run', '-c', stage.config, '--once', '--timeout', '60s']);
  const last = await takeAccounts(stage);
  const left = Object.entries(last.sinks).filter(([, sink]) => sink.letters > 0);
  const stuck = left.map(([sink]) => `${sink} has dead letters after all was mended`);
  const { sinks } = accounts;
  return { ...last, sinks, findings: [...last.findings, ...stuck] };
}

async function command(stage: Stage, args: readonly string[]): Promise<void> {
  const { exitCode, stderr } = await runSluice(args, { ...stage.surroundings, timeoutMs: 120_000 });
  if (exitCode !== 0) stage.defects.push(`${args.join(' ')} ended with ${exitCode}: ${stderr}`);
}

/** What was survived and what came of it, as lines of text. */
export function reportOf({ survived, accounts }: TortureResult): readonly string[] {
  const rows = [...survived].sort(([a], [b]) => a.localeCompare(b));
  const faults = rows.reduce((sum, [, times]) => sum + times, 0);
  return [
    `${faults} faults survived, of ${rows.length} kinds:`,
    ...rows.map(([name, times]) => `${String(times).padStart(5)}  ${name}`),
    `${accounts.events} events in every sink, ${accounts.conditions} of them about the sources`,
    ...Object.entries(accounts.sinks).map(
      ([sink, { repeats, letters }]) =>
        `${sink.padEnd(8)} ${String(repeats).padStart(6)} repeats ${String(letters).padStart(6)} dead letters sent again`,
    ),
  ];
}

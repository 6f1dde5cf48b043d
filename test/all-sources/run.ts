// The real program with every source of both APIs on the sandbox under its fault script, into a
// file and a real Kafka; then the faults end, all stands still, and what came out is compared with
// what was planted.

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { parseFaultScript, startSandbox } from '../../src/sandbox/sandbox.ts';
import { type RunningSluice, runSluice, startSluice } from '../support/cli.ts';
import { consumeAll, createTopic, startKafka } from '../support/kafka.ts';
import { freePort, tempDir, waitUntil } from '../support/temp.ts';
import { type Account, accountsOf, type Written } from './accounts.ts';
import { companies, configText, fileIn } from './sources.ts';

/** How long, and how much. */
export interface Wishes {
  readonly forMs: number;
  /** Audit events a second, each of which reports a change. */
  readonly rate: number;
  readonly seed: number;
  readonly tell: (line: string) => void;
}

/** How it ended. */
export interface Ended {
  readonly accounts: readonly Account[];
  readonly events: number;
  /** What is wrong beside a source's own account. */
  readonly findings: readonly string[];
  readonly dir: string;
}

/** So long after the faults everything has come. */
const settledMs = 240_000;
const faultsFile = join(import.meta.dirname, '../../config/sandbox-faults.yaml');

/** One run. */
export async function runAllSources({ forMs, rate, seed, tell: report }: Wishes): Promise<Ended> {
  const dir = tempDir('all-sources-');
  const [sandbox, kafka, hookPort] = await Promise.all([
    startSandbox({ seed, rate: 0, companies, changeEvery: 1, firewallEveryS: 20 }),
    startKafka(),
    freePort(),
  ]);
  const brokers = [kafka.addresses.plain];
  const topic = 'all-sources';
  await createTopic(brokers, topic);
  const config = join(dir, 'sluice.yaml');
  writeFileSync(config, configText({ dir, sandbox, brokers, topic, hookPort }));
  const running = startSluice(['run', '-c', config]);
  try {
    await quiet(dir, running);
    const registered = await runSluice(['webhooks', 'register', '-c', config, '--source', 'hooks']);
    if (registered.exitCode !== 0) throw new Error(registered.stderr);
    report(`${written(dir).length} events at the start; now it changes, under the fault script`);
    const begunAt = Date.now();
    const script = parseFaultScript(readFileSync(faultsFile, 'utf8'));
    sandbox.control.setFaults(script);
    sandbox.control.setRate(rate);
    for (const end = Date.now() + forMs; Date.now() < end; ) {
      await delay(Math.min(30_000, end - Date.now()));
      report(`${written(dir).length} events`);
    }
    sandbox.control.setRate(0);
    // The behaviour of lists is fixed: the ledger derives from it which changes have no audit event.
    sandbox.control.setFaults({ lists: script.lists ?? [] });
    report('all is well from here on');
    let accounts = accountsOf({ sandbox, begunAt, events: written(dir) });
    for (const end = Date.now() + settledMs; Date.now() < end && !accounts.every(isWhole); ) {
      await delay(5_000);
      const now = accountsOf({ sandbox, begunAt, events: written(dir) });
      // The firewall changes further by the clock: it counts at one fixed moment.
      accounts = now.map((account, n) => {
        const before = accounts[n];
        const isOver = account.source === 'firewall' && before !== undefined && isWhole(before);
        return isOver ? before : account;
      });
    }
    await running.kill('SIGTERM');
    const { exitCode } = await running.exited;
    const uids = written(dir).map(({ metadata }) => metadata.uid);
    const inKafka = await consumeAll(topic, { brokers, timeoutMs: 120_000 });
    const findings = [
      ...(exitCode === 0 ? [] : [`it ended with ${exitCode}: ${running.stderr.slice(-5)}`]),
      ...twice(uids, 'the file'),
      ...differing(
        uids,
        inKafka.map(({ headers }) => headers.uid ?? ''),
      ),
    ];
    return { accounts, events: uids.length, findings, dir };
  } finally {
    await running.kill('SIGKILL');
    await sandbox.close();
  }
}

const isWhole = ({ findings }: Account) => findings.length === 0;

/** What is in the file by now; a torn last line is left out. */
function written(dir: string): readonly Written[] {
  const lines = readFileSync(fileIn(dir), { encoding: 'utf8', flag: 'a+' });
  return lines
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as Written);
}

/** Until what was there at the start has come, and nothing more comes. */
async function quiet(dir: string, running: RunningSluice): Promise<void> {
  let [before, since] = [-1, Date.now()];
  await waitUntil(
    () => {
      const { length } = written(dir);
      if (length !== before) [before, since] = [length, Date.now()];
      return !running.running || (length > 0 && Date.now() - since > 10_000);
    },
    { what: 'the start to be told', timeoutMs: 180_000, everyMs: 500 },
  );
  if (!running.running) throw new Error(`it ended: ${running.stderr.slice(-10).join('\n')}`);
}

function twice(uids: readonly string[], where: string): readonly string[] {
  const again = uids.length - new Set(uids).size;
  return again === 0 ? [] : [`${again} events are in ${where} more than once`];
}

function differing(inFile: readonly string[], inKafka: readonly string[]): readonly string[] {
  const [file, kafka] = [new Set(inFile), new Set(inKafka)];
  const missing = file.difference(kafka).size;
  const more = kafka.difference(file).size;
  return [
    ...twice(inKafka, 'Kafka'),
    ...(missing === 0 ? [] : [`${missing} events of the file are not in Kafka`]),
    ...(more === 0 ? [] : [`${more} events of Kafka are not in the file`]),
  ];
}

// `sluice cluster drain` and `undrain`: take a process out of service in order, from any machine, and put it back.
// Invariant: a drain lasts through restarts of that process until it is lifted; `drain` reports done only after that
// process has released its shards.

import type { ClusterProcess, Control } from '../../cluster/kafka.ts';
import { type Config, inShards, loadConfig } from '../../config/index.ts';
import { ExportError, UsageError } from '../../contracts/index.ts';
import { cleanText, systemClock } from '../../tools/index.ts';
import { configOption, defineCommand } from '../shared/command.ts';
import { unknownText } from '../shared/typed.ts';
import { kafkaOf } from './kafka-of.ts';

const lookEveryMs = 300;
/** Added to the time for delivery: its session, and the start of another process. */
const patienceMs = 60_000;
/** A process that releases its shards leaves the group and joins again; one not seen for so long has ended. */
const goneMs = 10_000;
const instance = { value: 'instance', about: 'process name, as shown by sluice cluster' } as const;

/** 0: released, or the process has ended; 1: not in time; the process still releases its shards as soon as it can. */
export const drain = defineCommand({
  name: 'drain',
  about: 'drain a process: commit, release its shards and go to standby',
  arguments: { instance },
  options: { config: configOption },
  async run({ instance, config: file }, { env, out, err }) {
    const config = await loadConfig(file, { env });
    const clock = systemClock();
    const found = await processes(config);
    const names = found.flatMap((one) => one.instance ?? []);
    refuseUnless(new Set(names), instance, 'running instance');
    const isOther = (one: ClusterProcess) => one.instance !== instance && !one.isDrained;
    if (!found.some(isOther)) {
      err(
        `no other process is on standby: nothing is read until one starts, or ${instance} is let in`,
      );
    }
    await withControl(config, (control) => control.drain(instance, clock.now()));
    let seenAt = clock.monotonic();
    const deadline = clock.monotonic() + config.shutdown.timeoutMs + patienceMs;
    for (;;) {
      const now = await processes(config);
      const it = now.find((one) => one.instance === instance);
      const successor = now.find(({ works }) => works);
      if (it !== undefined) seenAt = clock.monotonic();
      const isGone = clock.monotonic() - seenAt > goneMs;
      const hasLetGo = isGone || (it?.works === false && it.isDrained);
      if (hasLetGo && (successor !== undefined || !now.some(isOther))) {
        const after = successor === undefined ? 'nobody' : nameOf(successor);
        out(`${instance} ${isGone ? 'has ended' : 'stands by'}; ${after} works`);
        out(`it is drained, also after a restart, until sluice cluster undrain ${instance}`);
        return 0;
      }
      if (clock.monotonic() > deadline) throw late(instance);
      await clock.sleep(lookEveryMs);
    }
  },
});

/** 0: it may own again. */
export const undrain = defineCommand({
  name: 'undrain',
  about: 'allow a drained process to own shards again',
  arguments: { instance },
  options: { config: configOption },
  async run({ instance, config: file }, { env, out }) {
    const config = await loadConfig(file, { env });
    await withControl(config, async (control) => {
      refuseUnless(control.drained, instance, 'drained instance');
      await control.undrain(instance);
    });
    out(`${instance} may own shards again`);
    return 0;
  },
});

function refuseUnless(known: ReadonlySet<string>, instance: string, what: string): void {
  if (known.has(instance)) return;
  const none = known.size > 0 ? '' : '; processes have their names from state.kafka.instance';
  throw new UsageError(`${unknownText(what, instance, known)}${none}`);
}

function nameOf({ instance, host, address }: ClusterProcess): string {
  return cleanText(instance ?? host ?? address, 200);
}

/** All of them; where there are several shards, each as it is in the groups of all. */
async function processes(config: Config): Promise<readonly ClusterProcess[]> {
  const { processesOf, processText: keyOf } = await import('../../cluster/kafka.ts');
  const parts = inShards(config).map((part) => processesOf(kafkaOf(part), systemClock()));
  const seats = (await Promise.all(parts)).flat();
  return [...Map.groupBy(seats, (one) => one.process ?? keyOf(one)).values()].map((of) => ({
    ...(of[0] as ClusterProcess),
    works: of.some(({ works }) => works),
    isDrained: of.every(({ isDrained }) => isDrained),
  }));
}

/** With the control topic as it is now. */
async function withControl(
  config: Config,
  work: (control: Control) => Promise<void>,
): Promise<void> {
  const { Control } = await import('../../cluster/kafka.ts');
  const control = new Control(kafkaOf(config), systemClock());
  try {
    await control.readAll();
    await work(control);
  } finally {
    await control.close();
  }
}

function late(instance: string): ExportError {
  return new ExportError('state_locked', `${instance} has not released yet`, {
    next: 'It does once it can, and sluice cluster shows it. If it is cut off from Kafka or of an older version, stop it on its machine. Nothing is lost.',
  });
}

// Drains a process of a state in Kafka by a record of the control topic, from any machine. Invariants: the
// record stays through restarts of that process until `undrain`; a drain is done once that process has
// released its shards or has ended.

import type { ClusterProcess, Control } from '../cluster/kafka.ts';
import type { Config } from '../config/index.ts';
import { ExportError, UsageError } from '../contracts/index.ts';
import { cleanText, hint, systemClock } from '../tools/index.ts';

const lookEveryMs = 300;
/** Added to the time to deliver what is stored: for its session, and for another process to start. */
const patienceMs = 60_000;
/** A process that releases its shards leaves the group and joins again; one that is absent for longer has ended. */
const goneMs = 10_000;
const nameLengthMax = 200;

/** The end of a drain. */
export interface Drained {
  /** It has ended; else it is on standby. */
  readonly isGone: boolean;
  /** A process that works now; null: none does. */
  readonly successor: string | null;
}

/** `alone` is called first if no other process is on standby. Throws as `Operator.drain`. */
export async function drainProcess(
  config: Config,
  instance: string,
  alone: () => void,
): Promise<Drained> {
  const clock = systemClock();
  const found = await processes(config);
  const names = found.flatMap((one) => one.instance ?? []);
  refuseUnless(new Set(names), instance, 'running instance');
  const isOther = (one: ClusterProcess) => one.instance !== instance && !one.isDrained;
  if (!found.some(isOther)) alone();
  await withControl(config, (control) => control.drain(instance, clock.now()));
  let seenAt = clock.monotonic();
  const deadline = clock.monotonic() + config.shutdown.timeoutMs + patienceMs;
  for (;;) {
    const now = await processes(config);
    const it = now.find((one) => one.instance === instance);
    const successor = now.find(({ works }) => works);
    if (it !== undefined) seenAt = clock.monotonic();
    const isGone = clock.monotonic() - seenAt > goneMs;
    const hasReleased = isGone || (it?.works === false && it.isDrained);
    if (hasReleased && (successor !== undefined || !now.some(isOther))) {
      return { isGone, successor: successor === undefined ? null : nameOf(successor) };
    }
    if (clock.monotonic() > deadline) throw late(instance);
    await clock.sleep(lookEveryMs);
  }
}

/** Throws as `Operator.undrain`. */
export async function undrainProcess(config: Config, instance: string): Promise<void> {
  await withControl(config, async (control) => {
    refuseUnless(control.drained, instance, 'drained instance');
    await control.undrain(instance);
  });
}

/** The settings of a state in Kafka. Throws a UsageError if the state is not in Kafka. */
export function kafkaOf({ file, state }: Config): NonNullable<Config['state']['kafka']> {
  if (state.kafka !== null) return state.kafka;
  throw new UsageError(
    `${file} has no state.kafka: its state is in ${state.dir}, of one process; see docs/state-in-kafka.md`,
  );
}

function refuseUnless(known: ReadonlySet<string>, instance: string, what: string): void {
  if (known.has(instance)) return;
  const none = known.size > 0 ? '' : '; processes have their names from state.kafka.instance';
  const asked = cleanText(instance, nameLengthMax);
  throw new UsageError(`there is no ${what} ${asked}${hint(instance, known)}${none}`);
}

function nameOf({ instance, host, address }: ClusterProcess): string {
  return cleanText(instance ?? host ?? address, nameLengthMax);
}

async function processes(config: Config): Promise<readonly ClusterProcess[]> {
  const { processesOf } = await import('../cluster/kafka.ts');
  return await processesOf(kafkaOf(config), systemClock());
}

/** With the control topic as it is now. */
async function withControl(
  config: Config,
  work: (control: Control) => Promise<void>,
): Promise<void> {
  const { Control } = await import('../cluster/kafka.ts');
  await using control = new Control(kafkaOf(config), systemClock());
  await control.readAll();
  await work(control);
}

function late(instance: string): ExportError {
  return new ExportError('state_locked', `${instance} has not released its shards yet`, {
    next: 'It releases them once it can; `sluice cluster` shows it. If it is cut off from Kafka or of an older version, stop it on its machine. Nothing is lost.',
  });
}

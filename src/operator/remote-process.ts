// The state is in Kafka and processes on other machines share it: a request is a record of the control
// topic (cluster/control.ts), which the process that has the state carries out. Invariant: a request
// that no process answers in time is withdrawn.

import { randomUUID } from 'node:crypto';
import type { StateLogSettings } from '../cluster/index.ts';
import type { Control, ControlCommand } from '../cluster/kafka.ts';
import type { Config } from '../config/index.ts';
import { type Clock, ExportError, type JsonObject } from '../contracts/index.ts';
import type { OperatorRequest } from '../hold/index.ts';
import { systemClock } from '../tools/index.ts';
import type { Adapter, Stored } from './adapter.ts';
import { withCopy } from './stored.ts';

/** Added to two sessions, after which another process owns a state whose process was killed. */
const patienceMs = 30_000;
const pauseMs = 1_000;

/** A config with its state in Kafka. */
export type KafkaState = StateLogSettings & {
  readonly shard?: number | undefined;
  readonly sessionMs: number;
};

/** Reads what is committed, and leaves requests to the process that has the state. */
export class RemoteProcess implements Adapter {
  readonly holder: string | null;
  readonly #config: Config;
  readonly #kafka: KafkaState;

  /** `holder` null: all processes are drained, and none carries requests out. */
  constructor(config: Config, kafka: KafkaState, holder: string | null) {
    this.holder = holder;
    this.#config = config;
    this.#kafka = kafka;
  }

  look<T>(read: (stored: Stored) => Promise<T> | T): Promise<T> {
    return withCopy(this.#config, { kafka: this.#kafka, holder: this.holder }, read);
  }

  async carryOut(name: string, wish: OperatorRequest): Promise<JsonObject> {
    const kafka = this.#kafka;
    if (this.holder === null) throw allDrained(kafka.prefix);
    // Its client takes long to load.
    const { Control } = await import('../cluster/kafka.ts');
    const clock = systemClock();
    const control = new Control(kafka, clock);
    const id = randomUUID();
    try {
      await control.readAll();
      const command = { id, name, wish, shard: kafka.shard ?? 0, at: clock.now() };
      const forMs = patienceMs + 2 * kafka.sessionMs;
      const answer = await remoteAnswer(command, control, { clock, forMs });
      if (answer !== null) return answer;
    } finally {
      await control.close();
    }
    throw unanswered(kafka.prefix, name);
  }
}

/**
 * The answer to a command; null: none came in time, and the command is withdrawn. Waits for Kafka meanwhile. Throws
 * `sink_unreachable` if the command could not be withdrawn, so that it may still be carried out.
 */
export async function remoteAnswer(
  command: ControlCommand,
  control: Pick<Control, 'ask' | 'answers' | 'read' | 'withdraw'>,
  { clock, forMs }: { readonly clock: Clock; readonly forMs: number },
): Promise<JsonObject | null> {
  const deadline = clock.monotonic() + forMs;
  const answer = () => control.answers.get(command.id) ?? null;
  let failure: unknown = null;
  try {
    await control.ask(command);
    while (answer() === null && clock.monotonic() < deadline) {
      await control.read().catch(async (error) => {
        if (!isPassing(error)) throw error;
        await clock.sleep(pauseMs);
      });
    }
  } catch (error) {
    failure = error;
  }
  // The withdrawal forgets it.
  const found = answer();
  const isWithdrawn = await control.withdraw(command.id).then(
    () => true,
    () => false,
  );
  // A change that was reported as done must not be requested again. Its process deletes the command a day later.
  if (found !== null) return found;
  if (!isWithdrawn) throw notWithdrawn(command.name, failure);
  if (failure !== null) throw failure;
  return null;
}

function isPassing(error: unknown): boolean {
  return error instanceof ExportError && error.code === 'sink_unreachable';
}

function notWithdrawn(name: string, cause: unknown): ExportError {
  const what = `request about ${name}: Kafka cannot be reached to withdraw it`;
  return new ExportError('sink_unreachable', what, {
    next: 'It may still be carried out within a day: check the result before you repeat the command. Run sluice check --connect to check state.kafka.',
    ...(cause !== null && { cause }),
  });
}

function allDrained(prefix: string): ExportError {
  const what = `all processes with the state ${prefix} in Kafka are drained, so no process carries out the request`;
  return new ExportError('state_locked', what, {
    next: 'Allow one to work again with `sluice cluster undrain INSTANCE` (`sluice cluster` shows them), then repeat the command. Nothing was changed.',
  });
}

function unanswered(prefix: string, name: string): ExportError {
  const what = `request about ${name}: no process with the state ${prefix} in Kafka responds`;
  return new ExportError('state_locked', what, {
    next: 'Check with `sluice cluster` which process works. The request was withdrawn, unless it was running at that moment.',
  });
}

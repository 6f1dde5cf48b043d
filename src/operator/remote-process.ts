// The state is in Kafka and processes on other machines share it: a request is a record of the control
// topic (cluster/control.ts), which the process that has the state carries out. Invariant: a request
// that no process answers in time is withdrawn.

import { randomUUID } from 'node:crypto';
import type { StateLogSettings } from '../cluster/index.ts';
import type { Config } from '../config/index.ts';
import { ExportError, type JsonObject } from '../contracts/index.ts';
import type { OperatorRequest } from '../hold/index.ts';
import { systemClock } from '../tools/index.ts';
import type { Adapter, Stored } from './adapter.ts';
import { withCopy } from './stored.ts';

/** Added to two sessions, after which another process owns a state whose process was killed. */
const patienceMs = 30_000;

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
      await control.ask({ id, name, wish, shard: kafka.shard ?? 0, at: clock.now() });
      try {
        const deadline = clock.monotonic() + patienceMs + 2 * kafka.sessionMs;
        while (clock.monotonic() < deadline) {
          const answer = control.answers.get(id);
          if (answer !== undefined) return answer;
          await control.read();
        }
      } finally {
        await control.withdraw(id);
      }
    } finally {
      await control.close();
    }
    throw unanswered(kafka.prefix, name);
  }
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

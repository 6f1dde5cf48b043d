// Commands about a state in Kafka on a machine where nothing runs with it: what they show comes from
// a copy of what is committed there, and what they change is asked of the process that has the
// state. What must stay true: what nobody has carried out in time is taken back.

import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Config } from '../../config/config.ts';
import { ExportError } from '../../contracts/errors.ts';
import type { JsonObject } from '../../contracts/json.ts';
import { holderOf } from '../../hold/lock.ts';
import type { Wish } from '../../hold/requests.ts';
import { systemClock } from '../../tools/clock.ts';

/** A state in Kafka, looked at from a machine where nothing runs with it. */
export type RemoteConfig = Config & {
  readonly state: { readonly kafka: NonNullable<Config['state']['kafka']> };
};

/** Beside two sessions, after which another process owns a state whose process was killed. */
const patienceMs = 30_000;

/** True where a command has to look into Kafka, and ask whoever has the state there. */
export function isRemote(config: Config): config is RemoteConfig {
  return config.state.kafka !== null && holderOf(config.state.dir) === null;
}

/** Whether a process works there, or may soon. */
export async function isServed({ kafka }: RemoteConfig['state']): Promise<boolean> {
  const { processesOf } = await import('../../cluster/processes.ts');
  const processes = await processesOf(kafka, systemClock());
  return processes.some(({ works, isDrained }) => works || !isDrained);
}

/** Works with a copy of what tells how streams and sinks stand, which goes with the end of it. */
export async function withCopy<T>(
  config: RemoteConfig,
  work: (copy: Config) => Promise<T> | T,
): Promise<T> {
  // Its client takes long to load.
  const { StateCopy } = await import('../../cluster/copy.ts');
  const dir = mkdtempSync(join(tmpdir(), 'sluice-cluster-'));
  const copy = new StateCopy(config.state.kafka, dir, systemClock());
  try {
    await copy.catchUp().finally(() => copy.close());
    return await work({ ...config, state: { ...config.state, dir } });
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

/** Has whoever works do it, and resolves with the answer: of a successor, where that one ends meanwhile. */
export async function askRemote(
  { state }: RemoteConfig,
  name: string,
  wish: Wish,
): Promise<JsonObject> {
  const { kafka } = state;
  if (!(await isServed(state))) throw nobody(kafka.prefix);
  const { Control } = await import('../../cluster/control.ts');
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

function nobody(prefix: string): ExportError {
  return new ExportError('state_locked', `no process works with the state ${prefix} in Kafka`, {
    next: 'Start one, on any machine, or let one in again that is drained (sluice cluster shows them), then give the command again. Nothing was changed.',
  });
}

function unanswered(prefix: string, name: string): ExportError {
  return new ExportError(
    'state_locked',
    `request about ${name}: no process with the state ${prefix} in Kafka responds`,
    {
      next: 'Check with `sluice cluster` which process works. The command was withdrawn, unless it was running at that moment.',
    },
  );
}

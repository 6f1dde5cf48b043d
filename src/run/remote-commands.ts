// Executes the commands of operators on other machines for the process that owns the state in Kafka, and writes the
// replies back. Each command becomes a request in the state (hold/requests.ts) and is executed like those of this
// machine (requests.ts). Invariants: each is executed once, also if this process ends meanwhile: the reply is stored in
// the state with the change, is written to the control topic after both are in Kafka, and only then is the request
// removed; and no command is executed before all replies of earlier owners were read.

import { aborted } from 'node:util';
import type { Control } from '../cluster/kafka.ts';
import type { Log } from '../contracts/index.ts';
import type { Request } from '../hold/index.ts';
import type { OwnSpool } from '../hold/open.ts';
import type { BootTools } from './tools.ts';

/** The dependencies. */
export interface RemoteCommandDeps {
  /** The shard whose commands are executed. */
  readonly shard: number;
  readonly control: Control;
  readonly spool: OwnSpool;
  readonly tools: Pick<BootTools, 'clock' | 'log'>;
}

const lookEveryMs = 250;
/** The operator's process removes its command; the command of a killed process is removed after this time. */
const keptMs = 86_400_000;

/** Executes and replies until stopped, also while Kafka does not respond. Never rejects. */
export async function serveRemoteCommands(
  deps: RemoteCommandDeps,
  stop: AbortSignal,
): Promise<void> {
  await Promise.race([serve(deps, stop), aborted(stop, deps)]);
}

async function serve(deps: RemoteCommandDeps, stop: AbortSignal): Promise<void> {
  const { control, tools } = deps;
  let isKnown = false;
  while (!stop.aborted) {
    try {
      if (!isKnown) await control.caughtUp();
      isKnown = true;
      await look(deps);
    } catch (error) {
      if (!stop.aborted) reportNotServed(tools.log, error);
    }
    await tools.clock.sleep(lookEveryMs, stop).catch(() => undefined);
  }
}

async function look({ shard, control, spool, tools }: RemoteCommandDeps): Promise<void> {
  const rows = (await spool.requests()).filter(({ command }) => command !== null);
  for (const row of rows) await settle(row, control, spool);
  const known = new Set(rows.map(({ command }) => command));
  for (const { id, name, wish, at, shard: of } of control.commands.values()) {
    if (known.has(id) || of !== shard) continue;
    if (control.answers.has(id)) {
      if (at < tools.clock.now() - keptMs) await control.withdraw(id);
      continue;
    }
    tools.log.debug('remote_command', 'remote command received', { what: wish.what, name });
    await spool.takeUp(id, name, wish, at);
  }
}

/** Replies to an executed command; deletes a command whose process has gone. */
async function settle(
  { id, command, answer }: Request,
  control: Control,
  spool: OwnSpool,
): Promise<void> {
  if (command === null) return;
  const isRequested = control.commands.has(command);
  if (answer === null && isRequested) return;
  if (answer !== null && isRequested && !control.answers.has(command)) {
    await control.answer(command, answer);
  }
  await spool.withdraw(id);
}

function reportNotServed(log: Log, error: unknown): void {
  log.warn('remote_commands_failed', 'remote commands cannot be answered at the moment', {
    error: String(error),
  });
}

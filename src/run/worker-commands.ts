// The commands of `${exec:…}` in worker processes: a worker requests values from the process that started it, over the
// channel between the two, so that a command runs once per machine and not once per worker. Invariant: a value is only
// in messages of that channel, never in an argument or a variable of a process.

import type { ChildProcess } from 'node:child_process';
import { type CommandValues, commandValues, type SecretCommand } from '../config/index.ts';
import type { ExportError } from '../contracts/index.ts';
import { receivedError, type SentError, sentError } from './shard-messages.ts';

interface Request {
  readonly command: SecretCommand;
  readonly id: number;
  /** Any stored value is enough. */
  readonly isFirst: boolean;
}

type Reply = { readonly id: number } & (
  | { readonly value: string }
  | { readonly commandError: SentError }
);

/** The channel of a worker to the process that started it. */
export interface WorkerChannel {
  send(message: unknown): void;
  on(event: 'message', received: (message: unknown) => void): unknown;
}

/** Replies to the requests of a worker. */
export function serveCommands(
  child: Pick<ChildProcess, 'on' | 'send' | 'connected'>,
  env: Readonly<Record<string, string | undefined>>,
  values: CommandValues = commandValues,
): void {
  const reply = (message: Reply) => {
    if (child.connected) child.send(message, () => undefined);
  };
  child.on('message', (message: unknown) => {
    if (!isRequest(message)) return;
    const { command, id, isFirst } = message;
    const ran = isFirst ? values.prepare([command], env) : values.refresh(command, env);
    void ran.then(() => {
      try {
        reply({ id, value: values.value(command) });
      } catch (error) {
        reply({ id, commandError: sentError(error, 'running a command') });
      }
    });
  });
}

/** Requests all values of this worker from the process that started it. */
export function requestCommands(own: WorkerChannel, values: CommandValues = commandValues): void {
  const open = new Map<number, PromiseWithResolvers<string>>();
  let last = 0;
  own.on('message', (message) => {
    if (!isReply(message)) return;
    const waiting = open.get(message.id);
    open.delete(message.id);
    if ('value' in message) waiting?.resolve(message.value);
    else waiting?.reject(receivedError(message.commandError));
  });
  values.runBy(async (command, _, isFirst) => {
    last += 1;
    const answer = Promise.withResolvers<string>();
    open.set(last, answer);
    own.send({ command, id: last, isFirst } satisfies Request);
    return await answer.promise;
  });
}

/** Logs commands that fail although their last value stays in use. */
export function logFailedCommands(log: {
  warn(event: 'secret_command_failed', text: string, fields: Record<string, string>): void;
}): void {
  commandValues.onFailure((_, { message, next }: ExportError) => {
    const text = 'a command of the config failed; its last value stays in use';
    log.warn('secret_command_failed', text, { error: message, next });
  });
}

function isRequest(message: unknown): message is Request {
  return typeof message === 'object' && message !== null && 'command' in message;
}

function isReply(message: unknown): message is Reply {
  if (typeof message !== 'object' || message === null) return false;
  return 'id' in message && ('value' in message || 'commandError' in message);
}

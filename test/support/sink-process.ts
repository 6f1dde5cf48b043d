// Starts `sink-child.ts`: one sink in a process of its own that sends on request. It ends with the test.

import type { ChildProcess } from 'node:child_process';
import type { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { endChild, spawnChild } from './children.ts';
import type { SinkChildAnswer, SinkChildAsk } from './sink-child.ts';
import { afterThisTest } from './temp.ts';

const childFile = fileURLToPath(new URL('./sink-child.ts', import.meta.url));

/** A sink in a process of its own. */
export interface SinkProcess {
  readonly pid: number;
  /** What it writes to standard output; nothing is read until the test reads. */
  readonly stdout: Readable;
  ask(what: SinkChildAsk): Promise<SinkChildAnswer>;
}

/** Starts it; `wrapper` is a command and arguments to run it under. Resolves once the sink is open. */
export async function startSinkProcess(
  type: string,
  config: object,
  wrapper: readonly string[] = [],
): Promise<SinkProcess> {
  const [command, ...args] = [
    ...wrapper,
    process.execPath,
    childFile,
    type,
    JSON.stringify(config),
  ];
  const child = spawnChild(command ?? process.execPath, args, {
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
    env: { PATH: process.env.PATH },
  });
  afterThisTest(() => endChild(child, 'SIGKILL'));
  const answers = answersOf(child);
  await answers(0);
  if (child.pid === undefined || child.stdout === null)
    throw new Error('the child has not started');
  let number = 0;
  return {
    pid: child.pid,
    stdout: child.stdout,
    ask: (asked) => {
      number += 1;
      child.send({ number, asked });
      return answers(number);
    },
  };
}

function answersOf(child: ChildProcess): (number: number) => Promise<SinkChildAnswer> {
  const waiting = new Map<number, PromiseWithResolvers<SinkChildAnswer>>();
  const at = (number: number) => {
    const known = waiting.get(number) ?? Promise.withResolvers<SinkChildAnswer>();
    waiting.set(number, known);
    return known;
  };
  child.on('message', ({ number, said }: { number: number; said: SinkChildAnswer }) => {
    at(number).resolve(said);
  });
  child.once('exit', () => {
    for (const { reject } of waiting.values()) reject(new Error('the sink’s process has ended'));
  });
  return (number) => at(number).promise;
}

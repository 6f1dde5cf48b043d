// Commands of `${exec:…}` in worker processes: many workers get the value of one run, a later run too, and a failure
// arrives with its next step.

import { EventEmitter } from 'node:events';
import { expect, test } from 'vitest';
import { CommandValues, type SecretCommand } from '../../src/config/commands.ts';
import { ExportError } from '../../src/contracts/index.ts';
import { requestCommands, serveCommands } from '../../src/run/worker-commands.ts';

const command: SecretCommand = { text: 'vault get', args: ['vault', 'get'] };

/** A process with many workers, joined by channels that copy messages. */
function aProcess(run: () => Promise<string>, count: number) {
  let now = 0;
  let runs = 0;
  const counted = async () => {
    runs += 1;
    return await run();
  };
  const values = new CommandValues(counted, () => now);
  const workers = Array.from({ length: count }, () => {
    const [child, own] = [new EventEmitter(), new EventEmitter()];
    const served = Object.assign(child, {
      connected: true,
      send(message: object) {
        own.emit('message', structuredClone(message));
        return true;
      },
    });
    serveCommands(served as never, {}, values);
    const worker = new CommandValues(
      () => Promise.reject(new Error('a worker runs no command')),
      () => now,
    );
    requestCommands(
      {
        send: (message) => void child.emit('message', structuredClone(message)),
        on: own.on.bind(own),
      },
      worker,
    );
    return worker;
  });
  const pass = (ms: number) => {
    now += ms;
  };
  return { workers, pass, runs: () => runs };
}

test('300 workers get one value from one run, and together one more 30 s later', async () => {
  let secret = 'one';
  const { workers, pass, runs } = aProcess(async () => secret, 300);

  await Promise.all(workers.map((worker) => worker.prepare([command], {})));
  expect(new Set(workers.map((worker) => worker.value(command)))).toEqual(new Set(['one']));
  expect(runs()).toBe(1);

  secret = 'two';
  pass(30_000);
  await Promise.all(workers.map((worker) => worker.refresh(command, {})));

  expect(new Set(workers.map((worker) => worker.value(command)))).toEqual(new Set(['two']));
  expect(runs()).toBe(2);
});

test('a failing command is an error with its next step in each worker', async () => {
  const failure = new ExportError('config_invalid', 'it ended with exit code 1', {
    next: 'Run it.',
  });
  const { workers } = aProcess(() => Promise.reject(failure), 2);

  await Promise.all(workers.map((worker) => worker.prepare([command], {})));

  for (const worker of workers) {
    expect(() => worker.value(command)).toThrow('it ended with exit code 1');
  }
});

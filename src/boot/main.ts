#!/usr/bin/env node
// Start and end of the program: passes the command line to program.ts, and turns the result into an
// exit code. Invariant: no other file ends the process. sluice.js has checked the runtime before; a
// link or a systemd unit of 0.1.0 starts this file directly, without that check and its memory
// flags.

import type { CommandDeps, ExitCode } from '../commands/index.ts';
import { runProgram, unexpectedText } from './program.ts';

// As in sluice.js, for a direct start of this file: SIGUSR1 starts no debugger, SIGUSR2 ends
// nothing.
for (const name of ['SIGUSR1', 'SIGUSR2'] as const) process.on(name, () => undefined);

const unread = new AbortController();
// Without a listener, a closed reader (`sluice status | head`) would end the process with a stack
// trace.
process.stdout.on('error', () =>
  unread.abort(new Error('the reader of standard output closed the pipe')),
);
process.stderr.on('error', () => undefined);

let isEnding = false;
const ended = (code: ExitCode) => {
  isEnding = true;
  process.exit(code);
};
// Every exit writes a line with its reason. Node ends by itself when nothing is left to wait for.
process.on('exit', (code) => {
  if (isEnding) return;
  deps.err(
    `error: sluice ends with code ${code}, because nothing is left to wait for. This is a fault in sluice: please report it. No event is lost`,
  );
});

const deps: CommandDeps = {
  env: process.env,
  out: (line) => void process.stdout.write(`${line}\n`),
  err: (line) => void process.stderr.write(`${line}\n`),
  unread: unread.signal,
  exit: ended,
};

process.on('uncaughtException', (error) => {
  deps.err(unexpectedText(error));
  ended(1);
});

const code = await runProgram(process.argv.slice(2), deps);
await Promise.all([flushed(process.stdout), flushed(process.stderr)]);
ended(code);

/** A pipe may be slow; ending before it has accepted everything would cut the last lines. */
function flushed(stream: NodeJS.WriteStream): Promise<void> {
  return new Promise((resolve) => {
    if (stream.destroyed || stream.writableLength === 0) resolve();
    else stream.write('', () => resolve());
  });
}

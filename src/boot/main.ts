#!/usr/bin/env -S MALLOC_ARENA_MAX=1 node --max-semi-space-size=4 --heap-growing-percent=100
// Where the program begins and ends. It makes sure of the runtime before anything that needs it is loaded, hands the
// command line to program.ts, and turns the outcome into an exit code. No other file ends the process. The first line
// keeps memory flat at full speed and costs no CPU: records die young, so little room for them is enough, and what
// threads free in one arena serves the next page. `npm run bench` shows it, with this line or another.

import { enableCompileCache } from 'node:module';
import { join } from 'node:path';
import type { ExitCode, Means } from './command.ts';

const nodeMajorMin = 26;

if (Number(process.versions.node.split('.')[0]) < nodeMajorMin) {
  process.stderr.write(
    `sluice needs Node ${nodeMajorMin} or newer, and this is ${process.version}: start it with \`npx sluice\`, ` +
      'which uses the Node in node_modules (run `npm ci` first)\n',
  );
  process.exit(1);
}

// Halves start-up and saves 25 MB, since types are stripped and code is compiled once. Beside the code and not in the
// system's temporary directory, where others could write; where it cannot be written nothing is cached. Named in the
// environment, since the spool's thread looks nowhere else: it would strip every one of its files anew.
process.env.NODE_COMPILE_CACHE ||= join(
  import.meta.dirname,
  '../../node_modules/.cache/sluice-compiled',
);
enableCompileCache();

const unread = new AbortController();
// Without a listener a reader that goes away (`sluice status | head`) would end the process with a stack trace.
process.stdout.on('error', () => unread.abort(new Error('whoever read standard output has gone')));
process.stderr.on('error', () => undefined);

const means: Means = {
  env: process.env,
  out: (line) => void process.stdout.write(`${line}\n`),
  err: (line) => void process.stderr.write(`${line}\n`),
  unread: unread.signal,
  exit: (code) => process.exit(code),
};

const { runProgram, unexpectedText } = await import('./program.ts');

const ended = (code: ExitCode) => process.exit(code);
process.on('uncaughtException', (error) => {
  means.err(unexpectedText(error));
  ended(1);
});

const code = await runProgram(process.argv.slice(2), means);
await Promise.all([flushed(process.stdout), flushed(process.stderr)]);
ended(code);

/** A pipe may take its time; ending before it has taken everything would cut the last lines. */
function flushed(stream: NodeJS.WriteStream): Promise<void> {
  return new Promise((resolve) => {
    if (stream.destroyed || stream.writableLength === 0) resolve();
    else stream.write('', () => resolve());
  });
}

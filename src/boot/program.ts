// One command line from its words to its exit code. Whatever goes wrong on the way is told on
// stderr in the same form, and what it is decides the code. Exit codes are what people's scripts
// rely on: none ever changes its meaning.

import { CommanderError } from 'commander';
import { type ExitCode, failureText, type Means } from '../commands/shared/command.ts';
import { commandLine } from '../commands/shared/command-line.ts';
import { asExportError, ExportError, UsageError } from '../contracts/errors.ts';
import { visibleOutput } from '../contracts/text.ts';
import { commandsFor } from './commands.ts';

/** Runs one command line. Whatever happens is told on stderr and becomes an exit code. */
export async function runProgram(args: readonly string[], given: Means): Promise<ExitCode> {
  const deps: Means = {
    ...given,
    // Whatever a command tells, as text or as JSON: nothing in it steers the terminal.
    out: (line) => given.out(visibleOutput(line)),
    err: (line) => given.err(visibleOutput(line)),
  };
  let code: ExitCode = 0;
  const end = (ended: ExitCode) => {
    code = ended;
  };
  try {
    const program = commandLine(await commandsFor(args), { deps, end });
    await program.parseAsync(args, { from: 'user' });
    return code;
  } catch (error) {
    return reportFailure(error, deps);
  }
}

/** An error that nobody expected, with a request to report it. */
export function unexpectedText(error: unknown): string {
  return failureText(asExportError(error, 'an error that sluice did not expect'));
}

function reportFailure(error: unknown, { err }: Means): ExitCode {
  if (error instanceof CommanderError) {
    // Commander has said by itself what is wrong; asking for help or the version is nothing wrong.
    return error.exitCode === 0 ? 0 : 64;
  }
  if (error instanceof UsageError) {
    err(`error: ${error.message}`);
    return 64;
  }
  if (error instanceof ExportError) {
    err(failureText(error));
    return error.code === 'config_invalid' ? 2 : 1;
  }
  err(unexpectedText(error));
  return 1;
}

// Runs one command line and returns its exit code. Every failure is written to stderr in the same
// form, and its kind decides the code. Invariant: an exit code never changes its meaning, because
// users' scripts rely on it.

import { CommanderError } from 'commander';
import {
  type CommandDeps,
  commandLine,
  commandsFor,
  type ExitCode,
  failureText,
} from '../commands/index.ts';
import { asExportError, ExportError, UsageError, visibleOutput } from '../contracts/index.ts';

/** Runs one command line. Every failure is written to stderr and becomes an exit code. */
export async function runProgram(args: readonly string[], given: CommandDeps): Promise<ExitCode> {
  const deps: CommandDeps = {
    ...given,
    // The output of a command, as text or as JSON, contains nothing that controls the terminal.
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

/** The text of an unexpected error, with a request to report it. */
export function unexpectedText(error: unknown): string {
  return failureText(asExportError(error, 'an error that sluice did not expect'));
}

function reportFailure(error: unknown, { err }: CommandDeps): ExitCode {
  if (error instanceof CommanderError) {
    // Commander has written its own message; a request for help or the version is not an error.
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

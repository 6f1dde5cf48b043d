// Runs a command within the test's own process and collects its output; no process is started. For tests that do not
// depend on a real terminal or exit code; those start the real program (support/cli.ts).

import type { CommandDeps, ExitCode } from '../../src/commands/shared/command.ts';

/** What a command said, and the code it ended with. */
export interface Received {
  readonly out: readonly string[];
  readonly err: readonly string[];
  readonly code: ExitCode;
}

/** Runs a command with this environment. What it throws is the caller's to expect. */
export async function received(
  command: (deps: CommandDeps) => Promise<ExitCode>,
  env: CommandDeps['env'] = {},
): Promise<Received> {
  const out: string[] = [];
  const err: string[] = [];
  const deps: CommandDeps = {
    env,
    out: (line) => out.push(line),
    err: (line) => err.push(line),
    unread: new AbortController().signal,
    exit: (code) => {
      throw new Error(`the command ended the process with ${code}`);
    },
  };
  return { out, err, code: await command(deps) };
}

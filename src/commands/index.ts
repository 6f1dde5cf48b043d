// The list of commands, in the order of the help. A command's file is loaded only for that command, so that a command
// does not load the code of others. Invariant: a command is never renamed, because users' scripts rely on the names.

import type * as commander from 'commander';
import type { Command, CommandDeps, CommandGroup } from './shared/command.ts';
import { commandLine } from './shared/command-line.ts';

export type { CommandDeps, ExitCode } from './shared/command.ts';
export { failureText } from './shared/command.ts';
export { commandLine } from './shared/command-line.ts';

type Loaded = Promise<Command | CommandGroup>;

/** Each function gets the word after its own name, so that a group loads only that subcommand. */
const commands: Readonly<Record<string, (below?: string) => Loaded>> = {
  run: async () => (await import('./run.ts')).run,
  init: async () => (await import('./init.ts')).init,
  check: async () => (await import('./check.ts')).check,
  preview: async () => (await import('./preview.ts')).preview,
  test: async () => (await import('./test.ts')).test,
  schema: async () => (await import('./schema.ts')).schema,
  status: async () => (await import('./status.ts')).status,
  healthy: async () => (await import('./healthy.ts')).healthy,
  top: async () => (await import('./top.ts')).top,
  receipt: async () => (await import('./receipt.ts')).receipt,
  explain: async () => (await import('./explain.ts')).explain,
  retry: async () => (await import('./retry.ts')).retry,
  checkpoint: async () => (await import('./checkpoint.ts')).checkpoint,
  backfill: async () => (await import('./backfill.ts')).backfill,
  'dead-letters': async () => (await import('./dead-letters.ts')).deadLetters,
  sinks: async () => (await import('./sinks.ts')).sinks,
  archive: async (below) => (await import('./archive.ts')).archiveCommands(below),
  cluster: async (below) => (await import('./cluster.ts')).clusterCommands(below),
  succession: async (below) => (await import('./succession.ts')).successionCommands(below),
  support: async () => (await import('./support.ts')).support,
  tap: async () => (await import('./tap.ts')).tap,
  webhooks: async () => (await import('./webhooks.ts')).webhooks,
  sandbox: async () => (await import('./sandbox.ts')).sandbox,
  quickstart: async () => (await import('./quickstart.ts')).quickstart,
  completion: async () => (await import('./completion.ts')).shellCompletion(wholeCommandLine),
};

/** The command that the first words of a command line name; all commands if they name none. */
export async function commandsFor([name, below]: readonly string[]): Promise<
  readonly (Command | CommandGroup)[]
> {
  // The version needs no command.
  if (name === '--version' || name === '-V') return [];
  const named = Object.entries(commands).filter(([known]) => known === name);
  const requested = named.length > 0 ? named : Object.entries(commands);
  return await Promise.all(requested.map(([, load]) => load(below)));
}

/** The command line with all commands, for help, completion and documentation. */
export async function wholeCommandLine(deps: CommandDeps): Promise<commander.Command> {
  return commandLine(await commandsFor([]), { deps, end: () => undefined });
}

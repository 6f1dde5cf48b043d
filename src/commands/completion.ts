// `sluice completion`: a script that completes sluice's commands, options and their values in bash, zsh or fish, also
// after `npx`. It is generated from the command tree, so it is always complete. Names of sources, sinks and streams are
// not completed, since the shell would have to start sluice to list them.

import type { Argument, Command, Option } from 'commander';
import { type CommandDeps, defineCommand } from './shared/command.ts';
import { type CompletionCommand, type Follow, scripts } from './shared/completion-scripts.ts';

/** Prints the script for a shell that completes this command line. */
export function shellCompletion(program: (deps: CommandDeps) => Promise<Command>) {
  return defineCommand({
    name: 'completion',
    about: 'print a script that completes commands and options in a shell',
    arguments: { shell: { about: 'the shell', choices: ['bash', 'zsh', 'fish'] } },
    async run({ shell }, deps) {
      deps.out(scripts[shell](commandsOf(await program(deps), [])));
      return 0;
    },
  });
}

function commandsOf(command: Command, names: readonly string[]): readonly CompletionCommand[] {
  const help = command.createHelp();
  const commands = help.visibleCommands(command);
  const [argument] = command.registeredArguments;
  const all: CompletionCommand = {
    path: names.join(' '),
    commands: commands.map((one) => ({ text: one.name(), about: one.description() })),
    options: help.visibleOptions(command).map((option) => ({
      flags: [option.short, option.long].filter((flag) => typeof flag === 'string'),
      about: option.description,
      value: option.required || option.optional ? followOf(option, option.flags) : null,
    })),
    argument: argument === undefined ? null : followOf(argument, argument.name()),
  };
  return [all, ...commands.flatMap((one) => commandsOf(one, [...names, one.name()]))];
}

/** The name of a value shows its kind: `<file>`, `<dir>`, `<record.json>`. */
function followOf({ argChoices }: Option | Argument, name: string): Follow {
  if (argChoices !== undefined) return { choices: argChoices };
  return /\b(file|dir|json|yaml)\b/.test(name) ? 'file' : 'text';
}

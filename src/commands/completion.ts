// `sluice completion`: a script that completes sluice's commands, options and their values in bash,
// zsh or fish, also behind `npx`. It is made from the command line's own tree, so that it names
// what there is. Names of sources, sinks and streams are not completed, since a shell would have to
// start sluice to learn them.

import type { Argument, Command, Option } from 'commander';
import { defineCommand, type Means } from './shared/command.ts';
import { type CompletionPlace, type Follow, scripts } from './shared/completion-scripts.ts';

/** Prints the script for a shell that completes this command line. */
export function shellCompletion(program: (deps: Means) => Promise<Command>) {
  return defineCommand({
    name: 'completion',
    about: 'print a script that completes commands and options in a shell',
    arguments: { shell: { about: 'the shell', choices: ['bash', 'zsh', 'fish'] } },
    async run({ shell }, deps) {
      deps.out(scripts[shell](placesOf(await program(deps), [])));
      return 0;
    },
  });
}

function placesOf(command: Command, names: readonly string[]): readonly CompletionPlace[] {
  const help = command.createHelp();
  const commands = help.visibleCommands(command);
  const [argument] = command.registeredArguments;
  const place: CompletionPlace = {
    path: names.join(' '),
    commands: commands.map((one) => ({ text: one.name(), about: one.description() })),
    options: help.visibleOptions(command).map((option) => ({
      flags: [option.short, option.long].filter((flag) => typeof flag === 'string'),
      about: option.description,
      value: option.required || option.optional ? followOf(option, option.flags) : null,
    })),
    argument: argument === undefined ? null : followOf(argument, argument.name()),
  };
  return [place, ...commands.flatMap((one) => placesOf(one, [...names, one.name()]))];
}

/** The names of values say what they are: `<file>`, `<dir>`, `<record.json>`. */
function followOf({ argChoices }: Option | Argument, name: string): Follow {
  if (argChoices !== undefined) return { choices: argChoices };
  return /\b(file|dir|json|yaml)\b/.test(name) ? 'file' : 'text';
}

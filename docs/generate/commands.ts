// Every command with its arguments and options, from the command line itself.

import type { Command, Option } from 'commander';
import { wholeCommandLine } from '../../src/commands/index.ts';
import { table } from './settings-table.ts';

/** The program's command line, for looking at. */
export const program = await wholeCommandLine({
  env: {},
  out: () => {},
  err: () => {},
  unread: new AbortController().signal,
  exit: () => {},
});

/** A section for each command; those of a group follow one another. */
export function commandSections(): string {
  return sectionsOf(program, 'sluice').join('\n\n');
}

function sectionsOf(parent: Command, path: string): readonly string[] {
  return parent
    .createHelp()
    .visibleCommands(parent)
    .flatMap((command) => {
      const name = `${path} ${command.name()}`;
      const inside = sectionsOf(command, name);
      const isGroup = inside.length > 0 && optionsOf(command).length === 0;
      return isGroup ? inside : [sectionOf(command, name), ...inside];
    });
}

function sectionOf(command: Command, name: string): string {
  const help = command.createHelp();
  const rows = [
    ...help
      .visibleArguments(command)
      .map((argument) => [
        `\`${help.argumentTerm(argument)}\``,
        help.argumentDescription(argument),
      ]),
    ...optionsOf(command).map((option) => [`\`${option.flags}\``, descriptionOf(option)]),
  ];
  const head = `### \`${name}\`\n\n${command.description()}.`;
  return rows.length === 0 ? head : `${head}\n\n${table(['', ''], rows)}`;
}

function optionsOf(command: Command): readonly Option[] {
  return command
    .createHelp()
    .visibleOptions(command)
    .filter(({ long }) => long !== '--help');
}

function descriptionOf({ description, mandatory, argChoices, defaultValue }: Option): string {
  const notes = [
    ...(mandatory ? ['**required**'] : []),
    ...(argChoices === undefined ? [] : [argChoices.map((choice) => `\`${choice}\``).join(', ')]),
    ...(defaultValue === undefined ? [] : [`default: \`${defaultValue}\``]),
  ];
  return [description, ...notes].join('; ');
}

// Whether a command line in a file would be understood: the command is there, and it has each of the options. Nothing is run.

import type { Command } from 'commander';
import { program } from '../../docs/generate/commands.ts';

/** The words behind `sluice` that it does not know; empty where it knows all. */
export function unknownIn(words: readonly string[]): readonly string[] {
  let command: Command = program;
  let depth = 0;
  for (const word of words) {
    const inside = command.commands.find((candidate) => candidate.name() === word);
    if (inside === undefined) break;
    command = inside;
    depth += 1;
  }
  const usual = Reflect.get(command, '_defaultCommandName');
  const alone = command.commands.find((candidate) => candidate.name() === usual);
  if (alone !== undefined && words[depth]?.startsWith('-')) command = alone;
  if (command.commands.length > 0) return words.slice(0, depth + 1);
  const known = new Set(['--help', ...command.options.flatMap(({ short, long }) => [short, long])]);
  return words
    .slice(depth)
    .filter((word) => word.startsWith('-') && !known.has(word) && word !== '-');
}

// Runs the commands of `${exec:…}` that a config file names, before the file is read: reading never waits for a program.
// Invariant: only references of values run; one in a comment never does.

import { commandValues, type SecretCommand } from './commands.ts';
import { Flaws } from './flaws.ts';
import { commandsOf, readFile, type Surroundings } from './references.ts';
import { readWritten, type WrittenValue } from './written.ts';

/** Runs those that have no value yet; `keys`: those below these top keys only. Never rejects. */
export async function prepareCommands(
  file: string,
  configEnv: Surroundings,
  keys?: readonly string[],
): Promise<void> {
  await commandValues.prepare(commandsIn(file, configEnv, keys), configEnv.env);
}

/** Runs those that have no value yet, and the others again, at most once in 30 s. Never rejects. */
export async function refreshCommands(file: string, configEnv: Surroundings): Promise<void> {
  const commands = commandsIn(file, configEnv, undefined);
  const again = commands.map((command) => commandValues.refresh(command, configEnv.env));
  await Promise.all([commandValues.prepare(commands, configEnv.env), ...again]);
}

function commandsIn(
  file: string,
  configEnv: Surroundings,
  keys: readonly string[] | undefined,
): readonly SecretCommand[] {
  let text: string;
  try {
    text = Buffer.from(readFile(file, configEnv)).toString('utf8');
  } catch {
    return []; // reading the config reports it
  }
  if (!text.includes('exec:')) return [];
  const top = readWritten(text, { ...configEnv, placeholders: 'all' }, new Flaws());
  const found = new Map<string, SecretCommand>();
  const visit = (written: WrittenValue) => {
    for (const command of commandsOf(written.template ?? [])) found.set(command.text, command);
    for (const child of written.children?.values() ?? []) visit(child);
  };
  const roots = keys === undefined ? [top] : keys.map((key) => top?.children?.get(key));
  for (const root of roots) if (root) visit(root);
  return [...found.values()];
}

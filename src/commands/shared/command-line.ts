// Parses the command line, as the commands declare it (command.ts).

import { readFile } from 'node:fs/promises';
import * as commander from 'commander';
import { UsageError } from '../../contracts/index.ts';
import { buildText, cleanText, hint } from '../../tools/index.ts';
import type { Command, CommandDeps, CommandGroup, ExitCode, Parameter } from './command.ts';

interface Running {
  readonly deps: CommandDeps;
  /** Receives the exit code of the command. */
  readonly end: (code: ExitCode) => void;
}

/** The command line of these commands. */
export function commandLine(
  commands: readonly (Command | CommandGroup)[],
  running: Running,
): commander.Command {
  const program = new commander.Command('sluice')
    .description('Exports audit events, security logs and firewall changes, losing nothing.')
    .version(buildText(), '-V, --version')
    .exitOverride()
    .showHelpAfterError('(see --help)')
    .helpOption('-h, --help', 'show this help')
    .helpCommand(false)
    .configureOutput({
      writeOut: (text) => running.deps.out(text.trimEnd()),
      writeErr: (text) => running.deps.err(text.trimEnd()),
    });
  addAll(program, commands, running);
  return program;
}

function addAll(
  parent: commander.Command,
  commands: readonly (Command | CommandGroup)[],
  running: Running,
): void {
  for (const one of commands) {
    if ('commands' in one) addGroup(parent, one, running);
    else addCommand(parent, one, running);
  }
}

function addCommand(
  parent: commander.Command,
  command: Command,
  { deps, end }: Running,
  how: commander.CommandOptions = {},
): commander.Command {
  const { name, about, more, hidden = false } = command;
  const names = Object.keys(command.arguments);
  const added = parent.command(name, { hidden, ...how }).description(about);
  for (const [name, argument] of Object.entries(command.arguments)) {
    added.addArgument(argumentOf(name, argument));
  }
  for (const [name, option] of Object.entries(command.options)) {
    added.addOption(optionOf(name, option, deps));
  }
  if (more !== undefined) added.addHelpText('after', `\n${more}`);
  // Commander's own message would not say how a config is named.
  const takesConfigOnly = names.length === 0 && 'config' in command.options;
  added.allowExcessArguments(takesConfigOnly);
  return added.action(async (...typed: readonly unknown[]) => {
    const [excess] = takesConfigOnly ? added.args : [];
    if (excess !== undefined) {
      const word = cleanText(excess, 80);
      throw new UsageError(`${name} takes no argument, found ${word}; name a config with -c FILE`);
    }
    const given: Record<string, unknown> = added.opts();
    for (const [at, name] of names.entries()) given[name] = typed[at];
    for (const [name, { found }] of Object.entries(command.options)) {
      if (found !== undefined) given[name] ??= found(deps.env);
    }
    if (typeof given.config === 'string' && given.withoutSecrets !== true) {
      await prepareToLook(given.config, deps.env);
    }
    end(await command.run(given, deps));
  });
}

/**
 * Every command needs the secrets of the state and of the status server: only those commands of `${exec:…}` run that
 * these blocks name. Loads the config only if it may have some.
 */
async function prepareToLook(file: string, env: CommandDeps['env']): Promise<void> {
  const text = await readFile(file, 'utf8').catch(() => '');
  if (!text.includes('exec:')) return;
  const { workerVariable } = await import('../../run/process.ts');
  // A worker process gets all values from the process that started it.
  if (env[workerVariable] !== undefined) return;
  const { prepareCommands } = await import('../../config/index.ts');
  await prepareCommands(file, { env }, ['state', 'status']);
}

function addGroup(
  program: commander.Command,
  { name, about, commands, alone, more }: CommandGroup,
  running: Running,
): void {
  const group = program.command(name).description(about).helpCommand(false);
  if (more !== undefined) group.addHelpText('after', `\n${more}`);
  addAll(group, commands, running);
  if (alone === undefined) return;
  const words = commands.map((command) => command.name);
  const usual = addCommand(group, alone, running, { isDefault: true, hidden: true });
  // A word that is no command would else be a superfluous argument of the default one.
  group.hook('preSubcommand', ({ args: [word = '-'] }, command) => {
    if (command !== usual || word === usual.name() || word.startsWith('-')) return;
    throw new UsageError(`unknown command ${cleanText(word, 80)} of ${name}${hint(word, words)}`);
  });
  group
    .usage(['[options]', ...words].join(' | '))
    .configureHelp({ visibleOptions: () => usual.createHelp().visibleOptions(usual) });
}

function argumentOf(name: string, { about, value, choices, several, optional }: Parameter) {
  const text = `${value ?? name}${several ? '...' : ''}`;
  const term = optional ? `[${text}]` : `<${text}>`;
  const made = new commander.Argument(term, about);
  return choices === undefined ? made : made.choices(choices);
}

function optionOf(name: string, option: Parameter, { env }: CommandDeps): commander.Option {
  const { about, short, value, choices, several, needed = false, usual } = option;
  const long = `--${name.replace(/[A-Z]/g, (capital) => `-${capital.toLowerCase()}`)}`;
  const flags = [...(short === undefined ? [] : [`${short},`]), long];
  if (value !== undefined) flags.push(`<${value}>`);
  const made = new commander.Option(flags.join(' '), about).makeOptionMandatory(needed);
  if (choices !== undefined) made.choices(choices);
  if (usual !== undefined) made.default(typeof usual === 'string' ? usual : usual(env));
  if (several) {
    made.argParser((text: string, before: readonly string[] | undefined) => [
      ...(before ?? []),
      text,
    ]);
  }
  return made;
}

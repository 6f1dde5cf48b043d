// A command: its name, its parameters, and a function from these to an exit code. Parameters are declared once; help,
// docs page, shell completion and the type of `run`'s argument are derived from the declaration. Commands write through
// the functions they receive and never end the process themselves. So exit codes are set in one file (main.ts), and all
// output is written before the process ends.

import { existsSync } from 'node:fs';
import { type ExportError, logLevels, UsageError } from '../../contracts/index.ts';
import { cleanText } from '../../tools/index.ts';

/** 0 done; 1 failed, or not all delivered; 2 wrong config; 3 unreachable; 64 wrong use. */
export type ExitCode = 0 | 1 | 2 | 3 | 64;

/** The dependencies of a command. */
export interface CommandDeps {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Writes a line of the requested output to stdout. */
  readonly out: (line: string) => void;
  /** Writes a line to stderr: everything else. */
  readonly err: (line: string) => void;
  /** Aborts when the reader of stdout has closed it, for commands without an end. */
  readonly unread: AbortSignal;
  /** Ends the process at once; only for a second signal. */
  readonly exit: (code: ExitCode) => void;
}

/** An option or argument. Its name is its key: `logLevel` is typed as `--log-level`. */
export interface Parameter {
  readonly about: string;
  /** `-c`. */
  readonly short?: string;
  /**
   * The name of the value in the help; `completion` derives from the name whether the value is a file. An option
   * without one is a switch.
   */
  readonly value?: string;
  readonly choices?: readonly string[];
  /** May be given several times. */
  readonly several?: true;
  /** Required. Arguments are required unless they are `optional`. */
  readonly needed?: true;
  /** Of an argument: may be left out. */
  readonly optional?: true;
  /** The default, as the help shows it. */
  readonly usual?: string | ((env: CommandDeps['env']) => string);
  /** Finds the default. Throws a UsageError. */
  readonly found?: (env: CommandDeps['env']) => string;
}

/** Options or arguments in the order in which the help has them. */
type ParameterList = Readonly<Record<string, Parameter>>;

type Sure = { needed: true } | { usual: unknown } | { found: unknown };

type ValueOf<P extends Parameter> = P extends { several: true }
  ? readonly string[]
  : P extends { choices: readonly (infer Choice)[] }
    ? Choice
    : string;

/** The options that `run` receives: a switch that was not given is absent. */
export type Given<Options extends ParameterList> = {
  readonly [Name in keyof Options as Options[Name] extends Sure ? Name : never]: ValueOf<
    Options[Name]
  >;
} & {
  readonly [Name in keyof Options as Options[Name] extends Sure
    ? never
    : Name]?: Options[Name] extends {
    value: string;
  }
    ? ValueOf<Options[Name]>
    : boolean;
};

/** A command as the program sees it. */
export interface Command {
  readonly name: string;
  /** A sentence without its full stop. */
  readonly about: string;
  readonly arguments: ParameterList;
  readonly options: ParameterList;
  /** The help text below the options. */
  readonly more?: string;
  /** Not shown in any help. */
  readonly hidden?: boolean;
  // A method, so that commands with other parameters are assignable to this type.
  run(given: Readonly<Record<string, unknown>>, deps: CommandDeps): Promise<ExitCode>;
}

/** Commands below a name. */
export interface CommandGroup {
  readonly name: string;
  readonly about: string;
  readonly commands: readonly (Command | CommandGroup)[];
  /** The command that runs if no subcommand is named. */
  readonly alone?: Command;
  readonly more?: string;
}

/** A command in its own file; commands/index.ts lists all. */
export function defineCommand<
  const Arguments extends ParameterList = Record<never, never>,
  const Options extends ParameterList = Record<never, never>,
>(
  command: Omit<Command, 'arguments' | 'options' | 'run'> & {
    readonly arguments?: Arguments;
    readonly options?: Options;
    readonly run: (
      given: {
        readonly [Name in keyof Arguments]:
          | ValueOf<Arguments[Name]>
          | (Arguments[Name] extends { optional: true } ? undefined : never);
      } & Given<Options>,
      deps: CommandDeps,
    ) => Promise<ExitCode>;
  },
) {
  return { ...command, arguments: command.arguments ?? {}, options: command.options ?? {} };
}

/** The config, of every command that reads one. */
export const configOption = {
  short: '-c',
  value: 'file',
  about: 'config file; default: $SLUICE_CONFIG, else ./sluice.yaml',
  found(env: CommandDeps['env']): string {
    const usual = usualConfig(env);
    if (usual !== null) return usual;
    throw new UsageError(
      'which config? Name it with -c, --config FILE or in $SLUICE_CONFIG; there is no ./sluice.yaml',
    );
  },
} as const satisfies Parameter;

/** The log level, for every command that logs. */
export const logLevelOption = {
  value: 'level',
  about: 'lowest level of log lines; default: log.level of the config',
  choices: logLevels,
} as const satisfies Parameter;

/** The config if none is named: `$SLUICE_CONFIG`, else `./sluice.yaml`; null: neither. */
export function usualConfig({ SLUICE_CONFIG: named = '' }: CommandDeps['env']): string | null {
  if (named !== '') return named;
  return existsSync('sluice.yaml') ? 'sluice.yaml' : null;
}

/** A failure as text: the fault, and the next step on a line of its own. */
export function failureText(error: ExportError): string {
  return `${lines(error.message)}\n  ${lines(error.next)}`;
}

const lineLengthMax = 2_000;

/** Messages of several lines (config errors) keep them; within a line none can be made. */
function lines(text: string): string {
  return text
    .split('\n')
    .map((line) => cleanText(line, lineLengthMax))
    .join('\n');
}

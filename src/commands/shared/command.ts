// What a command is to the program: what it is called, what it takes, and a function from that to
// an exit code. What a command takes is declared once; its help, its page in docs, what shells
// complete and the type of what `run` is given all come from there. Commands write through what
// they are handed and never end the process themselves, so that exit codes stand in one place
// (main.ts) and what a command prints is whole before the process ends.

import { existsSync } from 'node:fs';
import { type ExportError, UsageError } from '../../contracts/index.ts';
import { cleanText } from '../../tools/index.ts';
import { logLevels } from '../../watch/log.ts';

/** 0 done; 1 failed, or not all delivered; 2 wrong config; 3 unreachable; 64 wrong use. */
export type ExitCode = 0 | 1 | 2 | 3 | 64;

/** What a command is run with. */
export interface Means {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Writes a line to stdout: what was asked for. */
  readonly out: (line: string) => void;
  /** Writes a line to stderr: everything else. */
  readonly err: (line: string) => void;
  /** Aborts when whoever read stdout has gone, for commands without an end. */
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
   * What its value is called in the help; `completion` takes it from there whether that is a file.
   * An option without one is a switch.
   */
  readonly value?: string;
  readonly choices?: readonly string[];
  /** May be given several times. */
  readonly several?: true;
  /** Has to be given. Arguments always have. */
  readonly needed?: true;
  /** What holds where it is left out, and stands in the help. */
  readonly usual?: string | ((env: Means['env']) => string);
  /** Finds what holds where it is left out. Throws a UsageError. */
  readonly found?: (env: Means['env']) => string;
}

/** Options or arguments in the order in which the help has them. */
type ParameterList = Readonly<Record<string, Parameter>>;

type Sure = { needed: true } | { usual: unknown } | { found: unknown };

type ValueOf<P extends Parameter> = P extends { several: true }
  ? readonly string[]
  : P extends { choices: readonly (infer Choice)[] }
    ? Choice
    : string;

/** What `run` is given of options: a switch that is left out is not there. */
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
  /** What its help says below the options. */
  readonly more?: string;
  /** Stands in no help. */
  readonly hidden?: boolean;
  // A method, since what is given was made from the parameters above.
  run(given: Readonly<Record<string, unknown>>, deps: Means): Promise<ExitCode>;
}

/** Commands below a name. */
export interface CommandGroup {
  readonly name: string;
  readonly about: string;
  readonly commands: readonly (Command | CommandGroup)[];
  /** What is run where none of them is named. */
  readonly alone?: Command;
  readonly more?: string;
}

/** A command of its own file; the list of all is commands/index.ts. */
export function defineCommand<
  const Arguments extends ParameterList = Record<never, never>,
  const Options extends ParameterList = Record<never, never>,
>(
  command: Omit<Command, 'arguments' | 'options' | 'run'> & {
    readonly arguments?: Arguments;
    readonly options?: Options;
    readonly run: (
      given: { readonly [Name in keyof Arguments]: ValueOf<Arguments[Name]> } & Given<Options>,
      deps: Means,
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
  found(env: Means['env']): string {
    const usual = usualConfig(env);
    if (usual !== null) return usual;
    throw new UsageError(
      'which config? Name it with -c, --config FILE or in $SLUICE_CONFIG; there is no ./sluice.yaml',
    );
  },
} as const satisfies Parameter;

/** What is logged, of every command that logs. */
export const logLevelOption = {
  value: 'level',
  about: 'lowest level of log lines; default: log.level of the config',
  choices: logLevels,
} as const satisfies Parameter;

/** The config of who names none: `$SLUICE_CONFIG`, else `./sluice.yaml`; null: neither. */
export function usualConfig({ SLUICE_CONFIG: named = '' }: Means['env']): string | null {
  if (named !== '') return named;
  return existsSync('sluice.yaml') ? 'sluice.yaml' : null;
}

/** A failure as a person reads it: what happened, and what to do about it on a line of its own. */
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

// The values of `${exec:COMMAND}`: each command runs once when a config is read, and its value is kept. It runs again
// before a token request and after a refused credential, because secret managers issue secrets that end. Invariants:
// one run at a time per command, and after the first at most one in 30 s; a failure keeps the last value; no error, log
// line or status contains an argument, the output or the standard error of a command.

import { asExportError, ExportError } from '../contracts/index.ts';
import { runCommand } from './run-command.ts';

type Env = Readonly<Record<string, string | undefined>>;

/** A command as written, split into program and arguments. */
export interface SecretCommand {
  readonly text: string;
  readonly args: readonly [program: string, ...others: string[]];
}

/** Runs a command and resolves with its value; rejects with an ExportError. `isFirst`: any stored value is enough. */
export type RunCommand = (command: SecretCommand, env: Env, isFirst: boolean) => Promise<string>;

/** Milliseconds between the end of a run and the next run of the same command. */
const againAfterMs = 30_000;
/** A config may name hundreds of commands, and each may be a program of 100 MB. */
const runningMax = 16;

interface Known {
  value: string | null;
  failure: ExportError | null;
  endedAtMs: number;
  running: Promise<void> | null;
}

/** The values of one process. */
export class CommandValues {
  readonly #now: () => number;
  readonly #known = new Map<string, Known>();
  readonly #queue: (() => void)[] = [];
  #running = 0;
  #run: RunCommand;
  #failed: (command: SecretCommand, failure: ExportError) => void = () => undefined;

  constructor(run: RunCommand, now: () => number) {
    this.#run = run;
    this.#now = now;
  }

  /** Replaces how commands run: a worker process gets values from the process that started it. */
  runBy(run: RunCommand): void {
    this.#run = run;
  }

  /** Sets the listener for commands that fail although their last value stays in use. */
  onFailure(listener: (command: SecretCommand, failure: ExportError) => void): void {
    this.#failed = listener;
  }

  /** The last value. Throws an ExportError if the command has never succeeded. */
  value(command: SecretCommand): string {
    const { value, failure } = this.#of(command);
    if (value !== null) return value;
    if (failure !== null) throw failure;
    throw new ExportError('config_invalid', `${shownCommand(command)} was not run here`, {
      next: 'Start sluice, or use a command that runs with its secrets.',
    });
  }

  /** Runs the commands that have no value yet. Never rejects: `value` reports a failure. */
  async prepare(commands: readonly SecretCommand[], env: Env): Promise<void> {
    await Promise.all(
      commands.map(async (command) => {
        const known = this.#of(command);
        if (known.value === null) await this.#start(command, env, known, true);
      }),
    );
  }

  /** Runs a command again, at most once in 30 s. Never rejects: a failure keeps the last value. */
  async refresh(command: SecretCommand, env: Env): Promise<void> {
    const known = this.#of(command);
    if (known.running === null && this.#now() - known.endedAtMs < againAfterMs) return;
    await this.#start(command, env, known, false);
  }

  #of({ text }: SecretCommand): Known {
    return this.#known.getOrInsertComputed(text, () => ({
      ...{ value: null, failure: null, running: null },
      endedAtMs: Number.NEGATIVE_INFINITY,
    }));
  }

  async #start(command: SecretCommand, env: Env, known: Known, isFirst: boolean): Promise<void> {
    known.running ??= this.#once(command, env, known, isFirst).finally(() => {
      known.running = null;
    });
    await known.running;
  }

  async #once(command: SecretCommand, env: Env, known: Known, isFirst: boolean): Promise<void> {
    if (this.#running >= runningMax) {
      const turn = Promise.withResolvers<void>();
      this.#queue.push(turn.resolve);
      await turn.promise;
    } else this.#running += 1;
    try {
      known.value = await this.#run(command, env, isFirst);
      known.failure = null;
    } catch (error) {
      known.failure = asExportError(error, `running ${shownCommand(command)}`);
      if (known.value !== null) this.#failed(command, known.failure);
    } finally {
      known.endedAtMs = this.#now();
      const next = this.#queue.shift();
      if (next === undefined) this.#running -= 1;
      else next();
    }
  }
}

/** The commands of this process. */
export const commandValues = new CommandValues(
  (command, env) => runCommand(command.args, { env, name: shownCommand(command) }),
  () => performance.now(),
);

/** A command for messages: its program only, because an argument may be a secret. */
export function shownCommand({ args: [program, ...others] }: SecretCommand): string {
  return `\${exec:${program}${others.length > 0 ? ' …' : ''}}`;
}

/** Splits a command at spaces; single or double quotes keep a part together. Null: a quote does not end, or no program. */
export function splitCommand(text: string): SecretCommand | null {
  const args: string[] = [];
  let part: string | null = null;
  let quote = '';
  for (const char of text) {
    if (quote !== '') {
      if (char === quote) quote = '';
      else part += char;
    } else if (char === '"' || char === "'") {
      quote = char;
      part ??= '';
    } else if (/\s/.test(char)) {
      if (part !== null) args.push(part);
      part = null;
    } else part = (part ?? '') + char;
  }
  if (part !== null) args.push(part);
  const [program, ...others] = args;
  if (quote !== '' || program === undefined || program === '') return null;
  return { text, args: [program, ...others] };
}

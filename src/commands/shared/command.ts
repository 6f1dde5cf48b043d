// What a command is to the program: a function from its options to an exit code. Commands write through what they are
// handed and never end the process themselves, so that exit codes stand in one place (main.ts) and what a command
// prints is whole before the process ends.

import { existsSync } from 'node:fs';
import type { ExportError } from '../../contracts/errors.ts';
import { cleanText } from '../../tools/clean-text.ts';

/** 0 done; 1 failed, or not all delivered; 2 wrong config; 3 unreachable or refused; 64 wrong use. */
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

/** Options as every command with a config has them. */
export interface ConfigOptions {
  readonly config: string;
  readonly logLevel?: string;
}

/** The config of who names none: `$SLUICE_CONFIG`, else `./sluice.yaml`; null where there is neither. */
export function usualConfig({ SLUICE_CONFIG: named = '' }: Means['env']): string | null {
  if (named !== '') return named;
  return existsSync('sluice.yaml') ? 'sluice.yaml' : null;
}

/** A failure as a person reads it: what happened, and what to do about it on a line of its own. */
export function failureText(error: ExportError): string {
  return `${lines(error.message)}\n  ${lines(error.next)}`;
}

const lineLengthMax = 2_000;

/** Messages of several lines (config errors) keep them; what is within a line cannot make another. */
function lines(text: string): string {
  return text
    .split('\n')
    .map((line) => cleanText(line, lineLengthMax))
    .join('\n');
}

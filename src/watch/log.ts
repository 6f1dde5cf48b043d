// The log: what operators and their tools read while the journey goes on. Lines go to stderr, since
// stdout belongs to events and reports: JSON through pino where a program reads them, aligned and
// coloured where a person does. What must stay true: a line is one line. Names and messages come
// from upstream, so characters that could end a line, turn it around or steer a terminal are taken
// out of every value, whichever of the two is written.

import { styleText } from 'node:util';
import type { ErrorDetails } from '../contracts/errors.ts';
import { plainText } from '../contracts/text.ts';
import type { Log } from '../contracts/tools.ts';
import { exactSpanText } from '../tools/time-text.ts';

/** From least to most grave. */
export const logLevels = ['debug', 'info', 'warn', 'error'] as const;

/** How grave a line is, and from which on lines are written. */
export type LogLevel = (typeof logLevels)[number];

/** How the log is written. */
export interface LogOutput {
  readonly level: LogLevel;
  /** `json`: one object a line with `level`, `time`, `msg` and the fields. `text`: for a person. */
  readonly form: 'json' | 'text';
  /** Where a whole line goes, with its LF; left out: to stderr, at once. */
  readonly write?: (line: string) => void;
  /** Colours by level, for `text`; default: where stderr is a terminal that takes them. */
  readonly colours?: boolean;
}

/** The form for a stream: `text` where it is a terminal. */
export function logForm(stream: { readonly isTTY?: boolean }): LogOutput['form'] {
  return stream.isTTY === true ? 'text' : 'json';
}

/** Opens the log. pino is loaded only here, and only where it is used. */
export async function openLog(settings: LogOutput): Promise<Log> {
  return settings.form === 'json' ? await jsonLog(settings) : textLog(settings, {});
}

async function jsonLog({ level, write }: LogOutput): Promise<Log> {
  const { pino, stdTimeFunctions } = await import('pino');
  const logger = pino(
    {
      level,
      base: null,
      timestamp: stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
    },
    // Written at once: the last lines before an end are those that matter.
    write === undefined ? pino.destination({ fd: process.stderr.fd, sync: true }) : { write },
  );
  const bound = (always: ErrorDetails): Log => ({
    ...byLevel((at, text, fields) => {
      if (logger.isLevelEnabled(at)) logger[at](printable({ ...always, ...fields }), text);
    }),
    with: (fields) => bound({ ...always, ...fields }),
  });
  return bound({});
}

const styles = { debug: 'gray', info: 'cyan', warn: 'yellow', error: 'red' } as const;

function textLog(settings: LogOutput, always: ErrorDetails): Log {
  const { level, write = toStderr, colours } = settings;
  const style = (format: 'gray' | (typeof styles)[LogLevel], text: string) => {
    if (colours === false) return text;
    return styleText(format, text, {
      stream: process.stderr,
      validateStream: colours !== true,
    });
  };
  return {
    ...byLevel((at, text, fields) => {
      if (!reaches(at, level)) return;
      const { next, ...rest } = printable({ ...always, ...fields });
      const time = style('gray', new Date().toTimeString().slice(0, 8));
      const facts = Object.entries(rest).map(([name, value]) => ` ${readableFact(name, value)}`);
      const told = `${time} ${style(styles[at], at.padEnd(5))} ${text}${style('gray', facts.join(''))}`;
      // What the operator can do stands on a line of its own, where it is found.
      write(next === undefined ? `${told}\n` : `${told}\n               ${String(next)}\n`);
    }),
    with: (fields) => textLog(settings, { ...always, ...fields }),
  };
}

/** Whether lines of this gravity are written where lines from `from` on are. */
export function reaches(at: LogLevel, from: LogLevel): boolean {
  return logLevels.indexOf(at) >= logLevels.indexOf(from);
}

/** A log's methods, made of one function. */
export function byLevel(
  line: (level: LogLevel, text: string, fields: ErrorDetails | undefined) => void,
): Record<LogLevel, (text: string, fields?: ErrorDetails) => void> {
  return {
    debug: (text, fields) => line('debug', text, fields),
    info: (text, fields) => line('info', text, fields),
    warn: (text, fields) => line('warn', text, fields),
    error: (text, fields) => line('error', text, fields),
  };
}

/** A duration as people say it: `wait=2m40s` for `wait_ms`. */
function readableFact(name: string, value: string | number | boolean | null): string {
  if (typeof value !== 'number' || !name.endsWith('_ms')) return fact(name, value);
  return `${name.slice(0, -'_ms'.length)}=${exactSpanText(value)}`;
}

function fact(name: string, value: string | number | boolean | null): string {
  const text = String(value);
  return /^[^\s"=]+$/.test(text) ? `${name}=${text}` : `${name}=${JSON.stringify(text)}`;
}

function toStderr(line: string): void {
  process.stderr.write(line);
}

/** Longer values bury the rest of the line; messages of ours are far shorter. */
const valueLengthMax = 2_000;

/** Fields as they may be written: without what could end a line or steer a terminal. */
export function printable(fields: ErrorDetails): Record<string, string | number | boolean | null> {
  const clean: Record<string, string | number | boolean | null> = {};
  for (const [name, value] of Object.entries(fields)) {
    if (value === undefined) continue;
    if (typeof value === 'string') clean[name] = plainText(value.slice(0, valueLengthMax));
    // Waits are worked out with chance in them, and nobody reads a millionth of a millisecond.
    else
      clean[name] = typeof value === 'number' && name.endsWith('_ms') ? Math.round(value) : value;
  }
  return clean;
}

// The log: what operators and their tools read while the journey goes on. Lines go to stderr, since
// stdout belongs to events and reports: JSON through pino where a program reads them, aligned and
// coloured where a person does. What must stay true: a line is one line. Names and messages come
// from upstream, so characters that could end a line, turn it around or steer a terminal are taken
// out of every value, whichever of the two is written.

import { styleText } from 'node:util';
import type { ErrorDetails } from '../contracts/errors.ts';
import type { LogEvent } from '../contracts/log-events.ts';
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
  return new LinesLog(settings.form === 'json' ? await jsonLine(settings) : textLine(settings));
}

async function jsonLine({ level, write }: LogOutput): Promise<WriteLine> {
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
  return ({ level: at, event, text }, fields) => {
    if (logger.isLevelEnabled(at)) logger[at]({ event, ...printable(fields()) }, text);
  };
}

const styles = { debug: 'gray', info: 'cyan', warn: 'yellow', error: 'red' } as const;

function textLine(settings: LogOutput): WriteLine {
  const { level, write = toStderr, colours } = settings;
  const style = (format: 'gray' | (typeof styles)[LogLevel], text: string) => {
    if (colours === false) return text;
    return styleText(format, text, {
      stream: process.stderr,
      validateStream: colours !== true,
    });
  };
  return ({ level: at, event, text }, fields) => {
    if (!reaches(at, level)) return;
    const { next, ...rest } = printable(fields());
    const time = style('gray', new Date().toTimeString().slice(0, 8));
    const facts = Object.entries({ event, ...rest }).map(
      ([name, value]) => ` ${readableFact(name, value)}`,
    );
    const line = `${time} ${style(styles[at], at.padEnd(5))} ${text}${style('gray', facts.join(''))}`;
    // What the operator can do stands on a line of its own, where it is found.
    write(next === undefined ? `${line}\n` : `${line}\n               ${String(next)}\n`);
  };
}

/** Whether lines of this gravity are written where lines from `from` on are. */
export function reaches(at: LogLevel, from: LogLevel): boolean {
  return logLevels.indexOf(at) >= logLevels.indexOf(from);
}

/** A line without its fields. */
export interface LineHead {
  readonly level: LogLevel;
  readonly event: LogEvent;
  readonly text: string;
}

/** Writes a line; calls `fields` only if the line is written. */
export type WriteLine = (head: LineHead, fields: () => ErrorDetails) => void;

/** A log made of one function. Each of many streams has one: it is two references. */
export class LinesLog implements Log {
  readonly #write: WriteLine;
  readonly #always: ErrorDetails;

  /** `always`: fields of every line. */
  constructor(write: WriteLine, always: ErrorDetails = {}) {
    this.#write = write;
    this.#always = always;
  }

  debug(event: LogEvent, text: string, fields?: ErrorDetails): void {
    this.#write({ level: 'debug', event, text }, () => ({ ...this.#always, ...fields }));
  }

  info(event: LogEvent, text: string, fields?: ErrorDetails): void {
    this.#write({ level: 'info', event, text }, () => ({ ...this.#always, ...fields }));
  }

  warn(event: LogEvent, text: string, fields?: ErrorDetails): void {
    this.#write({ level: 'warn', event, text }, () => ({ ...this.#always, ...fields }));
  }

  error(event: LogEvent, text: string, fields?: ErrorDetails): void {
    this.#write({ level: 'error', event, text }, () => ({ ...this.#always, ...fields }));
  }

  with(fields: ErrorDetails): Log {
    return new LinesLog(this.#write, { ...this.#always, ...fields });
  }
}

/** Hands a line on to another log. Its event and level were checked where it was logged first. */
export function passOn(log: Log, { level, event, text }: LineHead, fields: ErrorDetails): void {
  const write: (event: never, text: string, fields: ErrorDetails) => void = log[level].bind(log);
  write(event as never, text, fields);
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

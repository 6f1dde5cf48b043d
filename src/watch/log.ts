// The log for operators and their tools. Lines go to stderr, because stdout belongs to events and reports: JSON through
// pino for programs, aligned and coloured text for people. Invariant: a line is one line. Names and messages come from
// upstream, so characters that could end a line, reverse it or control a terminal are removed from every value, in both
// forms.

import { writeSync } from 'node:fs';
import { styleText } from 'node:util';
import {
  type ErrorDetails,
  errorCodeOf,
  type Log,
  type LogEvent,
  type LogLevel,
  logLevels,
  plainText,
} from '../contracts/index.ts';
import { exactSpanText } from '../tools/index.ts';

/** How the log is written. */
export interface LogOutput {
  readonly level: LogLevel;
  /** `json`: one object per line with `level`, `time`, `msg` and the fields. `text`: for a person. */
  readonly form: 'json' | 'text';
  /** Receives each whole line with its LF; default: stderr, synchronously. */
  readonly write?: (line: string) => void;
  /** Colours by level, for `text`; default: if stderr is a terminal with colours. */
  readonly colours?: boolean;
}

/** The form for a stream: `text` if it is a terminal. */
export function logForm(stream: { readonly isTTY?: boolean }): LogOutput['form'] {
  return stream.isTTY === true ? 'text' : 'json';
}

/** Opens the log. pino is loaded only here, and only for `json`. */
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
    { write: write ?? lossyWriter(process.stderr.fd) },
  );
  return ({ level: at, event, text }, fields) => {
    if (logger.isLevelEnabled(at)) logger[at]({ event, ...printable(fields()) }, text);
  };
}

/** Pause before a pipe that takes nothing now is tried again. */
const pipePauseMs = 10;

/**
 * Writes lines to a file or pipe. One that cannot be written is lost, for example on a full disk: no event depends on
 * the log, so its failures must not end the process. Synchronously: the last lines before an exit matter most.
 */
function lossyWriter(fd: number): (line: string) => void {
  let isTorn = false;
  return (line) => {
    // A torn line is ended first.
    let rest = Buffer.from(isTorn ? `\n${line}` : line);
    try {
      while (rest.length > 0) {
        const written = writtenTo(fd, rest);
        isTorn = written < rest.length && (isTorn || written > 0);
        rest = rest.subarray(written);
      }
    } catch {
      // Nothing else could report it.
    }
  };
}

function writtenTo(fd: number, bytes: Buffer): number {
  try {
    return writeSync(fd, bytes);
  } catch (error) {
    if (errorCodeOf(error) !== 'EAGAIN') throw error;
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, pipePauseMs);
    return 0;
  }
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
    // The next step has a line of its own, so that it is found.
    write(next === undefined ? `${line}\n` : `${line}\n               ${String(next)}\n`);
  };
}

/** Whether lines of level `at` are written if the minimum is `from`. */
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

/** A log made of one function. Each of many streams has one, so it is only two references. */
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

/** Passes a line to another log. Its event and level were checked at the first log. */
export function passOn(log: Log, { level, event, text }: LineHead, fields: ErrorDetails): void {
  const write: (event: never, text: string, fields: ErrorDetails) => void = log[level].bind(log);
  write(event as never, text, fields);
}

/** A readable duration: `wait=2m40s` for `wait_ms`. */
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

/** Longer values hide the rest of the line; sluice's own messages are far shorter. */
const valueLengthMax = 2_000;

/** Fields in writable form: without characters that could end a line or control a terminal. */
export function printable(fields: ErrorDetails): Record<string, string | number | boolean | null> {
  const clean: Record<string, string | number | boolean | null> = {};
  for (const [name, value] of Object.entries(fields)) {
    if (value === undefined) continue;
    if (typeof value === 'string') clean[name] = plainText(value.slice(0, valueLengthMax));
    // Waits have random jitter; fractions of a millisecond only add noise.
    else
      clean[name] = typeof value === 'number' && name.endsWith('_ms') ? Math.round(value) : value;
  }
  return clean;
}

// Collects the flaws of a config with their locations, so that an author sees all at once and can jump to each line.
// Every check of this folder adds flaws and continues; after all checks a ConfigError is thrown. Invariant: no message
// contains a secret, or a value that came through a reference.

import { LineCounter } from 'yaml';
import { ExportError } from '../contracts/index.ts';
import { commandText } from '../terminal/index.ts';
import { cleanText } from '../tools/index.ts';

/** One error, or one setting that the author should check. */
export interface Flaw {
  /** From 1; 0 if it concerns the whole file. */
  readonly line: number;
  /** From 1, in UTF-16 units; 0 with line 0. */
  readonly column: number;
  /** Such as `sinks.lake.topic` or `routes[0].to[1]`; empty for the whole file. */
  readonly path: string;
  /** The error and its correction, e.g. with the nearest known key. */
  readonly message: string;
}

/** A config that cannot be used. The message has `FILE:LINE:COLUMN PATH: MESSAGE` lines. */
export class ConfigError extends ExportError {
  readonly flaws: readonly Flaw[];

  constructor(file: string, flaws: readonly Flaw[]) {
    super('config_invalid', flaws.map((flaw) => flawText(file, flaw)).join('\n'), {
      next: `Correct each error, then check again with: ${commandText('check', file)} (nothing was started).`,
      details: { file, flaws: flaws.length },
    });
    this.name = 'ConfigError';
    this.flaws = flaws;
  }
}

/** `FILE:LINE:COLUMN PATH: MESSAGE`, without the parts that a flaw lacks. */
export function flawText(file: string, { line, column, path, message }: Flaw): string {
  const place = line === 0 ? file : `${file}:${line}:${column}`;
  return path === '' ? `${place}: ${message}` : `${place} ${path}: ${message}`;
}

/** Keys and list indices from the top of the file. */
export type Path = readonly (string | number)[];

const messageLengthMax = 600;

/** An error; an allowed setting that may be a mistake; a key of an older version without an effect. */
type FlawKind = 'error' | 'notice' | 'ignored';

/** Collects the flaws of one file, and the settings that it accepts but reports. */
export class Flaws {
  /** The lines of the file, by offset. */
  readonly lines = new LineCounter();
  readonly #found: Readonly<Record<FlawKind, Flaw[]>> = { error: [], notice: [], ignored: [] };
  /** References without a value, by the offset of their value. */
  readonly #unset = new Map<number, readonly string[]>();

  /** In the order of the file. */
  list(kind: FlawKind): readonly Flaw[] {
    return this.#found[kind].toSorted((a, b) => a.line - b.line || a.column - b.column);
  }

  /** Number of errors. */
  get count(): number {
    return this.#found.error.length;
  }

  /** References without a value, as written, each once. */
  get unset(): readonly string[] {
    return [...new Set([...this.#unset.values()].flat())];
  }

  /** Marks the value at this offset as unknown: no error is added there. */
  markUnset(at: number, references: readonly string[]): void {
    this.#unset.set(at, references);
  }

  /** Adds a flaw; `at` is an offset in the text, or null for the whole file. */
  add(at: number | null, path: Path, message: string, kind: FlawKind = 'error'): void {
    if (kind === 'error' && at !== null && this.#unset.has(at)) return;
    const { line, col } = at === null ? { line: 0, col: 0 } : this.lines.linePos(at);
    this.#found[kind].push({
      line,
      column: col,
      path: pathText(path),
      message: cleanText(message, messageLengthMax),
    });
  }
}

/**
 * A path in its written form: `sinks.lake.brokers[0]`. A key is cut at the first character that keys do not have: in `{
 * api_key:hunter2 }` the blank is missing, and the secret is part of the key.
 */
function pathText(path: Path): string {
  return path
    .map((step, index) => {
      if (typeof step === 'number') return `[${step}]`;
      const [plain = ''] = /^[\w.-]{0,80}/.exec(step) ?? [];
      if (plain !== step) return `["${plain}…"]`;
      if (step === '' || step.includes('.')) return `["${step}"]`;
      return index === 0 ? step : `.${step}`;
    })
    .join('');
}

// What is wrong with a config, collected with its places, so that an author sees all of it at once
// and can go straight to each line. Every check of this folder adds here and goes on; only when all
// have looked is a ConfigError thrown. No message holds the value of a secret or of anything that
// came through a reference.

import type { LineCounter } from 'yaml';
import { ExportError } from '../contracts/errors.ts';
import { commandText } from '../terminal/command-text.ts';
import { cleanText } from '../tools/clean-text.ts';

/** One thing that is wrong, or that the author should look at. */
export interface Flaw {
  /** From 1; 0 where it concerns the file as a whole. */
  readonly line: number;
  /** From 1, in UTF-16 units; 0 with line 0. */
  readonly column: number;
  /** Such as `sinks.lake.topic` or `routes[0].to[1]`; empty for the file as a whole. */
  readonly path: string;
  /** What is wrong and what would be right, e.g. with the nearest known key. */
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

/** `FILE:LINE:COLUMN PATH: MESSAGE`, without the parts that a flaw does not have. */
export function flawText(file: string, { line, column, path, message }: Flaw): string {
  const place = line === 0 ? file : `${file}:${line}:${column}`;
  return path === '' ? `${place}: ${message}` : `${place} ${path}: ${message}`;
}

/** Keys and list positions from the file's top. */
export type Path = readonly (string | number)[];

const messageLengthMax = 600;

/** Collects flaws of one file. */
export class Flaws {
  readonly #lines: LineCounter;
  readonly #flaws: Flaw[] = [];
  /** References without a value, by the offset of the value that they stand in. */
  readonly #unset = new Map<number, readonly string[]>();

  constructor(lines: LineCounter) {
    this.#lines = lines;
  }

  /** In the order of the file. */
  get list(): readonly Flaw[] {
    return this.#flaws.toSorted((a, b) => a.line - b.line || a.column - b.column);
  }

  get count(): number {
    return this.#flaws.length;
  }

  /** References without a value, as they are written, each once. */
  get unset(): readonly string[] {
    return [...new Set([...this.#unset.values()].flat())];
  }

  /** The value at this offset is not known: no further flaw is added there. */
  markUnset(at: number, references: readonly string[]): void {
    this.#unset.set(at, references);
  }

  /** Adds one; `at` is an offset in the text, or null for the file as a whole. */
  add(at: number | null, path: Path, message: string): void {
    if (at !== null && this.#unset.has(at)) return;
    const { line, col } = at === null ? { line: 0, col: 0 } : this.#lines.linePos(at);
    this.#flaws.push({
      line,
      column: col,
      path: pathText(path),
      message: cleanText(message, messageLengthMax),
    });
  }
}

/**
 * A path as people write it: `sinks.lake.brokers[0]`. A key is shown as far as it is made of what
 * keys are made of: in `{ api_key:hunter2 }` the blank is missing, and the secret is part of the
 * key.
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

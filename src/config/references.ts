// References in a config: `${env:NAME}`, `${env:NAME:-default}`, `${file:/path}` and `${exec:COMMAND}`, anywhere in a
// text. A text is split into parts once. The parts are joined when the config is read and again at each use of a secret, so a rotated
// secret takes effect without a restart. `$${` is a literal `${`. Invariant: messages contain the written reference,
// never its value.

import { readFileSync } from 'node:fs';
import { ExportError, errorCodeOf } from '../contracts/index.ts';
import { notRegular } from '../tools/index.ts';
import { commandValues, type SecretCommand, shownCommand, splitCommand } from './commands.ts';

/** The environment of a config: variables, and the files that references name. */
export interface Surroundings {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Reads a file, throwing as node:fs does; default: from the disk. */
  readonly readFile?: (path: string) => Uint8Array;
  /**
   * Which references may have a placeholder instead of a value. `unset`: those that cannot be read here. `all`: every
   * one without a default; none is read. Default: none. Neither runs a command.
   */
  readonly placeholders?: 'unset' | 'all';
}

/** One reference. */
export type Reference =
  | { readonly from: 'env'; readonly name: string; readonly fallback: string | null }
  | { readonly from: 'file'; readonly path: string }
  | { readonly from: 'exec'; readonly command: SecretCommand };

/** A text with references: literal parts and references in order. */
export type ReferenceText = readonly (string | Reference)[];

/** The reason why a text is no valid template, as a sentence. */
export interface TemplateFlaw {
  readonly message: string;
}

/** Limit in bytes: secrets and settings are short, and a device or log file named by mistake is reported. */
const fileBytesMax = 1024 * 1024;

/** Reads a file of the environment. */
export function readFile(path: string, surroundings: Surroundings): Uint8Array {
  return surroundings.readFile === undefined ? readFileSync(path) : surroundings.readFile(path);
}

/** The text's template; the text itself, with `$${` resolved, if it has no reference. */
export function parseTemplate(text: string): ReferenceText | string | TemplateFlaw {
  if (!text.includes('${')) return text;
  const parts: (string | Reference)[] = [];
  const opening = /(\$+)\{/g;
  let literal = '';
  let end = 0;
  for (let found = opening.exec(text); found !== null; found = opening.exec(text)) {
    const dollars = found[1]?.length ?? 0;
    literal += text.slice(end, found.index) + '$'.repeat(Math.floor(dollars / 2));
    end = opening.lastIndex;
    if (dollars % 2 === 0) {
      literal += '{';
      continue;
    }
    const close = closingOf(text, end);
    if (close < 0) return { message: 'a reference begins with ${ and has no }' };
    const reference = parseReference(text.slice(end, close));
    if ('message' in reference) return reference;
    if (literal !== '') parts.push(literal);
    literal = '';
    parts.push(reference);
    end = close + 1;
    opening.lastIndex = end;
  }
  literal += text.slice(end);
  if (parts.length === 0) return literal;
  if (literal !== '') parts.push(literal);
  return parts;
}

/** The position of the brace that ends a reference; -1: there is none. Quotes of a command may contain one. */
function closingOf(text: string, start: number): number {
  if (!text.startsWith('exec:', start)) return text.indexOf('}', start);
  const inside = /^(?:[^"'}]|"[^"]*"|'[^']*')*/.exec(text.slice(start))?.[0].length ?? 0;
  return text[start + inside] === '}' ? start + inside : -1;
}

function parseReference(inner: string): Reference | TemplateFlaw {
  const env = /^env:([A-Za-z_]\w*)(?::-(.*))?$/s.exec(inner);
  if (env?.[1] !== undefined) return { from: 'env', name: env[1], fallback: env[2] ?? null };
  const file = /^file:(.+)$/.exec(inner);
  if (file?.[1] !== undefined) return { from: 'file', path: file[1] };
  if (inner.startsWith('exec:')) {
    const command = splitCommand(inner.slice('exec:'.length));
    if (command !== null) return { from: 'exec', command };
    return { message: 'a command is written ${exec:PROGRAM ARGUMENTS}, and each quote in it ends' };
  }
  const meant = /^[A-Za-z_]\w*$/.test(inner)
    ? `\${env:${inner}}`
    : '${env:NAME}, ${file:/path} or ${exec:COMMAND}';
  return { message: `a reference is written ${meant}; a literal \${ is written $\${` };
}

/** The reference as written, without its default, and without the arguments of a command. */
function referenceText(reference: Reference): string {
  switch (reference.from) {
    case 'env':
      return `\${env:${reference.name}}`;
    case 'file':
      return `\${file:${reference.path}}`;
    case 'exec':
      return shownCommand(reference.command);
  }
}

/**
 * A text of the config for readers who may not see secrets: references without their defaults and arguments, which may
 * be secrets. `isReference`: it has no other text.
 */
export function shownSetting(text: string): {
  readonly text: string;
  readonly isReference: boolean;
} {
  const template = parseTemplate(text);
  if (typeof template === 'string') return { text: template, isReference: false };
  if ('message' in template) return { text: '', isReference: false };
  const parts = template.map((part) => (typeof part === 'string' ? part : referenceText(part)));
  return { text: parts.join(''), isReference: !template.some((part) => typeof part === 'string') };
}

/** The commands of a template. */
export function commandsOf(template: ReferenceText): readonly SecretCommand[] {
  return template.flatMap((part) =>
    typeof part !== 'string' && part.from === 'exec' ? [part.command] : [],
  );
}

/** The first reference of a template as written. */
export function templateText(template: ReferenceText): string {
  const first = template.find((part) => typeof part !== 'string');
  return first === undefined || typeof first === 'string' ? '' : referenceText(first);
}

/** How the text of a template is read again at each use: its references may have new values. */
export interface Rereading {
  /** Throws an ExportError that names a reference without a value. */
  readonly read: () => string;
  /** Runs its commands again; null: it has none. */
  readonly refresh: (() => Promise<void>) | null;
}

/** Reads a template again, with the environment of the config. */
export function rereadingOf(template: ReferenceText, surroundings: Surroundings): Rereading {
  const commands = commandsOf(template);
  const refresh = async () => {
    await Promise.all(commands.map((one) => commandValues.refresh(one, surroundings.env)));
  };
  return {
    read() {
      const text = fill(template, surroundings);
      if (text !== '') return text;
      // A file that is being rewritten may be empty for a moment: a request with it could lock the account.
      throw new ExportError('config_invalid', `${templateText(template)} gives an empty text`, {
        next: 'Put the secret back; sluice reads it again by itself, and nothing was lost.',
      });
    },
    refresh: commands.length === 0 ? null : refresh,
  };
}

/** The template as text, with every reference read now. Throws an ExportError that names a bad one. */
function fill(template: ReferenceText, surroundings: Surroundings): string {
  let text = '';
  for (const part of template) text += typeof part === 'string' ? part : read(part, surroundings);
  return text;
}

/** A template as text, as far as its references have values. */
export interface PartlyFilled {
  /** The text with `sample` in place of each reference without a value. */
  readonly textWith: (sample: string) => string;
  /** References without a value, as written, with the reason; empty: all have one. */
  readonly unset: readonly { readonly reference: string; readonly why: string | null }[];
}

/** Fills a template; references that cannot or must not be read stay without a value. */
export function fillPartly(template: ReferenceText, surroundings: Surroundings): PartlyFilled {
  const unset: { reference: string; why: string | null }[] = [];
  const parts = template.map((part): string | null => {
    if (typeof part === 'string') return part;
    if (surroundings.placeholders === 'all') {
      const fallback = part.from === 'env' ? part.fallback : null;
      if (fallback === null) unset.push({ reference: referenceText(part), why: null });
      return fallback;
    }
    try {
      const value = read(part, surroundings);
      // The shell of a command that only checks may have the variable without the secret.
      if (value !== '' || surroundings.placeholders === undefined) return value;
      unset.push({ reference: referenceText(part), why: null });
      return null;
    } catch (error) {
      const why = error instanceof ExportError ? `${error.message}. ${error.next}` : 'unreadable';
      unset.push({ reference: referenceText(part), why });
      return null;
    }
  });
  return { textWith: (sample) => parts.map((part) => part ?? sample).join(''), unset };
}

function read(reference: Reference, surroundings: Surroundings): string {
  switch (reference.from) {
    case 'env':
      return readVariable(reference, surroundings);
    case 'file':
      return readText(reference.path, surroundings);
    case 'exec':
      return commandValues.value(reference.command);
  }
}

function readVariable(
  { name, fallback }: Extract<Reference, { from: 'env' }>,
  { env }: Surroundings,
): string {
  const value = Object.hasOwn(env, name) ? env[name] : undefined;
  if (fallback !== null) return value === undefined || value === '' ? fallback : value;
  if (value !== undefined) return value;
  throw unreadable(
    `the environment variable ${name} is not set`,
    `Set ${name}, or give a default: \${env:${name}:-default}.`,
  );
}

function readText(path: string, surroundings: Surroundings): string {
  let bytes: Uint8Array;
  try {
    bytes = readFile(path, surroundings);
  } catch (error) {
    throw unreadable(
      `the file ${path} cannot be read: ${whyUnreadable(error)}`,
      nextForUnreadable(error),
    );
  }
  if (bytes.length > fileBytesMax) {
    throw unreadable(`the file ${path} is too large for a setting`, 'Name a file with one value.');
  }
  // Removes additions of editors and shells: byte order mark, line ends, blanks.
  return Buffer.from(bytes)
    .toString('utf8')
    .replace(/^\ufeff/, '')
    .trimEnd();
}

/** The next step for a file that could not be read. */
function nextForUnreadable(error: unknown): string {
  switch (errorCodeOf(error)) {
    case 'ENOENT':
    case 'ENOTDIR':
      return 'Create the file, or correct its path.';
    case 'EISDIR':
      return 'Name a file in it.';
    default:
      return 'Make the file readable for the user that runs sluice.';
  }
}

function unreadable(what: string, next: string): ExportError {
  return new ExportError('config_invalid', what, { next });
}

/** Why a file could not be read, without its content: the system's code, common ones in words. */
export function whyUnreadable(error: unknown): string {
  const code = errorCodeOf(error);
  switch (code) {
    case 'ENOENT':
      return 'there is no such file';
    case 'EACCES':
    case 'EPERM':
      return 'no permission to read it';
    case 'EISDIR':
      return 'it is a directory';
    case notRegular:
      return 'it is a pipe, a device or a socket';
    default:
      return code || 'it is not readable';
  }
}

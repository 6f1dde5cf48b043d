// Characters that manipulate the display of a text or are invisible: controls (C0, DEL, and C1 with
// the 8-bit CSI U+009B, which controls terminals as ESC does), line and paragraph separators,
// format characters including bidirectional marks (U+061C, U+200E, U+202A to U+202E, U+2066 to
// U+2069), and lone surrogates. Records and receivers are hostile. Invariant: none of these
// characters reaches a terminal, a log line or a message unescaped. This file alone defines the
// set.

import { isAscii } from 'node:buffer';
import type { Format } from './format.ts';

const unseen = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;
const unseenRuns = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]+/gu;
/** Without the C0 controls: in a command's output these are sluice's own line ends and colours. */
const unseenBeyondAscii = /[\u007f-\u009f\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;

/** The text in one line, with a blank for each run of these characters. */
export function plainText(text: string): string {
  return text.replace(unseenRuns, ' ');
}

/** The text in one line, with each of these characters escaped as in JSON: `\u001b`. */
export function visibleText(text: string): string {
  return text.replace(unseen, escaped);
}

/** For a command's output; only its non-ASCII part is foreign. JSON keeps its meaning. */
export function visibleOutput(text: string): string {
  return text.replace(unseenBeyondAscii, escaped);
}

/** Encoded lines, each with its LF, for a terminal. JSON keeps its meaning. */
export function visibleLines(lines: Uint8Array): Uint8Array {
  const text = Buffer.from(lines.buffer, lines.byteOffset, lines.byteLength).toString('utf8');
  const shown = text.split('\n').map(visibleText).join('\n');
  return shown === text ? lines : Buffer.from(shown);
}

/**
 * Encoded lines as written to standard output: `visibleLines` on a terminal (`isTerminal`), and elsewhere if the format
 * is JSON, because `sluice run | grep` ends on a terminal too.
 */
export function shownLines(
  lines: Uint8Array,
  { contentType, verbatim }: Pick<Format, 'contentType' | 'verbatim'>,
  isTerminal: boolean,
): Uint8Array {
  if (isAscii(lines)) return lines;
  const isJson = contentType === 'application/json' && verbatim !== true;
  return isJson || isTerminal ? visibleLines(lines) : lines;
}

function escaped(character: string): string {
  return Array.from({ length: character.length }, (_, i) => {
    const unit = character.charCodeAt(i).toString(16).padStart(4, '0');
    return `\\u${unit}`;
  }).join('');
}

// Aligned columns for people. Cells are cleaned before they are measured, because names and
// messages can come from upstream; colours are added afterwards, so that they never count as width.

import { styleText } from 'node:util';
import { cleanText } from '../tools/index.ts';

/** The emphasis of a cell: `good` and `bad` have colours, `dim` is faint. */
export type Mood = 'plain' | 'good' | 'warn' | 'bad' | 'dim';

/** A text, or one with a mood. */
export type Cell = string | { readonly text: string; readonly mood: Mood };

const cellLengthMax = 300;
const colours = { good: 'green', warn: 'yellow', bad: 'red', dim: 'gray' } as const;

/** Lines of a table on stdout; the first row is its heading. */
export function tableLines(
  heading: readonly string[],
  rows: readonly (readonly Cell[])[],
): string[] {
  const dimmed = heading.map((text): Cell => ({ text, mood: 'dim' }));
  const cells = [dimmed, ...rows].map((row) =>
    row.map((cell) => {
      const { text, mood } =
        typeof cell === 'string' ? { text: cell, mood: 'plain' as const } : cell;
      return { text: cleanText(text, cellLengthMax), mood };
    }),
  );
  const widths = heading.map((_, column) =>
    Math.max(...cells.map((row) => row[column]?.text.length ?? 0)),
  );
  return cells.map((row) =>
    row
      .map(({ text, mood }, column) => {
        // The last column is not padded, so that lines end with their text.
        const width = column === row.length - 1 ? 0 : (widths[column] ?? 0);
        return painted(text.padEnd(width), mood);
      })
      .join('  ')
      .trimEnd(),
  );
}

/** Lines of names and values, the values aligned. */
export function factLines(facts: readonly (readonly [name: string, value: string])[]): string[] {
  const width = Math.max(...facts.map(([name]) => name.length));
  return facts.map(
    ([name, value]) => `${painted(name.padEnd(width), 'dim')}  ${cleanText(value, cellLengthMax)}`,
  );
}

/** The state of a stream or sink, with its mood; `error` is its last failure, if not over. */
export function stateCell(state: string, error: unknown): Cell {
  switch (state) {
    case 'halted':
    case 'refused':
      return { text: state, mood: 'bad' };
    case 'retrying':
      return { text: state, mood: 'warn' };
    case 'new':
    case 'stopped':
    case 'ended':
      return { text: state, mood: 'dim' };
    default:
      return { text: state, mood: error === null ? 'good' : 'warn' };
  }
}

/** A failure, if there is one. */
export function errorCell(error: { readonly message: string } | null): Cell {
  return error === null ? '-' : { text: error.message, mood: 'bad' };
}

/** Rows by urgency: stopped ones, failing ones, the rest in their order. */
export function urgentFirst<
  Row extends { readonly state: string; readonly error: unknown; readonly dead_letters?: number },
>(rows: readonly Row[]): readonly Row[] {
  const urgency = ({ state, error, dead_letters: deadLetters = 0 }: Row) => {
    if (state === 'halted' || state === 'refused') return 0;
    if (error !== null) return 1;
    return deadLetters > 0 ? 2 : 3;
  };
  return rows.toSorted((a, b) => urgency(a) - urgency(b));
}

/** A text in its mood's colour, if this stream supports colours. */
export function painted(
  text: string,
  mood: Mood,
  stream: NodeJS.WriteStream = process.stdout,
): string {
  return mood === 'plain' ? text : styleText(colours[mood], text, { stream });
}

/** A size for people: `12.3 MiB`. */
export function sizeText(bytes: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let value = bytes;
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${unit === 0 ? value : value.toFixed(1)} ${units[unit]}`;
}

/** A number with its noun: `1 event`, `2 events`. */
export function counted(n: number, what: string): string {
  return `${n} ${what}${n === 1 ? '' : 's'}`;
}

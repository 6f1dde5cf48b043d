// Pages of several state databases, or some of one, on their way into another one, which numbers its
// events anew. What must stay true: each sink finds there what it had not had yet, in the order in
// which each database held it, and nothing that it had. One position a sink says so where what the
// sinks lack is of one order: then pages come with those first that the fewest lack. Else a page that
// some lack stands there for each of those alone.

import type { Offset } from '../contracts/event.ts';
import { type HeldPage, type NewPage, uidBytes } from '../contracts/spool.ts';
import { pageOfRow, wholeRow, writePage } from './held-page.ts';
import type { Statements } from './statements.ts';

/** Which pages a sink takes: those of events, all of upstream's; or `all`, where it is none but reads them. */
export type Takes = 'events' | 'pages' | 'all';

/** The pages of one database. */
export interface PagesOf {
  readonly statements: Statements;
  /** Whether a stream's pages come along. */
  readonly sends: (stream: string) => boolean;
  /** The number of the next event for each sink of it. */
  readonly positions: ReadonlyMap<string, Offset>;
}

/** What has become of numbers. */
export interface Renumbered {
  readonly end: Offset;
  /** Behind what was before a number of one of the databases. */
  after(of: PagesOf, number: Offset): Offset;
  /** The number of the next event for each sink that lacks one. */
  readonly positions: ReadonlyMap<string, Offset>;
}

/** Events of one page that the same sinks lack. */
interface Piece {
  readonly of: PagesOf;
  /** The page's. */
  readonly first: Offset;
  readonly from: Offset;
  readonly until: Offset;
  readonly lacks: readonly string[];
}

/** Where events have gone. */
interface Move extends Pick<Piece, 'from' | 'until'> {
  readonly at: Offset;
}

/** Writes them, within the caller's transaction. `sinks`: all that count, by name. */
export function regroupPages(
  origins: readonly PagesOf[],
  to: Statements,
  sinks: ReadonlyMap<string, Takes>,
): Renumbered {
  const isOnly = origins.length === 1;
  const pieces = origins
    .flatMap((of) => [...piecesOf(of, [...sinks.keys()], isOnly)])
    .sort((a, b) => a.lacks.length - b.lacks.length); // stable, and whoever lacks one lacks the later ones
  const areNested = nested(pieces);
  const moves = new Map<PagesOf, Move[]>(origins.map((of) => [of, []]));
  const positions = new Map<string, Offset>();
  let end = 0;
  for (const piece of pieces) {
    const { of, from, until, lacks } = piece;
    const { page, heldAt } = pageOf(piece);
    for (const onlySink of areNested ? [page.onlySink] : recipients(page, lacks, sinks)) {
      const { onlySink: _, ...all } = page;
      const copy: NewPage = onlySink === undefined ? all : { ...all, onlySink };
      writePage((sql, ...values) => to.run(sql, ...values), copy, end, heldAt);
      for (const sink of areNested || onlySink === page.onlySink ? lacks : [String(onlySink)]) {
        const had = Math.max(0, (of.positions.get(sink) ?? 0) - from);
        if (!positions.has(sink)) positions.set(sink, end + had);
      }
      moves.get(of)?.push({ from, until, at: end });
      end += until - from;
    }
  }
  return { end, positions, after: (of, number) => moved(moves.get(of) ?? [], number) };
}

/** Of one database pages stay whole: what a position within one stands for is said by another. */
function* piecesOf(of: PagesOf, sinks: readonly string[], isOnly: boolean): Iterable<Piece> {
  const nextOf = (sink: string) => of.positions.get(sink) ?? 0;
  const sql = 'SELECT first, count, stream FROM page ORDER BY first';
  for (const { first: number, count, stream } of of.statements.each(sql)) {
    if (!of.sends(String(stream))) continue;
    const [first, end] = [Number(number), Number(number) + Number(count)];
    const within = isOnly ? [] : sinks.map(nextOf).filter((next) => next > first && next < end);
    const bounds = [first, ...new Set(within.sort((a, b) => a - b)), end];
    for (const [index, until] of bounds.slice(1).entries()) {
      const lacks = sinks.filter((sink) => nextOf(sink) < until);
      yield { of, first, from: bounds[index] ?? first, until, lacks };
    }
  }
}

/** Whether of any two pieces all that lack the one lack the other. */
function nested(pieces: readonly Piece[]): boolean {
  const sets = [...new Map(pieces.map(({ lacks }) => [lacks.join('\n'), lacks])).values()];
  return sets.every((lacks, index) => {
    const more = new Set(sets[index + 1] ?? lacks);
    return lacks.every((sink) => more.has(sink));
  });
}

/** Whom a page is for, as `onlySink` has it: as before, or each that lacks it alone. */
function recipients(
  page: HeldPage,
  lacks: readonly string[],
  sinks: ReadonlyMap<string, Takes>,
): readonly (string | undefined)[] {
  const { context, onlySink = '' } = page;
  const wants = ([sink, takes]: readonly [string, Takes]) => {
    if (onlySink !== '') return onlySink === sink;
    if (takes === 'all') return true;
    if (context.isOfSink) return takes === 'events';
    return context.kind !== 'answer' || takes === 'pages';
  };
  const wanting = [...sinks].filter(wants).map(([sink]) => sink);
  const lacking = wanting.filter((sink) => lacks.includes(sink));
  if (lacking.length === wanting.length || lacks.length === 0) return [page.onlySink];
  return lacking;
}

/** The page with the piece's events alone. */
function pageOf({ of: { statements }, first, from, until }: Piece) {
  const row = statements.row('SELECT * FROM page WHERE first = ?', first) ?? {};
  const page = pageOfRow(wholeRow(row, (sql, ...of) => statements.each(sql, ...of)));
  const heldAt = Number(row.held_at);
  const [start, stop] = [from - first, until - first];
  if (stop - start === page.count) return { page, heldAt };
  const kept = page.kept ?? Uint32Array.from({ length: page.count }, (_, index) => index);
  const uids = page.uids.subarray(start * uidBytes, stop * uidBytes);
  return { page: { ...page, kept: kept.slice(start, stop), uids }, heldAt };
}

/** Moves are in the order of the numbers that they are from, and of those that they lead to. */
function moved(moves: readonly Move[], number: Offset): Offset {
  let [low, high] = [0, moves.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((moves[middle]?.from ?? 0) < number) low = middle + 1;
    else high = middle;
  }
  const last = moves[low - 1];
  return last === undefined ? 0 : last.at + Math.min(last.until, number) - last.from;
}

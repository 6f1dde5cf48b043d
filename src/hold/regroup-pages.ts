// Copies pages of several state databases, or a part of one, into another one, which assigns new
// offsets. Invariant: each sink finds there the events that it had not received, in the order of
// each database, and none that it had. One position per sink expresses this if the sinks' missing
// events are nested: then pages that the fewest sinks lack come first. Otherwise a page that some
// sinks lack is stored once for each of them.

import { type HeldPage, type NewPage, type Offset, uidBytes } from '../contracts/index.ts';
import type { Statements } from './database.ts';
import { pageOfRow, wholeRow, writePage } from './held-page.ts';

/**
 * The pages that a sink processes: `events`; `pages`, all of upstream's; or `all`, for a reader that
 * is not a sink.
 */
export type Takes = 'events' | 'pages' | 'all';

/** The pages of one database. */
export interface PagesOf {
  readonly statements: Statements;
  /** Whether a stream's pages are copied. */
  readonly sends: (stream: string) => boolean;
  /** Offset of the next event per sink. */
  readonly positions: ReadonlyMap<string, Offset>;
}

/** The mapping of old offsets to new ones. */
export interface Renumbered {
  readonly end: Offset;
  /** The new offset after everything that one database had before `number`. */
  after(of: PagesOf, number: Offset): Offset;
  /** Offset of the next event for each sink that lacks one. */
  readonly positions: ReadonlyMap<string, Offset>;
}

/** Events of one page that the same sinks lack. */
interface Piece {
  readonly of: PagesOf;
  /** First offset of the page. */
  readonly first: Offset;
  readonly from: Offset;
  readonly until: Offset;
  readonly lacks: readonly string[];
}

/** The new offset of moved events. */
interface Move extends Pick<Piece, 'from' | 'until'> {
  readonly at: Offset;
}

/** Copies the pages within the caller's transaction. `sinks`: all sinks that count, by name. */
export function regroupPages(
  origins: readonly PagesOf[],
  to: Statements,
  sinks: ReadonlyMap<string, Takes>,
): Renumbered {
  const isOnly = origins.length === 1;
  const pieces = origins
    .flatMap((of) => [...piecesOf(of, [...sinks.keys()], isOnly)])
    .sort((a, b) => a.lacks.length - b.lacks.length); // A stable sort: a sink that lacks one event lacks the later ones too.
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

/** Pages of a single database stay whole: a position within one keeps its meaning. */
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

/** Whether, of any two pieces, all sinks that lack the one lack the other. */
function nested(pieces: readonly Piece[]): boolean {
  const sets = [...new Map(pieces.map(({ lacks }) => [lacks.join('\n'), lacks])).values()];
  return sets.every((lacks, index) => {
    const more = new Set(sets[index + 1] ?? lacks);
    return lacks.every((sink) => more.has(sink));
  });
}

/** The recipients of a page, in the form of `onlySink`: as before, or each sink that lacks it. */
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

/** A page with only the piece's events. */
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

/** Moves are sorted by their old offsets, and by their new ones. */
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

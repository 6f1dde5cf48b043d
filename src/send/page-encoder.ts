// What sinks are to get of a page, worked out for all who are about to read it in one pass: an event is parsed and normalised
// once, encoded once per distinct selection and format, and let go before the next one is made. Sinks that keep up
// therefore share the work; one that comes later, from behind a backlog, does it for itself.

import type { Event } from '../contracts/event.ts';
import type { Format } from '../contracts/format.ts';
import type { EncodedLines } from '../contracts/sink.ts';
import type { HeldPage } from '../contracts/spool.ts';
import { LineWriter, noLines } from './encode.ts';
import type { DecodedPage, PageDecoder } from './held-event.ts';
import type { Selection } from './route.ts';

/** The events of a page that a sink is to get, and their lines where it carries lines. */
export interface Selected {
  readonly events: readonly Event[];
  readonly lines: EncodedLines;
  /** Mean size of the page's records, which bounds batches where there are no lines to measure. */
  readonly recordBytes: number;
}

/** A sink as the encoder sees it. */
export interface Reader {
  readonly sink: string;
  readonly format: Format;
  /** Equal keys encode alike. */
  readonly formatKey: string;
  /** True where the sink builds documents from events and wants no lines. */
  readonly documents: boolean;
  /** What the sink gets of a source; null: nothing. */
  readonly selectionFor: (source: string) => Selection | null;
  /** True where the sink is at work and has not come past this page. */
  expects(page: HeldPage): boolean;
}

const nothing: Selected = { events: [], lines: noLines, recordBytes: 0 };

/** Encodes pages for the sinks that read one spool. */
export class PageEncoder {
  #decoder: PageDecoder;
  readonly #readers = new Set<Reader>();
  /** How large the lines of the page before were, as a share of its body, by selection and format. */
  readonly #growth = new Map<string, number>();

  constructor(decoder: PageDecoder) {
    this.#decoder = decoder;
  }

  /** From now on pages are encoded for this sink as well when another one reads them. */
  join(reader: Reader): void {
    this.#readers.add(reader);
  }

  /** It reads no more. */
  leave(reader: Reader): void {
    this.#readers.delete(reader);
  }

  /** Events are read differently from now on: what was worked out of pages so far is let go. */
  decodeWith(decoder: PageDecoder): void {
    this.#decoder = decoder;
  }

  /** What one sink is to get of a page. */
  select(held: HeldPage, reader: Reader): Selected {
    const selection = selectionOf(held, reader);
    if (selection === null) return nothing;
    const page = this.#decoder.decode(held);
    const key = keyOf(selection, reader);
    const known = page.encoded.get(key) as Selected | undefined;
    if (known !== undefined) return known;
    const tasks = new Map([[key, this.#task(page, reader, selection)]]);
    for (const other of this.#readers) {
      const theirs = other.expects(held) ? selectionOf(held, other) : null;
      if (theirs === null) continue;
      const theirKey = keyOf(theirs, other);
      if (tasks.has(theirKey) || page.encoded.has(theirKey)) continue;
      tasks.set(theirKey, this.#task(page, other, theirs));
    }
    encode(page, [...tasks.values()]);
    for (const [done, task] of tasks) {
      const selected = task.selected();
      page.encoded.set(done, selected);
      this.#growth.set(done, selected.lines.bytes.length / held.body.length);
    }
    return page.encoded.get(key) as Selected;
  }

  #task(page: DecodedPage, reader: Reader, selection: Selection): Task {
    const growth = this.#growth.get(keyOf(selection, reader)) ?? 1;
    return new Task(page, reader, selection, Math.ceil(page.held.body.length * growth));
  }
}

function selectionOf(held: HeldPage, reader: Reader): Selection | null {
  const mine = held.onlySink === undefined || held.onlySink === reader.sink;
  return mine ? reader.selectionFor(held.context.source) : null;
}

function keyOf(selection: Selection, { documents, formatKey }: Reader): string {
  return `${selection.key}|${documents ? '' : formatKey}`;
}

function encode(page: DecodedPage, tasks: readonly Task[]): void {
  const busy = tasks.filter((task) => !task.isIdle);
  if (busy.length === 0) return;
  for (const event of page.events) for (const task of busy) task.take(event);
}

/** The encoding of one page for one selection and format. */
class Task {
  readonly #page: DecodedPage;
  readonly #selection: Selection;
  readonly #writer: LineWriter | null;
  readonly #picked: Event[] = [];

  /** `bytes`: the size to expect of the lines. */
  constructor(
    page: DecodedPage,
    { documents, format }: Reader,
    selection: Selection,
    bytes: number,
  ) {
    this.#page = page;
    this.#selection = selection;
    this.#writer = documents ? null : new LineWriter(format, page.events.length, bytes);
  }

  /** Every event as it is, and no lines: there is nothing to do. */
  get isIdle(): boolean {
    return this.#writer === null && this.#takesAll;
  }

  get #takesAll(): boolean {
    return this.#selection.key === '';
  }

  take(event: Event): void {
    if (this.#takesAll) {
      this.#writer?.add(event);
      return;
    }
    const selected = this.#selection.select(event);
    if (selected === null) return;
    this.#picked.push(selected);
    this.#writer?.add(selected);
  }

  selected(): Selected {
    const { held, events } = this.#page;
    return {
      events: this.#takesAll ? events : this.#picked,
      lines: this.#writer?.lines() ?? noLines,
      recordBytes: held.body.length / Math.max(1, held.count),
    };
  }
}

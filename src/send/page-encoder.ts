// Encodes pages once for all sinks that are about to read them: an event is parsed and normalised
// once, encoded once per distinct selection and format, and released before the next one is made.
// Sinks that keep up share the work; a sink with a backlog repeats it for itself. A pass is split
// into slices of a few milliseconds, between which the event loop runs, and passes follow one
// another. Invariant: for any page and any number of sinks, the event loop is blocked for at most
// one slice.

import { setImmediate as loopTurn } from 'node:timers/promises';
import type { EncodedLines, Event, Format, HeldPage, SharedMemory } from '../contracts/index.ts';
import { CountedMemory } from '../tools/index.ts';
import type { LineFate, Transcoder } from '../transcode/index.ts';
import { LineWriter, noLines } from './encode.ts';
import type { DecodedPage, PageDecoder } from './held-event.ts';
import { everything, redactedLate, type Selection } from './route.ts';
import { Transcoders } from './transcoders.ts';

/** The encoded events of a page for a sink: lines, or parts of a document. */
export interface Selected {
  readonly events: readonly Event[];
  readonly lines: EncodedLines;
  /** Of the lines; the caller of `select` holds it. Holds the body of the page, which the events read. */
  readonly memory: CountedMemory;
  /** Of the page's body. */
  readonly body: SharedMemory | undefined;
}

/** A cached encoding. */
interface Encoded {
  readonly selected: Promise<Selected>;
  readonly memory: CountedMemory;
}

/** A sink as the encoder sees it. */
export interface Reader {
  readonly sink: string;
  readonly format: Format;
  /** Sinks with equal keys encode alike. */
  readonly formatKey: string;
  /** True if the sink builds documents from records and needs no lines. */
  readonly documents: boolean;
  /** True if the sink accepts whole pages, of which nothing is encoded. */
  readonly takesPages: boolean;
  /** The selection of a source's events for the sink; null: none. */
  readonly selectionFor: (source: string) => Selection | null;
  /** True if the sink is at work and has not passed this page. */
  expects(page: HeldPage): boolean;
  /** True if the sink is past this page. */
  hasPassed(page: HeldPage): boolean;
}

/** An encoding of a page, released as soon as the page is cached nowhere else. */
interface Kept {
  readonly page: WeakRef<DecodedPage>;
  readonly key: string;
  readonly bytes: number;
}

const nothing: Selected = {
  events: [],
  lines: noLines,
  memory: new CountedMemory(),
  body: undefined,
};

/** Maximum bytes of lines kept for other sinks, the latest first. */
const keptBytesMax = 32 * 1024 * 1024;
/** Encoding time before the event loop runs. */
const stretchMs = 4;
/** The clock is read once per this many events: often enough for large ones, and cheap. */
const clockEvery = 8;

/** Encodes pages for the sinks that read one spool. */
export class PageEncoder {
  #decoder: PageDecoder;
  readonly #transcoders: Transcoders;
  readonly #look: (page: DecodedPage) => void;
  readonly #readers = new Set<Reader>();
  /** Ratio of line bytes to body bytes on the previous page, by selection and format. */
  readonly #growth = new Map<string, number>();
  /** Settles when no pass is running. */
  #passes: Promise<void> = Promise.resolve();
  /** The latest encodings of pages that are still cached, oldest first. */
  #kept: Kept[] = [];
  #keptBytes = 0;
  /** End of the current slice, on the clock of `performance`. */
  #stretchEnd = 0;

  /** `transcoders` write the lines they can. Default: none. `look` sees each page at least once. */
  constructor(
    decoder: PageDecoder,
    transcoders: Transcoders = new Transcoders(false),
    look: (page: DecodedPage) => void = () => undefined,
  ) {
    this.#decoder = decoder;
    this.#transcoders = transcoders;
    this.#look = look;
  }

  /** From now on pages are encoded for this sink too when another one reads them. */
  join(reader: Reader): void {
    this.#readers.add(reader);
  }

  /** The sink reads no further. */
  leave(reader: Reader): void {
    this.#readers.delete(reader);
  }

  /** Events are normalised differently from now on: earlier encodings are released. */
  decodeWith(decoder: PageDecoder): void {
    this.#decoder = decoder;
  }

  eventsOf(held: HeldPage): readonly Event[] {
    return this.#decoder.decode(held).events;
  }

  /** A sink has moved on: encodings that no sink comes to any more are released. */
  moved(): void {
    this.#kept = this.#kept.filter((kept) => {
      const page = kept.page.deref();
      if (page !== undefined && this.#isExpected(page.held, kept.key)) return true;
      this.#forget(kept);
      return false;
    });
  }

  #isExpected(held: HeldPage, key: string): boolean {
    for (const reader of this.#readers) {
      const selection = reader.hasPassed(held) ? null : selectionOf(held, reader);
      if (selection !== null && keyOf(selection, reader) === key) return true;
    }
    return false;
  }

  #forget({ page, key, bytes }: Kept): void {
    this.#keptBytes -= bytes;
    const { encoded } = page.deref() ?? {};
    (encoded?.get(key) as Encoded | undefined)?.memory.release();
    encoded?.delete(key);
  }

  /** The encoded events of a page for one sink, which holds their memory from now on. */
  async select(held: HeldPage, reader: Reader): Promise<Selected> {
    const selection = selectionOf(held, reader);
    if (selection === null) return nothing;
    const page = this.#decoder.decode(held);
    const key = keyOf(selection, reader);
    if (!page.encoded.has(key)) {
      if (isPlaced(selection, reader)) this.#place(page, key);
      else if (isCopied(selection, reader)) this.#copy(page, key);
      else this.#begin(page, this.#tasksFor(page, reader));
    }
    const { selected, memory } = page.encoded.get(key) as Encoded;
    memory.hold();
    return await selected;
  }

  /** The lines are the body's own bytes, so their memory is left to the garbage collection. */
  #place(page: DecodedPage, key: string): void {
    const memory = memoryOf(page);
    const { events } = page;
    const selected: Selected = { events, lines: page.records(), memory, body: page.held.memory };
    page.encoded.set(key, { selected: Promise.resolve(selected), memory } satisfies Encoded);
  }

  /** A page copied verbatim needs no inspection: it takes less than a slice. */
  #copy(page: DecodedPage, key: string): void {
    const lines = page.recordLines();
    const memory = memoryOf(page);
    memory.own(lines.bytes);
    const selected: Selected = { events: page.events, lines, memory, body: page.held.memory };
    page.encoded.set(key, { selected: Promise.resolve(selected), memory } satisfies Encoded);
    this.#keep(page, key, lines.bytes.length);
  }

  /** The encodings of a page that a sink needs: its own, and those of others that will read it. */
  #tasksFor(page: DecodedPage, requester: Reader): ReadonlyMap<string, Task> {
    const tasks = new Map<string, Task>();
    for (const reader of [requester, ...this.#readers]) {
      const isNeeded = reader === requester || reader.expects(page.held);
      const selection = isNeeded ? selectionOf(page.held, reader) : null;
      if (selection === null || isCopied(selection, reader) || isPlaced(selection, reader))
        continue;
      const key = keyOf(selection, reader);
      if (tasks.has(key) || page.encoded.has(key)) continue;
      const bytes = Math.ceil(page.held.body.length * (this.#growth.get(key) ?? 1));
      tasks.set(key, new Task(page, reader, selection, bytes));
    }
    return tasks;
  }

  /** Runs the tasks after all earlier passes; further callers wait for the same promise. */
  #begin(page: DecodedPage, tasks: ReadonlyMap<string, Task>): void {
    const pass = this.#passes.then(() => this.#encode(page, [...tasks.values()]));
    // A failed pass is a bug; all its callers get the error, and later passes continue.
    this.#passes = pass.catch(() => undefined);
    for (const [key, task] of tasks) {
      const memory = memoryOf(page);
      const selected = pass.then(() => task.selected(memory));
      page.encoded.set(key, { selected, memory } satisfies Encoded);
      selected.then(
        ({ lines }) => {
          this.#growth.set(key, lines.bytes.length / page.held.body.length);
          this.#keep(page, key, lines.bytes.length);
        },
        () => undefined,
      );
    }
  }

  /** A later sink encodes for itself, even if the page is cached. */
  #keep(page: DecodedPage, key: string, bytes: number): void {
    this.#kept.push({ page: new WeakRef(page), key, bytes });
    this.#keptBytes += bytes;
    while (this.#keptBytes > keptBytesMax && this.#kept.length > 1) {
      const oldest = this.#kept.shift();
      if (oldest !== undefined) this.#forget(oldest);
    }
  }

  async #encode(page: DecodedPage, tasks: readonly Task[]): Promise<void> {
    const { events } = page;
    this.#look(page);
    for (const task of tasks) task.begin(this.#transcoders);
    for (let at = 0; at < events.length; ) {
      if (performance.now() >= this.#stretchEnd) {
        await loopTurn();
        this.#stretchEnd = performance.now() + stretchMs;
      }
      at = take(tasks, events, { from: at, endMs: this.#stretchEnd });
    }
    for (const task of tasks) task.end();
  }
}

/**
 * The selection of a page for a sink; null: nothing. A response without a record is only for sinks
 * that take pages.
 */
export function selectionOf(
  held: HeldPage,
  reader: Pick<Reader, 'sink' | 'takesPages' | 'selectionFor'>,
): Selection | null {
  const { context, onlySink = '' } = held;
  if (onlySink !== '' && onlySink !== reader.sink) return null;
  if (context.isOfSink) return reader.takesPages ? null : everything;
  const isForPages = context.kind === 'answer' || held.onlySink === '';
  return isForPages && !reader.takesPages ? null : reader.selectionFor(context.source);
}

/** The memory of a page's lines. It holds the body until then, and nothing else of the page. */
function memoryOf({ held: { memory } }: DecodedPage): CountedMemory {
  memory?.hold();
  return new CountedMemory(() => memory?.release());
}

function keyOf(selection: Selection, reader: Reader): string {
  return `${selection.key}|${formatKeyOf(reader)}`;
}

function formatKeyOf({ documents, formatKey }: Reader): string {
  return documents ? `document ${formatKey}` : formatKey;
}

/** True if lines are the records' own bytes, and no event needs its own encoding. */
function isCopied({ key }: Selection, { documents, format }: Reader): boolean {
  return key === '' && !documents && format.verbatim === true && format.isBuilt !== true;
}

/** True if records stand for their lines where they are: nothing is copied or kept. */
function isPlaced({ key }: Selection, { documents, format }: Reader): boolean {
  return key === '' && !documents && format.isBuilt === true;
}

/** Encodes events until the slice ends, at least a few; returns the index of the next. */
function take(
  tasks: readonly Task[],
  events: readonly Event[],
  { from, endMs }: { readonly from: number; readonly endMs: number },
): number {
  let at = from;
  do {
    const to = Math.min(at + clockEvery, events.length);
    for (; at < to; at += 1) for (const task of tasks) task.take(events[at] as Event);
  } while (at < events.length && performance.now() < endMs);
  return at;
}

/** The encoder of an event, and how its lines can be copied. */
function encodingOf({ format, documents }: Reader): Pick<Format, 'encode' | 'copying'> {
  if (documents) return format.document ?? format;
  return format.isBuilt === true ? { encode: ({ raw }) => raw } : format;
}

/** The encoding of one page for one selection and format. */
class Task {
  readonly #page: DecodedPage;
  readonly #encoding: Pick<Format, 'encode' | 'copying'>;
  readonly #formatKey: string;
  readonly #selection: Selection;
  readonly #writer: LineWriter;
  readonly #picked: Event[] = [];
  #transcoder: Transcoder | null = null;
  /** Number of encoded events, if several were copied together. */
  #taken = 0;

  /** `bytes`: the expected size of the lines. */
  constructor(page: DecodedPage, reader: Reader, selection: Selection, bytes: number) {
    this.#page = page;
    this.#encoding = encodingOf(reader);
    this.#formatKey = formatKeyOf(reader);
    this.#selection = selection;
    this.#writer = new LineWriter(this.#encoding, page.events.length, bytes);
  }

  get #takesAll(): boolean {
    return this.#selection.key === '';
  }

  /** Nothing else is transcoded until its last event is encoded, except other tasks of the page. */
  begin(transcoders: Transcoders): void {
    const selection = this.#selection;
    this.#transcoder = transcoders.begin(this.#page, this.#encoding, selection, this.#formatKey);
    this.#transcoder?.begin(this.#page.held);
  }

  end(): void {
    this.#transcoder?.end();
  }

  take(event: Event): void {
    const index = event.offset - this.#page.held.first;
    if (index < this.#taken) return;
    this.#taken = index + this.#takeMany(index);
    if (index < this.#taken) return;
    const fate = this.#transcoded(index);
    if (fate === 'left out') return;
    if (fate === 'written') {
      if (!this.#takesAll) this.#picked.push(redactedLate(event, this.#selection));
      return;
    }
    const selected = this.#selection.select(event);
    if (selected === null) return;
    if (!this.#takesAll) this.#picked.push(selected);
    this.#writer.add(selected);
  }

  /** Copies events from this one on together; returns their number. */
  #takeMany(index: number): number {
    if (this.#transcoder === null) return 0;
    const ends = this.#transcoder.writeMany(this.#page, index, this.#writer);
    if (this.#takesAll) return ends.length;
    for (const [i, end] of ends.entries()) {
      const event = this.#page.events[index + i] as Event;
      if (end !== 0) this.#picked.push(redactedLate(event, this.#selection));
    }
    return ends.length;
  }

  #transcoded(index: number): LineFate {
    if (this.#transcoder === null) return 'missed';
    const start = this.#page.startOf(index);
    return this.#transcoder.write(start, this.#page.endOf(index), index, this.#writer);
  }

  selected(memory: CountedMemory): Selected {
    const events = this.#takesAll ? this.#page.events : this.#picked;
    const lines = this.#writer.lines();
    memory.own(lines.bytes);
    return { events, lines, memory, body: this.#page.held.memory };
  }
}

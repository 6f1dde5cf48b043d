// What one sink is to get next: batches cut from the spool, in order, from any offset. It reads pages, picks the events that routes
// let pass, has each page encoded once per selection and format, and keeps to the sink's bounds. It remembers nothing but
// the settings: the sender (sender.ts) says from where.

import type { Offset } from '../contracts/event.ts';
import type { Format } from '../contracts/format.ts';
import type { Batch } from '../contracts/sink.ts';
import type { Spool } from '../contracts/spool.ts';
import { encodeLines, indexAt, joinLines, noLines, type Selected, subLines } from './encode.ts';
import type { DecodedPage, PageDecoder } from './held-event.ts';
import type { Selection } from './route.ts';

/** Bounds of one batch. A single event larger than `bytesMax` still makes a batch of its own. */
export interface BatchBounds {
  readonly eventsMax: number;
  readonly bytesMax: number;
}

/** A sink's view of the spool. */
export interface OutletSettings {
  readonly sink: string;
  readonly spool: Spool;
  readonly decoder: PageDecoder;
  readonly format: Format;
  /** Equal keys encode alike. */
  readonly formatKey: string;
  /** True where the sink builds documents from events and wants no lines. */
  readonly documents: boolean;
  /** What the sink gets of a source; null: nothing. */
  readonly selectionFor: (source: string) => Selection | null;
  readonly bounds: BatchBounds;
}

/** Cuts batches for one sink. */
export class Outlet {
  readonly #settings: OutletSettings;

  constructor(settings: OutletSettings) {
    this.#settings = settings;
  }

  /**
   * The batch that starts at `from`, or null at the spool's end. A batch without events only says that there was
   * nothing for this sink up to its `end`.
   */
  async cut(from: Offset): Promise<Batch | null> {
    const { bounds, spool } = this.#settings;
    const pages = await spool.read(from, bounds.bytesMax, this.#settings.sink);
    if (pages.length === 0) return null;
    const parts: Selected[] = [];
    let room = bounds.eventsMax;
    let bytes = 0;
    let end = from;
    for (const held of pages) {
      const selected = this.#select(held.context.source, this.#settings.decoder.decode(held));
      const start = indexAt(selected.events, from);
      const stop = this.#stop(selected, start, { room, bytes: bounds.bytesMax - bytes });
      const events = selected.events.slice(start, stop);
      const whole = stop === selected.events.length;
      const next = selected.events[stop];
      end = whole || next === undefined ? held.first + held.count : next.offset;
      if (events.length > 0) {
        const lines = this.#linesOf(selected, start, stop);
        parts.push({ events, lines, recordBytes: selected.recordBytes });
        room -= events.length;
        bytes += sizeOf(selected, start, stop);
      }
      if (!whole || room <= 0 || bytes >= bounds.bytesMax) break;
    }
    return this.#batch(from, end, parts);
  }

  #batch(start: Offset, end: Offset, parts: readonly Selected[]): Batch {
    const first = parts[0];
    const events =
      parts.length === 1 && first !== undefined
        ? first.events
        : parts.flatMap((part) => part.events);
    const lines = events.length === 0 ? noLines : joinLines(parts.map((part) => part.lines));
    return { id: `${this.#settings.sink}-${start}-${end}`, events, lines, start, end };
  }

  #linesOf(selected: Selected, start: number, stop: number) {
    return this.#settings.documents ? noLines : subLines(selected.lines, start, stop);
  }

  /** How far into the page this batch may go: at least one event where the batch is still empty. */
  #stop(selected: Selected, start: number, left: { room: number; bytes: number }): number {
    const last = Math.min(selected.events.length, start + left.room);
    if (sizeOf(selected, start, last) <= left.bytes) return last;
    const first = left.bytes === this.#settings.bounds.bytesMax ? start + 1 : start;
    let stop = first;
    while (stop < last && sizeOf(selected, start, stop + 1) <= left.bytes) stop += 1;
    return Math.min(stop, last);
  }

  #select(source: string, page: DecodedPage): Selected {
    const { onlySink } = page.held;
    const selection = this.#settings.selectionFor(source);
    const mine = onlySink === undefined || onlySink === this.#settings.sink;
    if (!mine || selection === null) return { events: [], lines: noLines, recordBytes: 0 };
    const key = `${selection.key}|${this.#settings.documents ? '' : this.#settings.formatKey}`;
    const known = page.encoded.get(key) as Selected | undefined;
    if (known !== undefined) return known;
    const events =
      selection.key === ''
        ? page.events
        : page.events.map((event) => selection.select(event)).filter((event) => event !== null);
    const lines = this.#settings.documents ? noLines : encodeLines(events, this.#settings.format);
    const recordBytes = page.held.body.length / Math.max(1, page.held.count);
    const selected = { events, lines, recordBytes };
    page.encoded.set(key, selected);
    return selected;
  }
}

/** Bytes of some events: of their lines, or about those of their records where there are no lines. */
function sizeOf({ lines, recordBytes }: Selected, start: number, stop: number): number {
  if (stop <= start) return 0;
  if (lines.length === 0) return (stop - start) * recordBytes;
  return (lines.ends[stop - 1] ?? 0) - (lines.starts[start] ?? 0);
}

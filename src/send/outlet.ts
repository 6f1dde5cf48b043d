// Cuts batches for one sink from the spool, in order, from any offset. It reads pages, selects the
// events that the routes pass, gets their lines from the encoder shared by all sinks, and respects
// the sink's bounds. A sink that takes pages gets them whole. The sender (sender.ts) gives the
// start offset.

import type { Batch, Event, HeldPage, Offset, SendSpool } from '../contracts/index.ts';
import { indexAt, joinLines, noLines, subLines } from './encode.ts';
import { type PageEncoder, type Reader, type Selected, selectionOf } from './page-encoder.ts';
import { partsFrom } from './page-parts.ts';

/** Bounds of one batch. A single event larger than `bytesMax` still forms a batch of its own. */
export interface BatchBounds {
  readonly eventsMax: number;
  readonly bytesMax: number;
}

/** A sink's view of the spool. */
export interface OutletSettings extends Omit<Reader, 'expects'> {
  readonly spool: SendSpool;
  readonly encoder: PageEncoder;
  readonly bounds: BatchBounds;
}

/** The content of a batch. */
type Content = Pick<Batch, 'events' | 'lines' | 'pages'>;

const noContent: Content = { events: [], lines: noLines, pages: [] };

/**
 * A sink that has not requested a batch for this long waits for its receiver; nothing is encoded
 * for it.
 */
const atWorkMs = 200;

/** Cuts batches for one sink. */
export class Outlet {
  readonly #settings: OutletSettings;
  readonly #reader: Reader;
  #from: Offset = 0;
  /** Time of the last cut; null while one is being cut. */
  #cutAt: number | null = Number.NEGATIVE_INFINITY;

  constructor(settings: OutletSettings) {
    this.#settings = settings;
    this.#reader = { ...settings, expects: (page) => this.#expects(page) };
    if (!settings.takesPages) settings.encoder.join(this.#reader);
  }

  #expects({ first, count }: HeldPage): boolean {
    const atWork = this.#cutAt === null || performance.now() - this.#cutAt < atWorkMs;
    return atWork && this.#from < first + count;
  }

  /** The sink reads no further: pages are no longer encoded for it. */
  leave(): void {
    this.#settings.encoder.leave(this.#reader);
  }

  /**
   * The batch from `from` up to before `until`, or null at the end of the spool. An empty batch
   * means that the spool has nothing for this sink up to its `end`.
   */
  async cut(from: Offset, until: Offset = Number.POSITIVE_INFINITY): Promise<Batch | null> {
    this.#from = from;
    this.#cutAt = null;
    try {
      return await this.#cut(from, until);
    } finally {
      this.#cutAt = performance.now();
    }
  }

  async #cut(from: Offset, until: Offset): Promise<Batch | null> {
    const { bounds, spool } = this.#settings;
    const { end: held } = spool.gauge;
    const read = await spool.read(from, bounds.bytesMax, this.#settings.sink);
    const before = read.filter(({ first }) => first < until);
    // For a new sink earlier pages are deleted, which all others had passed.
    if (before.length === 0) {
      return held > from ? this.#batch(from, Math.min(held, until), noContent) : null;
    }
    return this.#settings.takesPages
      ? this.#ofPages(from, before)
      : await this.#ofEvents(from, until, before);
  }

  /** Events of pages stored outside the order of the spool, as one batch. */
  async ofHeld(pages: readonly HeldPage[]): Promise<Batch> {
    const { encoder } = this.#settings;
    const parts: Selected[] = [];
    for (const page of pages) parts.push(await encoder.select(page, this.#reader));
    const [start, last] = [pages[0]?.first ?? 0, pages.at(-1)?.first ?? 0];
    return this.#batch(start, last + 1, joined(parts.filter(({ events }) => events.length > 0)));
  }

  #ofPages(from: Offset, read: readonly HeldPage[]): Batch {
    const { bounds, encoder } = this.#settings;
    const pages: HeldPage[] = [];
    const events: Event[] = [];
    let end = from;
    for (const page of read) {
      end = page.first + page.count;
      if (selectionOf(page, this.#reader) === null) continue;
      pages.push(page);
      if (page.context.kind !== 'answer') events.push(...encoder.eventsOf(page));
      if (events.length >= bounds.eventsMax) break;
    }
    return this.#batch(from, end, { events, lines: noLines, pages });
  }

  async #ofEvents(from: Offset, until: Offset, read: readonly HeldPage[]): Promise<Batch> {
    const { bounds } = this.#settings;
    // Lines of two pages must be copied into one buffer, so a half-full batch ends with its page;
    // documents are copied in any case.
    const enough = this.#settings.documents ? bounds.bytesMax : bounds.bytesMax / 2;
    const parts: Selected[] = [];
    let room = bounds.eventsMax;
    let bytes = 0;
    let end = from;
    for (const held of partsFrom(read, from, bounds.bytesMax)) {
      const selected = await this.#settings.encoder.select(held, this.#reader);
      const start = indexAt(selected.events, from);
      const last = indexAt(selected.events, until);
      const stop = this.#stop(selected, { start, last }, { room, bytes: bounds.bytesMax - bytes });
      const events = selected.events.slice(start, stop);
      const whole = stop === last;
      const next = selected.events[stop];
      end = Math.min(until, whole || !next ? held.first + held.count : next.offset);
      if (events.length > 0) {
        parts.push({ events, lines: subLines(selected.lines, start, stop) });
        room -= events.length;
        bytes += sizeOf(selected, start, stop);
      }
      if (!whole || end >= until || room <= 0 || bytes >= enough) break;
    }
    return this.#batch(from, end, joined(parts));
  }

  #batch(start: Offset, end: Offset, content: Content): Batch {
    return { id: `${this.#settings.sink}-${start}-${end}`, ...content, start, end };
  }

  /**
   * The index at which this batch stops within the page: after at least one event if the batch is
   * empty.
   */
  #stop(
    selected: Selected,
    { start, last: bound }: { start: number; last: number },
    left: { room: number; bytes: number },
  ): number {
    const last = Math.min(bound, start + left.room);
    if (sizeOf(selected, start, last) <= left.bytes) return last;
    const first = left.bytes === this.#settings.bounds.bytesMax ? start + 1 : start;
    let stop = first;
    while (stop < last && sizeOf(selected, start, stop + 1) <= left.bytes) stop += 1;
    return Math.min(stop, last);
  }
}

function joined(parts: readonly Selected[]): Content {
  const [first] = parts;
  if (first === undefined) return noContent;
  const events = parts.length === 1 ? first.events : parts.flatMap((part) => part.events);
  return { events, lines: joinLines(parts.map((part) => part.lines)), pages: [] };
}

/** Bytes of the lines of some events. */
function sizeOf({ lines }: Selected, start: number, stop: number): number {
  if (stop <= start) return 0;
  return (lines.ends[stop - 1] ?? 0) - (lines.starts[start] ?? 0);
}

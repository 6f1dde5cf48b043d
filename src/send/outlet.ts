// Cuts batches for one sink from the spool, in order, from any offset. It reads pages, selects the
// events that the routes pass, gets their lines from the encoder shared by all sinks, and respects
// the sink's bounds. A sink that takes pages gets them whole. The sender (sender.ts) gives the
// start offset.

import {
  type Batch,
  type Event,
  type HeldPage,
  type Offset,
  type SendSpool,
  type SharedMemory,
  type Slices,
  uidBytes,
} from '../contracts/index.ts';
import { CountedMemory, cutRecords } from '../tools/index.ts';
import { indexAt, joinLines, noLines, subLines } from './encode.ts';
import { type PageEncoder, type Reader, type Selected, selectionOf } from './page-encoder.ts';

/** Bounds of one batch. A single event larger than `bytesMax` still forms a batch of its own. */
export interface BatchBounds {
  readonly eventsMax: number;
  readonly bytesMax: number;
}

/** A sink's view of the spool. */
export interface OutletSettings extends Omit<Reader, 'expects' | 'hasPassed'> {
  readonly spool: SendSpool;
  readonly encoder: PageEncoder;
  readonly bounds: BatchBounds;
}

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
  /** What each batch holds of its lines or pages. */
  readonly #memories = new WeakMap<Batch, CountedMemory>();
  /** Time of the last cut; null while one is being cut. */
  #cutAt: number | null = Number.NEGATIVE_INFINITY;

  constructor(settings: OutletSettings) {
    this.#settings = settings;
    this.#reader = {
      ...settings,
      expects: (page) => this.#expects(page),
      hasPassed: ({ first, count }) => first + count <= this.#from,
    };
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
    this.#settings.encoder.moved();
    try {
      return await this.#cut(from, until);
    } finally {
      this.#cutAt = performance.now();
    }
  }

  /**
   * Releases the lines or pages of a batch as it was cut, when called: no reader may be left. It
   * does not keep the batch in memory.
   */
  releaseOf(batch: Batch): () => void {
    let memory = this.#memories.get(batch);
    return () => {
      memory?.release();
      memory = undefined;
    };
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
    const { takesPages } = this.#settings;
    const batch = takesPages
      ? this.#ofPages(from, before)
      : await this.#ofEvents(from, until, before);
    for (const { memory } of read) memory?.release();
    return batch;
  }

  /** Events of pages stored outside the order of the spool, as one batch. */
  async ofHeld(pages: readonly HeldPage[]): Promise<Batch> {
    const { encoder } = this.#settings;
    const parts: Selected[] = [];
    for (const page of pages) parts.push(await encoder.select(page, this.#reader));
    const [start, last] = [pages[0]?.first ?? 0, pages.at(-1)?.first ?? 0];
    const {
      memory: _,
      body: __,
      ...content
    } = joined(parts.filter(({ events }) => events.length > 0));
    return this.#batch(start, last + 1, { ...content, pages: [] });
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
    const batch = this.#batch(from, end, { events, lines: noLines, pages });
    this.#memories.set(batch, memoryOfBodies(pages.map(({ memory }) => memory)));
    return batch;
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
        parts.push({ ...selected, events, lines: subLines(selected.lines, start, stop) });
        room -= events.length;
        bytes += sizeOf(selected, start, stop);
      } else selected.memory.release();
      if (!whole || end >= until || room <= 0 || bytes >= enough) break;
    }
    const { memory, body: _, ...content } = joined(parts);
    const batch = this.#batch(from, end, { ...content, pages: [] });
    this.#memories.set(batch, memory);
    return batch;
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

/** Parts as one; several are copied, and the memory of their own lines is released. */
function joined(parts: readonly Selected[]): Selected {
  const [first] = parts;
  if (first !== undefined && parts.length === 1) return first;
  const memory = memoryOfBodies(parts.map(({ body }) => body));
  const rest = { memory, body: undefined };
  if (first === undefined) return { events: [], lines: noLines, ...rest };
  const lines = joinLines(parts.map((part) => part.lines));
  memory.own(lines.bytes);
  for (const part of parts) part.memory.release();
  return { events: parts.flatMap((part) => part.events), lines, ...rest };
}

/** Holds these bodies, and nothing else of their pages. */
function memoryOfBodies(bodies: readonly (SharedMemory | undefined)[]): CountedMemory {
  for (const body of bodies) body?.hold();
  return new CountedMemory(() => {
    for (const body of bodies) body?.release();
  });
}

/** Bytes of the lines of some events. */
function sizeOf({ lines }: Selected, start: number, stop: number): number {
  if (stop <= start) return 0;
  return (lines.ends[stop - 1] ?? 0) - (lines.starts[start] ?? 0);
}

// Splits a large page into parts, each a page of its own with a share of the records and the bytes
// around them. Pages are stored whole, as upstream sent them, and read in parts: encoding works
// page by page, so without parts a page as large as `max_body` would be in memory several times,
// once per format. Invariant: the parts contain the page's events, each once and in order, and
// share the body's memory.

/** Pages up to this size are read whole. */
const wholeBytesMax = 1024 * 1024;
const partBytes = 512 * 1024;
/** A part may be read from disk together with its whole page, so the number of parts is limited. */
const partsMax = 64;

const known = new WeakMap<HeldPage, readonly HeldPage[]>();

/** The parts of a page; the same objects each time, so that computed values are shared. */
function partsOf(page: HeldPage): readonly HeldPage[] {
  if (page.body.length <= wholeBytesMax || page.count < 2) return [page];
  return known.getOrInsertComputed(page, () => cut(page));
}

/** Consecutive pages or parts from an offset: about `bytesMax`, at least one. */
export function partsFrom(
  pages: readonly HeldPage[],
  from: Offset,
  bytesMax: number,
): readonly HeldPage[] {
  const found: HeldPage[] = [];
  let bytes = 0;
  for (const page of pages) {
    if (bytes >= bytesMax && found.length > 0) break;
    for (const part of partsOf(page)) {
      if (part.first + part.count <= from || (bytes >= bytesMax && found.length > 0)) continue;
      found.push(part);
      bytes += part.body.length;
    }
  }
  return found;
}

function cut(page: HeldPage): readonly HeldPage[] {
  const slices = page.slices ?? cutRecords(page.body, page.items);
  const bytesMax = Math.max(partBytes, Math.ceil(page.body.length / partsMax));
  const parts: HeldPage[] = [];
  let from = 0;
  let bytes = 0;
  for (let i = 0; i < page.count; i += 1) {
    const at = page.kept?.[i] ?? i;
    bytes += (slices.ends[at] ?? 0) - (slices.starts[at] ?? 0);
    if (bytes < bytesMax && i + 1 < page.count) continue;
    parts.push(partOf(page, slices, { from, to: i + 1 }));
    from = i + 1;
    bytes = 0;
  }
  return parts;
}

function partOf(
  page: HeldPage,
  slices: Slices,
  { from, to }: { readonly from: number; readonly to: number },
): HeldPage {
  const { kept, slices: _, ...rest } = page;
  const starts = new Uint32Array(to - from);
  const ends = new Uint32Array(to - from);
  const base = slices.starts[kept?.[from] ?? from] ?? 0;
  for (let i = from; i < to; i += 1) {
    const at = kept?.[i] ?? i;
    starts[i - from] = (slices.starts[at] ?? 0) - base;
    ends[i - from] = (slices.ends[at] ?? 0) - base;
  }
  return {
    ...rest,
    first: page.first + from,
    count: to - from,
    kept: null,
    uids: page.uids.subarray(from * uidBytes, to * uidBytes),
    body: page.body.subarray(base, base + (ends.at(-1) ?? 0)),
    slices: { starts, ends, length: to - from, exact: slices.exact },
  };
}

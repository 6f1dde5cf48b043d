// A held page as events. Parsing, normalising, cutting out the record's own bytes and encoding each happen at most
// once per page, when first asked for, and are shared by every sink that reads the page while it is remembered.

import type {
  Event,
  OcsfEvent,
  Offset,
  PageContext,
  ParsedRecord,
  RecordKind,
  Uid,
} from '../contracts/event.ts';
import type { HeldPage } from '../contracts/spool.ts';
import { uidBytes } from '../contracts/spool.ts';
import { cutRecords, parseBody, recordsAt, type Slices } from '../tools/records.ts';

/** Makes the OCSF form of one record. Pure and total. */
export type Normalise = (record: ParsedRecord, uid: Uid, context: PageContext) => OcsfEvent;

/** The events of a held page. */
export class DecodedPage {
  readonly held: HeldPage;
  readonly normalise: Normalise;
  readonly events: readonly Event[];
  /** What senders computed from this page, by what it was computed with. */
  readonly encoded = new Map<string, unknown>();
  #parsed: readonly ParsedRecord[] | null;
  #slices: Slices | null = null;

  constructor(held: HeldPage, normalise: Normalise) {
    this.held = held;
    this.normalise = normalise;
    this.#parsed = held.parsed ?? null;
    const hex = Buffer.from(held.uids.buffer, held.uids.byteOffset, held.uids.byteLength).toString(
      'hex',
    );
    const events = new Array<Event>(held.count);
    for (let i = 0; i < held.count; i += 1) {
      events[i] = new HeldEvent(this, i, hex.substring(i * uidBytes * 2, (i + 1) * uidBytes * 2));
    }
    this.events = events;
  }

  record(index: number): ParsedRecord {
    this.#parsed ??= this.#parse();
    return this.#parsed[index] ?? null;
  }

  raw(index: number): Uint8Array {
    this.#slices ??= cutRecords(this.held.body, this.held.items);
    const at = this.held.kept === null ? index : (this.held.kept[index] ?? 0);
    return this.held.body.subarray(this.#slices.starts[at], this.#slices.ends[at]);
  }

  #parse(): readonly ParsedRecord[] {
    const records = recordsAt(parseBody(this.held.body), this.held.items) ?? [];
    if (this.held.kept === null) return records;
    return Array.from(this.held.kept, (index) => records[index] ?? null);
  }
}

class HeldEvent implements Event {
  readonly uid: Uid;
  readonly #page: DecodedPage;
  readonly #index: number;
  #ocsf: OcsfEvent | null = null;

  constructor(page: DecodedPage, index: number, uid: Uid) {
    this.#page = page;
    this.#index = index;
    this.uid = uid;
  }

  get source(): string {
    return this.#page.held.context.source;
  }

  get stream(): string {
    return this.#page.held.context.stream;
  }

  get kind(): RecordKind {
    return this.#page.held.context.kind;
  }

  get context(): PageContext {
    return this.#page.held.context;
  }

  get offset(): Offset {
    return this.#page.held.first + this.#index;
  }

  get raw(): Uint8Array {
    return this.#page.raw(this.#index);
  }

  get ocsf(): OcsfEvent {
    if (this.#ocsf === null) {
      const page = this.#page;
      this.#ocsf = page.normalise(page.record(this.#index), this.uid, page.held.context);
    }
    return this.#ocsf;
  }
}

/** Decodes each held page once while it is remembered. */
export class PageDecoder {
  readonly #pages = new WeakMap<HeldPage, DecodedPage>();
  readonly #normaliserFor: (context: PageContext) => Normalise;

  constructor(normaliserFor: (context: PageContext) => Normalise) {
    this.#normaliserFor = normaliserFor;
  }

  decode(held: HeldPage): DecodedPage {
    let page = this.#pages.get(held);
    if (page === undefined) {
      page = new DecodedPage(held, this.#normaliserFor(held.context));
      this.#pages.set(held, page);
    }
    return page;
  }
}

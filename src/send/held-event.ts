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
import type { HeldPage, Slices } from '../contracts/spool.ts';
import { uidBytes } from '../contracts/spool.ts';
import { cutRecords } from '../tools/records.ts';

/** Makes the OCSF form of one record. Pure and total. */
export type Normalise = (record: ParsedRecord, uid: Uid, context: PageContext) => OcsfEvent;

/** The events of a held page. */
export class DecodedPage {
  readonly held: HeldPage;
  readonly normalise: Normalise;
  readonly events: readonly Event[];
  /** What senders computed from this page, by what it was computed with. */
  readonly encoded = new Map<string, unknown>();
  readonly #text: Buffer;
  #slices: Slices | null;
  #ocsf: OcsfEvent | null = null;
  #ocsfIndex = -1;

  constructor(held: HeldPage, normalise: Normalise) {
    this.held = held;
    this.normalise = normalise;
    this.#text = Buffer.from(held.body.buffer, held.body.byteOffset, held.body.byteLength);
    this.#slices = held.slices ?? null;
    const hex = Buffer.from(held.uids.buffer, held.uids.byteOffset, held.uids.byteLength).toString(
      'hex',
    );
    const events = new Array<Event>(held.count);
    for (let i = 0; i < held.count; i += 1) {
      events[i] = new HeldEvent(this, i, hex.substring(i * uidBytes * 2, (i + 1) * uidBytes * 2));
    }
    this.events = events;
  }

  /** The OCSF form of the event asked for last stays at hand, since a format asks many times for each in turn. */
  ocsf(index: number, uid: Uid): OcsfEvent {
    if (index !== this.#ocsfIndex || this.#ocsf === null) {
      this.#ocsf = this.normalise(this.record(index), uid, this.held.context);
      this.#ocsfIndex = index;
    }
    return this.#ocsf;
  }

  /** A record parsed; each is parsed by itself, so that one is dead before the next is made. */
  record(index: number): ParsedRecord {
    const { starts, ends } = this.#cut();
    const at = this.#indexOf(index);
    return JSON.parse(this.#text.toString('utf8', starts[at], ends[at])) as ParsedRecord;
  }

  raw(index: number): Uint8Array {
    const { starts, ends } = this.#cut();
    const at = this.#indexOf(index);
    return this.#text.subarray(starts[at], ends[at]);
  }

  #indexOf(index: number): number {
    return this.held.kept === null ? index : (this.held.kept[index] ?? 0);
  }

  #cut(): Slices {
    this.#slices ??= cutRecords(this.held.body, this.held.items);
    return this.#slices;
  }
}

class HeldEvent implements Event {
  readonly uid: Uid;
  readonly #page: DecodedPage;
  readonly #index: number;

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
    return this.#page.ocsf(this.#index, this.uid);
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

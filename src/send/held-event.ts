// Converts a stored page to events. Parsing, normalising, slicing out the record's own bytes and
// encoding each happen at most once per page, on first use, and are shared by every sink that reads
// the page while it is cached.

import { isUtf8 } from 'node:buffer';
import type { NumberNames, RecordReading } from '../contracts/config.ts';
import {
  type EncodedLines,
  type Event,
  type HeldPage,
  invariant,
  type OcsfEvent,
  type Offset,
  type PageContext,
  type ParsedRecord,
  type RecordKind,
  type Slices,
  type Uid,
  uidBytes,
} from '../contracts/index.ts';
import {
  compileNormaliser,
  type Normalise,
  withInvalidUtf8,
  withNumberNames,
} from '../normalise/index.ts';
import { cutRecords, digitsKept, heldNestingMax, JsonScan } from '../tools/index.ts';
import { type OwnLines, recordLines } from './encode.ts';

/** Number of uids converted to text together. */
const uidsWritten = 32;

/** The events of a stored page. */
export class DecodedPage {
  readonly held: HeldPage;
  readonly normalise: Normalise;
  readonly events: readonly Event[];
  /** Values that senders computed from this page, by a key of the computation. */
  readonly encoded = new Map<string, unknown>();
  readonly #body: Buffer;
  readonly #uids: Buffer;
  #slices: Slices | null;
  #ocsf: OcsfEvent | null = null;
  #ocsfIndex = -1;
  /** Whether the body is UTF-8; null: not checked yet. */
  #utf8: boolean | null = null;
  #hex = '';
  /** Index of the first event whose uid is in `#hex`. */
  #hexFrom = -1;

  constructor(held: HeldPage, normalise: Normalise) {
    this.held = held;
    this.normalise = normalise;
    this.#body = bufferOf(held.body);
    this.#uids = bufferOf(held.uids);
    this.#slices = held.slices ?? null;
    const events = new Array<Event>(held.count);
    for (let i = 0; i < held.count; i += 1) events[i] = new HeldEvent(this, i);
    this.events = events;
  }

  /** Its bytes. Throws once their memory is freed. */
  get #text(): Buffer {
    const isFreed = this.held.memory !== undefined && this.#body.length === 0;
    invariant(!isFreed, 'a page is read while its memory is held');
    return this.#body;
  }

  get #isUtf8(): boolean {
    this.#utf8 ??= isUtf8(this.#text);
    return this.#utf8;
  }

  /** The last OCSF form is cached, because formats read it many times in a row. */
  ocsf(index: number): OcsfEvent {
    if (index !== this.#ocsfIndex || this.#ocsf === null) {
      const ocsf = this.normalise(this.record(index), this.uid(index), this.held.context);
      const isText = this.#isUtf8 || isUtf8(this.raw(index));
      this.#ocsf = isText ? ocsf : withInvalidUtf8(ocsf);
      this.#ocsfIndex = index;
    }
    return this.#ocsf;
  }

  /** A few neighbours are converted together: cheaper than singly, and short-lived. */
  uid(index: number): Uid {
    const block = index - (index % uidsWritten);
    if (block !== this.#hexFrom) {
      this.#hex = this.#uids.toString('hex', block * uidBytes, (block + uidsWritten) * uidBytes);
      this.#hexFrom = block;
    }
    const at = (index - block) * uidBytes * 2;
    return this.#hex.substring(at, at + uidBytes * 2);
  }

  /**
   * A parsed record whose numbers keep upstream's values; parsed one by one, so that one is garbage
   * before the next is made.
   */
  record(index: number): ParsedRecord {
    const { starts, ends, exact } = this.#cut();
    const at = this.#indexOf(index);
    const start = starts[at] ?? 0;
    const end = ends[at] ?? 0;
    if (exact !== true) return parseRecord(this.#text, start, end);
    return JSON.parse(this.#text.toString('utf8', start, end)) as ParsedRecord;
  }

  /** The bytes of its records within the page. */
  records(): EncodedLines {
    const { kept } = this.held;
    const { starts, ends } = this.#cut();
    const picked = (places: Uint32Array) => kept?.map((at) => places[at] ?? 0) ?? places;
    return {
      bytes: this.#text,
      starts: picked(starts),
      ends: picked(ends),
      length: this.held.count,
    };
  }

  /** Its records as lines of their own bytes. */
  recordLines(): OwnLines {
    return recordLines(this.#text, this.#cut(), this.held.kept);
  }

  /** Byte offset of a record in the page's body. */
  startOf(index: number): number {
    return this.#cut().starts[this.#indexOf(index)] ?? 0;
  }

  endOf(index: number): number {
    return this.#cut().ends[this.#indexOf(index)] ?? 0;
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

function bufferOf({ buffer, byteOffset, byteLength }: Uint8Array): Buffer {
  return Buffer.from(buffer, byteOffset, byteLength);
}

class HeldEvent implements Event {
  readonly #page: DecodedPage;
  readonly #index: number;

  constructor(page: DecodedPage, index: number) {
    this.#page = page;
    this.#index = index;
  }

  get uid(): Uid {
    return this.#page.uid(this.#index);
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
    return this.#page.ocsf(this.#index);
  }
}

/** Decodes each stored page once while it is cached. */
export class PageDecoder {
  readonly #pages = new WeakMap<HeldPage, DecodedPage>();
  readonly #normaliserFor: (context: PageContext) => Normalise;

  constructor(normaliserFor: (context: PageContext) => Normalise) {
    this.#normaliserFor = normaliserFor;
  }

  decode(held: HeldPage): DecodedPage {
    return this.#pages.getOrInsertComputed(
      held,
      () => new DecodedPage(held, this.#normaliserFor(held.context)),
    );
  }
}

// Parses records so that no number changes its value on the way out. A double keeps 15 significant
// digits; longer numbers of upstream (64-bit ids, `1e400`, nanoseconds) would be rounded or become
// null. They become the text that upstream wrote: a string is safe in every format and for every
// reader, while the next reader would lose digits of a long number literal. Integers beyond 2^53 always
// become text, even if a double represents one exactly, so that a field of ids has one type.
// Invariant: a record without long numbers costs nothing here: the scan of a page reports it
// (`Slices.exact`), otherwise a search finds it.

/**
 * Matches every record with a number that a double may not represent, and few others: a long number
 * or one with an exponent, after a character that precedes a value. The search costs a tenth of a
 * scan byte by byte.
 */
const mayBeLong = new RegExp(`(?:^|[:[,])\\s*(?:[-+.\\d]{${digitsKept + 1}}|[-+.\\d]+[eE])`);

/**
 * The well-formed record at `body[start, end)`; numbers that doubles cannot represent become text.
 */
export function parseRecord(body: Buffer, start: number, end: number): ParsedRecord {
  const whole = body.toString('utf8', start, end);
  if (!mayBeLong.test(whole)) return JSON.parse(whole) as ParsedRecord;
  const scan = new JsonScan(body, null);
  scan.levelsMax = heldNestingMax;
  const found: number[] = [];
  scan.tokens.inexact = found;
  scan.value(start);
  let text = '';
  let at = start;
  for (let i = 0; i < found.length; i += 2) {
    const [from = end, to = end] = found.slice(i, i + 2);
    const source = body.toString('latin1', from, to);
    if (isKept(source)) continue;
    text += `${body.toString('utf8', at, from)}"${source}"`;
    at = to;
  }
  return JSON.parse(text + body.toString('utf8', at, end)) as ParsedRecord;
}

/** True if the parsed number is written with the same value. */
function isKept(source: string): boolean {
  const value = Number(source);
  if (/^-?\d+$/.test(source)) return Number.isSafeInteger(value);
  if (!Number.isFinite(value)) return false;
  const given = decimalOf(source);
  const kept = decimalOf(String(value));
  return given.digits === kept.digits && (given.digits === '' || given.exponent === kept.exponent);
}

/** A number as its significant digits, unsigned, and the power of ten of the last one. */
function decimalOf(source: string): { readonly digits: string; readonly exponent: number } {
  const [mantissa = '', scale = '0'] = source.replace('-', '').toLowerCase().split('e');
  const [whole = '', fraction = ''] = mantissa.split('.');
  const digits = whole + fraction;
  let start = 0;
  let end = digits.length;
  while (digits[start] === '0') start += 1;
  while (end > start && digits[end - 1] === '0') end -= 1;
  const exponent = Number(scale) - fraction.length + (digits.length - end);
  return { digits: digits.slice(start, end), exponent };
}

// The normaliser of each source and record kind, compiled on first use.

/** How the records of a source are normalised. */
export interface ReadSource {
  readonly name: string;
  readonly reading: RecordReading;
  /** Names to add to numbers, as far as known when an event is made. */
  readonly lookups?: { readonly names: NumberNames };
}

const commonReading: RecordReading = { id: 'id', time: ['timestamp', 'time', 'created_at'] };

/**
 * Returns the normaliser of a page's source; a source outside the config is normalised by common
 * names.
 */
export function normalisersOf(sources: readonly ReadSource[]): (context: PageContext) => Normalise {
  const known = new Map(sources.map((source) => [source.name, source]));
  const compiled = new Map<string, Normalise>();
  return ({ source, kind }) => {
    const key = `${kind} ${source}`;
    let normalise = compiled.get(key);
    if (normalise === undefined) {
      const unknown = kind === 'drift' ? { id: null, time: [] } : commonReading;
      const { reading = unknown, lookups } = known.get(source) ?? {};
      const plain = compileNormaliser(kind, reading);
      normalise =
        lookups === undefined
          ? plain
          : (record, uid, context) => withNumberNames(plain(record, uid, context), lookups.names);
      compiled.set(key, normalise);
    }
    return normalise;
  };
}

// Reads a record once, key by key, and sorts its values into slots (values that an event needs) and
// the rest (which goes to `unmapped`). It is the first step of normalising and the hottest loop of
// the program: a key costs one look-up, no path is split, nothing is flattened or cloned.
// Invariants: every value of the record ends in a slot, in the rest or in both; no key of a record,
// `__proto__` included, affects anything except the rest.

import { type Json, type JsonObject, sidesOf } from '../contracts/index.ts';
import { addressIn } from './address.ts';
import { Branch, type BranchStep, commonRank, type SourcePaths, type Take } from './branch.ts';
import {
  other,
  type ReadSeverity,
  type ReadStatus,
  type SeverityScale,
  severityReader,
} from './levels.ts';
import {
  type Accepts,
  type Attention,
  type Meaning,
  type Slot,
  slots,
  type Vocabulary,
} from './slots.ts';
import { isEmail, isHostname, isIp, isMac, isPort, isTextual } from './values.ts';

/** A JSON object under construction. */
export type Draft = { [name: string]: Json | undefined };

/** The values of OCSF's `http_method`. */
const httpMethods: ReadonlySet<string> = new Set([
  'CONNECT',
  'DELETE',
  'GET',
  'HEAD',
  'OPTIONS',
  'PATCH',
  'POST',
  'PUT',
  'TRACE',
]);
/** Sets a value under any key; `__proto__` becomes an ordinary property. */
export function put(target: Draft, key: string, value: Json): void {
  if (key === '__proto__') {
    Object.defineProperty(target, key, {
      value,
      writable: true,
      enumerable: true,
      configurable: true,
    });
  } else {
    target[key] = value;
  }
}

/** The keys before this one; none of them was taken. */
function headOf(object: JsonObject, end: string): Draft {
  const head: Draft = {};
  for (const key in object) {
    if (key === end) break;
    const value = object[key];
    if (value !== undefined) put(head, key, value);
  }
  return head;
}

/** Settings of a Reading. */
export interface ReadingSettings extends SourcePaths {
  readonly vocabulary: Vocabulary;
  readonly slotCount: number;
  /** The parser of outcomes; findings have their own. */
  readonly readStatus: ReadStatus;
}

/** A record being read. One instance per source, reused for one record after the other. */
export class Reading {
  /** The value of each slot; undefined if the record has none. */
  values: (Json | undefined)[];
  /** The origin of each slot's value. */
  takes: (Take | undefined)[];
  /** Values that went into no slot. */
  rest: Draft = {};
  /** Epoch milliseconds of the slot `time`, or NaN. */
  time = Number.NaN;
  /** `status_id` of the slot `status`, if any. */
  status = 0;
  /** `severity_id` of the slot `severity`, if any. */
  severity = 0;
  readonly #root: Branch;
  readonly #noValues: readonly (Json | undefined)[];
  readonly #noTakes: readonly (Take | undefined)[];
  readonly #displaced: { take: Take; value: Json }[] = [];
  /** Values from which an address was taken, each with the rest of its text. */
  readonly #partly: { take: Take; value: Json; port: number | undefined }[] = [];
  readonly #readSeverity: ReadSeverity = severityReader();
  readonly #readStatus: ReadStatus;

  /** Parses a time: epoch milliseconds, or NaN. */
  readonly parseTime: SourcePaths['parseTime'];

  constructor({
    vocabulary,
    configured: requested,
    parseTime,
    slotCount,
    readStatus,
  }: ReadingSettings) {
    this.parseTime = parseTime;
    this.#root = new Branch(vocabulary, [], '', 0);
    this.#readStatus = readStatus;
    this.#noValues = new Array<undefined>(slotCount).fill(undefined);
    this.#noTakes = new Array<undefined>(slotCount).fill(undefined);
    this.values = this.#noValues.slice();
    this.takes = this.#noTakes.slice();
    for (const want of requested) this.#root.want(want);
  }

  /** Discards the previous record and reads this one. */
  read(record: JsonObject): void {
    // Fresh arrays: young values in an old array cost the garbage collector more than the
    // allocation.
    this.values = this.#noValues.slice();
    this.takes = this.#noTakes.slice();
    this.time = Number.NaN;
    const rest = this.#read(this.#root, record);
    this.rest = rest === record || rest === null ? { ...rest } : (rest as Draft);
    if (this.#displaced.length > 0) this.#restoreDisplaced();
    if (this.#partly.length > 0) this.#restorePartly();
  }

  /** A slot's text: the value itself, or an integer's digits. */
  text(slot: Slot): string | undefined {
    const value = this.values[slot];
    return value === undefined || typeof value === 'string' ? value : String(value);
  }

  /** Adds the slot's value to the rest, because it was not placed exactly; the slot keeps it. */
  putBack(slot: Slot): void {
    const take = this.takes[slot];
    const value = this.values[slot];
    if (take !== undefined && value !== undefined) this.#restore(take.path, value);
  }

  /** Adds the slot's value to the rest and empties the slot. */
  refuse(slot: Slot): void {
    this.putBack(slot);
    this.values[slot] = undefined;
    this.takes[slot] = undefined;
  }

  /** The possible meanings of a value at these keys, or of an object that contains it. */
  offers(keys: readonly string[]): readonly Meaning[] {
    const found: Meaning[] = [];
    let branch: Branch | null = this.#root;
    for (const [index, key] of keys.entries()) {
      const step: BranchStep | undefined = branch?.find(key, Number.POSITIVE_INFINITY);
      const isLast = index === keys.length - 1;
      for (let take = step?.take ?? null; take !== null; take = take.next) {
        // An object is taken whole as JSON, or not at all.
        if (isLast || take.accepts === 'json') found.push(take);
      }
      branch = step?.child ?? null;
    }
    return found;
  }

  /**
   * The rest of an object: itself if nothing was taken from it, null if everything was. It is
   * copied from the first taken key on, so an object without taken keys costs no copy.
   */
  #read(branch: Branch, object: JsonObject): JsonObject | null {
    let rest: Draft | null = null;
    let kept = 0;
    let place = 0;
    const { order } = branch;
    for (const key in object) {
      const value = object[key];
      if (value === undefined) continue;
      const guess = order[place];
      const step = guess !== undefined && guess.key === key ? guess : branch.find(key, place);
      place++;
      const left = this.#leftOf(step, value);
      if (left !== value) rest ??= headOf(object, key);
      if (left === null && value !== null) continue;
      kept++;
      if (rest !== null) put(rest, key, left);
    }
    if (rest === null) return object;
    return kept === 0 ? null : rest;
  }

  /** The part of a value that goes into the rest: all, a part, or null for nothing. */
  #leftOf({ take, child }: BranchStep, value: Json): Json {
    if (value === null || (take !== null && this.#offer(take, value))) return null;
    if (child === null || typeof value !== 'object' || Array.isArray(value)) return value;
    return this.#read(child, value as JsonObject);
  }

  /**
   * These values stay in the rest unchanged; a port beside the source's address is the source's.
   */
  #restorePartly(): void {
    for (const { take, value, port } of this.#partly) {
      const isPlaced = this.takes[take.slot] === take;
      if (isPlaced && take.slot === slots.srcIp) this.values[slots.srcPort] ??= port;
      this.#restore(take.path, value);
    }
    this.#partly.length = 0;
  }

  #restoreDisplaced(): void {
    for (const { take, value } of this.#displaced) this.#restore(take.path, value);
    this.#displaced.length = 0;
  }

  /** Every configured meaning of a key is used; of the common meanings, the first that fits. */
  #offer(first: Take, value: Json): boolean {
    let placed = false;
    for (let take: Take | null = first; take !== null; take = take.next) {
      if (placed && take.rank >= commonRank) break;
      if (this.#fits(take, value)) placed = true;
    }
    return placed;
  }

  #fits(take: Take, value: Json): boolean {
    const { slot } = take;
    const before = this.takes[slot];
    if (before !== undefined && before.rank <= take.rank) return false;
    if (!this.accepts(take.accepts, value)) return false;
    const displaced = this.values[slot];
    if (before !== undefined && displaced !== undefined) {
      this.#displaced.push({ take: before, value: displaced });
    }
    this.values[slot] = take.accepts === 'ip' ? this.#addressOf(take, value) : value;
    this.takes[slot] = take;
    // A list of changes stays in the rest as well: its form is the product's own.
    return take.accepts !== 'changes';
  }

  #addressOf(take: Take, value: Json): Json {
    if (typeof value === 'string' && isIp(value)) return value;
    const { ip, port } = addressIn(value) ?? { ip: value, port: undefined };
    this.#partly.push({ take, value, port });
    return ip;
  }

  /** Whether a name of this type may carry the value. */
  accepts(accepts: Accepts, value: Json): boolean {
    switch (accepts) {
      case 'text':
        return isTextual(value);
      case 'word':
        return typeof value === 'string' && value !== '' && value.length <= 512;
      case 'ip':
        return addressIn(value) !== undefined;
      case 'time':
        return this.#acceptsTime(value);
      case 'email':
        return typeof value === 'string' && isEmail(value);
      case 'host':
        return typeof value === 'string' && isHostname(value);
      case 'mac':
        return typeof value === 'string' && isMac(value);
      case 'port':
        return isPort(value);
      case 'json':
        return value !== null;
      case 'changes':
        return sidesOf(value) !== undefined;
      case 'code':
        return typeof value === 'number' && Number.isInteger(value) && value >= 100 && value <= 599;
      case 'method':
        return typeof value === 'string' && httpMethods.has(value);
      case 'outcome':
      case 'known outcome':
        return this.#acceptsStatus(value, accepts === 'outcome');
      case 'severity':
      case 'severity_id':
      case 'priority':
      case 'level':
      case 'risk':
        return this.#acceptsSeverity(value, accepts);
    }
  }

  #acceptsStatus(value: Json, unknownToo: boolean): boolean {
    const status = this.#readStatus(value);
    if (status < 0 || (status === other && !unknownToo)) return false;
    this.status = status;
    return true;
  }

  /** Only a name with an explicit severity may carry an unknown word. */
  #acceptsSeverity(value: Json, scale: SeverityScale): boolean {
    const severity = this.#readSeverity(value, scale);
    if (severity < 0 || (severity === other && scale !== 'severity')) return false;
    this.severity = severity;
    return true;
  }

  #acceptsTime(value: Json): boolean {
    const time = this.parseTime(value);
    if (Number.isNaN(time)) return false;
    this.time = time;
    return true;
  }

  #restore(path: readonly string[], value: Json): void {
    let target = this.rest;
    const last = path.length - 1;
    for (let index = 0; index < last; index++) {
      const key = path[index] as string;
      const inner = Object.hasOwn(target, key) ? target[key] : undefined;
      const next: Draft = typeof inner === 'object' && inner !== null ? (inner as Draft) : {};
      if (next !== inner) put(target, key, next);
      target = next;
    }
    put(target, path[last] as string, value);
  }
}

/**
 * The inspected slots of a normaliser that uses `reading` and inspects no slot's value except as
 * declared; records that may become Base Events are also inspected as the Base Event does.
 */
export function slotsReadBy(
  reading: Reading,
  passedOn: Attention['passedOn'],
  fallback?: { readonly attention: Attention },
): Attention {
  return {
    offers: (keys) => [...reading.offers(keys), ...(fallback?.attention.offers(keys) ?? [])],
    passedOn,
    accepts: (accepts, value) => reading.accepts(accepts, value),
  };
}

// A place that keeps objects by name: a directory or a bucket. What is written here is evidence or
// an export, so the operations are those that a bucket can promise and a directory can match: an
// object is there whole or not at all, `create` never writes over another's, and what resolved is
// durable. Whoever must not be raced changes an object by its tag. A failure is an ExportError
// (sink_unreachable, sink_throttled and disk_full pass by themselves, sink_refused does not) and
// means that nothing is known of what was asked for; nothing is tried again here.

import { ExportError } from '../contracts/errors.ts';

/**
 * Objects by name, `/` between its parts, as `segments/2026/11/22/0.zst`. No name leads through
 * another: beside `a/b` there is no `a`.
 */
export interface ObjectStore {
  /** Where it is, for messages; no secrets. */
  readonly place: string;
  /** Writes an object unless one has this name. What stands there stays as it is. */
  create(
    name: string,
    body: readonly Uint8Array[],
    about?: ObjectAbout,
  ): Promise<'created' | 'exists'>;
  /**
   * Writes an object in the place of the one with this tag; null: where there is none. Resolves to
   * the new tag, or to null where something else stands there by now.
   */
  replace(name: string, body: readonly Uint8Array[], tag: string | null): Promise<string | null>;
  /** Writes an object, whatever stands there. */
  put(name: string, body: readonly Uint8Array[]): Promise<void>;
  /** The object, or so much of it as there is of a range; null where there is none. */
  read(name: string, range?: ObjectRange): Promise<ObjectContent | null>;
  /** What is known of an object without reading it; null where there is none. */
  facts(name: string): Promise<ObjectFacts | null>;
  /** Objects whose names begin with `prefix`, those behind `after` only, in the order of names. */
  list(prefix: string, after?: string): AsyncIterableIterator<ListedObject>;
  /**
   * Takes an object away with its older versions, where a store keeps such; one that is not there is
   * gone as well. Throws `sink_refused`, having changed nothing, for one that a lock keeps.
   */
  remove(name: string): Promise<void>;
  /** Takes the older versions of an object away, where a store keeps such. */
  removeOlder(name: string): Promise<void>;
  /** Sets or lifts a hold of the bucket on an object (S3 legal hold); a directory has none. */
  hold(name: string, isOn: boolean): Promise<void>;
  /** Whether objects can be kept from being deleted there (S3 Object Lock). */
  locks(): Promise<boolean>;
  /** Gives up what is under way, and lets go of connections. */
  close(): void;
}

/** What is written with an object. A directory keeps none of it. */
export interface ObjectAbout {
  readonly contentType?: string;
  readonly contentEncoding?: string;
  /** Lower-case names; values in ASCII. */
  readonly metadata?: Readonly<Record<string, string>>;
  readonly lock?: ObjectLock;
}

/** What keeps an object from being deleted, in a bucket that was made for it (S3 Object Lock). */
export interface ObjectLock {
  /** Left out: nothing but a hold. */
  readonly mode?: 'COMPLIANCE' | 'GOVERNANCE';
  /** Until when, epoch milliseconds; 0 where there is no mode. */
  readonly until: number;
  /** Kept also after that, until the hold is released. */
  readonly hold?: boolean;
}

/** What keeps an object, in words, with the date. */
export function lockText({ mode, until, hold }: ObjectLock): string {
  const date = new Date(until).toISOString();
  const lock = mode === undefined ? [] : [`it is locked (${mode}) until ${date}`];
  return [...lock, ...(hold ? ['a legal hold of the bucket is on it'] : [])].join(', and ');
}

/** Bytes `from` up to, not including, `from + length`. */
export interface ObjectRange {
  readonly from: number;
  readonly length: number;
}

/** An object's bytes. */
export interface ObjectContent {
  readonly body: Uint8Array;
  /** Of this version of the object. */
  readonly tag: string;
}

/** What is known of an object. */
export interface ObjectFacts {
  readonly bytes: number;
  readonly tag: string;
  readonly metadata: Readonly<Record<string, string>>;
  /** What keeps it from being deleted; left out: nothing that is told. */
  readonly lock?: ObjectLock;
}

/** One object of a listing. */
export interface ListedObject {
  readonly name: string;
  readonly bytes: number;
}

/**
 * A name that means the same in a directory and in a bucket; throws where it does not. Parts that
 * begin with a dot are the store's own.
 */
export function checkedName(name: string): string {
  const isGood = name.split('/').every((part) => /^[^.\\\p{Cc}][^\\\p{Cc}]*$/u.test(part));
  if (isGood && name.length <= 900) return name;
  throw new ExportError('broken_invariant', `an object cannot be named ${JSON.stringify(name)}`, {
    next: 'This is a fault in sluice; please report it with this message. Nothing held was lost.',
  });
}

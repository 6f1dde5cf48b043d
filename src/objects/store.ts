// The interface of an object store: a directory or a bucket. Its objects are evidence or exports,
// so it has only operations that a bucket can guarantee and a directory can match. Invariants: an
// object exists completely or not at all; `create` never overwrites another; a resolved change is
// durable. For concurrent writers, an object is replaced by its tag. A failure is an ExportError
// (sink_unreachable, sink_throttled and disk_full are transient, sink_refused is not) and means
// that the result of the request is unknown; nothing is retried here.

import { ExportError } from '../contracts/index.ts';

/**
 * Objects by name, with `/` between its parts, as `segments/2026/11/22/0.zst`. No name is a
 * directory of another: beside `a/b` there is no `a`.
 */
export interface ObjectStore {
  /** The location for messages; no secrets. */
  readonly location: string;
  /** Writes an object unless one with this name exists, which stays unchanged. */
  create(
    name: string,
    body: readonly Uint8Array[],
    about?: ObjectAbout,
  ): Promise<'created' | 'exists'>;
  /**
   * Replaces the object with this tag; null: only if none exists. Resolves to the new tag, or to
   * null if the condition no longer holds.
   */
  replace(name: string, body: readonly Uint8Array[], tag: string | null): Promise<string | null>;
  /** Writes an object, replacing any existing one. */
  put(name: string, body: readonly Uint8Array[]): Promise<void>;
  /** The object, or the existing part of a range; null if there is none. */
  read(name: string, range?: ObjectRange): Promise<ObjectContent | null>;
  /** An object's facts without reading it; null if there is none. */
  facts(name: string): Promise<ObjectFacts | null>;
  /** Objects whose names begin with `prefix`, only those after `after`, in the order of names. */
  list(prefix: string, after?: string): AsyncIterableIterator<ListedObject>;
  /**
   * Deletes an object with its older versions, if the store keeps any; a missing one counts as
   * deleted. Throws `sink_refused`, having changed nothing, for a locked object.
   */
  remove(name: string): Promise<void>;
  /** Deletes the older versions of an object, if the store keeps any. */
  removeOlder(name: string): Promise<void>;
  /** Sets or lifts a hold of the bucket on an object (S3 legal hold); a directory has none. */
  hold(name: string, isOn: boolean): Promise<void>;
  /** Whether the store can protect objects from deletion (S3 Object Lock). */
  locks(): Promise<boolean>;
  /** Aborts requests in flight and closes connections. */
  close(): void;
}

/** Attributes written with an object. A directory stores none of them. */
export interface ObjectAbout {
  readonly contentType?: string;
  readonly contentEncoding?: string;
  /** Lower-case names; values in ASCII. */
  readonly metadata?: Readonly<Record<string, string>>;
  readonly lock?: ObjectLock;
}

/** Protection of an object from deletion, in a bucket that supports it (S3 Object Lock). */
export interface ObjectLock {
  /** Default: only the hold. */
  readonly mode?: 'COMPLIANCE' | 'GOVERNANCE';
  /** Protected until, epoch milliseconds; 0 without a mode. */
  readonly until: number;
  /** Protected beyond that until the hold is lifted. */
  readonly hold?: boolean;
}

/** The protection in words, with the date. */
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
  /** The tag of this version of the object. */
  readonly tag: string;
}

/** What is known of an object. */
export interface ObjectFacts {
  readonly bytes: number;
  readonly tag: string;
  readonly metadata: Readonly<Record<string, string>>;
  /** Its protection from deletion; absent: none that is known. */
  readonly lock?: ObjectLock;
}

/** One object of a listing. */
export interface ListedObject {
  readonly name: string;
  readonly bytes: number;
}

/**
 * A name that is valid in a directory and in a bucket; throws for any other. Parts that begin with
 * a dot are reserved for the store.
 */
export function checkedName(name: string): string {
  const isGood = name.split('/').every((part) => /^[^.\\\p{Cc}][^\\\p{Cc}]*$/u.test(part));
  if (isGood && name.length <= 900) return name;
  throw new ExportError('broken_invariant', `an object cannot be named ${JSON.stringify(name)}`, {
    next: 'This is a fault in sluice; please report it with this message. Nothing held was lost.',
  });
}

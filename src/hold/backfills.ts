// Requested backfills, as requests in the state database. A command writes the request; the process
// that reads it notes its progress and writes the result as its answer: `done`, `failed`, or
// `stopped`, to be resumed by a repeated request. A finished backfill is kept for a while for
// display; a cancelled one is removed once the reading process has released it.

import { randomUUID } from 'node:crypto';
import { invariant, type JsonObject } from '../contracts/index.ts';
import type { OperatorRequest, Request } from './requests.ts';
import { lookInto, type Store } from './store.ts';

/** Progress of a backfill. Times are epoch milliseconds. */
export interface BackfillProgress {
  readonly version: 1;
  readonly state: 'reading' | 'delivering' | 'done' | 'failed' | 'stopped';
  /** When this was measured. */
  readonly at: number;
  /** Records read, stored for the sinks, and of those without a readable time. */
  readonly read: number;
  readonly held: number;
  readonly untimed: number;
  /** Time of the last read record. */
  readonly reachedAt: number | null;
  /** Completed share of the read; null if unknown. */
  readonly share: number | null;
  /** Events in the spool that the slowest sink has yet to deliver. */
  readonly behind: number;
  /** That sink; absent: every sink has all events, or an earlier version has written this. */
  readonly slowest?: { readonly sink: string; readonly error: string | null };
  readonly error: { readonly message: string; readonly next: string } | null;
}

/** A requested backfill. */
export interface BackfillRequest {
  readonly row: number;
  readonly id: string;
  readonly source: string;
  /**
   * The requested time range in epoch milliseconds: from `from` (inclusive) to `to` (exclusive).
   */
  readonly from: number;
  readonly to: number;
  readonly isBounded: boolean;
  readonly askedAt: number;
  /** False: it has ended, or is stopped until it is requested again. */
  readonly isRequested: boolean;
  readonly progress: BackfillProgress | null;
}

/** The request on a command line; `to` null: up to now. */
export type Past = Pick<BackfillRequest, 'source' | 'from'> & { readonly to: number | null };

/** How long a finished backfill is kept for display. */
const doneForMs = 7 * 86_400_000;
const cancelled = { state: 'cancelled' };

/** The backfills among the requests, without cancelled ones. */
export function backfillsAmong(requests: readonly Request[]): readonly BackfillRequest[] {
  return requests.flatMap(({ id: row, name: source, wish, at, answer, progress }) => {
    if (wish.what !== 'backfill' || answer?.state === cancelled.state) return [];
    const { what: _, key: id, ...span } = wish;
    const isRequested = answer === null;
    const come = readProgress(answer ?? progress);
    return [{ row, id, source, ...span, askedAt: at, isRequested, progress: come }];
  });
}

/** The backfills that a state directory contains. */
export function backfillsIn(dir: string): readonly BackfillRequest[] {
  return lookInto(dir, [], ({ requests }) => backfillsAmong(requests.all()));
}

/** The stored progress; null if no such version has written it. */
export function readProgress(written: JsonObject | null): BackfillProgress | null {
  // A writer of that version writes all fields.
  return written?.version === 1 ? (written as unknown as BackfillProgress) : null;
}

/**
 * Requests a backfill within the caller's transaction: resumes an unfinished one with the same
 * request, or creates one. `isAnew` discards the unfinished one.
 */
function askForBackfill(
  store: Store,
  past: Past,
  { now, isAnew }: { readonly now: number; readonly isAnew: boolean },
): BackfillRequest {
  const { requests } = store;
  const known = backfillsAmong(requests.all());
  for (const { row, progress } of known) {
    if (progress?.state === 'done' && progress.at < now - doneForMs) requests.withdraw(row);
  }
  const unfinished = backfillAlike(known, past);
  if (unfinished !== undefined && isAnew) forget(store, unfinished);
  const again = isAnew ? undefined : unfinished;
  if (again !== undefined) requests.askAgain(again.row, now);
  const span = { from: past.from, to: past.to ?? now, isBounded: past.to !== null };
  const begin = () =>
    requests.ask(past.source, { what: 'backfill', key: randomUUID(), ...span }, now);
  const row = again?.row ?? begin();
  const asked = backfillsAmong(requests.all()).find((request) => request.row === row);
  invariant(asked !== undefined, 'the request is known');
  return asked;
}

/** A request about a backfill from a command on another machine. */
export type BackfillWish = Extract<OperatorRequest, { what: 'begin_backfill' | 'about_backfill' }>;

/**
 * Executes a remote command about a backfill within the caller's transaction; returns the backfill
 * afterwards, null if there is none. `isRead`: whether this process reads the row; if so, the
 * reader deletes it after it has stopped.
 */
export function carryOutAbout(
  store: Store,
  { name: source, wish }: { readonly name: string; readonly wish: BackfillWish },
  { now, isRead }: { readonly now: number; readonly isRead: (row: number) => boolean },
): BackfillRequest | null {
  if (wish.what === 'begin_backfill') {
    const { from, to, isAnew } = wish;
    return askForBackfill(store, { source, from, to }, { now, isAnew });
  }
  const find = () => backfillsAmong(store.requests.all()).find(({ id }) => id === wish.key) ?? null;
  const found = find();
  if (found === null) return null;
  const { row, progress } = found;
  if (wish.does === 'stop') stopBackfill(store, found, progress && { ...progress, at: now });
  else if (wish.does === 'cancel' && isRead(row)) cancelBackfill(store, found);
  else if (wish.does === 'cancel') forget(store, found);
  return find();
}

/** The unfinished backfill with the same request, if any. */
function backfillAlike(known: readonly BackfillRequest[], past: Past): BackfillRequest | undefined {
  return known.find(
    ({ source, from, to, isBounded, isRequested, progress }) =>
      (isRequested || progress?.state !== 'done') &&
      source === past.source &&
      from === past.from &&
      (isBounded ? to : null) === past.to,
  );
}

/** Suffix of a stream's name in the state of a backfill. */
export function backfillMemory({ id }: Pick<BackfillRequest, 'id'>): string {
  return `#backfill-${id}`;
}

/** Stops the reading process; a repeated request resumes. */
function stopBackfill(
  { requests }: Store,
  { row }: BackfillRequest,
  last: BackfillProgress | null,
): void {
  const isRequested = requests.all().some(({ id, answer }) => id === row && answer === null);
  if (isRequested) requests.answer(row, { ...last, state: 'stopped' });
}

/** Makes the reading process discard the backfill. */
function cancelBackfill({ requests }: Store, { row }: BackfillRequest): void {
  requests.answer(row, cancelled);
}

/**
 * Notes the last progress after the reading process has stopped. Within the caller's transaction.
 */
export function leaveBackfill(
  store: Store,
  request: BackfillRequest,
  last: BackfillProgress,
): void {
  const { requests, streams } = store;
  const { row } = request;
  const now = requests.all().find(({ id }) => id === row);
  if (now === undefined || now.answer?.state === cancelled.state) forget(store, request);
  else if (last.state === 'failed') requests.answer(row, { ...last });
  else if (last.state === 'done') {
    requests.answer(row, { ...last });
    streams.forgetAll(backfillMemory(request));
  } else if (now.answer === null) requests.note(row, { ...last });
  else requests.answer(row, { ...last, state: 'stopped' });
}

function forget({ requests, streams }: Store, request: BackfillRequest): void {
  requests.withdraw(request.row);
  streams.forgetAll(backfillMemory(request));
}

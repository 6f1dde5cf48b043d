// Backfills that are asked for, as requests in the state database: a command says what is wanted,
// whoever reads it notes how far it is, and its answer is how it ended: `done`, `failed`, or
// `stopped` to go on another time, when it is asked for again. One that is done is kept a while, to
// be looked at; one that is cancelled goes as soon as whoever reads it has let go.

import { randomUUID } from 'node:crypto';
import { invariant } from '../contracts/errors.ts';
import type { JsonObject } from '../contracts/json.ts';
import type { Request, Wish } from './requests.ts';
import { lookInto, type Store } from './store.ts';

/** How far a backfill has come. Times are epoch milliseconds. */
export interface BackfillProgress {
  readonly version: 1;
  readonly state: 'reading' | 'delivering' | 'done' | 'failed' | 'stopped';
  /** When this was so. */
  readonly at: number;
  /** Records read, held for the sinks, and of those without a readable time. */
  readonly read: number;
  readonly held: number;
  readonly untimed: number;
  /** Time of the record read last. */
  readonly reachedAt: number | null;
  /** Share of the reading that is done; null while nobody can say. */
  readonly share: number | null;
  /** Events in the spool that the slowest sink still has to get. */
  readonly behind: number;
  readonly error: { readonly message: string; readonly next: string } | null;
}

/** A backfill that was asked for. */
export interface BackfillRequest {
  readonly row: number;
  readonly id: string;
  readonly source: string;
  /** The time asked for, epoch milliseconds: from `from` on, before `to`. */
  readonly from: number;
  readonly to: number;
  readonly isBounded: boolean;
  readonly askedAt: number;
  /** False: it has ended, or is stopped to go on another time. */
  readonly isRequested: boolean;
  readonly progress: BackfillProgress | null;
}

/** What is asked for on a command line; `to` null: up to now. */
export type Past = Pick<BackfillRequest, 'source' | 'from'> & { readonly to: number | null };

/** What is done can be looked at for so long. */
const doneForMs = 7 * 86_400_000;
const cancelled = { state: 'cancelled' };

/** The backfills among the requests, those left out that are cancelled. */
export function backfillsAmong(requests: readonly Request[]): readonly BackfillRequest[] {
  return requests.flatMap(({ id: row, name: source, wish, at, answer, progress }) => {
    if (wish.what !== 'backfill' || answer?.state === cancelled.state) return [];
    const { what: _, key: id, ...span } = wish;
    const isRequested = answer === null;
    const come = readProgress(answer ?? progress);
    return [{ row, id, source, ...span, askedAt: at, isRequested, progress: come }];
  });
}

/** The backfills that a state directory knows of. */
export function backfillsIn(dir: string): readonly BackfillRequest[] {
  return lookInto(dir, [], ({ requests }) => backfillsAmong(requests.all()));
}

/** How far one has come, as it was written down; null where no such version has written it. */
export function readProgress(written: JsonObject | null): BackfillProgress | null {
  // Who writes that version writes all of it.
  return written?.version === 1 ? (written as unknown as BackfillProgress) : null;
}

/**
 * Asks for it, within the caller's transaction: goes on with an unfinished one that was asked for
 * alike, or begins one; `isAnew` forgets the unfinished one.
 */
export function askForBackfill(
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

/** A request by which a command on another machine asks about a backfill. */
export type BackfillWish = Extract<Wish, { what: 'begin_backfill' | 'about_backfill' }>;

/**
 * Does what a command on another machine asks about a backfill, within the caller's transaction;
 * returns the backfill as it stands then, null where there is none. `isRead` tells of a row whether
 * it is read here: who does forgets it once it has let go.
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

/** The unfinished one that was asked for alike, if there is one. */
function backfillAlike(known: readonly BackfillRequest[], past: Past): BackfillRequest | undefined {
  return known.find(
    ({ source, from, to, isBounded, isRequested, progress }) =>
      (isRequested || progress?.state !== 'done') &&
      source === past.source &&
      from === past.from &&
      (isBounded ? to : null) === past.to,
  );
}

/** The name of a stream's memory in a backfill ends so. */
export function backfillMemory({ id }: Pick<BackfillRequest, 'id'>): string {
  return `#backfill-${id}`;
}

/** Has whoever reads it stop, to go on when it is asked for again. */
export function stopBackfill(
  { requests }: Store,
  { row }: BackfillRequest,
  last: BackfillProgress | null,
): void {
  const isRequested = requests.all().some(({ id, answer }) => id === row && answer === null);
  if (isRequested) requests.answer(row, { ...last, state: 'stopped' });
}

/** Has whoever reads it forget it. */
export function cancelBackfill({ requests }: Store, { row }: BackfillRequest): void {
  requests.answer(row, cancelled);
}

/** Forgets it, where nobody reads it. */
export function forgetBackfill(store: Store, request: BackfillRequest): void {
  store.transaction(() => forget(store, request));
}

/** Whoever has read it has let go, having come so far. Within the caller's transaction. */
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

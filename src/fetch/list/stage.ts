// A page of a walk on its way into the spool, with what is around it, and what follows from it for
// the checkpoint.

import type { ListStream } from '../../contracts/source.ts';
import { type NewPage, uidBytes } from '../../contracts/spool.ts';
import { type Finding, pageContext, violation } from '../own-pages.ts';
import type { CheckpointChange, ListCheckpoint } from './checkpoint.ts';
import type { Passed } from './end-watch.ts';
import type { Identified } from './identity.ts';
import type { Judged, WalkCounts } from './judge.ts';
import { keysOf } from './keys.ts';
import { isFirst, type ListPosition, type Page } from './page.ts';
import type { Pager } from './pager.ts';
import type { TimeSpan } from './record-time.ts';
import { keyBytes } from './repeats.ts';

/** A page and what is new on it. */
export interface Taken {
  readonly page: Page;
  readonly judged: Judged;
  /** Epoch milliseconds at which it was read. */
  readonly at: number;
  /** When its records happened; null where that cannot be told. */
  readonly span: TimeSpan | null;
}

/** Time of a page's latest record, never in the future: how far a walk has come. */
export function latestOn(taken: Taken | null): number | null {
  return taken === null || taken.span === null ? null : Math.min(taken.span.latest, taken.at);
}

/** What of a page is held: its new records. */
export function newPageOf(stream: ListStream, { page, judged, at }: Taken): NewPage {
  const all = judged.fresh.length === page.records.length;
  return {
    context: pageContext(stream, stream.records, at),
    body: page.body,
    items: page.records.items,
    kept: all ? null : Uint32Array.from(judged.fresh),
    uids: judged.uids,
    slices: page.records.slices,
  };
}

/** Of the page's immutable records, those that came again with other content. */
export function violationsOn({ judged: { changed, uids } }: Taken): readonly Finding[] {
  const uidOf = (at: number) => uids.toString('hex', at * uidBytes, (at + 1) * uidBytes);
  return changed.map((at) => violation(uidOf(at)));
}

/** What a walk has seen before a page. */
export interface WalkSeen {
  /** No page with records. */
  readonly isFirst: boolean;
  /** As in Stage, before this page. */
  readonly left: string | null;
  /** Leading records of the page that came on the one before. */
  readonly overlap: number;
}

/** A page on its way into the spool, and what is around it. */
export interface Stage {
  readonly place: ListPosition;
  readonly next: ListPosition | null;
  /** Where upstream leads on, also from what was taken for the end; null where it does not. */
  readonly onward: ListPosition | null;
  /** At an end: where upstream leads on nevertheless, to what; undefined: it is none. */
  readonly ended: 'empty' | 'again' | null | undefined;
  readonly taken: Taken;
  readonly pager: Pick<Pager, 'inserted' | 'resume'>;
  /** Leading records that this walk met on the page before: by offset they are asked again. */
  readonly overlap: number;
  /** What was passed with this page. */
  readonly passed: Passed;
  /** Keys of the first page's records that are still to be met: pages may be shorter now. */
  readonly left: string | null;
  /** Records without ids were met, now or before. */
  readonly nameless: boolean;
}

/**
 * The stage of a page from which records are missing: the walk stays at its place, where only the
 * missing ones are then new.
 */
export function stageOfPart(met: Omit<Stage, 'pager'>, pager: Pick<Pager, 'resume'>): Stage {
  const { place, taken, overlap, nameless } = met;
  const { identified } = taken.judged;
  const resume = pager.resume(place, place);
  // Only records without ids are known by the page that they were on.
  const unread = met.left === null ? '' : (keysWithout(met.left, identified) ?? '');
  const read = Buffer.concat([keysOf(identified, overlap), Buffer.from(unread, 'base64')]);
  const left = nameless && read.length > 0 ? read.toString('base64') : null;
  return { ...met, left, pager: { inserted: false, resume: () => resume } };
}

/** What was counted of records without ids in walks that follow each other. */
export interface IdlessTally {
  readonly counts: WalkCounts;
  /** The place up to which that is so; null where a page was counted and not committed. */
  at: ListPosition | null;
}

/** Records by which the list's first page is known again. */
const headMax = 8;

/** What a page shows of the server: how the list begins, and how it ends. */
export function learnedFrom(
  { place, next, ended, taken }: Stage,
  { server, isShort, gap }: Pick<ListCheckpoint, 'server'> & { isShort: boolean; gap: number },
): NonNullable<CheckpointChange['server']> {
  const { identified } = taken.judged;
  const endless = ended === undefined ? server.endless : ended;
  const isHead = isFirst(place) && place.window === undefined && next !== null;
  const head = keysOf(identified, 0, isHead ? headMax : 0).toString('base64');
  // What is not full may be the last page as well, which comes again by right.
  const mayEnd = endless !== null && isShort;
  return {
    ...(mayEnd ? { firstPage: null } : head === '' ? {} : { firstPage: head }),
    ...{ endless, gap },
  };
}

/** Where the list's end is asked for next, after a page. */
export function resumeAfter(stage: Stage): Required<Pick<CheckpointChange, 'end'>> {
  const { place, next, onward, taken, pager, left, nameless } = stage;
  const { identified } = taken.judged;
  const { resume, overlap } = pager.resume(place, onward);
  // Only records without ids need what was on the page asked again; an offset has the overlap.
  const requested = next === null && overlap === null && nameless;
  const resumePage = requested ? keysOf(identified).toString('base64') : null;
  return {
    end: {
      resume,
      atEnd: next === null,
      again: overlap !== null ? keyCount(overlap) : next === null ? identified.count : 0,
      overlap,
      countAnew: false,
      resumePage: next === null ? resumePage : left,
    },
  };
}

/** How many keys a checkpoint's text holds. */
export function keyCount(keys: string): number {
  return Buffer.byteLength(keys, 'base64') / keyBytes;
}

/** The keys that are left when those of a page are met, each once; null where none is. */
export function keysWithout(keys: string, identified: Identified): string | null {
  const met = new Map<string, number>();
  for (let i = 0; i < identified.count; i += 1) {
    const key = keysOf(identified, i, i + 1).toString('base64');
    met.set(key, (met.get(key) ?? 0) + 1);
  }
  const all = Buffer.from(keys, 'base64');
  const left: Buffer[] = [];
  for (let at = 0; at < all.length; at += keyBytes) {
    const key = all.subarray(at, at + keyBytes);
    const count = met.get(key.toString('base64')) ?? 0;
    if (count === 0) left.push(key);
    else met.set(key.toString('base64'), count - 1);
  }
  return left.length === 0 ? null : Buffer.concat(left).toString('base64');
}

// A page of a walk on its way to the spool: its context, its rows that upstream hides (451), the checkpoint change it
// implies, and small pages that are committed together.

import {
  type Append,
  type Clock,
  type ExportError,
  type ListStream,
  type NewPage,
  uidBytes,
} from '../contracts/index.ts';
import { type Finding, pageContext, violation } from '../poll/index.ts';
import type { CheckpointChange, ListCheckpoint } from './checkpoint.ts';
import { type Identified, keysOf } from './identity.ts';
import type { WalkCounts } from './idless.ts';
import type { Judged, WalkSoFar } from './judge.ts';
import { isFirst, type ListPosition, type Page, type Pager } from './page.ts';
import type { Passed } from './paging-doubt.ts';
import type { TimeSpan } from './record-time.ts';
import { keyBytes } from './repeats.ts';

/** A page and its new records. */
export interface Taken {
  readonly page: Page;
  readonly judged: Judged;
  /** Epoch milliseconds at which it was read. */
  readonly at: number;
  /** Time span of its records; null: unknown. */
  readonly span: TimeSpan | null;
}

/** Time of a page's latest record, never in the future: how far a walk has come. */
export function latestOn(taken: Taken | null): number | null {
  return taken === null || taken.span === null ? null : Math.min(taken.span.latest, taken.at);
}

/** The page for the spool: only its new records. */
export function newPageOf(stream: ListStream, { page, judged, at }: Taken): NewPage {
  const all = judged.fresh.length === page.records.length;
  return {
    context: pageContext(stream, stream.records, at),
    body: page.body,
    items: page.records.items,
    kept: all ? null : Uint32Array.from(judged.fresh),
    uids: judged.uids,
    slices: page.records.slices,
    givesBody: true,
  };
}

/** Conditions for immutable records that were seen again with other content. */
export function violationsOn({ judged: { changed, uids } }: Taken): readonly Finding[] {
  const uidOf = (at: number) => uids.toString('hex', at * uidBytes, (at + 1) * uidBytes);
  return changed.map((at) => violation(uidOf(at)));
}

/** The state of a walk before a page. */
export interface WalkSeen {
  /** No page with records so far. */
  readonly isFirst: boolean;
  /** As in Stage, before this page. */
  readonly left: string | null;
  /** Leading records that were on the previous page. */
  readonly overlap: number;
}

/** A page being staged, with its context. */
export interface Stage {
  readonly position: ListPosition;
  readonly next: ListPosition | null;
  /** The next position that upstream names, also after an assumed end; null: none. */
  readonly onward: ListPosition | null;
  /** At an end: the kind of pages to which upstream continues, null for none; undefined: it is no end. */
  readonly ended: 'empty' | 'again' | null | undefined;
  readonly taken: Taken;
  readonly pager: Pick<Pager, 'inserted' | 'resume'>;
  /** Leading records of the previous page: with offsets they are requested again. */
  readonly overlap: number;
  /** Rows passed including this page. */
  readonly passed: Passed;
  /** Keys of the first page's records not seen yet: pages may be shorter now. */
  readonly left: string | null;
  /** Records without ids were seen, now or before. */
  readonly nameless: boolean;
}

/** The stage of a partial page: the walk stays at its position, where only the missing records will be new. */
export function stageOfPart(rest: Omit<Stage, 'pager'>, pager: Pick<Pager, 'resume'>): Stage {
  const { position, taken, overlap, nameless } = rest;
  const { identified } = taken.judged;
  const resume = pager.resume(position, position);
  // Only records without ids are recognised by the page on which they were.
  const unread = rest.left === null ? '' : (keysWithout(rest.left, identified) ?? '');
  const read = Buffer.concat([keysOf(identified, overlap), Buffer.from(unread, 'base64')]);
  const left = nameless && read.length > 0 ? read.toString('base64') : null;
  return { ...rest, left, pager: { inserted: false, resume: () => resume } };
}

/** Counts of records without ids over consecutive walks. */
export class IdlessTally {
  readonly counts: WalkCounts = new Map();
  /** The position up to which the counts hold; null: a page was counted and not committed. */
  at: ListPosition | null = null;
  /** Null before the first page. */
  soFar: WalkSoFar | null = null;
}

/** Number of records that identify the first page of the list. */
const headMax = 8;

/** Facts about the server that a page shows: how the list begins and ends. */
export function learnedFrom(
  { position, next, ended, taken }: Stage,
  { server, isShort, gap }: Pick<ListCheckpoint, 'server'> & { isShort: boolean; gap: number },
): NonNullable<CheckpointChange['server']> {
  const { identified } = taken.judged;
  const endless = ended === undefined ? server.endless : ended;
  const isHead = isFirst(position) && position.window === undefined && next !== null;
  const head = keysOf(identified, 0, isHead ? headMax : 0).toString('base64');
  // A page that is not full may also be the last page, which may repeat.
  const mayEnd = endless !== null && isShort;
  return {
    ...(mayEnd ? { firstPage: null } : head === '' ? {} : { firstPage: head }),
    ...{ endless, gap },
  };
}

/** The position from which the end is read next, after a page. */
export function resumeAfter(stage: Stage): Required<Pick<CheckpointChange, 'end'>> {
  const { position, next, onward, taken, pager, left, nameless } = stage;
  const { identified } = taken.judged;
  const { resume, overlap } = pager.resume(position, onward);
  // Only records without ids need the keys of the page that is requested again; an offset has the overlap.
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

/** The number of keys in a checkpoint's text. */
export function keyCount(keys: string): number {
  return Buffer.byteLength(keys, 'base64') / keyBytes;
}

/** The keys that remain after removing those of a page, each once; null if none remain. */
export function keysWithout(keys: string, identified: Identified): string | null {
  const counts = new Map<string, number>();
  for (let i = 0; i < identified.count; i += 1) {
    const key = keysOf(identified, i, i + 1).toString('base64');
    counts.set(key, (counts.get(key) ?? 0) + 1);
  }
  const all = Buffer.from(keys, 'base64');
  const left: Buffer[] = [];
  for (let at = 0; at < all.length; at += keyBytes) {
    const key = all.subarray(at, at + keyBytes);
    const count = counts.get(key.toString('base64')) ?? 0;
    if (count === 0) left.push(key);
    else counts.set(key.toString('base64'), count - 1);
  }
  return left.length === 0 ? null : Buffer.concat(left).toString('base64');
}

// Groups the steps of a walk into one append. With small pages, a transaction, an fsync and a wake-up of the spool's
// thread per page cost more than the reading. So steps wait here for later ones, up to a size and a short time.
// Invariant: one append leaves the same state as the appends of its steps in sequence, with no moment between them. So
// all steps belong to one walk, whose identities are all anchored or none, and keep their order.

/** One step: an optional page, its identities and its checkpoint. */
export type ListStep = Omit<Append, 'entities'>;

/** Default of `groupBytes` of the spool. */
const groupBytesDefault = 512 * 1024;
/** Longest wait for the next page, from its request on. */
const groupMs = 20;
/** Longest wait of a step for all later ones, also while a request waits for sinks that are busy with earlier pages. */
const groupMsMax = 200;

/** The wait of a group's first step. */
interface Wait {
  /** Resolves with true when the time is over. */
  readonly isOver: Promise<boolean>;
  readonly end: AbortController;
}

/** The steps that are not appended yet. */
export class StepGroup {
  readonly #clock: Clock;
  readonly #groupBytes: number;
  readonly #askedAt: () => number | null;
  #steps: ListStep[] = [];
  #bytes = 0;
  #wait: Wait | null = null;

  /**
   * A group with `groupBytes` of pages is complete. `askedAt`: when the next page was requested, by the monotonic clock;
   * null: its request waits for room in the spool.
   */
  constructor(clock: Clock, askedAt: () => number | null, groupBytes = groupBytesDefault) {
    this.#clock = clock;
    this.#askedAt = askedAt;
    this.#groupBytes = groupBytes;
  }

  get isEmpty(): boolean {
    return this.#steps.length === 0;
  }

  get isWhole(): boolean {
    return this.#bytes >= this.#groupBytes;
  }

  add(step: ListStep): void {
    this.#steps.push(step);
    for (const { body } of step.pages) this.#bytes += body.length;
  }

  /** Resolves when `coming` has settled or the first step has waited long enough; true in the second case. */
  async isLate(coming: Promise<unknown>): Promise<boolean> {
    if (this.isEmpty) return false;
    this.#wait ??= this.#begin();
    const isThere = () => false;
    return await Promise.race([coming.then(isThere, isThere), this.#wait.isOver]);
  }

  #begin(): Wait {
    const end = new AbortController();
    const isOver = this.#over(end.signal).then(
      () => true,
      () => false,
    );
    return { isOver, end };
  }

  async #over(signal: AbortSignal): Promise<void> {
    let leftMs = groupMs;
    let waitedMs = 0;
    while (leftMs > 0 && waitedMs < groupMsMax) {
      await this.#clock.sleep(leftMs, signal);
      waitedMs += leftMs;
      const askedAt = this.#askedAt();
      leftMs = askedAt === null ? groupMs : askedAt + groupMs - this.#clock.monotonic();
    }
  }

  /** Returns the steps as one append and empties the group; null if it is empty. */
  take(): Append | null {
    const steps = this.#steps;
    const last = steps.at(-1);
    this.clear();
    if (last === undefined) return null;
    const identities = steps.flatMap((step) => step.identities ?? []);
    return {
      ...last,
      pages: steps.flatMap(({ pages }) => pages),
      // A copy of their own memory: a shared buffer would be sent whole to the spool's thread.
      identities: new Uint8Array(Buffer.concat(identities)),
      trail: steps.flatMap(({ trail }) => trail ?? []),
    };
  }

  /** Drops the steps. */
  clear(): void {
    this.#steps = [];
    this.#bytes = 0;
    this.#wait?.end.abort();
    this.#wait = null;
  }
}

// Rows that upstream hides (HTTP 451). In an offset list, reading continues after the hidden row, and the sinks receive
// one gap condition. The gap is identified by the key of the last record before it, which the checkpoint stores.

/** Limit of remembered gaps. A forgotten gap is reported again when it is seen again. */
const gapsMax = 64;

/** Facts about the row, apart from the page before it. */
interface Hidden {
  /** Why the row is hidden, from upstream's response. */
  readonly hidden: ExportError;
  /** The stream's name. */
  readonly name: string;
  /** Gaps that were reported. */
  readonly reported: readonly string[];
}

/** The gap after a page, and the checkpoint's new list of gaps; null: it was reported before. */
export function gapAt(
  { position, next, pager }: Pick<Stage, 'position' | 'next' | 'pager'>,
  { hidden, name, reported }: Hidden,
): { readonly finding: Finding; readonly gaps: string[] } | null {
  const { resume, overlap } = pager.resume(position, next);
  const before = Buffer.from(overlap ?? '', 'base64')
    .subarray(-keyBytes)
    .toString('base64');
  const rows = next?.by === 'offset' && resume.by === 'offset' ? next.offset - resume.offset : 0;
  const gap = `${before}+${rows}`;
  if (reported.includes(gap)) return null;
  const { trace_id: traceId, request_id: requestId } = hidden.details;
  const finding: Finding = {
    condition: 'source.gap',
    message: `upstream does not show one record of ${name} (HTTP 451); sluice skips it and continues after it`,
    details: {
      ...(traceId === undefined ? {} : { trace_id: traceId }),
      ...(requestId === undefined ? {} : { request_id: requestId }),
    },
  };
  return { finding, gaps: [...reported, gap].slice(-gapsMax) };
}

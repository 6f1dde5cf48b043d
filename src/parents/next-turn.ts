// When a parent is requested again, and the condition to report, from the result of its request. Pure rules; all times
// are epoch milliseconds.

import {
  type ExportError,
  type Failure,
  type NewPage,
  neverDue,
  type ParentRow,
} from '../contracts/index.ts';
import type { ListCheckpoint } from '../list/index.ts';
import {
  deniedWaitMsMax,
  type Finding,
  isPatience,
  passingMs,
  passingMsMax,
} from '../poll/index.ts';

import type { ParentState } from './state.ts';

/** A requested parent, and its result. */
export type PolledParent = { readonly row: ParentRow; readonly known: ParentState } & (
  | Answered
  | Failure
);

/** Of a list its checkpoint, of an object its content. */
interface Answered {
  readonly outcome: 'done';
  readonly fresh: number;
  readonly more?: boolean;
  readonly doubt?: ExportError;
  readonly checkpoint?: ListCheckpoint | null;
  readonly digest?: string;
  readonly isFinal?: boolean;
  readonly page?: NewPage | null;
}

/** The inputs of the rules. */
export interface ParentRules {
  readonly now: number;
  /** A parent that is due later is not requested in the poll under way. */
  readonly until: number;
  readonly parents: number;
  readonly sweepMs: number;
  /** When any parent was last answered, including and excluding the parents being settled. */
  readonly answeredAt: number;
  readonly answeredBefore: number;
  /** All other parents are lost. */
  readonly isAlone: boolean;
}

/** The decision for a parent. */
export type ParentTurn = Pick<ParentRow, 'rank' | 'due'> & {
  readonly state: ParentState;
  readonly finding?: Finding;
  /** Upstream as a whole seems to be at fault. */
  readonly isUpstreams?: true;
};

const dayMs = 24 * 3_600_000;
/** With at most this many parents, all are requested at each poll. */
const fewParents = 10;
/** With more, they rotate: this much time per parent and turn, up to the sweep. */
const perParentMs = 3_000;
/** A quiet parent is requested again after this share of its quiet time. */
const quietShare = 1 / 20;
/** Changes of all records at once are checked again by then. */
const heldBackMs = 15 * 60_000;
/** A rejection is checked a second time after this, before it is reported. */
const secondLookMs = 2 * passingMsMax;
/** How long a failed parent is skipped; the time grows. */
export const failedMs = { least: 5_000, most: 3_600_000 };
const lostMsMax = 30 * dayMs;
/** Upstream counts as answering for this long after a response. */
const answersMs = 3_600_000;
/** If no other parent is left, one that was answered and is then missing for this long is gone. */
const aloneMs = dayMs;

/** Approximate requests per hour for lists without new records. */
export function asksAnHour(parents: number, everyMs: number, sweepMs: number): number {
  const few = (3_600_000 / everyMs) * parents;
  if (parents <= fewParents) return few;
  const waitMs = Math.min(sweepMs, parents * perParentMs);
  return Math.min(few, (3_600_000 / waitMs) * parents);
}

/** After a response. */
export function afterAnswer(
  { row, known, ...asked }: PolledParent & Answered,
  { now, until, parents, sweepMs }: ParentRules,
  random: () => number,
): ParentTurn {
  const { fresh, checkpoint = null, digest = known.digest, isFinal } = asked;
  // Records from before its first request are no sign of more.
  const latest = Math.min(now, checkpoint?.memory.watermark ?? now);
  const isFirst = known.askedAt === 0;
  const changedAt = fresh === 0 ? known.changedAt : isFirst ? latest : now;
  const version = digest === known.digest ? known.version : known.version + 1;
  const end = endOf(checkpoint) ?? known.end;
  const state = { ...known, askedAt: now, changedAt, refused: null, digest, version, end };
  if (isFinal === true) return { state, rank: 2, due: neverDue };
  // It continues in the same poll while it makes progress.
  if (asked.more === true && fresh > 0) return { state, rank: row.rank, due: row.due };
  const quietMs = (now - changedAt) * quietShare;
  const isActive = now - changedAt < dayMs;
  const spreadMs = parents <= fewParents ? 0 : parents * perParentMs * (1 - random() / 2);
  // An object is reported as a whole, also late; a list can get a record at any time.
  const isList = checkpoint !== null;
  const restMs = isList ? spreadMs : Math.max(quietMs, spreadMs);
  const requestedMs = isActive ? Math.min(quietMs, restMs) : restMs;
  const isHeldBack = checkpoint?.memory.drift?.isHeld === true;
  const waitMs = Math.min(requestedMs, isHeldBack ? heldBackMs : sweepMs);
  return { state, rank: isActive ? 0 : 1, due: Math.max(until + 1, now + waitMs) };
}

/** After a rejection or failure; null: upstream is at fault, and nothing is stored. */
export function afterRefusal(
  asked: PolledParent & Failure,
  { now, until, sweepMs, answeredAt, answeredBefore, isAlone }: ParentRules,
): ParentTurn | null {
  const { row, known, outcome, status, cause } = asked;
  const isFailing = outcome === 'retry';
  const { times: timesBefore = 0, told: reported = false } = known.refused ?? {};
  const goesOn = known.refused?.isFailing === isFailing && known.refused.since <= now;
  const since = goesOn ? known.refused.since : now;
  const times = timesBefore + 1;
  const again = (waitMs: number) => Math.max(until + 1, now + waitMs);
  const state = { ...known, refused: { since, times, told: reported, isFailing } };
  if (isFailing) {
    const waitMs = Math.min(failedMs.most, failedMs.least * 2 ** Math.min(times, 16));
    return answeredAt < now ? null : { state, rank: row.rank, due: again(waitMs) };
  }
  if (reported) {
    const waitMs = Math.min(lostMsMax, sweepMs * 2 ** Math.min(times, 16));
    return { state, rank: 2, due: again(waitMs) };
  }
  // If no other parent can be requested, rights or the path may be missing instead of the parent. A parent that was
  // there once and is not found for a day counts as gone.
  const isMissed = isAlone && known.askedAt > 0 && (status === 404 || status === 410);
  const isOwn = answeredBefore > since || (isMissed && now - since >= aloneMs);
  if (isOwn && now - since >= passingMs(asked)) {
    const lost = { ...state, refused: { ...state.refused, times: 0, told: true } };
    return { state: lost, rank: 2, due: again(sweepMs), finding: lostFinding(row.id, cause) };
  }
  if (now - answeredAt > answersMs || (since < now && answeredAt <= since)) {
    const remembered = { state, rank: row.rank, due: row.due, isUpstreams: true } as const;
    return isMissed && since === now ? remembered : null;
  }
  return {
    state,
    rank: row.rank,
    due: again(Math.max(secondLookMs, patienceMs(asked, now - since))),
  };
}

/** The wait after a 403 with a wait: as requested, and growing with its duration. */
function patienceMs(failure: Failure, lastedMs: number): number {
  if (!isPatience(failure)) return 0;
  return Math.max(failure.wait?.ms ?? 0, Math.min(deniedWaitMsMax, lastedMs / 2));
}

/** The condition if records have disappeared from the end of an immutable list; null: none did, as far as visible. */
export function shrunk({ row, known, checkpoint }: PolledParent & Answered): Finding | null {
  const now = endOf(checkpoint ?? null);
  if (now === null || known.end === null || now.place !== known.end.place) return null;
  const missing = known.end.count - now.count;
  if (missing <= 0) return null;
  return {
    condition: 'integrity_violation',
    message: `${missing} of the records of ${row.id} are gone, though upstream calls them immutable; they were delivered`,
    details: { parent: row.id, missing },
  };
}

/** The end of a list, and the number of records there; null: unknown. */
function endOf(checkpoint: ListCheckpoint | null): ParentState['end'] {
  if (checkpoint === null || !checkpoint.end.atEnd || checkpoint.end.resume === null) return null;
  const { resume, again } = checkpoint.end;
  return resume.by === 'offset'
    ? { place: 'offset', count: resume.offset + again }
    : { place: resume.cursor ?? '', count: again };
}

function lostFinding(id: string, cause: ExportError): Finding {
  return {
    condition: 'source.parent_lost',
    message: `the data of ${id} is denied or gone; sluice now requests it seldom, and reports it as usual if it comes back`,
    details: { parent: id, reason: cause.message },
  };
}

/** True for a failure that says nothing about the parent: rights, limits, upstream as a whole. */
export function isUpstreams(one: PolledParent): boolean {
  if (one.outcome === 'done') return false;
  // A list of a company reports a 404 as a denial of its company; here it is the parent that is gone.
  const isParents = one.status === 403 || one.status === 404;
  return one.status === 429 || (one.outcome === 'denied' && !isParents);
}

/** True for a rejection of a parent already reported as lost. */
export function isExpected(one: PolledParent): boolean {
  const isRefused = one.outcome !== 'done' && one.outcome !== 'retry' && !isUpstreams(one);
  return isRefused && one.known.refused?.told === true;
}

/** Rotates the rows, so parents that always fail do not block the others. */
export function turned<T>(rows: readonly T[], skipped: number): readonly T[] {
  const at = skipped % rows.length;
  return [...rows.slice(at), ...rows.slice(0, at)];
}

/** The condition that there are more parents than can be remembered. */
export function fullFinding({ name }: { readonly name: string }): Finding {
  return {
    condition: 'source.parents_full',
    message: `${name} has as many parents as are remembered; others are not read until one of these is gone`,
  };
}

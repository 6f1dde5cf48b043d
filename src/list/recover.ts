// The reaction when upstream rejects the cursor at which a stream resumes. The rejection can be temporary, the endpoint
// can be at fault, or the cursor can be dead. Invariant: the three cases are distinguished before anything is changed.
// If upstream only seems to answer with another position, that is a suspicion, and no setting skips records for it.
// A dead cursor is reported as `source.checkpoint_reset`, and the end of the list must be found again. If the list no
// longer reaches back to known records, that is reported as `source.gap_suspected`.

import { ExportError, type Failure, type ListStream } from '../contracts/index.ts';
import type { Finding } from '../poll/index.ts';
import { timeText } from '../tools/index.ts';
import { type Identified, keysOf } from './identity.ts';
import { type ListPosition, nameOfPosition } from './page.ts';
import type { ListReader } from './reader.ts';
import { keyBytes } from './repeats.ts';
import type { Stage } from './stage.ts';

/**
 * Whether a rejection means that the cursor at `resume` is dead. False: the rejection was temporary, and the next poll
 * resumes as before. A failure: the endpoint is at fault.
 */
export async function isDead(
  reader: ListReader,
  refusal: Failure,
  { resume, first, signal }: { resume: ListPosition; first: ListPosition; signal: AbortSignal },
): Promise<boolean | Failure> {
  if (isIgnoredPosition(refusal)) return true;
  // The start of the list first: if the endpoint rejected everything for a while, the cursor is tried again after that.
  const start = await reader.ask(first, 0, signal);
  if (start.outcome !== 'ok') return start;
  const again = await reader.ask(resume, 0, signal);
  return again.outcome !== 'ok' && (isRefused(again) || again);
}

/** True if upstream rejects a position. */
export function isRefused({ outcome, about }: Failure): boolean {
  return outcome === 'refused' && about !== 'sort';
}

/** True if a walk cannot get past a position: it is rejected, or leads into a cursor loop. */
export function leadsNowhere(failure: Failure): boolean {
  return isRefused(failure) || failure.cause.code === 'pagination_loop';
}

/** The condition for a list that is read again. `what`: the reason, as a sentence about upstream. */
export function resetFinding(stream: string, what: string, cause: ExportError): Finding {
  return {
    condition: 'source.checkpoint_reset',
    message: `${what}; the list of ${stream} is read again from an earlier position, without repeats`,
    details: { reason: cause.message },
  };
}

/** The error of a stream that halts at a dead cursor. */
export function cursorDead(
  stream: string,
  what: ReturnType<typeof nameOfPosition>,
  cause: ExportError,
): ExportError {
  return new ExportError(
    'cursor_refused',
    `reading ${stream}: upstream no longer accepts the ${what}, and on_cursor_invalid is halt: ${cause.message}`,
    {
      next: `To read the list again without repeats, run 'npx sluice checkpoint reset -c FILE --stream ${stream}', or set on_cursor_invalid: rewalk. Nothing was skipped.`,
      details: cause.details,
      cause,
    },
  );
}

/** The condition for a dead cursor with skipped records: from the latest event read until now. */
export function fromNowFindings(
  stream: string,
  cause: ExportError,
  { from, to }: { readonly from: number | null; readonly to: number },
): readonly Finding[] {
  const times = {
    ...(from === null ? {} : { from: timeText(from) }),
    to: timeText(to),
  };
  return [
    {
      condition: 'source.checkpoint_reset',
      message: `upstream no longer accepts the cursor of ${stream}; it resumes from now, and records in between are skipped`,
      details: { reason: cause.message },
    },
    {
      condition: 'source.gap_suspected',
      message: `records of ${stream} that came after the latest one read and before now are skipped, as on_cursor_invalid: from_now demands`,
      details: times,
    },
  ];
}

/** The condition for a start at the present time that was noted by a clock that was ahead. */
export function aheadFinding(stream: string, time: number): Finding {
  return {
    condition: 'source.gap_suspected',
    message: `the clock of this machine was ahead when ${stream} began with the records of that time; records from before the time in to may be skipped`,
    details: { to: timeText(time) },
  };
}

/** Whether a failure means that the company is denied or gone, and not just a position in its list. */
export async function isScopeLost(
  reader: ListReader,
  failure: Failure,
  { first, signal }: { first: ListPosition; signal: AbortSignal },
): Promise<boolean> {
  if (reader.deps.stream.company === undefined) return false;
  if (failure.outcome === 'denied') return failure.status === 403;
  if (!isGone(failure)) return false;
  const start = await reader.ask(first, 0, signal);
  return start.outcome !== 'ok' && isGone(start);
}

function isGone({ outcome, status, about }: Failure): boolean {
  return outcome === 'refused' && status === 404 && about !== 'cursor';
}

/** The condition for a lost company. */
export function scopeFinding(stream: string, cause: ExportError): Finding {
  return {
    condition: 'source.scope_lost',
    message: `${stream} cannot be read any more: the company is denied or gone`,
    details: { reason: cause.message },
  };
}

/**
 * A server may accept any cursor and begin at the start: its response is then the first page of a longer list. Known
 * records without ids would look new, so this is detected even if the list has grown meanwhile.
 */
export function checkHeeded(
  { checkpoint, deps }: ListReader,
  identified: Identified,
  isFirst: boolean,
): Failure | null {
  const { firstPage } = checkpoint.server;
  const { nameless } = checkpoint.memory;
  const { count } = identified;
  if (firstPage === null || count === 0) return null;
  const head = Buffer.from(firstPage, 'base64');
  const keys = keysOf(identified);
  const at = nameless ? keys.indexOf(head.subarray(0, keyBytes)) : isFirst ? 0 : -1;
  if (at < 0) return null;
  // Either page may be the shorter one.
  const length = Math.min(head.length, keys.length - at);
  const isHead = head.subarray(0, length).equals(keys.subarray(at, at + length));
  return isHead ? ignoredCursor(deps.stream) : null;
}

/**
 * The suspicion that a cursor was answered with another position. It may be wrong: equal records without ids, moved rows
 * and a list that shrank look alike. So it never leads to skipped records or to a halt.
 */
export function ignoredCursor({ name, pagination }: ListStream): Failure {
  const cause = new ExportError(
    'cursor_refused',
    `reading ${name}: upstream seems to answer the ${nameOfPosition(pagination)} with another position of the list`,
    { next: 'sluice reads the list again from an earlier position, without repeats.' },
  );
  return { outcome: 'refused', about: 'cursor', status: 200, cause };
}

/** True for that suspicion, and false for a rejection by upstream. */
export function isIgnoredPosition({ outcome, status }: Failure): boolean {
  return outcome === 'refused' && status === 200;
}

/** How far back a walk has seen the list reach. */
export interface WalkReach {
  /** A known record was seen. */
  readonly known: boolean;
  /** Earliest event time seen, epoch milliseconds. */
  readonly earliest: number | null;
}

/** The reach before a walk's first page. */
export const noReach: WalkReach = { known: false, earliest: null };

/** The reach after one more page. */
export function reachWith(reach: WalkReach, { taken, overlap }: Stage): WalkReach {
  const { page, judged, span } = taken;
  const earliest = span?.earliest ?? null;
  return {
    known: reach.known || judged.fresh.length + overlap < page.records.length,
    earliest: earliest === null ? reach.earliest : Math.min(reach.earliest ?? earliest, earliest),
  };
}

/** The condition if none of the known records is left: records in between may be gone too. */
export function gapBefore(
  { known, earliest }: WalkReach,
  stream: string,
  watermark: number | null,
): readonly Finding[] {
  if (known || watermark === null || earliest === null || earliest <= watermark) return [];
  return [
    {
      condition: 'source.gap_suspected',
      message: `the oldest record that ${stream} still has is newer than the latest one read; records between may be lost upstream`,
      details: {
        from: timeText(watermark),
        to: timeText(earliest),
      },
    },
  ];
}

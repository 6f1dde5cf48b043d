// A batch that was refused, in parts. While nothing is accepted, one event is found with at most
// log2(events) requests, one request fewer than halving needs: the request that is left over asks
// whether the receiver accepts another event. Once one part was accepted, the other part of what was
// refused holds the bad event: it is not sent as a whole again.

import type { Event } from '../contracts/event.ts';
import type { Batch } from '../contracts/sink.ts';
import { firstAndRest, halves } from './batch-parts.ts';
import type { RequestCount } from './evidence.ts';

/** A batch as it was cut, and the requests that it took so far. */
interface Attempt {
  readonly events: readonly Event[];
  requests: number;
  hasAccepted: boolean;
}

/** A batch, or a part of one, that is to be sent. */
export interface BatchPart {
  readonly batch: Batch;
  readonly attempt: Attempt;
  /** When a batch with these events was first refused; null: it was not. */
  readonly since: RequestCount | null;
  /** The other part of what was refused, which follows; null: there is none. */
  readonly twin: BatchPart | null;
  /** It holds a bad event, since its twin was accepted. */
  isGuilty: boolean;
}

/** A part this small has its events sent one by one while nothing is accepted. */
const fewEvents = 4;
/** Requests for other events at once, where the attempt has accepted some. */
const spareOnceAccepted = 2;

/** A batch as it was cut. */
export function wholePart(batch: Batch): BatchPart {
  const attempt = { events: batch.events, requests: 0, hasAccepted: false };
  return { batch, attempt, since: null, twin: null, isGuilty: false };
}

/** What is left of a part. */
export function remainingPart(
  part: BatchPart,
  batch: Batch,
  since: RequestCount | null,
): BatchPart {
  return { batch, attempt: part.attempt, since, twin: null, isGuilty: false };
}

/** A refused part of several events in two, the first one last. */
export function splitPart(part: BatchPart, since: RequestCount): readonly BatchPart[] {
  const { batch, attempt } = part;
  const isSmall = !attempt.hasAccepted && batch.events.length <= fewEvents;
  const [later, first] = (isSmall ? firstAndRest(batch) : halves(batch)) as [Batch, Batch];
  const twin: BatchPart = { batch: later, attempt, since, twin: null, isGuilty: false };
  return [twin, { batch: first, attempt, since, twin, isGuilty: false }];
}

/** Requests that may follow at once, so that one bad event costs no wait. */
export function spareRequests({ attempt }: BatchPart): number {
  if (attempt.hasAccepted) return spareOnceAccepted;
  const most = Math.floor(Math.log2(Math.max(1, attempt.events.length))) + 1;
  return attempt.requests < most ? 1 : 0;
}

// Splits a rejected batch. While nothing is accepted, one event is found with at most log2(events)
// requests, one fewer than halving needs: the spare request tests whether the receiver accepts
// another event. Once one part was accepted, the other part of the rejected batch contains the bad
// event: it is not sent as a whole again.

import type { Batch, Event } from '../contracts/index.ts';
import { firstAndRest, halves } from './batch-parts.ts';
import type { RequestCount } from './evidence.ts';

/** A batch as it was cut, and the number of requests for it so far. */
interface Attempt {
  readonly events: readonly Event[];
  requests: number;
  hasAccepted: boolean;
}

/** A batch, or a part of one, to send. */
export interface BatchPart {
  readonly batch: Batch;
  readonly attempt: Attempt;
  /** When a batch with these events was first rejected; null: never. */
  readonly since: RequestCount | null;
  /** The other part of the rejected batch, which follows; null: none. */
  readonly twin: BatchPart | null;
  /** It contains a bad event, because its twin was accepted. */
  isGuilty: boolean;
}

/** A part of this size has its events sent one by one while nothing is accepted. */
const fewEvents = 4;
/** Requests for other events at once, if the attempt has accepted some. */
const spareOnceAccepted = 2;

/** A batch as it was cut. */
export function wholePart(batch: Batch): BatchPart {
  const attempt = { events: batch.events, requests: 0, hasAccepted: false };
  return { batch, attempt, since: null, twin: null, isGuilty: false };
}

/** The rest of a part. */
export function remainingPart(
  part: BatchPart,
  batch: Batch,
  since: RequestCount | null,
): BatchPart {
  return { batch, attempt: part.attempt, since, twin: null, isGuilty: false };
}

/** Splits a rejected part of several events in two, the first one last. */
export function splitPart(part: BatchPart, since: RequestCount): readonly BatchPart[] {
  const { batch, attempt } = part;
  const isSmall = !attempt.hasAccepted && batch.events.length <= fewEvents;
  const [later, first] = (isSmall ? firstAndRest(batch) : halves(batch)) as [Batch, Batch];
  const twin: BatchPart = { batch: later, attempt, since, twin: null, isGuilty: false };
  return [twin, { batch: first, attempt, since, twin, isGuilty: false }];
}

/** Requests that may follow without a wait, so that one bad event costs no wait. */
export function spareRequests({ attempt }: BatchPart): number {
  if (attempt.hasAccepted) return spareOnceAccepted;
  const most = Math.floor(Math.log2(Math.max(1, attempt.events.length))) + 1;
  return attempt.requests < most ? 1 : 0;
}

// Sends a batch in parts if the receiver reports that it is too large, or that one event spoils it.
// The engine's batches are bounded in bytes, but only the receiver knows its own limit, so a sink
// that gets 413 halves the batch itself and combines the responses in one Delivery. Invariants: an
// event ends up delivered, refused, or sent again, exactly one of these; the parts are cut at the
// same positions on each attempt, so that a part can carry an id; an event rejected alone is
// reported as refused beside accepted ones only if one of these was accepted between two rejections
// (src/send/evidence.ts).

import type {
  Batch,
  Delivery,
  ExportError,
  Refusal,
  Uid,
  Verdict,
} from '../../src/contracts/index.ts';

/** Events of a batch from `from` up to, not including, `to`. */
export interface Range {
  readonly from: number;
  readonly to: number;
}

/** The result of one part: a Delivery, or that it exceeds the receiver's limit. */
export type PartAnswer = Delivery | TooLarge | Spoiled;

/** The receiver accepts only smaller requests. */
export interface TooLarge {
  readonly outcome: 'too_large';
  readonly cause: ExportError;
  /** `sink`: over a limit that the sink knows. Default: the receiver's response. */
  readonly by?: Verdict;
}

/** The receiver rejects the whole part because of one event, and names it. */
export interface Spoiled {
  readonly outcome: 'spoiled';
  /** Index of the event in the part, from 0. */
  readonly at: number;
  readonly cause: ExportError;
  /** `sink`: the sink itself does not send the event. Default: the receiver's response. */
  readonly by?: Verdict;
}

/** A part in the queue. */
interface Waiting extends Range {
  /** Number of accepted events when it was first rejected, in a larger part; null: never. */
  readonly since: number | null;
}

/** While nothing is accepted, a part of this size has its events sent one by one. */
const fewEvents = 4;

/**
 * Sends the whole batch, then halves of a part that is too large, oldest first, one after the
 * other; of a part that one event spoils, the events before it, that event alone, and the events
 * after it. An event that is rejected alone while nothing was accepted ends this: the others are
 * sent again later. So does the first part with an event to send again, and the first one that must
 * wait or is rejected: if there was no other response before, its response is that of the batch;
 * otherwise it and all later parts are sent again.
 */
export async function sendInHalves(
  batch: Batch,
  sendPart: (range: Range) => Promise<PartAnswer>,
): Promise<Delivery> {
  const refused: Refusal[] = [];
  const waiting: Waiting[] = [{ from: 0, to: batch.events.length, since: null }];
  let [settled, accepted] = [0, 0];
  let pending: Refusal | null = null;
  const left = (range: Range | null): readonly Uid[] => [
    ...(pending === null ? [] : [pending.uid]),
    ...[...(range === null ? [] : [range]), ...waiting.reverse()].flatMap((part) =>
      uidsOf(batch, part),
    ),
  ];
  for (let range = waiting.pop(); range !== undefined; range = waiting.pop()) {
    const size = range.to - range.from;
    const answer = await sendPart({ from: range.from, to: range.to });
    switch (answer.outcome) {
      case 'delivered':
        if (size === batch.events.length) return answer;
        [settled, accepted] = [settled + size, accepted + size];
        if (pending !== null) refused.push(pending);
        pending = null;
        break;
      case 'partly':
        refused.push(...answer.refused);
        settled += size - answer.again.length;
        accepted += size - answer.again.length - answer.refused.length;
        if (answer.again.length === 0) break;
        // Later events would overtake a waiting event.
        return { outcome: 'partly', refused, again: [...answer.again, ...left(null)] };
      case 'too_large':
      case 'spoiled': {
        const { by = 'receiver', cause } = answer;
        if (size > 1) {
          waiting.push(...partsOf(range, answer, accepted));
          break;
        }
        const [refusal] = refusalsOf(batch, range, cause.message, by);
        settled += 1;
        if (refusal === undefined || by === 'sink') {
          if (refusal !== undefined) refused.push(refusal);
          break;
        }
        if (accepted > (range.since ?? accepted) && pending === null) {
          pending = refusal;
          break;
        }
        // Nothing else was accepted: the engine probes this event.
        if (accepted === 0) refused.push(refusal);
        return {
          outcome: 'partly',
          refused,
          again: left(accepted === 0 ? null : range),
        };
      }
      case 'retry':
      case 'refused':
        if (settled === 0) return answer;
        return { outcome: 'partly', refused, again: left(range) };
    }
  }
  if (pending !== null) refused.push(pending);
  return refused.length === 0
    ? { outcome: 'delivered' }
    : { outcome: 'partly', refused, again: [] };
}

/** The parts to send instead of a part, the oldest last. */
function partsOf(
  { from, to, since }: Waiting,
  answer: TooLarge | Spoiled,
  accepted: number,
): readonly Waiting[] {
  const at = answer.outcome === 'spoiled' ? from + answer.at : to;
  const isSmall = accepted === 0 && to - from <= fewEvents;
  const middle = isSmall ? from + 1 : from + Math.floor((to - from) / 2);
  const borders = at < to ? [from, at, at + 1, to] : [from, middle, to];
  const parts = borders
    .slice(1)
    .map((end, i) => ({ from: borders[i] ?? from, to: end, since: since ?? accepted }));
  return parts.filter((part) => part.to > part.from).reverse();
}

/** The same refusal for each event of a part. */
export function refusalsOf(
  batch: Batch,
  range: Range,
  reason: string,
  by: Verdict = 'receiver',
): readonly Refusal[] {
  const verdict = by === 'receiver' ? {} : { by };
  return uidsOf(batch, range).map((uid) => ({ uid, reason, ...verdict }));
}

function uidsOf(batch: Batch, range: Range): readonly Uid[] {
  return batch.events.slice(range.from, range.to).map((event) => event.uid);
}
